/**
 * Which tools have another name now, because their server was renamed in the configuration or renamed them itself.
 *
 * Two servers may well have equal definitions, such as two folders that the same program serves. So an equal definition
 * alone proves nothing: a server counts as renamed if it is launched in the same way as one that is gone, and a tool if
 * it came when an equal one went. What each server was called and had is kept in the data folder for that.
 */
import { join } from 'node:path';
import { refId, type ToolReference } from '../access/toolset.ts';
import { jsonFile } from '../base/json-file.ts';
import { isObject, isSameValue, toObject } from '../base/objects.ts';
import { serverOf } from '../catalog/entry.ts';
import { EMPTY_OFFER, hashBytes, type Item, type Offer } from '../catalog/item.ts';
import { splice, toBytes } from '../protocol/json.ts';
import { writeIgnoreFile } from './ignore-file.ts';

/** A server of the configuration, with what it offers. */
export interface SeenServer {
  readonly key: string;
  readonly launchHash: string;
  readonly offer: Offer;
  /** Whether it is up. Otherwise this is what it offered before. */
  readonly isCurrent: boolean;
}

/** A tool as toolsets have it, and as it is called now. */
export interface Rename {
  readonly from: ToolReference;
  readonly to: ToolReference;
}

/** What a server was called, and the hashes of its tools by their names. */
interface RememberedNames {
  readonly key: string;
  readonly tools: Readonly<Record<string, string>>;
}

interface NamesFile {
  /** By the hash of the launch. */
  readonly servers: Readonly<Record<string, RememberedNames>>;
  readonly renames: readonly Rename[];
}

export interface Renames {
  /** Changes whenever `now` may answer differently. */
  readonly version: number;
  /** What a reference means now: itself, unless its tool was renamed since. */
  now(reference: ToolReference): ToolReference;
  /** These are all servers now. */
  see(servers: readonly SeenServer[]): void;
  /** Resolves when everything is written. */
  close(): Promise<void>;
}

/** The most renames that are kept, and the most pairs of tools that are compared. */
const MOST_RENAMES = 10_000;
const MOST_PAIRS = 100_000;

export function openRenames(dataDir: string, failed: (error: unknown) => void): Renames {
  const file = jsonFile(join(dataDir, 'names.json'), 'a list of the names of servers and tools', readNames);
  let names: NamesFile | null = null;
  let byName = new Map<string, Rename>();
  let keys: readonly string[] = [];
  let version = 0;

  /** A name of a server that is in use again means that one. */
  function isTaken({ from, to }: Rename): boolean {
    const server = serverOf(from.namespacedName, keys);
    return server !== null && !to.namespacedName.startsWith(`${server}.`);
  }

  /** What was compared last, by the hash of the launch. */
  const seen = new Map<string, SeenServer>();
  let written: Promise<unknown> = Promise.resolve();

  function known(): NamesFile {
    if (names === null) {
      try {
        names = file.readSync();
      } catch (error) {
        // It is only remembered, and doctor says what is wrong with it.
        failed(error);
      }
      names ??= { servers: {}, renames: [] };
      byName = index(names.renames);
    }
    return names;
  }

  /** Other processes have other servers up, so each writes only what it has seen itself. */
  function write(servers: NamesFile['servers'], fresh: readonly Rename[], back: ReadonlySet<string>): void {
    const merged = (before: NamesFile | null): NamesFile => ({
      servers: { ...before?.servers, ...servers },
      renames: [...index([...withoutNames(before?.renames ?? [], back), ...fresh]).values()].slice(-MOST_RENAMES),
    });
    written = written
      .then(() => writeIgnoreFile(dataDir))
      .then(() => file.change(merged))
      .catch(failed);
  }

  return {
    get version() {
      return version;
    },
    now(reference) {
      known();
      let found = reference;
      // A tool may have been renamed more than once. The bound ends a circle.
      for (let steps = 0; steps < 20; steps++) {
        const rename = byName.get(idOf(found));
        if (rename === undefined || isTaken(rename)) break;
        found = rename.to;
      }
      return serverOf(found.namespacedName, keys) === null ? reference : found;
    },
    see(servers) {
      const { servers: before, renames } = known();
      const hashes = servers.map(({ launchHash }) => launchHash);
      const now = servers.map(({ key }) => key);
      if (!isSameValue(now, keys)) version++;
      keys = now;
      const learned: Record<string, RememberedNames> = {};
      const found: Rename[] = [];
      const back = new Set<string>();
      for (const server of servers) {
        const { launchHash, key, offer, isCurrent } = server;
        const last = seen.get(launchHash);
        if (offer === EMPTY_OFFER || (last?.key === key && last.offer === offer && last.isCurrent === isCurrent))
          continue;
        // Of two that are launched in the same way, nobody knows which one is meant.
        if (hashes.filter((hash) => hash === launchHash).length > 1) continue;
        seen.set(launchHash, server);
        const was = Object.hasOwn(before, launchHash) ? before[launchHash] : undefined;
        if (was !== undefined && (was.key === key || !now.includes(was.key))) found.push(...renamed(was, server));
        if (!isCurrent) continue;
        const tools = Object.fromEntries(toolsOf(offer).map(({ name, hash }) => [name, hash]));
        for (const name of Object.keys(tools)) back.add(`${key}.${name}`);
        if (JSON.stringify(was) !== JSON.stringify({ key, tools })) learned[launchHash] = { key, tools };
      }
      const kept = withoutNames(renames, back);
      const fresh = found.filter(({ from, to }) => idOf(byName.get(idOf(from))?.to ?? from) !== idOf(to));
      const isChanged = kept.length < renames.length || fresh.length > 0;
      if (!isChanged && Object.keys(learned).length === 0) return;
      byName = index([...kept, ...fresh]);
      names = { servers: { ...before, ...learned }, renames: [...byName.values()] };
      if (isChanged) version++;
      write(learned, fresh, back);
    },
    async close() {
      await written;
    },
  };
}

function withoutNames(renames: readonly Rename[], names: ReadonlySet<string>): readonly Rename[] {
  return renames.filter(({ from }) => !names.has(from.namespacedName));
}

function idOf({ namespacedName, refId: id = '' }: ToolReference): string {
  return `${id} ${namespacedName}`;
}

function index(renames: readonly Rename[]): Map<string, Rename> {
  return new Map(renames.map((rename) => [idOf(rename.from), rename]));
}

function toolsOf({ items }: Offer): readonly Item[] {
  return items.filter(({ kind }) => kind === 'tool');
}

/** The tools of a server that are now called something else and are otherwise the same. */
export function renamed(was: RememberedNames, { key, offer }: Pick<SeenServer, 'key' | 'offer'>): Rename[] {
  const tools = toolsOf(offer);
  const names = new Set(tools.map(({ name }) => name));
  const gone = Object.keys(was.tools).filter((name) => !names.has(name));
  const fresh = tools.filter(({ name }) => !Object.hasOwn(was.tools, name));
  const pairs = gone.length * fresh.length > MOST_PAIRS ? [] : equalPairs(was, gone, fresh);
  const still = was.key === key ? [] : tools.filter(({ name, hash }) => was.tools[name] === hash);
  return [...still.map((item) => ({ name: item.name, bytes: item.bytes, item })), ...pairs].map(
    ({ name, bytes, item }) => {
      const [before, now] = [`${was.key}.${name}`, `${key}.${item.name}`];
      return {
        from: { namespacedName: before, refId: refId(before, bytes) },
        to: { namespacedName: now, refId: refId(now, item.bytes) },
      };
    },
  );
}

interface EqualTools {
  /** The former name, and the definition with it. */
  readonly name: string;
  readonly bytes: Buffer;
  readonly item: Item;
}

/** Each that went with the one that came in its place. If more than one on a side could be meant, none is. */
function equalPairs(was: RememberedNames, gone: readonly string[], fresh: readonly Item[]): EqualTools[] {
  const all = gone.flatMap((name) =>
    fresh.flatMap((item): EqualTools[] => {
      const bytes = splice(item.bytes, item.nameSpan, toBytes(name));
      return hashBytes(bytes) === was.tools[name] ? [{ name, bytes, item }] : [];
    }),
  );
  const isOnly = (one: EqualTools) =>
    all.every((other) => other === one || (other.name !== one.name && other.item !== one.item));
  return all.filter(isOnly);
}

function readNames(value: unknown): NamesFile {
  const { servers, renames } = toObject(value);
  if (!isObject(servers) || !Array.isArray(renames)) throw new Error('expected "servers" and "renames"');
  for (const server of Object.values(servers)) {
    const { key, tools } = toObject(server);
    if (typeof key !== 'string' || !isObject(tools)) throw new Error('a server needs a "key" and "tools"');
  }
  const isReference = (one: unknown) => typeof toObject(one).namespacedName === 'string';
  for (const rename of renames)
    if (!isReference(toObject(rename).from) || !isReference(toObject(rename).to))
      throw new Error('a rename needs "from" and "to"');
  return { servers: servers as NamesFile['servers'], renames: renames as Rename[] };
}
