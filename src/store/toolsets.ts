/**
 * Saved toolsets: one file each, in the project's folder or in the user's. People and other programs may write them
 * too, so each is read when it is needed.
 */
import { readdir, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import type { ToolNotes, ToolReference, Toolset } from '../access/toolset.ts';
import { GatewayError, messageOf } from '../base/errors.ts';
import { createFile, writeFailure } from '../base/files.ts';
import { type JsonFile, jsonFile, printJson } from '../base/json-file.ts';
import { isObject, toObject } from '../base/objects.ts';

/** Where a toolset is saved. */
export type ToolsetPlace = 'project' | 'user';

export interface SavedToolset extends Toolset {
  readonly place: ToolsetPlace;
  readonly createdAt: string;
  readonly lastModified: string;
}

/** The content of its file. */
type ToolsetFile = Omit<SavedToolset, 'place'>;

/** What the folders of saved toolsets hold. */
export interface SavedToolsets {
  readonly toolsets: readonly SavedToolset[];
  /** Which files cannot be used, and why. */
  readonly problems: readonly string[];
  /** Whether a file of a toolset that is not listed is there, but cannot be understood now. */
  isDamaged(toolset: SavedToolset): boolean;
}

export interface ToolsetStore {
  /** The folders in which they are saved. They may not exist. */
  readonly folders: readonly string[];
  /** All saved toolsets. If both folders have one of the same name, the project's is listed. */
  list(): Promise<SavedToolsets>;
  /** The names that are in use, also by files that cannot be understood. */
  names(): Promise<ReadonlySet<string>>;
  /** Null if there is none. Throws if its file cannot be understood. */
  read(name: string): Promise<SavedToolset | null>;
  /** Saves a new one. Throws if the name is taken. */
  create(toolset: Toolset, place: ToolsetPlace): Promise<SavedToolset>;
  /**
   * Saves what `make` returns for a toolset, under the name that it has then. Null if there is none. Throws if the new
   * name is taken.
   */
  change(name: string, make: (toolset: Toolset) => Toolset): Promise<SavedToolset | null>;
  remove(toolset: SavedToolset): Promise<void>;
  /** The toolset that was equipped last, or null if it was unequipped. Undefined if there was never one. */
  lastEquipped(): Promise<string | null | undefined>;
  setLastEquipped(name: string | null): Promise<void>;
  /** The same for single clients, by what they are known as. Throws if the file cannot be understood. */
  lastOfClients(): Readonly<Record<string, string | null>>;
  setLastOfClient(client: string, name: string | null): Promise<void>;
}

/** The name is also the name of the file. */
export const TOOLSET_NAME = /^[a-z0-9-]{2,50}$/;
export const TOOLSET_NAME_FORM = '2 to 50 lower-case letters, digits and hyphens';

/** The most clients of which the last toolset is kept. Those that have not equipped anything for longest are forgotten. */
const MOST_CLIENTS = 1_000;

/** The project's comes first. */
const PLACES: readonly ToolsetPlace[] = ['project', 'user'];

export function openToolsetStore(dataDir: string, userDir: string): ToolsetStore {
  const folders: Readonly<Record<ToolsetPlace, string>> = {
    project: join(dataDir, 'toolsets'),
    user: join(userDir, 'toolsets'),
  };
  const equipped = jsonFile(join(dataDir, 'equipped.json'), 'the toolset that was equipped last', toObject);

  const ofClients = jsonFile(join(dataDir, 'equipped-clients.json'), 'what clients had equipped last', readNames);

  function fileOf(name: string, place: ToolsetPlace): JsonFile<ToolsetFile> {
    return jsonFile(join(folders[place], `${name}.json`), 'a toolset', (value) => readToolset(value, name));
  }

  /** The names of the files of a folder, without `.json`. Not all of them are names of toolsets. */
  async function namesIn(place: ToolsetPlace): Promise<string[]> {
    const files = await readdir(folders[place]).catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return [];
      throw new Error(`The toolsets in ${folders[place]} cannot be read (${messageOf(error)}).`, { cause: error });
    });
    return files.filter((file) => file.endsWith('.json')).map((file) => file.slice(0, -'.json'.length));
  }

  /** What is in both folders: toolsets that can be read, and what stands in the way of the others. */
  async function list(): Promise<SavedToolsets> {
    const toolsets: SavedToolset[] = [];
    const problems: string[] = [];
    const damaged = new Set<string>();
    const unreadable = new Set<ToolsetPlace>();
    const found = new Set<string>();
    for (const place of PLACES) {
      const files = await namesIn(place).catch((error) => {
        unreadable.add(place);
        problems.push(messageOf(error));
        return [];
      });
      for (const name of files) {
        if (TOOLSET_NAME.test(name)) found.add(name);
        else
          problems.push(
            `${join(folders[place], name)}.json is not used: the name of a toolset has ${TOOLSET_NAME_FORM}. Rename the file.`,
          );
      }
    }
    for (const name of [...found].sort()) {
      try {
        const toolset = await read(name);
        if (toolset !== null) toolsets.push(toolset);
      } catch (error) {
        damaged.add(name);
        problems.push(messageOf(error));
      }
    }
    return { toolsets, problems, isDamaged: ({ name, place }) => damaged.has(name) || unreadable.has(place) };
  }

  async function read(name: string): Promise<SavedToolset | null> {
    if (!TOOLSET_NAME.test(name)) return null;
    for (const place of PLACES) {
      const toolset = await fileOf(name, place).read();
      if (toolset !== null) return { ...toolset, place };
    }
    return null;
  }

  async function names(): Promise<ReadonlySet<string>> {
    const all = await Promise.all(PLACES.map((place) => namesIn(place).catch(() => [])));
    return new Set(all.flat().filter((name) => TOOLSET_NAME.test(name)));
  }

  async function move(name: string, toolset: ToolsetFile, place: ToolsetPlace): Promise<ToolsetFile> {
    const isCreated = await createFile(fileOf(toolset.name, place).path, printJson(toolset)).catch(unsaved(name));
    if (!isCreated) throw taken(toolset.name);
    await unlink(fileOf(name, place).path);
    return toolset;
  }

  return {
    folders: PLACES.map((place) => folders[place]),
    names,
    list,
    read,
    async create({ name, description, tools, toolNotes }, place) {
      const now = new Date().toISOString();
      const saved: ToolsetFile = { name, description, tools, toolNotes, createdAt: now, lastModified: now };
      const isCreated = await createFile(fileOf(name, place).path, printJson(saved)).catch(unsaved(name));
      if (!isCreated) throw taken(name);
      return { ...saved, place };
    },
    async change(name, make) {
      const before = await read(name);
      if (before === null) return null;
      const { place } = before;
      const used = await names();
      let renamed: ToolsetFile | null = null;
      const changed = await fileOf(name, place)
        .change((toolset) => {
          if (toolset === null) return null;
          const { createdAt } = toolset;
          const next = { ...make(toolset), createdAt, lastModified: new Date().toISOString() };
          if (next.name === name) return next;
          if (used.has(next.name)) throw taken(next.name);
          renamed = next;
          return null;
        })
        .catch(unsaved(name));
      if (changed === null) return null;
      return { ...(renamed === null ? changed : await move(name, renamed, place)), place };
    },
    async remove({ name, place }) {
      await unlink(fileOf(name, place).path).catch((error: unknown) => {
        const failure = writeFailure(fileOf(name, place).path, error);
        const text = `The toolset "${name}" could not be deleted, and nothing was changed. ${failure.message}`;
        throw new GatewayError('storage_failed', text, { cause: error });
      });
    },
    async lastEquipped() {
      const state = await equipped.read();
      if (state === null) return undefined;
      return typeof state.equipped === 'string' ? state.equipped : null;
    },
    setLastEquipped: (name) => equipped.write({ equipped: name }),
    lastOfClients: () => ofClients.readSync() ?? {},
    async setLastOfClient(client, name) {
      await ofClients.change((before) => {
        const others = Object.entries(before ?? {}).filter(([one]) => one !== client);
        return Object.fromEntries([...others.slice(-(MOST_CLIENTS - 1)), [client, name]]);
      });
    },
  };
}

function readNames(value: unknown): Record<string, string | null> {
  if (!isObject(value)) throw new Error('expected an object');
  return Object.fromEntries(
    Object.entries(value).map(([client, name]) => [client, typeof name === 'string' ? name : null]),
  );
}

function taken(name: string): GatewayError {
  return new GatewayError('arguments_invalid', `There is a toolset "${name}" already. Choose another name.`);
}

function unsaved(name: string) {
  return (error: unknown): never => {
    if (!(error instanceof GatewayError) || error.code !== 'storage_failed') throw error;
    const text = `The toolset "${name}" could not be saved, and nothing was changed. ${error.message}`;
    throw new GatewayError('storage_failed', text, { cause: error });
  };
}

/** The toolset in a file of ours, or of a program that uses the same format. Throws if it is not a toolset. */
export function readToolset(value: unknown, name: string): ToolsetFile {
  if (!isObject(value)) throw new Error('expected an object');
  if (!Array.isArray(value.tools)) throw new Error('"tools" must be a list');
  const text = (key: string) => (typeof value[key] === 'string' ? value[key] : '');
  return {
    name,
    description: text('description'),
    tools: value.tools.map(readReference),
    toolNotes: Array.isArray(value.toolNotes) ? value.toolNotes.map(readNotes) : [],
    createdAt: text('createdAt'),
    lastModified: text('lastModified'),
  };
}

function readReference(value: unknown): ToolReference {
  const { namespacedName, refId } = toObject(value);
  if (typeof namespacedName !== 'string' || namespacedName === '')
    throw new Error('each of "tools" needs a "namespacedName" such as "git.status"');
  return typeof refId === 'string' ? { namespacedName, refId } : { namespacedName };
}

function readNotes(value: unknown): ToolNotes {
  const { toolRef, notes } = toObject(value);
  if (!Array.isArray(notes)) throw new Error('each of "toolNotes" needs a list "notes"');
  return {
    toolRef: readReference(toolRef),
    notes: notes.map((one: unknown) => {
      const { name, note } = toObject(one);
      if (typeof name !== 'string' || typeof note !== 'string') throw new Error('a note needs a "name" and a "note"');
      return { name, note };
    }),
  };
}
