/**
 * Changes the servers of a configuration file: adds, removes, switches on and off. The file is checked before it is
 * written: an edit with which it would not load is refused, and everything else in it stays as it is.
 */
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { basename } from 'node:path';
import { GatewayError } from '../base/errors.ts';
import { replaceOwned } from '../base/files.ts';
import { withLock } from '../base/lock.ts';
import { isObject, type JsonObject, toObject } from '../base/objects.ts';
import { didYouMean } from '../base/text.ts';
import type { Config } from './config.ts';
import { editText } from './edit.ts';
import { type FoundConfig, IN_DATA_DIR, type LoadOptions } from './find.ts';
import { isClientFile, isForeign, isPersona } from './foreign.ts';
import { type Path, schemaIssues } from './issues.ts';
import { loadConfigText } from './load.ts';
import { parseConfig } from './parse.ts';
import type { Edit } from './raw-config.ts';
import { serverSchema } from './servers.ts';

/** An entry of `servers`, as it is written. */
export interface WrittenServer {
  readonly namespace: string;
  readonly command?: string;
  readonly args?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
  readonly url?: string;
  readonly transport?: 'http' | 'sse';
  readonly headers?: Readonly<Record<string, string>>;
  readonly description?: string;
  readonly enabled?: boolean;
}

export interface EditOptions extends Pick<LoadOptions, 'cwd' | 'env'> {
  /** Told what the file will say, before it says so: trust in a new server is there when a running gateway sees it. */
  readonly beforeWrite?: (config: Config) => Promise<void>;
}

/** Changes the file. `edits` gets what it says, as a value. Nothing is written if there are no edits. */
export async function editConfig(
  found: FoundConfig,
  options: EditOptions,
  edits: (value: JsonObject) => readonly Edit[],
): Promise<Config> {
  const { file } = found;
  if (isPersona(file))
    throw new GatewayError('usage', `${file} is a persona package. Its servers are in mcp.json next to it: edit that.`);
  return withLock(file, async () => {
    const before = existsSync(file) ? await readFile(file, 'utf8') : '';
    const value = before.trim() === '' ? {} : toObject((await parseConfig(before, file)).value);
    requireOwnForm(file, value);
    const wanted = edits(value);
    const after = await editText(before, file, wanted);
    const config = await loadConfigText(after, found, options);
    if (wanted.length > 0) {
      await options.beforeWrite?.(config);
      await replaceOwned(file, after);
    }
    return config;
  });
}

/** Files in which clients keep their servers in a form of their own are theirs to edit. */
function requireOwnForm(file: string, value: JsonObject): void {
  const isOwn = isObject(value.mcpServers) || value.servers !== undefined || isForeign(file);
  if (!isOwn && isClientFile(file, value))
    throw new GatewayError(
      'usage',
      `${file} belongs to another program, which has its own way to change it. To use its servers in Toolgate, run: toolgate init --from ${basename(file)}`,
    );
}

/** Creates the file if there is none. Throws if a server has the name already. */
export function addServers(
  found: FoundConfig,
  servers: readonly WrittenServer[],
  options: EditOptions,
): Promise<Config> {
  return editConfig(found, options, (value) => serverEdits(value, found.file, servers));
}

/** The edits that add servers. `commentOf` says where one comes from. */
export function serverEdits(
  value: JsonObject,
  file: string,
  servers: readonly WrittenServer[],
  commentOf: (server: WrittenServer) => string | undefined = () => undefined,
): Edit[] {
  const names = serverNames(value);
  const added = servers.map((server): Edit => {
    const { error } = serverSchema.safeParse(server);
    if (error !== undefined) {
      const [{ path, message }] = schemaIssues(serverSchema, error, server) as [{ path: Path; message: string }];
      throw new GatewayError('usage', `The server cannot be written: ${[...path, message].join(' ')}.`);
    }
    if (names.includes(server.namespace))
      throw new GatewayError(
        'usage',
        `${file} has a server "${server.namespace}" already. Choose another name, or remove that one first: toolgate remove ${server.namespace}`,
      );
    const { key, form } = placeOf(value, file);
    const text = commentOf(server);
    const comment = text === undefined ? {} : { comment: text };
    if (form === 'list') return { kind: 'append', path: [key], value: server, ...comment };
    const { namespace, ...entry } = server;
    return { kind: 'set', path: [key, namespace], value: entry, ...comment };
  });
  return isNew(value, file) ? [SHOWN_BY_SIZE, ...added] : added;
}

/** A new file says what models see of the servers in it, so that nobody has to know that before the first start. */
const SHOWN_BY_SIZE: Edit = { kind: 'set', path: ['controls'], value: 'auto' };

/** Clients' files are read by other programs too, and folders of tools are shown as they are. */
function isNew(value: JsonObject, file: string): boolean {
  return Object.keys(value).length === 0 && !isForeign(file) && basename(file) !== IN_DATA_DIR;
}

export function removeServer(found: FoundConfig, name: string, options: EditOptions): Promise<Config> {
  return editConfig(found, options, (value) => [{ kind: 'remove', path: pathOf(value, name, found.file) }]);
}

/** Resolves to whether something had to be changed. */
export async function switchServer(
  found: FoundConfig,
  name: string,
  enabled: boolean,
  options: EditOptions,
): Promise<boolean> {
  let isChanged = false;
  await editConfig(found, options, (value) => {
    const path = pathOf(value, name, found.file);
    const entry = toObject(valueIn(value, path));
    const was = entry.enabled !== false && entry.disabled !== true;
    isChanged = was !== enabled;
    if (!isChanged) return [];
    // Other programs that read the file know `disabled`.
    const isTheirs = 'disabled' in entry || (isForeign(found.file) && !('enabled' in entry));
    return [{ kind: 'set', path: [...path, isTheirs ? 'disabled' : 'enabled'], value: isTheirs ? !enabled : enabled }];
  });
  return isChanged;
}

function valueIn(value: unknown, path: Path): unknown {
  return path.reduce<unknown>((at, key) => (at as Record<string | number, unknown>)[key], value);
}

/** Whether the file has an entry of that name. */
export async function isServerIn(file: string, name: string): Promise<boolean> {
  const text = existsSync(file) ? await readFile(file, 'utf8') : '';
  const value = text.trim() === '' ? {} : toObject((await parseConfig(text, file)).value);
  return serversIn(value).some((one) => one.name === name || one.path[1] === name);
}

/** Where the file has its servers: in a list, or in a map by name. */
type ServersPlace = { readonly key: 'servers' | 'mcpServers'; readonly form: 'list' | 'map' };

function placeOf(value: JsonObject, file: string): ServersPlace {
  if (isObject(value.servers)) return { key: 'servers', form: 'map' };
  if (value.servers === undefined && (isObject(value.mcpServers) || isForeign(file)))
    return { key: 'mcpServers', form: 'map' };
  return { key: 'servers', form: 'list' };
}

/** The entries with the names by which people know them. */
function serversIn(value: JsonObject): { readonly name: string; readonly path: Path }[] {
  return ['servers', 'mcpServers'].flatMap((section) => {
    const written = value[section];
    if (Array.isArray(written))
      return written.map((one, i) => ({ name: String(toObject(one).namespace ?? ''), path: [section, i] }));
    return Object.entries(toObject(written)).map(([key, one]) => ({
      name: String(toObject(one).namespace ?? key),
      path: [section, key],
    }));
  });
}

export function serverNames(value: JsonObject): string[] {
  return serversIn(value).map(({ name }) => name);
}

function pathOf(value: JsonObject, name: string, file: string): Path {
  const all = serversIn(value);
  const [found, other] = [
    ...all.filter((one) => one.name === name),
    ...all.filter((one) => one.name !== name && one.path[1] === name),
  ];
  if (found === undefined)
    throw new GatewayError(
      'usage',
      `${file} has no server "${name}".${didYouMean(
        name,
        all.map((one) => one.name),
      )} It has: ${
        all
          .map((one) => one.name)
          .filter((one) => one !== '')
          .join(', ') || 'none with a name'
      }.`,
    );
  if (other !== undefined && other.path[1] !== name)
    throw new GatewayError(
      'usage',
      `${file} has two servers "${name}". Edit it yourself, so that the right one is meant.`,
    );
  return found.path;
}
