/** The section `audit`: what is recorded about calls. */
import { resolve } from 'node:path';
import * as z from 'zod';
import { sha256 } from '../base/hash.ts';
import type { ResolveContext } from './context.ts';
import { choice, count, flag, type Section, section, size, text, textList } from './fields.ts';

/** Where copies of the lines go. `text` is how it was written. */
export type AuditTarget = { readonly text: string } & (
  | { readonly kind: 'stdout' }
  | { readonly kind: 'udp' | 'tcp'; readonly host: string; readonly port: number }
  | { readonly kind: 'unix'; readonly path: string }
  | { readonly kind: 'otlp'; readonly url: string }
);

export interface AuditConfig {
  /** Null: the door decides. */
  readonly enabled: boolean | null;
  readonly dir: string;
  /** Days. */
  readonly retention: number;
  readonly arguments: boolean;
  readonly results: boolean;
  /** Bytes. */
  readonly maxValue: number;
  /** Whether a line is written before a call is sent, too. */
  readonly before: boolean;
  readonly onFailure: 'continue' | 'stop';
  /** The key of the seals; null without one. */
  readonly key: () => string | null;
  readonly copies: readonly AuditTarget[];
  /** The file with the last seals of each run. */
  readonly heads: string;
}

const MAX_DAYS = 36_500;
const DAYS = /^(\d{1,5})d$/;

/** Whole days. */
function days() {
  const error = 'expected a number of days such as "30d"';
  return z.union([z.string().regex(DAYS, { error }), count(1, MAX_DAYS)], { error }).transform((value, context) => {
    const result = typeof value === 'number' ? value : Number(DAYS.exec(value)?.[1]);
    if (result < 1 || result > MAX_DAYS)
      context.addIssue({ code: 'custom', message: `must be from 1d to ${MAX_DAYS}d` });
    return result;
  });
}

const auditShape = {
  enabled: flag()
    .optional()
    .describe('Whether calls are recorded. Default: `true` for `toolgate serve`, `false` for everything else.'),
  dir: text()
    .optional()
    .describe('Folder for the files, relative to the folder of this file. Default: `logs` in `data_dir`.'),
  retention: days()
    .prefault('30d')
    .describe('How long files are kept. The environment variable LOG_RETENTION_DAYS overrides this.'),
  arguments: flag().prefault(false).describe('Also records the arguments of calls, without known secrets.'),
  results: flag().prefault(false).describe('Also records the results of calls, without known secrets.'),
  max_value: size().prefault('16KiB').describe('Size to which arguments and results are cut.'),
  before: flag()
    .prefault(false)
    .describe(
      'Also writes a line before a call is sent to its server, so that a crash in the middle of it leaves a trace. The call waits for the write.',
    ),
  on_failure: choice(['continue', 'stop'])
    .prefault('continue')
    .describe(
      '`stop` refuses calls while nothing can be recorded; `continue` lets them pass and keeps what fits in memory.',
    ),
  copies: textList()
    .prefault([])
    .describe(
      'Where every line is sent too: `stdout` (of `toolgate serve`), `syslog+udp://HOST:514`, `syslog+tcp://HOST:601`, `syslog+unix:///PATH`, `otlp+http://HOST:4318/v1/logs` or `otlp+https://…`.',
    ),
  key: text()
    .optional()
    .describe(
      'A key with which lines are sealed, such as `${AUDIT_KEY}`. Without it, anyone who can write the files can also seal them. `toolgate audit verify` needs it too.',
    ),
};

export const auditSchema = section(auditShape);

export function resolveAudit(
  audit: Section<typeof auditShape>,
  dataDir: string,
  { path, text: expanded, texts, variable, add }: ResolveContext,
): AuditConfig {
  const dir = audit.dir === null ? resolve(dataDir, 'logs') : path(['audit', 'dir'], audit.dir);
  const key = audit.key === null ? null : expanded(['audit', 'key'], audit.key);
  return {
    ...audit,
    dir,
    copies: texts(['audit', 'copies'], audit.copies).flatMap((written, i) => {
      const target = readTarget(written);
      if (target === null) add(['audit', 'copies', i], TARGETS);
      return target ?? [];
    }),
    // A function, so that the key does not appear where a configuration is printed.
    key: () => key,
    // Each folder has its own heads.
    heads: resolve(dataDir, audit.dir === null ? 'audit-heads.json' : `audit-heads-${sha256(dir).slice(0, 8)}.json`),
    retention: variable('LOG_RETENTION_DAYS', 'a number of days', readDays) ?? audit.retention,
  };
}

function readDays(value: string): number | null {
  const result = /^\d{1,5}$/.test(value) ? Number(value) : 0;
  return result >= 1 && result <= MAX_DAYS ? result : null;
}

const TARGETS =
  'expected stdout, syslog+udp://HOST:PORT, syslog+tcp://HOST:PORT, syslog+unix:///PATH, or otlp+http://HOST:PORT/v1/logs';
const SYSLOG_PORTS = { udp: 514, tcp: 601 } as const;

function readTarget(text: string): AuditTarget | null {
  if (text === 'stdout') return { text, kind: 'stdout' };
  const [, scheme = '', rest = ''] = /^(syslog\+udp|syslog\+tcp|syslog\+unix|otlp\+https?):\/\/(.+)$/.exec(text) ?? [];
  if (scheme === 'syslog+unix') return rest.startsWith('/') ? { text, kind: 'unix', path: rest } : null;
  const address = scheme.startsWith('otlp') ? `${scheme.slice(5)}://${rest}` : `http://${rest}`;
  if (scheme === '' || !URL.canParse(address)) return null;
  const { hostname, port, username, pathname, search } = new URL(address);
  if (username !== '') return null;
  if (scheme.startsWith('otlp')) return { text, kind: 'otlp', url: address };
  const kind = scheme === 'syslog+udp' ? 'udp' : 'tcp';
  if (pathname !== '/' || search !== '') return null;
  // A port that is that of HTTP is not kept by URL.
  const given = /:(\d+)\/?$/.exec(rest)?.[1] ?? port;
  const host = hostname.replace(/^\[(.*)\]$/, '$1');
  return { text, kind, host, port: given === '' ? SYSLOG_PORTS[kind] : Number(given) };
}
