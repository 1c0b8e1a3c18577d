/**
 * The clients of a server with toolsets, and the toolsets that each has switched on. All sessions of one client see the
 * same toolsets. A client that has not been connected for a long time is forgotten.
 */
import type { Caller, SourceSet } from '../calls/caller.ts';
import type { SourceSets } from '../gateway/source-sets.ts';
import { requireExposed, requireFreeNames } from './exposure.ts';
import type { LoadedToolset, LoaderContext, Toolsets } from './toolsets.ts';
import type { ExposurePolicy } from './types.ts';

export interface ClientsOptions {
  readonly toolsets: Toolsets;
  readonly sets: SourceSets;
  readonly policy: ExposurePolicy;
  /** Names that tools of the client must not have, each with its owner. */
  taken(principal: string): ReadonlyMap<string, string>;
  /** The context of clients that were not seen before. */
  readonly base: LoaderContext;
  /** How many clients are remembered while they are not connected. */
  readonly most: number;
  /** For how many milliseconds they are remembered. */
  readonly ttl: number;
  failed(toolset: string, error: unknown): void;
}

const SWEEP_MS = 60_000;
/** How long it may take from admission until the first caller of a client joins. */
const JOIN_MS = 10_000;

export class ToolsetClient {
  /** The owner of the client's sessions. */
  readonly principal: string;
  readonly context: LoaderContext;
  /** The callers that are connected as this client. */
  readonly callers = new Set<Caller>();
  /** The toolsets that are switched on, in the order of the catalog. */
  loaded: readonly LoadedToolset[] = [];
  /** Toolsets that the client should have, but that could not be loaded. */
  failed: readonly string[] = [];
  lastUse = Date.now();
  /** Whether a caller has joined since the client was last admitted. */
  hasJoined = false;
  private readonly options: ClientsOptions;
  /** The change in progress; changes run one after the other. */
  private changing: Promise<unknown> | null = null;
  private isForgotten = false;

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

  join(caller: Caller): SourceSet {
    this.callers.add(caller);
    this.hasJoined = true;
    return this.options.sets.of(this.ids);
  }

  leave(caller: Caller): void {
    this.callers.delete(caller);
    this.lastUse = Date.now();
  }

  /** Switches a toolset on. Rejects with a `ToolingError`; then nothing has changed. */
  enable(name: unknown): Promise<string> {
    return this.change(async () => {
      const { toolsets, policy } = this.options;
      const { key } = toolsets.find(name);
      if (!this.active.includes(key)) {
        requireExposed(policy, key, this.active);
        await this.add(key);
      }
      return key;
    });
  }

  /** Switches a toolset off. Rejects if no toolset has that name. */
  disable(name: unknown): Promise<string> {
    return this.change(async () => {
      const { key } = this.options.toolsets.find(name);
      this.replace(this.loaded.filter(({ toolset }) => toolset !== key));
      return key;
    });
  }

  /** Switches on exactly these toolsets. Those that cannot be loaded end up in `failed`. */
  setAll(wanted: readonly string[]): Promise<void> {
    return this.change(async () => {
      this.replace(this.loaded.filter(({ toolset }) => wanted.includes(toolset)));
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

  forget(): void {
    this.isForgotten = true;
    this.replace([]);
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
      toolsets.release(added);
      throw error;
    }
    if (this.isForgotten) toolsets.release(added);
    else this.replace(all);
  }

  private replace(next: readonly LoadedToolset[]): void {
    const before = this.loaded;
    if (next.length === before.length && next.every((one, i) => one === before[i])) return;
    this.loaded = next;
    if (this.callers.size > 0) {
      const set = this.options.sets.of(this.ids);
      for (const caller of this.callers) caller.give(set);
    }
    for (const one of before) if (!next.includes(one)) this.options.toolsets.release(one);
  }

  private change<T>(work: () => Promise<T>): Promise<T> {
    const before = this.changing ?? Promise.resolve();
    const done = before.then(work);
    const settled = done
      .catch(() => {})
      .then(() => {
        if (this.changing === settled) this.changing = null;
      });
    this.changing = settled;
    return done;
  }
}

export class ToolsetClients {
  private readonly options: ClientsOptions;
  /** Clients that are not connected are in the order of their last use. */
  private readonly clients = new Map<string, ToolsetClient>();
  private readonly sweeping: NodeJS.Timeout;

  constructor(options: ClientsOptions) {
    this.options = options;
    const { ttl } = options;
    this.sweeping = setInterval(() => this.sweep(), Math.min(SWEEP_MS, Math.max(10, ttl / 4))).unref();
  }

  /** Creates the client if it is new. */
  of(principal: string, context: LoaderContext): ToolsetClient {
    const known = this.find(principal);
    if (known !== undefined) return known;
    this.makeRoom(this.options.most - 1);
    const client = new ToolsetClient(principal, context, this.options);
    this.clients.set(principal, client);
    return client;
  }

  find(principal: string): ToolsetClient | undefined {
    const client = this.clients.get(principal);
    return client && this.used(client);
  }

  /** A client that represents all clients and is never forgotten. */
  common(context: LoaderContext): ToolsetClient {
    return new ToolsetClient('', context, this.options);
  }

  joined(caller: Caller): SourceSet {
    return this.of(caller.principal, this.options.base).join(caller);
  }

  left(caller: Caller): void {
    const client = this.clients.get(caller.principal);
    if (client === undefined) return;
    client.leave(caller);
    this.used(client).hasJoined = true;
    this.makeRoom(this.options.most);
  }

  close(): void {
    clearInterval(this.sweeping);
    for (const client of [...this.clients.values()]) this.forget(client);
  }

  /** Moves a client that is not connected to the end, so that it is forgotten last. */
  private used(client: ToolsetClient): ToolsetClient {
    client.lastUse = Date.now();
    if (client.callers.size > 0) return client;
    client.hasJoined = false;
    this.clients.delete(client.principal);
    this.clients.set(client.principal, client);
    return client;
  }

  private forget(client: ToolsetClient): void {
    this.clients.delete(client.principal);
    client.forget();
  }

  private sweep(): void {
    const latest = Date.now() - this.options.ttl;
    for (const client of this.clients.values())
      if (client.callers.size === 0 && client.lastUse < latest) this.forget(client);
  }

  private makeRoom(left: number): void {
    for (const client of this.clients.values()) {
      if (this.clients.size <= left) return;
      if (client.callers.size === 0 && !this.isJoining(client)) this.forget(client);
    }
  }

  /** Whether the client was admitted and is about to connect. Always false if there are far too many clients. */
  private isJoining({ hasJoined, lastUse }: ToolsetClient): boolean {
    return !hasJoined && Date.now() - lastUse < JOIN_MS && this.clients.size < 2 * this.options.most;
  }
}
