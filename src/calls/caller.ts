/**
 * Who lists and calls: a client, or the program around the gateway, as the gateway knows it. A caller has an identity, a
 * scope, a selection and a view; `Callers` are all that have joined.
 */
import { isHidden } from '../access/find.ts';
import type { Permission } from '../access/permission.ts';
import {
  type Base,
  basePatterns,
  fixedSelection,
  rebase,
  type Selection,
  startSelection,
} from '../access/selection.ts';
import type { Toolset } from '../access/toolset.ts';
import { fingerprint, LIST_KINDS, type ListKind, listOf, pageOf, type View } from '../access/view.ts';
import type { Views } from '../access/views.ts';
import type { EventSink } from '../base/events.ts';
import type { Catalog, Contribution } from '../catalog/catalog.ts';
import { introduce } from '../catalog/introduction.ts';
import type { Kind } from '../catalog/item.ts';
import type { Naming } from '../catalog/names.ts';
import type { Config } from '../config/config.ts';
import type { Task } from '../config/task.ts';
import { type ClientChannel, silentChannel } from '../protocol/contract.ts';
import type { Era } from '../protocol/revisions.ts';
import type { Fleet } from '../sources/fleet.ts';
import type { Identity } from './identity.ts';
import type { AgentCounter, CallCounters, RecordedCaller } from './observers.ts';
import type { CallerSubscriptions } from './subscriptions.ts';

/** The kind of door that a caller uses. */
export type DoorKind = 'stdio' | 'http' | 'sse' | 'rest' | 'local';

/** What a request asks to be narrowed to, and what its caller can switch. */
export interface Scope {
  /** The only tools that the caller sees, whatever it switches; null for no such limit. */
  readonly toolset: Toolset | null;
  /** The only namespace that the caller sees, under the names that its servers give, and all of it; null for all of them. */
  readonly namespace: string | null;
  /** What the caller works on: it sees only what that needs, and all of it. Null if it does not say. */
  readonly task: Task | null;
  /** Whether it sees Toolgate's own tools. */
  readonly controls: boolean;
  /**
   * Whether the caller switches its own selection or the gateway's default one, which all callers without their own share.
   * `all` is for callers that switch nothing and see everything switched on.
   */
  readonly selection: 'own' | 'default' | 'all';
}

/** A scope that narrows nothing. */
export const FULL_SCOPE: Scope = Object.freeze({
  toolset: null,
  namespace: null,
  task: null,
  controls: true,
  selection: 'own',
});

/** Who a client is, what it asks to see, and which door it uses. */
export interface ClientOptions {
  readonly identity: Identity;
  readonly scope: Scope;
  readonly door: DoorKind;
}

export interface CallerOptions extends ClientOptions {
  /** The revision of the protocol that it speaks. Absent for a program. */
  readonly revision?: string;
  /** A list that the caller sees has changed. */
  changed?(kind: ListKind): void;
  /** A resource that it subscribed to has changed, by the URI that it used. */
  updated?(uri: string): void;
  /** How servers that have a connection of their own for each client reach this one. Absent: they cannot. */
  readonly client?: ClientChannel;
}

/** A set of sources that some callers have for themselves. */
export interface SourceSet {
  readonly ids: readonly number[];
  /** Built when somebody looks, and again after one of the sources changed. */
  catalog(): Catalog;
}

/** A caller, as far as its set of sources is concerned. */
export interface SourceSetUser {
  readonly client: ClientChannel;
  /** Something in the set changed. */
  look(): void;
}

/** All such sets. */
export interface CallerSources {
  contributions(ids: readonly number[]): Contribution[];
  take(set: SourceSet, user: SourceSetUser): void;
  drop(set: SourceSet, user: SourceSetUser): void;
  freshen(set: SourceSet, kind: Kind): void;
  tell(set: SourceSet, client: ClientChannel, message: Buffer): void;
}

/** A program around the gateway that decides what each caller sees. */
export interface CallerHost {
  /** What models are told about the use of everything; empty for nothing. */
  readonly instructions: string;
  /** How names are formed in what callers are given. */
  readonly naming: Naming;
  /** What the caller sees from the start; null for what everybody sees. */
  joined(caller: Caller): SourceSet | null;
  left(caller: Caller): void;
}

export interface CallersOptions {
  readonly events: EventSink;
  /** The configuration in force. */
  config(): Config;
  readonly views: Pick<Views, 'of' | 'sees'>;
  /** What an agent may use now; null if no policy limits it. */
  permissionOf(agent: string): Permission | null;
  /** The selection of callers without one of their own. */
  defaultSelection(): Selection;
  readonly fleet: Pick<Fleet, 'contributions' | 'freshen' | 'tell' | 'leave'>;
  /** The sources that callers have for themselves; null without a host. */
  readonly sets: CallerSources | null;
  readonly subscriptions: CallerSubscriptions<Caller>;
  readonly counters: Pick<CallCounters, 'ofAgent'>;
  readonly host: CallerHost | null;
  /** What everybody except the operator works on; null for anything. */
  readonly task: Task | null;
}

export class Callers {
  readonly options: CallersOptions;
  readonly all = new Set<Caller>();
  /** Whether every server has been tried once: until then lists are still growing into shape. */
  areListsComplete = false;

  constructor(options: CallersOptions) {
    this.options = options;
  }

  join(options: CallerOptions): Caller {
    const caller = new Caller(this, options);
    this.all.add(caller);
    const own = this.options.host?.joined(caller) ?? null;
    if (own !== null) caller.give(own);
    else if (this.areListsComplete) caller.look();
    return caller;
  }

  leave(caller: Caller): void {
    const { host, subscriptions, fleet } = this.options;
    this.all.delete(caller);
    host?.left(caller);
    subscriptions.leave(caller);
    fleet.leave(caller.client);
  }

  /** Something that callers see may have changed: for all of them, or for those of one agent. */
  look(agent: string | null = null): void {
    this.#lookIf((caller) => agent === null || caller.agent === agent);
  }

  /** The default selection has changed. */
  lookAtDefault(): void {
    this.#lookIf(({ selection }) => selection === null);
  }

  #lookIf(isConcerned: (caller: Caller) => boolean): void {
    for (const caller of this.all) {
      if (!isConcerned(caller)) continue;
      try {
        caller.look();
      } catch (error) {
        // The others are told all the same.
        this.options.events.emit('failure', { where: 'telling a caller about its lists', error });
      }
    }
  }

  /** A new configuration is in force. */
  rebase(): void {
    const base = basePatterns(this.options.config());
    for (const caller of this.all) caller.rebase(base);
  }

  /** A resource of a server has changed: for everyone who subscribed to it, or for one client. */
  updated(sourceId: number, uri: string, client: ClientChannel | null): void {
    for (const [caller, words] of this.options.subscriptions.hearers(sourceId, uri))
      if ((client === null || caller.client === client) && !isHidden(caller.view(), words))
        caller.options.updated?.(words);
  }
}

export class Caller implements RecordedCaller {
  readonly callers: Callers;
  readonly options: CallerOptions;
  readonly revision: string | null;
  /** It sees what all of these need; everything if there are none. */
  readonly tasks: readonly Task[];
  readonly client: ClientChannel;
  /** Where its calls are counted. */
  readonly counter: AgentCounter;
  /** What it has for itself to see, and nothing else; null if it sees what everybody sees. */
  sources: SourceSet | null = null;
  /** Null: follows the default. */
  selection: Selection | null = null;
  /** Cleared at every change, so that a call reads a field and nothing else. */
  current: View | null = null;
  /** When the time of day may change what it may use. */
  freshUntil = Number.POSITIVE_INFINITY;
  /** The fingerprint of each list when the caller was last told about it; null before it first looked. */
  told: Record<ListKind, string | null> = { tools: null, resources: null, prompts: null };

  constructor(callers: Callers, options: CallerOptions) {
    const { task, counters, config } = callers.options;
    const { scope, identity } = options;
    this.callers = callers;
    this.options = options;
    this.revision = options.revision ?? null;
    this.tasks = [identity.isOperator ? null : task, scope.task].filter((one) => one !== null);
    this.client = options.client ?? silentChannel();
    this.counter = counters.ofAgent(identity.agent);
    if (scope.selection === 'all' || this.#seesAll) this.selection = startSelection(null);
    if (scope.toolset !== null)
      this.selection = fixedSelection(this.#baseInside(basePatterns(config())), scope.toolset);
  }

  get agent(): string {
    return this.options.identity.agent;
  }

  get principal(): string {
    return this.options.identity.principal;
  }

  /** Policies do not apply to the operator. */
  get isOperator(): boolean {
    return this.options.identity.isOperator;
  }

  get door(): DoorKind {
    return this.options.door;
  }

  get scope(): Scope {
    return this.options.scope;
  }

  get namespace(): string | null {
    return this.options.scope.namespace;
  }

  /** Whether what it switches applies to everybody. */
  get isShared(): boolean {
    if (this.selection !== null) return false;
    return this.scope.selection === 'default' || this.callers.options.config().selection === 'shared';
  }

  get chosen(): Selection {
    return this.selection ?? this.callers.options.defaultSelection();
  }

  view(): View {
    const isStale = this.freshUntil !== Number.POSITIVE_INFINITY && Date.now() >= this.freshUntil;
    if (this.current === null || isStale) {
      const { permissionOf, views } = this.callers.options;
      const permission = this.isOperator ? null : permissionOf(this.agent);
      this.freshUntil = permission?.freshUntil ?? Number.POSITIVE_INFINITY;
      const { sources, namespace, tasks, chosen: selection } = this;
      this.current = views.of({ sources, namespace, tasks, permission, selection, controls: this.scope.controls });
    }
    return this.current;
  }

  /** The result of a list method, for clients of an era. From here on the caller counts as told about that list. */
  list(kind: Kind, era: Era): Buffer {
    this.#note(kind);
    return this.view().list(kind, era);
  }

  /** The same in pages, if the configuration has them. */
  page(kind: Kind, era: Era, cursor: string | null): Buffer {
    if (cursor === null) this.#note(kind);
    return pageOf(this.view(), kind, era, this.callers.options.config().limits.page, cursor);
  }

  /** The caller looks at a list: servers that do not announce changes are listed again now and then. */
  #note(kind: Kind): void {
    const { fleet, sets } = this.callers.options;
    if (this.sources === null) fleet.freshen(kind);
    else sets!.freshen(this.sources, kind);
    const list = listOf(kind);
    this.told[list] = fingerprint(this.view(), list);
  }

  /** What servers tell models about their use. */
  introduction(): string {
    const { fleet, sets, views, host, config } = this.callers.options;
    const all = this.sources === null ? fleet.contributions() : sets!.contributions(this.sources.ids);
    const naming = this.sources === null ? config() : host!.naming;
    const { permission } = this.view();
    const seen = all.filter((one) => views.sees(this, permission, one));
    const text = introduce(seen, naming, this.namespace);
    return host === null || host.instructions === '' ? text : `${host.instructions}\n\n${text}`.trimEnd();
  }

  /** From here on the caller is told about changes of a resource. Rejects if there is none, or its server does not announce them. */
  subscribe(uri: string): Promise<void> {
    return this.callers.options.subscriptions.subscribe(this, this.view(), uri);
  }

  unsubscribe(uri: string): void {
    this.callers.options.subscriptions.unsubscribe(this, uri);
  }

  /** Passes a notification on to the servers that have a connection for this caller alone. */
  tell(message: Buffer): void {
    const { fleet, sets } = this.callers.options;
    if (this.sources === null) fleet.tell(this.client, message);
    else sets!.tell(this.sources, this.client, message);
  }

  leave(): void {
    this.callers.leave(this);
    this.#take(null);
  }

  /** From here on the caller sees this, and is told about what changed by that. */
  give(sources: SourceSet): void {
    if (sources === this.sources) return;
    this.#take(sources);
    this.look();
  }

  #take(sources: SourceSet | null): void {
    const { sets } = this.callers.options;
    const before = this.sources;
    this.sources = sources;
    // In this order, so that what both have in common is not closed in between.
    if (sources !== null) sets?.take(sources, this);
    if (before !== null) sets?.drop(before, this);
  }

  /** Other patterns are in force. */
  rebase(base: Base): void {
    const { selection, toolset } = this.scope;
    if (toolset !== null) this.selection = fixedSelection(this.#baseInside(base), toolset);
    else if (this.#seesAll) return;
    else if (selection === 'own' && this.selection !== null) this.selection = rebase(this.selection, base);
  }

  /** Whether everything it sees is switched on, always. */
  get #seesAll(): boolean {
    return this.namespace !== null || this.tasks.length > 0;
  }

  /** Patterns match exposed names, which mean nothing inside a namespace or a task. */
  #baseInside(base: Base): Base {
    return this.#seesAll ? startSelection(null).base : base;
  }

  /** Notifies the caller of each list that changed since the last time. */
  look(): void {
    this.current = null;
    // Before all servers have been tried, lists only grow into shape: that is news only to a caller that has listed already.
    if (!this.callers.areListsComplete && LIST_KINDS.every((kind) => this.told[kind] === null)) return;
    for (const kind of LIST_KINDS) {
      const now = fingerprint(this.view(), kind);
      const before = this.told[kind];
      this.told[kind] = now;
      if (before !== null && before !== now) this.options.changed?.(kind);
    }
  }
}
