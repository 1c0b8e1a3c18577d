/**
 * Sources that only some callers see, grouped into sets. Equal sets are shared, with one catalog each: a thousand
 * callers with the same sources need one set, and a change in a source affects only the callers that have it.
 */
import type { CallerSources, SourceSet, SourceSetUser } from '../calls/caller.ts';
import { buildCatalog, type Catalog, type Contribution } from '../catalog/catalog.ts';
import type { Kind } from '../catalog/item.ts';
import type { Naming } from '../catalog/names.ts';
import type { ServerConfig } from '../config/servers.ts';
import type { ClientChannel } from '../protocol/contract.ts';
import type { LogLevel } from '../protocol/levels.ts';
import { type ServerStatus, serverStatus } from '../sources/fleet.ts';
import { createInlineSource } from '../sources/inline.ts';
import { LastGoodFiles } from '../sources/last-good.ts';
import { createServerSource } from '../sources/server-source.ts';
import type { Source, SourceContext } from '../sources/source.ts';
import type { RunnableItem } from '../tools/read-tool.ts';

/** A source and its configuration. */
export interface ConfiguredSource {
  readonly source: Source;
  readonly config: ServerConfig;
}

interface MemberSource extends ConfiguredSource {
  /** The sets that contain it. */
  readonly sets: Set<UsedSet>;
}

interface UsedSet extends SourceSet {
  readonly key: string;
  readonly users: Set<SourceSetUser>;
  built: Catalog | null;
}

/**
 * Ids count down from here. They stay below the ids of the fleet, and below the reserved ids of what is not a server.
 */
const FIRST_ID = -2;

export interface SourceSetOptions {
  readonly naming: Naming;
  /** Reserved names, which no source's tool can have. */
  builtIn(): readonly string[];
}

export class SourceSets implements CallerSources {
  readonly #context: SourceContext;
  readonly #options: SourceSetOptions;
  readonly #lastGood = new LastGoodFiles();
  readonly #members = new Map<number, MemberSource>();
  readonly #ids = new WeakMap<Source, number>();
  readonly #sets = new Map<string, UsedSet>();
  /** Released sources that are finishing their calls. */
  readonly #leaving = new Set<Source>();
  #nextId = FIRST_ID;
  #version = 0;
  #logLevel: LogLevel | null = null;

  constructor(context: SourceContext, options: SourceSetOptions) {
    this.#context = context;
    this.#options = options;
  }

  /** Opens a source, a server or functions, that no caller sees yet. Returns its id. */
  open(config: ServerConfig, items?: readonly RunnableItem[]): number {
    const id = this.#nextId--;
    return this.#add(id, config, items === undefined ? this.#openServer(id, config) : this.#openInline(config, items));
  }

  /** Opens a folder of tools exactly as it is now: no file of it falls back to an earlier version. */
  openFresh(config: ServerConfig): number {
    const id = this.#nextId--;
    return this.#add(id, config, this.#openServer(id, config, new LastGoodFiles()));
  }

  #add(id: number, config: ServerConfig, source: Source): number {
    if (this.#logLevel !== null) source.setLogLevel?.(this.#logLevel);
    this.#members.set(id, { source, config, sets: new Set() });
    this.#ids.set(source, id);
    return id;
  }

  #openServer(id: number, config: ServerConfig, lastGood = this.#lastGood): Source {
    const changed = () => {
      for (const set of this.#members.get(id)?.sets ?? []) this.#renew(set);
    };
    return createServerSource(config, { ...this.#context, lastGood, changed });
  }

  #openInline({ key, namespace }: ServerConfig, items: readonly RunnableItem[]): Source {
    const { events, redact, limits } = this.#context;
    return createInlineSource(key, namespace || key, items, { events, redact, maxResult: () => limits().message });
  }

  /** Releases a source that no caller uses: it finishes its calls and closes. */
  release(id: number): void {
    const member = this.#members.get(id);
    if (member === undefined) return;
    const { source, sets } = member;
    this.#members.delete(id);
    for (const set of sets) this.#renew(set);
    this.#leaving.add(source);
    void source.drain().finally(() => this.#leaving.delete(source));
  }

  find(id: number): ConfiguredSource | undefined {
    return this.#members.get(id);
  }

  /** The ids of all sources. */
  ids(): readonly number[] {
    return [...this.#members.keys()];
  }

  idOf(source: Source): number | undefined {
    return this.#ids.get(source);
  }

  /** The set of these sources, in this order. */
  of(ids: readonly number[]): SourceSet {
    const key = ids.join(' ');
    return this.#sets.get(key) ?? this.#create(key, ids);
  }

  #create(key: string, ids: readonly number[]): UsedSet {
    const { builtIn, naming } = this.#options;
    const set: UsedSet = {
      key,
      ids,
      users: new Set(),
      built: null,
      catalog: () => (set.built ??= buildCatalog(++this.#version, this.contributions(ids), builtIn(), naming)),
    };
    return set;
  }

  contributions(ids: readonly number[]): Contribution[] {
    return ids.flatMap((id) => {
      const member = this.#members.get(id);
      if (member === undefined) return [];
      const { source, config } = member;
      const { key, namespace, description } = config;
      const { offer, present, absence } = source;
      return { id, key, namespace, description, offer, present, absence };
    });
  }

  take(given: SourceSet, user: SourceSetUser): void {
    const set = given as UsedSet;
    if (set.users.size === 0) {
      this.#sets.set(set.key, set);
      for (const id of set.ids) this.#members.get(id)?.sets.add(set);
    }
    set.users.add(user);
  }

  drop(given: SourceSet, user: SourceSetUser): void {
    const set = given as UsedSet;
    set.users.delete(user);
    for (const source of this.#sourcesOf(set)) source.leave?.(user.client);
    if (set.users.size > 0) return;
    if (this.#sets.get(set.key) === set) this.#sets.delete(set.key);
    for (const id of set.ids) this.#members.get(id)?.sets.delete(set);
    // While no caller uses the set its sources may change, so its catalog is dropped.
    set.built = null;
  }

  freshen(set: SourceSet, kind: Kind): void {
    for (const source of this.#sourcesOf(set)) source.freshen?.(kind);
  }

  tell(set: SourceSet, client: ClientChannel, message: Buffer): void {
    for (const source of this.#sourcesOf(set)) source.tell?.(client, message);
  }

  setLogLevel(level: LogLevel): void {
    this.#logLevel = level;
    for (const { source } of this.#members.values()) source.setLogLevel?.(level);
  }

  /** The status of every source that is a server, not just functions. */
  statuses(): ServerStatus[] {
    return [...this.#members.values()]
      .filter(({ config }) => config.launch.kind !== 'inline')
      .map(({ config, source }) => serverStatus(config, source));
  }

  /** The built-in names have changed: every catalog is rebuilt. */
  renew(): void {
    for (const set of this.#sets.values()) this.#renew(set);
  }

  #renew(set: UsedSet): void {
    set.built = null;
    for (const user of set.users) user.look();
  }

  #sourcesOf({ ids }: SourceSet): Source[] {
    return ids.flatMap((id) => this.#members.get(id)?.source ?? []);
  }

  async close(): Promise<void> {
    const all = [...[...this.#members.values()].map(({ source }) => source), ...this.#leaving];
    this.#members.clear();
    await Promise.allSettled(all.map((source) => source.close()));
  }
}
