/** How a server is reached, worked out of its entry: the program with its arguments, or the address. */

import { createHash } from 'node:crypto';
import { resolve } from 'node:path';
import { messageOf } from '../base/errors.ts';
import { fillIn, referencesIn, referTo } from '../secrets/reference.ts';
import type { Launch } from './config.ts';
import { type Environment, expand } from './expand.ts';
import type { Issue, Path } from './issues.ts';
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
  const text = (key: Path, written: string, secret: typeof referTo | null = referTo): string => {
    const expansion = expand(written, env, secret);
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
    // What is missing of it comes with its secrets.
    if (issues.length === 0 && !url.startsWith(referTo('')[0]!) && !isHttpUrl(fillIn(url, () => 'x')))
      add(['url'], 'is not an address that begins with http:// or https://');
    for (const [name, value] of Object.entries(headers)) {
      if (!isHeaderValue(fillIn(value, () => '')))
        add(['headers', name], 'holds what no HTTP header can carry, such as a line break');
    }
    const { transport } = server;
    return { launch: { kind: 'http', url, headers, ...(transport === 'sse' && { transport }) }, issues };
  }

  const command = server.command ?? '';
  const surroundings = {
    env: texts('env', server.env),
    cwd: server.cwd === undefined ? folder : resolve(folder, text(['cwd'], server.cwd, null)),
  };
  if (shellLine && server.args === undefined) {
    try {
      // Variables are left to the shell: put in here, a value with a `;` in it would become code.
      const { line, variables } = leaveToShell(command);
      const around = { ...surroundings, env: { ...surroundings.env, ...variables } };
      return { launch: { kind: 'stdio', ...parseCommandLine(line), ...around }, issues };
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

/** Secrets become variables, which the shell is given. */
function leaveToShell(command: string): { line: string; variables: Record<string, string> } {
  const variables: Record<string, string> = {};
  const line = command.replace(/\$\{secret:([A-Za-z_]\w*)\}/g, (_, name: string) => {
    variables[`TOOLGATE_SECRET_${name}`] = referTo(name);
    return `\${TOOLGATE_SECRET_${name}}`;
  });
  return { line, variables };
}

/** The names of the secrets that are to be put into a launch. */
export function secretsIn(launch: Launch): string[] {
  const wanted = launch.kind === 'folder' ? launch.secrets : [];
  return [...new Set([...wanted, ...textsOf(launch).flatMap(referencesIn)])];
}

function textsOf(launch: Launch): string[] {
  if (launch.kind === 'inline') return [];
  if (launch.kind === 'http') return [launch.url, ...Object.values(launch.headers)];
  const env = Object.values(launch.env);
  return launch.kind === 'folder' ? [...env, ...Object.values(launch.defaults)] : [launch.file, ...launch.args, ...env];
}

/** Those that stand in the command itself: the system shows it to everybody. */
export function secretsInArguments(launch: Launch): string[] {
  if (launch.kind !== 'stdio') return [];
  // What stands before the program is given to it in its environment.
  const line = launch.args.join(' ').replace(/^-c (?:exec )?(?:[A-Za-z_]\w*=(?:"[^"]*"|'[^']*'|\S*)\s+)*/, '');
  const inLine = line.matchAll(/\$\{TOOLGATE_SECRET_(\w+)\}/g);
  const names = [launch.file, ...launch.args].flatMap(referencesIn);
  return [...new Set([...names, ...[...inLine].map((match) => match[1]!)])];
}

/** A launch with its secrets in it. Kept by nobody: it is made for the start of a server. */
export function fillLaunch(launch: Launch, lookUp: (name: string) => string | undefined): Launch {
  if (launch.kind === 'inline') return launch;
  const fill = (text: string) => fillIn(text, lookUp);
  const fillAll = (map: Readonly<Record<string, string>>) =>
    Object.fromEntries(Object.entries(map).map(([name, text]) => [name, fill(text)]));
  if (launch.kind !== 'http')
    return launch.kind === 'folder'
      ? { ...launch, env: fillAll(launch.env), defaults: fillAll(launch.defaults) }
      : { ...launch, file: fill(launch.file), args: launch.args.map(fill), env: fillAll(launch.env) };
  const filled = { ...launch, url: fill(launch.url), headers: fillAll(launch.headers) };
  if (!isHttpUrl(filled.url)) throw new Error('with its secrets its url begins with neither http:// nor https://');
  if (!Object.values(filled.headers).every(isHeaderValue))
    throw new Error('with its secrets a header of it holds what no HTTP header can carry, such as a line break');
  return filled;
}

function isHttpUrl(text: string): boolean {
  return URL.canParse(text) && /^https?:$/.test(new URL(text).protocol);
}

function isHeaderValue(text: string): boolean {
  return [...text].every((char) => char === '\t' || (char >= ' ' && char !== '\x7f' && char <= '\xff'));
}
