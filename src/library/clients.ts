/**
 * The clients of a server, each with the toolsets that it has switched on, whatever it comes through: several sessions of
 * one client see the same. One that has not come for long is forgotten.
 */
import type { Caller } from '../calls/caller.ts';
import type { SourceSet, SourceSets } from '../sources/source-sets.ts';
import { requireExposed, requireFreeNames } from './exposure.ts';
import type { LoadedToolset, LoaderContext, Toolsets } from './toolsets.ts';
import type { ExposurePolicy } from './types.ts';

export interface ToolsetClient {
  /** Whose sessions these are. */
  readonly principal: string;
  readonly context: LoaderContext;
  /** The toolsets that are on, in the order of the catalog. */
  readonly active: readonly string[];
  /** Those that it should have, and that could not be loaded. */
  readonly failed: readonly string[];
  readonly ids: readonly number[];
  readonly loaded: readonly LoadedToolset[];
  /** A caller comes as this client, and goes. */
  join(caller: Caller): SourceSet;
  leave(caller: Caller): void;
  /** Switches a toolset on. Rejects with a `ToolingError`; then all is as it was. */
  enable(name: unknown): Promise<string>;
  /** Switches it off: its tools are gone. Throws where it is not on. */
  disable(name: unknown): Promise<string>;
  /** Has exactly these, as far as they can be loaded. */
  setAll(toolsets: readonly string[]): Promise<void>;
}

export interface Clients {
  /** Makes one where there is none. */
  of(principal: string, context: LoaderContext): ToolsetClient;
  find(principal: string): ToolsetClient | undefined;
  /** One that is nobody's, and stays. */
  alone(context: LoaderContext): ToolsetClient;
  joined(caller: Caller): SourceSet;
  left(caller: Caller): void;
  readonly size: number;
  close(): void;
}

export interface ClientsOptions {
  readonly toolsets: Toolsets;
  readonly sets: SourceSets;
  readonly policy: ExposurePolicy;
  /** Names that tools of the client cannot have, and whose they are. */
  taken(principal: string): ReadonlyMap<string, string>;
  /** What those get who were not seen before. */
  readonly base: LoaderContext;
  /** How many are remembered that are not connected, and for how many milliseconds. */
  readonly most: number;
  readonly ttl: number;
  failed(toolset: string, error: unknown): void;
}

/** How often is looked for those that have not come for long. */
const SWEEP = 60_000;
/** How long it may take from being let in to being there. */
const COMING = 10_000;

class Known implements ToolsetClient {
  readonly principal: string;
  readonly context: LoaderContext;
  readonly options: ClientsOptions;
  readonly members = new Set<Caller>();
  loaded: readonly LoadedToolset[] = [];
  failed: readonly string[] = [];
  lastUse = Date.now();
  /** One change at a time; null while there is none. */
  busy: Promise<unknown> | null = null;
  isGone = false;
  hasCome = false;

  constructor(principal: string, context: LoaderContext, options: ClientsOptions) {
    this.principal = principal;
    this.context = context;
    this.options = options;
  }

  get active(): readonly string[] {
    return this.loaded.map(({ toolset }) => toolset);
  }

  get ids(): readonly number[] {
    return this.loaded.flatMap(({ ids }) => ids);
  }

  get set(): SourceSet {
    return this.options.sets.of(this.ids);
  }

  join(caller: Caller): SourceSet {
    this.members.add(caller);
    this.hasCome = true;
    return this.set;
  }

  leave(caller: Caller): void {
    this.members.delete(caller);
    this.lastUse = Date.now();
  }

  enable(name: unknown): Promise<string> {
    return this.next(async () => {
      const { toolsets, policy } = this.options;
      const { key } = toolsets.find(name);
      if (!this.active.includes(key)) {
        requireExposed(policy, key, this.active);
        await this.add(key);
      }
      return key;
    });
  }

  disable(name: unknown): Promise<string> {
    return this.next(async () => {
      const { key } = this.options.toolsets.find(name);
      this.become(this.loaded.filter(({ toolset }) => toolset !== key));
      return key;
    });
  }

  setAll(wanted: readonly string[]): Promise<void> {
    return this.next(async () => {
      this.become(this.loaded.filter(({ toolset }) => wanted.includes(toolset)));
      const failed: string[] = [];
      for (const key of wanted) {
        if (this.active.includes(key)) continue;
        try {
          await this.add(key);
        } catch (error) {
          failed.push(key);
          this.options.failed(key, error);
        }
      }
      this.failed = failed;
    });
  }

  private async add(key: string): Promise<void> {
    const { toolsets, sets, taken } = this.options;
    const added = await toolsets.take(key, this.context);
    const order = toolsets.keys;
    const all = [...this.loaded, added].sort((a, b) => order.indexOf(a.toolset) - order.indexOf(b.toolset));
    try {
      const ids = all.flatMap((one) => one.ids);
      requireFreeNames(sets.contributions(ids), taken(this.principal));
    } catch (error) {
      toolsets.letGo(added);
      throw error;
    }
    if (this.isGone) toolsets.letGo(added);
    else this.become(all);
  }

  become(next: readonly LoadedToolset[]): void {
    const before = this.loaded;
    if (next.length === before.length && next.every((one, i) => one === before[i])) return;
    this.loaded = next;
    if (this.members.size > 0) {
      const { set } = this;
      for (const member of this.members) member.give(set);
    }
    for (const one of before) if (!next.includes(one)) this.options.toolsets.letGo(one);
  }

  private next<T>(work: () => Promise<T>): Promise<T> {
    const before = this.busy ?? Promise.resolve();
    const done = before.then(work);
    const settled = done
      .catch(() => {})
      .then(() => {
        if (this.busy === settled) this.busy = null;
      });
    this.busy = settled;
    return done;
  }
}

export function createClients(options: ClientsOptions): Clients {
  const { base, most, ttl } = options;
  const clients = new Map<string, Known>();

  function forget(client: Known): void {
    clients.delete(client.principal);
    client.isGone = true;
    client.become([]);
  }

  function sweep(): void {
    const latest = Date.now() - ttl;
    for (const client of clients.values()) if (client.members.size === 0 && client.lastUse < latest) forget(client);
  }

  /** The one that has not come for longest is the first of them. */
  function makeRoom(left: number): void {
    for (const client of clients.values()) {
      if (clients.size <= left) return;
      if (client.members.size === 0 && !isComing(client)) forget(client);
    }
  }

  /** Let in, but not quite there yet. Where there are far too many that is no excuse. */
  function isComing({ hasCome, lastUse }: Known): boolean {
    return !hasCome && Date.now() - lastUse < COMING && clients.size < 2 * most;
  }

  const of = (principal: string, context: LoaderContext): Known => {
    const known = clients.get(principal);
    if (known !== undefined) return used(known);
    makeRoom(most - 1);
    const client = new Known(principal, context, options);
    clients.set(principal, client);
    return client;
  };

  /** It has come: of those that are not there it is the last to be forgotten. */
  function used(client: Known): Known {
    client.lastUse = Date.now();
    if (client.members.size > 0) return client;
    client.hasCome = false;
    clients.delete(client.principal);
    clients.set(client.principal, client);
    return client;
  }

  const sweeping = setInterval(sweep, Math.min(SWEEP, Math.max(10, ttl / 4)));
  sweeping.unref();

  return {
    of,
    find(principal) {
      const client = clients.get(principal);
      return client && used(client);
    },
    alone: (context) => new Known('', context, options),
    joined(caller) {
      return of(caller.principal, base).join(caller);
    },
    left(caller) {
      const client = clients.get(caller.principal);
      if (client === undefined) return;
      client.leave(caller);
      used(client).hasCome = true;
      makeRoom(most);
    },
    get size() {
      return clients.size;
    },
    close() {
      clearInterval(sweeping);
      for (const client of [...clients.values()]) forget(client);
    },
  };
}
