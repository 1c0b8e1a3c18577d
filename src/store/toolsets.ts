/**
 * Saved toolsets: a file each, in the project's folder or in the user's. Other programs, and people, may write them too: each
 * is read when it is wanted, and one that makes no sense is reported and never overwritten.
 */
import { readdir, readFile, unlink } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import type { ToolNotes, ToolReference, Toolset } from '../access/toolset.ts';
import { GatewayError, messageOf } from '../base/errors.ts';
import { createFile, replaceFile } from '../base/files.ts';

export type Place = 'project' | 'user';

export interface SavedToolset extends Toolset {
  readonly place: Place;
  readonly createdAt: string;
  readonly lastModified: string;
}

export interface ToolsetStore {
  /** All of them; the project's where both places have one of that name. `problems` are files that make no sense. */
  list(): Promise<{ readonly toolsets: readonly SavedToolset[]; readonly problems: readonly string[] }>;
  /** Null where there is none. Throws where its file makes no sense. */
  read(name: string): Promise<SavedToolset | null>;
  /** Saves a new one. Throws where the name is taken. */
  create(toolset: Toolset, place: Place): Promise<SavedToolset>;
  /** Saves one that has been read, changed. */
  replace(before: SavedToolset, toolset: Toolset): Promise<SavedToolset>;
  remove(toolset: SavedToolset): Promise<void>;
  /** The toolset that was equipped last; null for none. */
  lastEquipped(): Promise<string | null>;
  setLastEquipped(name: string | null): Promise<void>;
}

/** As saved by others, too: the name is that of a file. */
export const TOOLSET_NAME = /^[a-z0-9-]{2,50}$/;

/** Where what belongs to the user is kept, whatever the project. */
export function userFolder(env: Readonly<Record<string, string | undefined>>): string {
  return join(env.XDG_CONFIG_HOME || join(env.HOME || homedir(), '.config'), 'toolgate');
}

export function openToolsetStore(dataDir: string, userDir: string): ToolsetStore {
  const folders: Readonly<Record<Place, string>> = {
    project: join(dataDir, 'toolsets'),
    user: join(userDir, 'toolsets'),
  };
  const fileOf = (name: string, place: Place) => join(folders[place], `${name}.json`);
  const stateFile = join(dataDir, 'equipped.json');

  async function readAt(name: string, place: Place): Promise<SavedToolset | null> {
    const file = fileOf(name, place);
    const text = await readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return null;
      throw damaged(file, error.message);
    });
    if (text === null) return null;
    try {
      return { ...readToolset(JSON.parse(text), name), place };
    } catch (error) {
      throw damaged(file, messageOf(error));
    }
  }

  async function namesAt(place: Place): Promise<string[]> {
    const files = await readdir(folders[place]).catch(() => []);
    return files
      .filter((file) => file.endsWith('.json'))
      .map((file) => file.slice(0, -'.json'.length))
      .filter((name) => TOOLSET_NAME.test(name));
  }

  async function read(name: string): Promise<SavedToolset | null> {
    if (!TOOLSET_NAME.test(name)) return null;
    return (await readAt(name, 'project')) ?? (await readAt(name, 'user'));
  }

  return {
    async list() {
      const names = new Set([...(await namesAt('project')), ...(await namesAt('user'))]);
      const toolsets: SavedToolset[] = [];
      const problems: string[] = [];
      for (const name of [...names].sort()) {
        try {
          const found = await read(name);
          if (found !== null) toolsets.push(found);
        } catch (error) {
          problems.push(messageOf(error));
        }
      }
      return { toolsets, problems };
    },
    read,
    async create(toolset, place) {
      const now = new Date().toISOString();
      const saved: SavedToolset = { ...toolset, place, createdAt: now, lastModified: now };
      if (!(await createFile(fileOf(toolset.name, place), print(saved))))
        throw new GatewayError(
          'arguments_invalid',
          `There is a toolset "${toolset.name}" already. Choose another name.`,
        );
      return saved;
    },
    async replace(before, toolset) {
      const { place, createdAt } = before;
      const saved: SavedToolset = { ...toolset, place, createdAt, lastModified: new Date().toISOString() };
      // Read again, because a file that has been damaged meanwhile is somebody's work.
      await readAt(before.name, place);
      await replaceFile(fileOf(before.name, place), print(saved));
      return saved;
    },
    async remove({ name, place }) {
      await unlink(fileOf(name, place));
    },
    async lastEquipped() {
      const text = await readFile(stateFile, 'utf8').catch(() => '{}');
      try {
        const { equipped } = JSON.parse(text) as { equipped?: unknown };
        return typeof equipped === 'string' ? equipped : null;
      } catch {
        return null;
      }
    },
    setLastEquipped: (name) => replaceFile(stateFile, `${JSON.stringify({ equipped: name })}\n`),
  };
}

function damaged(file: string, why: string): GatewayError {
  return new GatewayError('config_invalid', `${file} is not a toolset (${why}). Correct or remove it.`);
}

function print({ place: _place, ...toolset }: SavedToolset): string {
  return `${JSON.stringify(toolset, null, 2)}\n`;
}

/** The toolset in a file of ours, or of a program that saves them in the same form. Throws where it is none. */
export function readToolset(value: unknown, name: string): Omit<SavedToolset, 'place'> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw new Error('expected an object');
  const given = value as Record<string, unknown>;
  if (!Array.isArray(given.tools)) throw new Error('"tools" must be a list');
  const text = (key: string) => (typeof given[key] === 'string' ? given[key] : '');
  return {
    name,
    description: text('description'),
    tools: given.tools.map(readReference),
    toolNotes: Array.isArray(given.toolNotes) ? given.toolNotes.map(readNotes) : [],
    createdAt: text('createdAt'),
    lastModified: text('lastModified'),
  };
}

function readReference(value: unknown): ToolReference {
  const { namespacedName, refId } = (value ?? {}) as { namespacedName?: unknown; refId?: unknown };
  if (typeof namespacedName !== 'string' || namespacedName === '')
    throw new Error('each of "tools" needs a "namespacedName" such as "git.status"');
  return typeof refId === 'string' ? { namespacedName, refId } : { namespacedName };
}

function readNotes(value: unknown): ToolNotes {
  const { toolRef, notes } = (value ?? {}) as { toolRef?: unknown; notes?: unknown };
  if (!Array.isArray(notes)) throw new Error('each of "toolNotes" needs a list "notes"');
  return {
    toolRef: readReference(toolRef),
    notes: notes.map((one: unknown) => {
      const { name, note } = (one ?? {}) as { name?: unknown; note?: unknown };
      if (typeof name !== 'string' || typeof note !== 'string') throw new Error('a note needs a "name" and a "note"');
      return { name, note };
    }),
  };
}
