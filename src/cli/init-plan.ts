/** What `toolgate init` would do: the servers it finds in the files of clients, and what it would write where. */
import { readFile } from 'node:fs/promises';
import { basename, dirname, resolve } from 'node:path';
import { GatewayError, messageOf } from '../base/errors.ts';
import { canonicalJson } from '../base/hash.ts';
import { isObject, type JsonObject, toObject } from '../base/objects.ts';
import { serverMapsIn } from '../config/client-entry.ts';
import { type ClientFile, clientFiles, entryInStyle, styleAt } from '../config/client-files.ts';
import { editText } from '../config/edit.ts';
import { serverEdits, serverNames, type WrittenServer } from '../config/edit-servers.ts';
import type { EnvVars } from '../config/expand.ts';
import { readServer } from '../config/foreign.ts';
import { issueText } from '../config/issues.ts';
import { parseConfig } from '../config/parse.ts';
import { type PlainSecret, plainSecrets, withReferences } from '../config/plain-secrets.ts';
import type { Edit } from '../config/raw-config.ts';
import { startsToolgate } from '../config/self-reference.ts';
import type { PlannedChange } from '../store/init-journal.ts';

/** A server in the file of a client. */
interface Origin {
  readonly file: ClientFile;
  readonly name: string;
}

/** A server that is imported. */
export interface ImportedServer {
  readonly server: WrittenServer;
  /** Where it was found; several if clients have the same one. */
  readonly from: readonly Origin[];
  readonly secrets: readonly PlainSecret[];
  readonly notes: readonly string[];
}

/** A server that stays where it is. */
export interface LeftOut extends Origin {
  readonly reason: string;
}

/** A file of a client that exists. */
interface ReadFile {
  readonly file: ClientFile;
  readonly bytes: Buffer;
  readonly servers: JsonObject;
}

export interface InitPlan {
  readonly files: readonly ClientFile[];
  readonly imported: readonly ImportedServer[];
  readonly leftOut: readonly LeftOut[];
  /** Those of them that the configuration has already. Their clients can use Toolgate for them. */
  readonly present: readonly Origin[];
  /** Files that could not be read. */
  readonly problems: readonly string[];
  /** Clients that have Toolgate already. */
  readonly pointed: readonly ClientFile[];
}

export interface InitSurroundings {
  readonly cwd: string;
  readonly env: EnvVars;
  /** The configuration that the servers are written to. */
  readonly target: string;
  /** The only file to read; else those of all clients. */
  readonly from: string | null;
}

/** Reads the files of all clients. Changes nothing. */
export async function planInit(
  surroundings: InitSurroundings,
): Promise<InitPlan & { readonly read: readonly ReadFile[] }> {
  const { cwd, target } = surroundings;
  const problems: string[] = [];
  const read = await readFiles(surroundings, problems);
  const known = await targetValue(target);
  const taken = new Set(serverNames(known));
  const existing = writtenServers(known);
  const imported: (ImportedServer & { readonly id: string })[] = [];
  const leftOut: LeftOut[] = [];
  const present: Origin[] = [];
  const pointed: ClientFile[] = [];
  for (const { file, servers } of read)
    for (const [name, entry] of Object.entries(servers)) {
      const notes: string[] = [];
      const found = readServer(name, entry, { file: file.file, workspace: cwd }, (note) => notes.push(note));
      if (Array.isArray(found)) {
        leftOut.push({ file, name, reason: found.map(issueText).join('; ') });
        continue;
      }
      const server = withFolder(found.written as unknown as WrittenServer, file, surroundings);
      if (startsToolgate([server.command ?? '', ...(server.args ?? [])])) {
        pointed.push(file);
        continue;
      }
      const id = identity(server);
      const same = imported.findIndex((one) => one.id === id);
      if (same >= 0) {
        const before = imported[same]!;
        imported[same] = { ...before, from: [...before.from, { file, name }] };
        continue;
      }
      if (existing.some((one) => isSame(one, server))) {
        present.push({ file, name });
        leftOut.push({ file, name, reason: `${basename(target)} has it already` });
        continue;
      }
      const namespace = freeName(server.namespace, file.client, taken);
      taken.add(namespace);
      const named = clean({ ...server, namespace });
      imported.push({ id, server: named, from: [{ file, name }], secrets: plainSecrets(named), notes });
    }
  return { files: read.map(({ file }) => file), read, imported, leftOut, present, problems, pointed };
}

async function readFiles({ cwd, env, from }: InitSurroundings, problems: string[]): Promise<ReadFile[]> {
  if (from !== null) return readNamed(resolve(cwd, from));
  const read: ReadFile[] = [];
  for (const file of clientFiles(cwd, env)) {
    const bytes = await readFile(file.file).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'ENOENT' && error.code !== 'ENOTDIR')
        problems.push(`${file.file} cannot be read (${error.code})`);
      return null;
    });
    if (bytes === null) continue;
    try {
      const servers = file.at.reduce<unknown>((at, key) => toObject(at)[key], await valueOfText(bytes, file.file));
      if (isObject(servers)) read.push({ file, bytes, servers });
    } catch (error) {
      problems.push(messageOf(error));
    }
  }
  return read;
}

async function readNamed(file: string): Promise<ReadFile[]> {
  const bytes = await readFile(file).catch(() => {
    throw new GatewayError('config_missing', `There is no file ${file}, which --from names.`);
  });
  const maps = serverMapsIn(toObject(await valueOfText(bytes, file)));
  if (maps.length === 0)
    throw new GatewayError(
      'usage',
      `${file} has no servers where clients have them, such as "mcpServers". Name another file.`,
    );
  return maps.map(({ path, servers }) => ({
    file: { client: basename(file), level: 'user', file, at: path, style: styleAt(path) },
    bytes,
    servers,
  }));
}

async function valueOfText(bytes: Buffer, file: string): Promise<unknown> {
  const text = bytes.toString().replace(/^\uFEFF/, '');
  return text.trim() === '' ? {} : (await parseConfig(text, file)).value;
}

async function targetValue(target: string): Promise<JsonObject> {
  const bytes = await readFile(target).catch(() => null);
  return bytes === null ? {} : toObject(await valueOfText(bytes, target));
}

/** What tells servers apart, whatever they are called. */
function identity({ command, args, env, cwd, url, headers }: WrittenServer): string {
  return canonicalJson({ command, args: args ?? [], env: env ?? {}, cwd, url, headers: headers ?? {} });
}

/** The servers of our own configuration, as they are written. */
function writtenServers({ servers, mcpServers }: JsonObject): WrittenServer[] {
  const named = Object.entries({ ...(Array.isArray(servers) ? {} : toObject(servers)), ...toObject(mcpServers) });
  return [
    ...(Array.isArray(servers) ? servers : []).map((one) => toObject(one)),
    ...named.map(([namespace, one]) => ({ namespace, ...toObject(one) })),
  ] as unknown as WrittenServer[];
}

/** Secrets that were moved to the store cannot be compared. Then the name has to be the same. */
function isSame(ours: WrittenServer, theirs: WrittenServer): boolean {
  if (identity(ours) === identity(theirs)) return true;
  const moved = withReferences(theirs, plainSecrets(theirs));
  return ours.namespace === theirs.namespace && withoutNames(identity(ours)) === withoutNames(identity(moved));
}

/** The same for all references to secrets. */
function withoutNames(text: string): string {
  return text.replace(/\$\{secret:[^}]*\}/g, '${secret}');
}

/** Without keys that say nothing. */
function clean(server: WrittenServer): WrittenServer {
  const { namespace, command, args, url, ...rest } = server as WrittenServer & Record<string, unknown>;
  const isEmpty = (value: unknown) => value === undefined || (isObject(value) && Object.keys(value).length === 0);
  const others = Object.entries(rest).filter(
    ([key, value]) =>
      !isEmpty(value) && !(key === 'enabled' && value === true) && !(key === 'transport' && value !== 'sse'),
  );
  return {
    namespace,
    ...(command !== undefined && { command, args: args ?? [] }),
    ...(url !== undefined && { url }),
    ...Object.fromEntries(others),
  } as WrittenServer;
}

/** Clients start the servers of a project in its folder; Toolgate in that of its configuration. */
function withFolder(server: WrittenServer, { level }: ClientFile, { cwd, target }: InitSurroundings): WrittenServer {
  if (level !== 'project' || server.command === undefined || dirname(target) === cwd) return server;
  return { ...server, cwd: resolve(cwd, server.cwd ?? '.') };
}

function freeName(name: string, client: string, taken: ReadonlySet<string>): string {
  if (!taken.has(name)) return name;
  const base = `${name}-${client.toLowerCase().replace(/[^a-z0-9]+/g, '-')}`;
  let next = base;
  for (let n = 2; taken.has(next); n++) next = `${base}-${n}`;
  return next;
}

const HEADER = `# Servers of your MCP clients, imported by toolgate init. To take it all back: toolgate init --undo
`;

/**
 * The new content of the configuration. `moves`: secrets are in the store, and the file refers to them. `keyFile`: what it
 * says about their key; null if it says nothing new.
 */
export async function configChange(
  target: string,
  imported: readonly ImportedServer[],
  moves: boolean,
  keyFile: string | null,
): Promise<PlannedChange | null> {
  if (imported.length === 0) return null;
  const before = await readFile(target).catch(() => null);
  const text = before?.toString() ?? (target.endsWith('.toml') ? HEADER : '');
  const servers = imported.map(({ server, secrets }) => (moves ? withReferences(server, secrets) : server));
  const comments = new Map(imported.map((one, i) => [servers[i]!, originText(one)]));
  const edits: Edit[] = [
    ...(keyFile === null ? [] : [{ kind: 'set', path: ['secrets', 'key_file'], value: keyFile } as const]),
    ...serverEdits(await targetValue(target), target, servers, (server) => comments.get(server)),
  ];
  return { file: target, before, after: await editText(text, target, edits), back: [], wrote: [] };
}

function originText({ from }: ImportedServer): string {
  return `from ${from.map(({ file, name }) => `${file.client} ("${name}" in ${file.file})`).join(', ')}`.replace(
    /[\r\n]/g,
    ' ',
  );
}

/** What clients can leave to Toolgate. */
export function servedByToolgate({ imported, present }: Pick<InitPlan, 'imported' | 'present'>): Origin[] {
  return [...imported.flatMap(({ from }) => from), ...present];
}

/** The files of clients with one entry, which starts Toolgate, in place of the servers that Toolgate has. */
export async function clientChanges(
  read: readonly ReadFile[],
  plan: Pick<InitPlan, 'imported' | 'present'>,
  command: readonly [string, ...string[]],
): Promise<PlannedChange[]> {
  const changes = new Map<string, PlannedChange>();
  const served = servedByToolgate(plan);
  for (const { file, bytes, servers } of read) {
    const gone = served.filter((one) => one.file === file).map(({ name }) => name);
    if (gone.length === 0) continue;
    const [program, ...args] = command;
    const name = freeName('toolgate', 'gateway', new Set(Object.keys(servers).filter((one) => !gone.includes(one))));
    const entry = { path: [...file.at, name], value: entryInStyle(file.style, program, args) };
    const edits: Edit[] = [
      ...gone.map((one): Edit => ({ kind: 'remove', path: [...file.at, one] })),
      { kind: 'set', ...entry },
    ];
    const back: Edit[] = [
      { kind: 'remove', path: entry.path },
      ...gone.map((one): Edit => ({ kind: 'set', path: [...file.at, one], value: servers[one] })),
    ];
    // One file may have servers in several places.
    const known = changes.get(file.file);
    changes.set(file.file, {
      file: file.file,
      before: bytes,
      after: await editText(known?.after ?? bytes.toString(), file.file, edits),
      back: [...(known?.back ?? []), ...back],
      wrote: [...(known?.wrote ?? []), entry],
    });
  }
  return [...changes.values()];
}
