/**
 * What a configuration would run: programs, addresses and folders of tool files, and the tokens that let clients in. Each has a hash of what decides what
 * runs, by which trust in it is remembered. It is made of the file as it is written: a secret that changes asks nobody
 * again, and the hash tells nothing about it. Paths in it begin at the file, so the file is part of it.
 */
import { isAbsolute, relative } from 'node:path';
import { canonicalJson, sha256 } from '../base/hash.ts';
import type { JsonObject } from '../base/objects.ts';
import { escaped } from '../base/text.ts';
import type { Config } from './config.ts';
import { withoutSecrets } from './raw-config.ts';
import type { FolderConfig, ServerConfig, serverShape } from './servers.ts';

/** A token of an agent, by its hash. */
export interface HeldToken {
  readonly agent: string;
  readonly sha256: string;
}

export interface Runnable {
  /** The key of its server; null for the folders of tools in the data folder, and for a token. */
  readonly key: string | null;
  /** The hash of a token; null for everything else. */
  readonly token: string | null;
  readonly hash: string;
  /** For a person: everything that is run, without secrets, every character visible. */
  readonly text: string;
}

/** Keys of an entry that decide how a server is used, but not what runs. A key that is added later is not one of them. */
const HARMLESS: readonly (keyof typeof serverShape)[] = [
  'namespace',
  'description',
  'enabled',
  'required',
  'start',
  'idle_stop',
  'share',
  'timeout',
  'total_timeout',
  'start_timeout',
  'health_interval',
  'memory',
  'concurrency',
  'queue',
  'rate',
  'calls_per_day',
  'max_arguments',
  'max_result',
  'tools',
];

/**
 * `file` is the path of the configuration without links. `dropped` are the names of the folders in the tools folder of
 * the data folder, which is `place`. `tokens` are those of agents, in the configuration and in the data folder.
 */
export function runnablesOf(
  config: Config,
  file: string,
  place: string,
  dropped: readonly string[],
  cwd: string,
  tokens: readonly HeldToken[],
): Runnable[] {
  const { settings, servers } = config.written();
  const { isolation, packages } = config.folders;
  const common = { inherit_env: settings.inherit_env ?? null };
  const hashOf = (what: JsonObject) => sha256(canonicalJson({ file, ...what }));
  const describe = (server: ServerConfig | FolderConfig): Runnable => {
    const raw = servers.get(server.key);
    const entry = Object.fromEntries(
      Object.entries(raw?.entry ?? {}).filter(([key]) => !(HARMLESS as readonly string[]).includes(key)),
    );
    const settled = 'folder' in server ? { isolation: server.isolation, packages: server.packages } : common;
    const hash = hashOf({ entry, isShellLine: raw?.isShellLine ?? null, ...settled });
    return { key: server.key, token: null, hash, text: `${escaped(server.key)}: ${entryText(entry)}` };
  };
  return [
    ...[...config.servers, ...config.folders.named].filter(({ enabled }) => enabled).map(describe),
    ...(dropped.length === 0
      ? []
      : [
          {
            key: null,
            token: null,
            hash: hashOf({ place, isolation, packages }),
            text: `tool files in ${escaped(shownPath(place, cwd))}, also those that come later: ${dropped.map(escaped).join(', ')}`,
          },
        ]),
    ...tokens.map(({ agent, sha256: token }) => ({
      key: null,
      token,
      hash: hashOf({ agent, token }),
      text: `a token of the agent ${escaped(agent)}, which lets clients in over HTTP: ${token.slice(0, 8)}…`,
    })),
  ];
}

function entryText(written: JsonObject): string {
  const { command, args, url, folder, env, headers, ...others } = withoutSecrets(written).value as JsonObject;
  const words = [command, ...(Array.isArray(args) ? args : [])].filter((word) => word !== undefined);
  const target =
    url !== undefined
      ? `connects to ${valueText(url)}`
      : folder !== undefined
        ? `tool files in ${valueText(folder)}`
        : Array.isArray(args)
          ? words.map(quoted).join(' ')
          : valueText(command);
  const pairs = Object.entries({ ...(env as JsonObject), ...(headers as JsonObject) });
  return [
    target,
    ...pairs.map(([name, value]) => `    ${escaped(name)}=${valueText(value)}`),
    ...Object.entries(others).map(([name, value]) => `    ${escaped(name)}: ${valueText(value)}`),
  ].join('\n');
}

/** An argument as a shell would take it, so that one with a space does not look like two. */
function quoted(word: unknown): string {
  const text = valueText(word);
  return /^[\w@%+=:,./~${}-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

function valueText(value: unknown): string {
  return escaped(typeof value === 'string' ? value : (JSON.stringify(value) ?? ''));
}

function shownPath(path: string, cwd: string): string {
  const way = relative(cwd, path);
  return way.startsWith('..') || isAbsolute(way) ? path : way;
}
