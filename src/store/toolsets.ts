/**
 * Saved toolsets: one file each, in the project's folder or in the user's. People and other programs may write them
 * too, so each is read when it is needed.
 */
import { readdir, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import type { ToolNotes, ToolReference, Toolset } from '../access/toolset.ts';
import { GatewayError, messageOf } from '../base/errors.ts';
import { createFile } from '../base/files.ts';
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

export interface ToolsetStore {
  /**
   * All saved toolsets. If both folders have one of the same name, the project's is listed. `problems` says which files
   * cannot be understood.
   */
  list(): Promise<{ readonly toolsets: readonly SavedToolset[]; readonly problems: readonly string[] }>;
  /** The names that are in use, also by files that cannot be understood. */
  names(): Promise<ReadonlySet<string>>;
  /** Null if there is none. Throws if its file cannot be understood. */
  read(name: string): Promise<SavedToolset | null>;
  /** Saves a new one. Throws if the name is taken. */
  create(toolset: Toolset, place: ToolsetPlace): Promise<SavedToolset>;
  /** Saves what `make` returns for a toolset. Null if there is none of that name. */
  change(name: string, make: (toolset: Toolset) => Toolset): Promise<SavedToolset | null>;
  remove(toolset: SavedToolset): Promise<void>;
  /** The toolset that was equipped last; null for none. */
  lastEquipped(): Promise<string | null>;
  setLastEquipped(name: string | null): Promise<void>;
}

/** The name is also the name of the file. */
export const TOOLSET_NAME = /^[a-z0-9-]{2,50}$/;

/** The project's comes first. */
const PLACES: readonly ToolsetPlace[] = ['project', 'user'];

export function openToolsetStore(dataDir: string, userDir: string): ToolsetStore {
  const folders: Readonly<Record<ToolsetPlace, string>> = {
    project: join(dataDir, 'toolsets'),
    user: join(userDir, 'toolsets'),
  };
  const equipped = jsonFile(join(dataDir, 'equipped.json'), 'the toolset that was equipped last', toObject);

  function fileOf(name: string, place: ToolsetPlace): JsonFile<ToolsetFile> {
    return jsonFile(join(folders[place], `${name}.json`), 'a toolset', (value) => readToolset(value, name));
  }

  async function namesIn(place: ToolsetPlace): Promise<string[]> {
    const files = await readdir(folders[place]).catch(() => []);
    return files
      .filter((file) => file.endsWith('.json'))
      .map((file) => file.slice(0, -'.json'.length))
      .filter((name) => TOOLSET_NAME.test(name));
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
    return new Set((await Promise.all(PLACES.map(namesIn))).flat());
  }

  return {
    names,
    async list() {
      const toolsets: SavedToolset[] = [];
      const problems: string[] = [];
      for (const name of [...(await names())].sort()) {
        try {
          const toolset = await read(name);
          if (toolset !== null) toolsets.push(toolset);
        } catch (error) {
          problems.push(messageOf(error));
        }
      }
      return { toolsets, problems };
    },
    read,
    async create({ name, description, tools, toolNotes }, place) {
      const now = new Date().toISOString();
      const saved: ToolsetFile = { name, description, tools, toolNotes, createdAt: now, lastModified: now };
      const isCreated = await createFile(fileOf(name, place).path, printJson(saved)).catch(unsaved(name));
      if (!isCreated)
        throw new GatewayError('arguments_invalid', `There is a toolset "${name}" already. Choose another name.`);
      return { ...saved, place };
    },
    async change(name, make) {
      const before = await read(name);
      if (before === null) return null;
      const { place } = before;
      const changed = await fileOf(name, place)
        .change((toolset) => {
          if (toolset === null) return null;
          const { createdAt } = toolset;
          return { ...make(toolset), createdAt, lastModified: new Date().toISOString() };
        })
        .catch(unsaved(name));
      return changed === null ? null : { ...changed, place };
    },
    async remove({ name, place }) {
      await unlink(fileOf(name, place).path);
    },
    async lastEquipped() {
      const state = await equipped.read().catch(() => null);
      return typeof state?.equipped === 'string' ? state.equipped : null;
    },
    setLastEquipped: (name) => equipped.write({ equipped: name }),
  };
}

function unsaved(name: string) {
  return (error: unknown): never => {
    if (error instanceof GatewayError) throw error;
    const text = `The toolset "${name}" could not be saved: ${messageOf(error)}. Nothing was changed.`;
    throw new GatewayError('internal', text, { cause: error });
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
