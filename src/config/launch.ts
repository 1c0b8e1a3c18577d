/** How a server is reached, worked out of its entry: the program with its arguments, or the address. */

import { createHash } from 'node:crypto';
import { resolve } from 'node:path';
import { messageOf } from '../errors.ts';
import type { Launch } from './config.ts';
import { type Environment, expand } from './expand.ts';
import type { Issue } from './issues.ts';
import type { Path } from './path.ts';
import type { Entry } from './schema.ts';
import { parseCommandLine } from './shell.ts';

export interface Resolved {
  /** Texts that could not be expanded stand in it as written; null where there is nothing to start. */
  readonly launch: Launch | null;
  readonly issues: readonly Issue[];
}

/** Expands texts of the entry at `path`, and collects what cannot be. */
export function expander(path: Path, env: Environment) {
  const issues: Issue[] = [];
  const add = (key: Path, message: string) => issues.push({ path: [...path, ...key], message });
  const text = (key: Path, written: string): string => {
    const expansion = expand(written, env);
    if ('text' in expansion) return expansion.text;
    add(key, expansion.problem);
    return written;
  };
  const texts = (key: string, map: Readonly<Record<string, string>> = {}) =>
    Object.fromEntries(Object.entries(map).map(([name, written]) => [name, text([key, name], written)]));
  return { issues, add, text, texts };
}

/** `folder` is the one that relative paths start from. */
export function resolveLaunch({ path, server, shellLine }: Entry, folder: string, env: Environment): Resolved {
  const { issues, add, text, texts } = expander(path, env);
  if (server.url !== undefined) {
    const url = text(['url'], server.url);
    const headers = texts('headers', server.headers);
    if (issues.length === 0 && !isHttpUrl(url)) add(['url'], 'is not an address that begins with http:// or https://');
    for (const [name, value] of Object.entries(headers)) {
      if (!isHeaderValue(value)) add(['headers', name], 'holds what no HTTP header can carry, such as a line break');
    }
    const { transport } = server;
    return { launch: { kind: 'http', url, headers, ...(transport === 'sse' && { transport }) }, issues };
  }

  const command = server.command ?? '';
  const surroundings = {
    env: texts('env', server.env),
    cwd: server.cwd === undefined ? folder : resolve(folder, text(['cwd'], server.cwd)),
  };
  if (shellLine && server.args === undefined) {
    try {
      // Variables are left to the shell: put in here, a value with a `;` in it would become code.
      return { launch: { kind: 'stdio', ...parseCommandLine(command), ...surroundings }, issues };
    } catch (error) {
      add(['command'], messageOf(error));
      return { launch: null, issues };
    }
  }
  const file = text(['command'], command);
  const args = (server.args ?? []).map((arg, i) => text(['args', i], arg));
  if (file === '') add(['command'], 'is empty once its variables are expanded. Name the program to start');
  return { launch: { kind: 'stdio', file, args, ...surroundings }, issues };
}

/** The same for equal launches, whatever the order of their variables. */
export function launchHash(launch: Launch & { readonly share?: 'session' }): string {
  return createHash('sha256').update(canonicalJson(launch)).digest('hex').slice(0, 32);
}

function canonicalJson(value: unknown): string {
  return JSON.stringify(value, (_, inner) =>
    typeof inner === 'object' && inner !== null && !Array.isArray(inner)
      ? Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1)))
      : inner,
  );
}

function isHttpUrl(text: string): boolean {
  return URL.canParse(text) && /^https?:$/.test(new URL(text).protocol);
}

function isHeaderValue(text: string): boolean {
  return [...text].every((char) => char === '\t' || (char >= ' ' && char !== '\x7f' && char <= '\xff'));
}
