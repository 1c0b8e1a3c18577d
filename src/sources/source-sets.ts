/**
 * Sources that are not for everybody, and the sets of them that callers have for themselves. Equal sets are one, with one
 * catalog: what a thousand callers have in common is there once, and a change of a source is told to nobody without it.
 */
import { buildCatalog, type Catalog, type Contribution } from '../catalog/catalog.ts';
import type { Kind } from '../catalog/item.ts';
import type { Naming } from '../catalog/names.ts';
import type { ServerConfig } from '../config/servers.ts';
import type { ClientChannel } from '../protocol/contract.ts';
import type { LogLevel } from '../protocol/levels.ts';
import type { RunnableTool } from '../tools/read-tool.ts';
import { type ServerStatus, serverStatus } from './fleet.ts';
import { createInlineSource } from './inline.ts';
import { RegressionGuard } from './regression-guard.ts';
import type { Source, SourceContext } from './source.ts';
import { createSource } from './upstream.ts';

export interface SourceSet {
  readonly ids: readonly number[];
  /** Built when somebody looks, and again after one of the sources changed. */
  catalog(): Catalog;
}

/** Whoever has a set. */
export interface Reader {
  readonly client: ClientChannel;
  /** What is in it changed. */
  look(): void;
}

export interface Place {
  readonly source: Source;
  readonly config: ServerConfig;
}

export interface SourceSets {
  /** Starts a server, or takes functions, that nobody sees yet; gives its id. */
  open(config: ServerConfig, tools?: readonly RunnableTool[]): number;
  /** Nobody has it any more: it finishes its calls and ends. */
  release(id: number): void;
  find(id: number): Place | undefined;
  /** Of all that there are. */
  ids(): readonly number[];
  idOf(source: Source): number | undefined;
  /** The one of these, in this order. */
  of(ids: readonly number[]): SourceSet;
  contributions(ids: readonly number[]): Contribution[];
  take(set: SourceSet, reader: Reader): void;
  drop(set: SourceSet, reader: Reader): void;
  freshen(set: SourceSet, kind: Kind): void;
  tell(set: SourceSet, client: ClientChannel, message: Buffer): void;
  setLogLevel(level: LogLevel): void;
  /** Those that are more than functions. */
  statuses(): ServerStatus[];
  /** Other words are our own: every catalog is built anew. */
  renew(): void;
  close(): Promise<void>;
}

interface Slot extends Place {
  readonly id: number;
  /** Those that it is in. */
  readonly sets: Set<Held>;
}

interface Held extends SourceSet {
  readonly key: string;
  readonly readers: Set<Reader>;
  built: Catalog | null;
}

/** Below those of all others, and of what is no server at all. */
const FIRST_ID = -2;

export interface SetOptions {
  readonly naming: Naming;
  /** Names that no source can have. */
  builtIn(): readonly string[];
}

export function createSourceSets(context: SourceContext, { naming, builtIn }: SetOptions): SourceSets {
  const slots = new Map<number, Slot>();
  const idOf = new WeakMap<Source, number>();
  const sets = new Map<string, Held>();
  const leaving = new Set<Source>();
  const guard = new RegressionGuard();
  let nextId = FIRST_ID;
  let version = 0;
  let logLevel: LogLevel | null = null;
  const inline = { events: context.events, redact: context.redact, maxResult: () => context.limits().message };

  function changed(id: number): void {
    for (const set of slots.get(id)?.sets ?? []) renewSet(set);
  }

  function renewSet(set: Held): void {
    set.built = null;
    for (const reader of set.readers) reader.look();
  }

  const contributions = (of: readonly number[]): Contribution[] =>
    of.flatMap((id) => {
      const slot = slots.get(id);
      if (slot === undefined) return [];
      const { key, namespace } = slot.config;
      return { id, key, namespace, offer: slot.source.offer, present: slot.source.present };
    });

  const sourcesOf = (of: readonly number[]) => of.flatMap((id) => slots.get(id)?.source ?? []);

  function make(key: string, of: readonly number[]): Held {
    const set: Held = {
      key,
      ids: of,
      readers: new Set(),
      built: null,
      catalog: () => (set.built ??= buildCatalog(++version, contributions(of), builtIn(), naming)),
    };
    return set;
  }

  return {
    open(config, tools) {
      const id = nextId--;
      const source =
        tools === undefined
          ? createSource(config, { ...context, guard, changed: () => changed(id) })
          : createInlineSource(config.key, config.namespace || config.key, tools, inline);
      if (logLevel !== null) source.setLogLevel(logLevel);
      slots.set(id, { id, source, config, sets: new Set() });
      idOf.set(source, id);
      return id;
    },
    release(id) {
      const slot = slots.get(id);
      if (slot === undefined) return;
      slots.delete(id);
      for (const set of slot.sets) renewSet(set);
      leaving.add(slot.source);
      void slot.source.drain().finally(() => leaving.delete(slot.source));
    },
    find: (id) => slots.get(id),
    ids: () => [...slots.keys()],
    idOf: (source) => idOf.get(source),
    of(wanted) {
      const key = wanted.join(' ');
      return sets.get(key) ?? make(key, wanted);
    },
    contributions,
    take(given, reader) {
      const set = given as Held;
      if (set.readers.size === 0) {
        sets.set(set.key, set);
        for (const id of set.ids) slots.get(id)?.sets.add(set);
      }
      set.readers.add(reader);
    },
    drop(given, reader) {
      const set = given as Held;
      set.readers.delete(reader);
      for (const source of sourcesOf(set.ids)) source.leave(reader.client);
      if (set.readers.size > 0) return;
      if (sets.get(set.key) === set) sets.delete(set.key);
      for (const id of set.ids) slots.get(id)?.sets.delete(set);
      // What it is built from may change while nobody has it.
      set.built = null;
    },
    freshen(set, kind) {
      for (const source of sourcesOf(set.ids)) source.freshen(kind);
    },
    tell(set, client, message) {
      for (const source of sourcesOf(set.ids)) source.tell(client, message);
    },
    setLogLevel(level) {
      logLevel = level;
      for (const { source } of slots.values()) source.setLogLevel(level);
    },
    statuses: () =>
      [...slots.values()]
        .filter(({ config }) => config.launch.kind !== 'inline')
        .map(({ config, source }) => serverStatus(config, source)),
    renew() {
      for (const set of sets.values()) renewSet(set);
    },
    async close() {
      const all = [...[...slots.values()].map(({ source }) => source), ...leaving];
      slots.clear();
      await Promise.allSettled(all.map((source) => source.close()));
    },
  };
}
