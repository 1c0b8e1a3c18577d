/**
 * All toolsets: those of the configuration, which can only be changed there, those that were saved, and the implicit
 * ones, which nobody can change.
 */
import { implicitToolsets } from '../access/implicit-toolsets.ts';
import type { ToolReference, Toolset } from '../access/toolset.ts';
import { GatewayError } from '../base/errors.ts';
import type { EventSink } from '../base/events.ts';
import { isSameValue } from '../base/objects.ts';
import type { Renames } from './renames.ts';
import type { SavedToolset, SavedToolsets, ToolsetPlace, ToolsetStore } from './toolsets.ts';

/** A toolset, and where it is kept. Implicit ones are kept nowhere: each server is one, and `all` has every tool. */
export interface LibraryToolset extends Toolset {
  readonly place: ToolsetPlace | 'configuration' | 'implicit';
}

/** All toolsets: those of the configuration, those that were saved, and implicit ones if the control `equip` is on. */
export interface ToolsetLibrary {
  list(): Promise<{ readonly toolsets: readonly LibraryToolset[]; readonly problems: readonly string[] }>;
  find(name: string): Promise<LibraryToolset | null>;
  create(toolset: Toolset, place: ToolsetPlace): Promise<LibraryToolset>;
  /** Saves what `change` returns for a toolset, under the name that it has then. Callers that have it equipped keep it. */
  change(name: string, change: (toolset: Toolset) => Toolset): Promise<LibraryToolset>;
  remove(name: string): Promise<void>;
}

/** A tool of a saved toolset that was found under another name than the file has. */
export interface RenamedTool {
  readonly toolset: string;
  readonly place: ToolsetPlace;
  readonly from: string;
  readonly to: string;
}

/** The toolsets that users made: those of the configuration and the saved ones. */
export interface UserToolsets {
  readonly store: ToolsetStore;
  /** Read each time, because the configuration may be replaced. */
  configured(): readonly Toolset[];
  /** All of them, with the saved ones as they were last read. The same array while nothing changed. */
  readonly known: readonly LibraryToolset[];
  /** Their tools that have another name now than in the file. */
  readonly renamed: readonly RenamedTool[];
  /** What the toolset that had this name is called now, or null if there is none in `known`. */
  nameNow(name: string): string | null;
  /** Reads the saved ones. They count from `adopt` on. */
  load(): Promise<void>;
  /** From now on the saved ones count as they were last read. Returns whether they are others than before. */
  adopt(): boolean;
  /** Reads the saved ones and adopts them. Those that the configuration replaces are left out. */
  read(): ReturnType<ToolsetLibrary['list']>;
  /** The one of this name as it is now; null if there is none. Rejects if its file cannot be understood. */
  find(name: string): Promise<LibraryToolset | null>;
  /**
   * Writes to the store, then reads and adopts. Nobody reads in between: a toolset that is half renamed, or is equipped
   * together with being saved, would be two changes for clients.
   */
  write<T>(work: () => Promise<T>): Promise<T>;
  change(name: string, make: (toolset: Toolset) => Toolset): Promise<LibraryToolset | null>;
}

export interface UserToolsetsOptions {
  configured(): readonly Toolset[];
  readonly store: ToolsetStore;
  readonly renames: Pick<Renames, 'now' | 'version'>;
  /** `read` or `write` has adopted others than before. */
  changed(): void;
  /** A file has a problem that the last reading did not find. */
  noticed(problem: string): void;
}

/** A file that cannot be understood any more counts with what it held before, like a configuration file. */
export function openUserToolsets({ configured, store, renames, changed, noticed }: UserToolsetsOptions): UserToolsets {
  let saved: readonly SavedToolset[] = [];
  let loaded: SavedToolsets = { toolsets: saved, problems: [], isDamaged: () => false };
  let problems: readonly string[] = [];
  /** The last one that reads or writes. One after the other, so that an older reading cannot replace a newer one. */
  let last: Promise<unknown> = Promise.resolve();
  /** The names before and after, while a toolset is being renamed. */
  const renaming = new Map<string, string>();
  let known: {
    readonly from: readonly [unknown, unknown, number];
    readonly all: readonly LibraryToolset[];
    readonly renamed: readonly RenamedTool[];
  } | null = null;

  function current(): NonNullable<typeof known> {
    const written = configured();
    const { version } = renames;
    if (known === null || known.from[0] !== written || known.from[1] !== saved || known.from[2] !== version) {
      const names = new Set(written.map(({ name }) => name));
      const places = written.map((toolset) => ({ ...toolset, place: 'configuration' as const }));
      const counting = saved.filter(({ name }) => !names.has(name));
      const all = [...places, ...counting.map((toolset) => withTools(toolset, renames.now))];
      known = { from: [written, saved, version], all, renamed: counting.flatMap((one) => renamedIn(one, renames.now)) };
    }
    return known;
  }

  const all = () => current().all;
  const named = (name: string) => all().find((toolset) => toolset.name === name) ?? null;
  const savedAs = (name: string) => saved.find((toolset) => toolset.name === name) ?? null;

  function inTurn<T>(work: () => Promise<T>): Promise<T> {
    const done = last.then(work, work);
    last = done;
    return done;
  }

  async function loadNow(): Promise<void> {
    loaded = await store.list();
  }

  function adopt(): boolean {
    const { toolsets, isDamaged } = loaded;
    const names = new Set(toolsets.map(({ name }) => name));
    const kept = saved.filter((toolset) => !names.has(toolset.name) && isDamaged(toolset));
    // A damaged file keeps its place: clients see the order.
    const now = [...toolsets, ...kept].sort((a, b) => (a.name < b.name ? -1 : 1));
    const fresh = loaded.problems.filter((problem) => !problems.includes(problem));
    problems = loaded.problems;
    const isChanged = !isSameValue(now, saved);
    if (isChanged) saved = now;
    for (const problem of fresh) noticed(problem);
    return isChanged;
  }

  async function readNow(): ReturnType<ToolsetLibrary['list']> {
    await loadNow();
    if (adopt()) changed();
    return { toolsets: all(), problems };
  }

  const read = () => inTurn(readNow);

  const write: UserToolsets['write'] = (work) =>
    inTurn(async () => {
      const done = await work();
      await readNow();
      return done;
    });

  return {
    store,
    configured,
    get known() {
      return all();
    },
    get renamed() {
      return current().renamed;
    },
    nameNow(name) {
      if (named(name) !== null) return name;
      const renamed = renaming.get(name);
      return renamed !== undefined && named(renamed) !== null ? renamed : null;
    },
    load: () => inTurn(loadNow),
    adopt,
    read,
    write,
    async find(name) {
      if (configured().some((toolset) => toolset.name === name)) return named(name);
      if (!isSameValue(await store.read(name), savedAs(name))) await read();
      return named(name);
    },
    async change(name, make) {
      const follow = (toolset: Toolset) => {
        const { place } = savedAs(name) ?? {};
        const changed = edited(toolset, make, renames.now, place === 'user');
        if (changed.name !== name) renaming.set(name, changed.name);
        return changed;
      };
      try {
        return await write(() => store.change(name, follow));
      } finally {
        renaming.delete(name);
      }
    },
  };
}

type Now = (reference: ToolReference) => ToolReference;

/** The same toolset with other references, or itself if none is another. */
function withTools<T extends Toolset>(toolset: T, now: Now): T {
  const tools = toolset.tools.map(now);
  const toolNotes = toolset.toolNotes.map((one) => {
    const toolRef = now(one.toolRef);
    return toolRef === one.toolRef ? one : { ...one, toolRef };
  });
  const isSame =
    tools.every((one, i) => one === toolset.tools[i]) && toolNotes.every((one, i) => one === toolset.toolNotes[i]);
  return isSame ? toolset : { ...toolset, tools, toolNotes };
}

function renamedIn({ name, place, tools }: SavedToolset, now: Now): RenamedTool[] {
  return tools.flatMap((reference): RenamedTool[] => {
    const found = now(reference);
    if (found === reference) return [];
    return [{ toolset: name, place, from: reference.namespacedName, to: found.namespacedName }];
  });
}

/**
 * An edit sees the present names, and writes them. A toolset for all projects keeps its own: another project may still
 * have the tool under its former name.
 */
function edited(toolset: Toolset, make: (toolset: Toolset) => Toolset, now: Now, keepsNames: boolean): Toolset {
  const former = new Map<ToolReference, ToolReference>();
  const shown = withTools(toolset, (reference) => {
    const found = now(reference);
    if (found === reference) return reference;
    const own = { ...found };
    former.set(own, reference);
    return own;
  });
  const changed = make(shown);
  return keepsNames ? withTools(changed, (reference) => former.get(reference) ?? reference) : changed;
}

/** The keys of the servers that have an implicit toolset. */
export interface ToolsetServers {
  /** Those with tools. Their toolsets are listed. */
  readonly offering: readonly string[];
  /** Those, and servers whose tools are not known yet: their toolsets can be found, and fill up later. */
  readonly all: readonly string[];
}

/** `servers` returns null if there are no implicit toolsets. */
export function openToolsetLibrary(made: UserToolsets, servers: () => ToolsetServers | null): ToolsetLibrary {
  const { store, configured, read, write } = made;
  const inConfiguration = (name: string) => configured().find((toolset) => toolset.name === name);

  /** The implicit toolset of this name, which is not the name of a user's toolset. */
  async function findImplicit(name: string): Promise<Toolset | null> {
    const keys = servers()?.all ?? [];
    if (keys.length === 0) return null;
    // Only these names depend on whether another one is taken, which takes reading folders.
    const saved = name.endsWith('*') ? await store.names() : NO_NAMES;
    const isTaken = (one: string) => saved.has(one) || inConfiguration(one) !== undefined;
    return implicitToolsets(keys, isTaken).find((toolset) => toolset.name === name) ?? null;
  }

  function requireSaveable(name: string): void {
    if (inConfiguration(name) === undefined) return;
    const text = `The toolset "${name}" is part of the configuration. Change it there, or choose another name.`;
    throw new GatewayError('arguments_invalid', text);
  }

  async function required<T>(name: string, found: T | null): Promise<T> {
    if (found !== null) return found;
    if ((await findImplicit(name)) !== null)
      throw new GatewayError(
        'arguments_invalid',
        `The toolset "${name}" is not saved, so it cannot be changed or deleted: it has what its servers offer. Build a toolset to choose tools.`,
      );
    throw new GatewayError('item_unknown', `There is no toolset "${name}". List the toolsets to see their names.`);
  }

  return {
    async list() {
      const { toolsets, problems } = await read();
      const taken = new Set([...toolsets.map(({ name }) => name), ...(await store.names())]);
      const implicit = implicitToolsets(servers()?.offering ?? [], (name) => taken.has(name));
      return {
        toolsets: [...toolsets, ...implicit.map((toolset) => ({ ...toolset, place: 'implicit' as const }))],
        problems,
      };
    },
    async find(name) {
      const found = await made.find(name);
      if (found !== null) return found;
      const implicit = await findImplicit(name);
      return implicit === null ? null : { ...implicit, place: 'implicit' };
    },
    async create(toolset, place) {
      requireSaveable(toolset.name);
      return write(() => store.create(toolset, place));
    },
    async change(name, change) {
      requireSaveable(name);
      const saveable = (toolset: Toolset) => {
        const changed = change(toolset);
        if (changed.name !== name) requireSaveable(changed.name);
        return changed;
      };
      return required(name, await made.change(name, saveable));
    },
    async remove(name) {
      requireSaveable(name);
      const toolset = await required(name, await store.read(name));
      await write(() => store.remove(toolset));
    },
  };
}

const NO_NAMES: ReadonlySet<string> = new Set();

/** The same library; each change is announced as one by this agent. An empty name stands for the operator. */
export function withAdminEvents(library: ToolsetLibrary, events: EventSink, agent: string): ToolsetLibrary {
  const announce = (act: string, detail: string) => events.emit('admin', { act, agent, detail });
  return {
    ...library,
    async create(toolset, place) {
      const created = await library.create(toolset, place);
      announce('toolset_saved', created.name);
      return created;
    },
    async change(name, change) {
      const changed = await library.change(name, change);
      announce('toolset_saved', changed.name === name ? name : `${changed.name}, which was ${name}`);
      return changed;
    },
    async remove(name) {
      await library.remove(name);
      announce('toolset_deleted', name);
    },
  };
}
