/**
 * A caller lists and calls: it is a client, or the program around the gateway, as the gateway knows it. It has an
 * identity, a scope, a selection and a view. `Callers` holds all that have joined.
 */
import { randomUUID } from 'node:crypto';
import type { Subject, TokenClaims } from '../access/circumstances.ts';
import { isHidden } from '../access/find.ts';
import type { Permission } from '../access/permission.ts';
import {
  type Base,
  basePatterns,
  changeSelection,
  equip,
  fixedSelection,
  type KeptSelection,
  keptSelection,
  rebase,
  refitted,
  type Selection,
  startSelection,
  toKept,
} from '../access/selection.ts';
import type { Showing } from '../access/showing.ts';
import { textRoom } from '../access/text-room.ts';
import { goneToolset, type Toolset } from '../access/toolset.ts';
import { fingerprint, LIST_KINDS, type ListKind, listOf, pageOf, type View } from '../access/view.ts';
import type { ViewRequest, Views } from '../access/views.ts';
import { GatewayError } from '../base/errors.ts';
import type { EventSink } from '../base/events.ts';
import { isSameValue } from '../base/objects.ts';
import { untrustedLine } from '../catalog/away.ts';
import type { Catalog } from '../catalog/catalog.ts';
import { BUILT_IN, type Entry } from '../catalog/entry.ts';
import { instruct } from '../catalog/introduction.ts';
import type { Kind } from '../catalog/item.ts';
import type { Naming } from '../catalog/names.ts';
import { tokensOfAll } from '../catalog/tokens.ts';
import type { Config } from '../config/config.ts';
import type { Task } from '../config/task.ts';
import { type ClientChannel, silentChannel } from '../protocol/contract.ts';
import { traitsIn } from '../protocol/envelope.ts';
import { type ClientTraits, missesNewTools, UNKNOWN_CLIENT } from '../protocol/known-clients.ts';
import { claimsRevision, type Message } from '../protocol/message.ts';
import { type Era, MODERN_REVISION } from '../protocol/revisions.ts';
import type { Fleet } from '../sources/fleet.ts';
import type { Identity } from './identity.ts';
import { sourceNaming } from './named-uris.ts';
import type { AgentCounter, CallCounters, ListCounters, RecordedCaller } from './observers.ts';
import { SeenClient } from './seen-client.ts';
import type { CallerSubscriptions } from './subscriptions.ts';

/** The kind of door that a caller uses. */
export type DoorKind = 'stdio' | 'http' | 'sse' | 'rest' | 'local';

/** How a request narrows what its caller sees, and what the caller can switch. */
export interface Scope {
  /** The only tools that the caller sees, whatever it switches; null for no such limit. */
  readonly toolset: Toolset | null;
  /**
   * The only namespace that the caller sees: all its items, under the names that the servers use. Null for all
   * namespaces.
   */
  readonly namespace: string | null;
  /** The task that the caller works on. The caller sees exactly what the task needs. Null if it names none. */
  readonly task: Task | null;
  /** Whether it sees Toolgate's own tools. */
  readonly controls: boolean;
  /**
   * Whether the caller switches its own selection or the gateway's default one, which all callers without their own
   * share. `all` is for callers that switch nothing and see everything switched on.
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

/** The identity of a client, the scope it asks for, and the door it uses. */
export interface ClientOptions {
  readonly identity: Identity;
  readonly scope: Scope;
  readonly door: DoorKind;
  /** The id by which it says that it is the same client as before. Absent or null: it says nothing. */
  readonly clientId?: string | null;
  /** Absent: it is not a window of a shared gateway. */
  readonly window?: WindowOfCaller;
}

/** What a caller that is a window has in addition. */
export interface WindowOfCaller {
  /** How many gateways it had before this one. */
  readonly before: number;
  /** What it was told to keep by its last gateway; null if it had none. */
  readonly kept: KeptCaller | null;
  /** Tells it what to keep. */
  keep(state: KeptCaller): void;
}

/** What of a caller outlives its gateway. */
export interface KeptCaller {
  /** What it has switched itself; null if nothing. */
  readonly selection: KeptSelection | null;
  /** The fingerprint of each list that it knows. */
  readonly known: Readonly<Record<ListKind, string | null>>;
}

/** A caller that other replicas have too. */
export interface SharedCaller {
  /** What it had before; null if nothing. */
  readonly selection: KeptSelection | null;
  readonly known: KeptCaller['known'] | null;
  /** Tells the others what it has switched. */
  keep(state: KeptCaller): Promise<void>;
  /** Its client has been sent a list. */
  listed?(kind: ListKind, fingerprint: string): void;
}

export interface CallerOptions extends ClientOptions {
  /** The revision of the protocol that it speaks. Absent for a program. */
  readonly revision?: string;
  /** What is known of its client. Absent for a program, and for clients that say so with each request. */
  readonly traits?: ClientTraits;
  /** Absent: no other replica has this caller. */
  readonly shared?: SharedCaller;
  /** A list that the caller sees has changed. */
  changed?(kind: ListKind, fingerprint: string): void;
  /** Whether a client learns of such a change now. Absent: it does not. */
  hears?(client: ClientTraits): boolean;
  /** A resource that it subscribed to has changed, by the URI that it used. */
  updated?(uri: string): void;
  /** How servers that have a connection of their own for each client reach this one. Absent: they cannot. */
  readonly client?: ClientChannel;
}

/** A set of sources that only some callers see. */
export interface SourceSet {
  readonly ids: readonly number[];
  /** Built on first use, and again after one of the sources has changed. */
  catalog(): Catalog;
}

/** What a caller has found by searching. */
export interface FoundItems {
  readonly searches: readonly { readonly query: string; readonly found: readonly Entry[] }[];
  /** The caller has called this item, with success. */
  called(entry: Entry): void;
}

/** A caller, as its set of sources sees it. */
export interface SourceSetUser {
  readonly client: ClientChannel;
  /** Something in the set has changed. */
  look(): void;
}

/** All sets of sources that only some callers see. */
export interface CallerSources {
  take(set: SourceSet, user: SourceSetUser): void;
  drop(set: SourceSet, user: SourceSetUser): void;
  freshen(set: SourceSet, kind: Kind): void;
  tell(set: SourceSet, client: ClientChannel, message: Buffer): void;
}

/** A program around the gateway that decides what each caller sees. */
export interface CallerHost {
  /** Instructions for models about the whole gateway; empty for none. */
  readonly instructions: string;
  /** How exposed names are formed for these sources. */
  readonly naming: Naming;
  /** What the caller sees from the start; null for the sources that all callers share. */
  joined(caller: Caller): SourceSet | null;
  left(caller: Caller): void;
}

export interface CallersOptions {
  readonly events: EventSink;
  /** The configuration in force. */
  config(): Config;
  readonly views: Pick<Views, 'of' | 'sees' | 'showing'>;
  /** What a subject may use now; null if no policy limits it. */
  permissionOf(subject: Subject): Permission | null;
  /** The selection of callers without one of their own. */
  defaultSelection(): Selection;
  /** The toolset that a window equipped last in this gateway; null for none, undefined if no window has switched any. */
  lastOfWindows(): Toolset | null | undefined;
  /** A toolset as it is now. `isNamed` says that the URL or a header of a request names it. */
  toolsetNow(toolset: Toolset, isNamed: boolean): Toolset;
  /** The toolset that a client had equipped last; null if it had none, undefined if nothing is known of it. */
  lastToolset(client: string): Toolset | null | undefined;
  /** A client has another toolset, because its own was renamed. */
  renamedToolset(client: string, name: string): void;
  readonly fleet: Pick<Fleet, 'freshen' | 'tell' | 'leave'>;
  /** The sources that only some callers see; null without a host. */
  readonly sets: CallerSources | null;
  readonly subscriptions: CallerSubscriptions<Caller>;
  readonly counters: Pick<CallCounters, 'ofAgent'> & ListCounters;
  readonly host: CallerHost | null;
  /** Milliseconds that an answer which switches tools waits at most until its client has listed again. */
  readonly listWait: number;
  /** The task of every caller except the operator; null for no restriction. */
  readonly task: Task | null;
}

export class Callers {
  readonly options: CallersOptions;
  readonly all = new Set<Caller>();
  /** Whether every server has been tried once. Until then, lists are incomplete. */
  areListsComplete = false;

  constructor(options: CallersOptions) {
    this.options = options;
  }

  join(options: CallerOptions): Caller {
    const caller = new Caller(this, options);
    this.all.add(caller);
    const last = caller.knownAs === null ? undefined : this.options.lastToolset(caller.knownAs);
    if (last !== undefined) caller.selection = equip(caller.chosen, last);
    caller.startAsWindow();
    caller.startAsCopy();
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

  /** What callers see may have changed: for all of them, or for those of one agent. */
  look(agent: string | null = null): void {
    this.#lookIf((caller) => agent === null || caller.agent === agent);
  }

  /** The default selection has changed. */
  lookAtDefault(): void {
    for (const caller of this.all) caller.followDefault();
    this.#lookIf(({ selection }) => selection === null);
  }

  #lookIf(isConcerned: (caller: Caller) => boolean): void {
    for (const caller of this.all) {
      if (!isConcerned(caller)) continue;
      try {
        caller.look();
      } catch (error) {
        // One failing caller must not keep the others from being notified.
        this.options.events.emit('failure', { where: 'notifying a caller of changed lists', error });
      }
    }
  }

  /** A new configuration is in force. */
  rebase(): void {
    const base = basePatterns(this.options.config());
    for (const caller of this.all) caller.rebase(base);
  }

  /** Toolsets have changed. Every caller has them as they are now; `look` notifies those whose lists changed. */
  refit(): void {
    for (const caller of this.all) {
      const before = caller.selection?.toolset?.name;
      caller.refit();
      const now = caller.selection?.toolset?.name;
      if (now !== undefined && now !== before && caller.knownAs !== null)
        this.options.renamedToolset(caller.knownAs, now);
    }
  }

  /** A resource of a server has changed. Notifies all subscribers, or only those of one client. */
  updated(sourceId: number, uri: string, client: ClientChannel | null): void {
    for (const [caller, usedUri] of this.options.subscriptions.subscribers(sourceId, uri))
      if (
        (client === null || caller.client === client) &&
        !isHidden(caller.view(), usedUri, sourceNaming(caller, usedUri))
      )
        caller.options.updated?.(usedUri);
  }
}

const EVERYTHING = startSelection(null);

export class Caller implements RecordedCaller {
  readonly callers: Callers;
  readonly options: CallerOptions;
  readonly revision: string | null;
  /** What the token that it used last says about it. */
  #claims: TokenClaims | null;
  /** It sees only what every one of these tasks needs; everything if there are none. */
  readonly tasks: readonly Task[];
  readonly client: ClientChannel;
  /** The client of a session, or the program. */
  readonly own: SeenClient;
  /** The clients without a session, by what their requests say of them. */
  readonly #others = new WeakMap<ClientTraits, SeenClient>();
  /** Where its calls are counted. */
  readonly counter: AgentCounter;
  /** The only sources it sees; null if it sees those that all callers share. */
  sources: SourceSet | null = null;
  /** Null: it uses the default selection. */
  selection: Selection | null = null;
  /** What it has found by searching, until now; null before the first search. */
  found: FoundItems | null = null;
  /** How `auto` shows it the tools; null without `auto`. */
  #showing: Showing | null = null;
  #isSettled = false;
  #sessionId: string | null = null;
  /** Cleared at every change, so that a call only has to read this field. */
  current: View | null = null;
  /** Its own permission. That of its view may be of another caller, to whom the same is open. */
  permission: Permission | null = null;
  /** When the time of day may next change what it is allowed to use. */
  freshUntil = Number.POSITIVE_INFINITY;
  /** When it joined, in milliseconds since 1970. */
  readonly joined = Date.now();
  /** How often it was notified of a changed list of tools. */
  changes = 0;
  /** The lists of tools that it was sent: how many, and their bytes. */
  readonly listed = { count: 0, bytes: 0 };
  /** The bytes of the results of its calls. */
  resultBytes = 0;
  /** The changed lists of tools that it was sent since the first one: how many, and about how many tokens they have. */
  readonly sentAgain = { count: 0, tokens: 0 };
  /** The fingerprint of each list that the caller last saw or was notified of; null before the first time. */
  known: Record<ListKind, string | null> = { tools: null, resources: null, prompts: null };
  /** Whether it has the toolset of another window, and has switched nothing itself. */
  #isInherited = false;
  /** What its window keeps, as text. */
  #kept = '';

  constructor(callers: Callers, options: CallerOptions) {
    const { task, counters, config } = callers.options;
    const { scope, identity } = options;
    this.callers = callers;
    this.options = options;
    this.revision = options.revision ?? null;
    this.#claims = identity.claims;
    this.tasks = [identity.isOperator ? null : task, scope.task].filter((one) => one !== null);
    this.client = options.client ?? silentChannel();
    this.own = new SeenClient(options.traits ?? UNKNOWN_CLIENT, callers.options.listWait);
    this.counter = counters.ofAgent(identity.agent);
    if (scope.selection === 'all' || this.#seesAll) this.selection = startSelection(null);
    if (scope.toolset !== null) this.selection = this.#fixed(basePatterns(config()), scope.toolset);
  }

  get agent(): string {
    return this.options.identity.agent;
  }

  /** Whom policies decide about. A task that the operator gave counts before one that the client names. */
  get subject(): Subject {
    return { agent: this.agent, claims: this.#claims, task: this.tasks[0] ?? null };
  }

  /** A session goes on with another token of the same principal, which may say something else. */
  setClaims(claims: TokenClaims | null): void {
    if (claims === this.#claims) return;
    const isSame = isSameValue(claims, this.#claims);
    this.#claims = claims;
    if (!isSame) this.look();
  }

  /** Names the session, or the agent without sessions, to tools. It is not the id that the client sends. */
  get sessionId(): string {
    this.#sessionId ??= randomUUID();
    return this.#sessionId;
  }

  /** By what people name it: the beginning of `sessionId`. */
  get label(): string {
    return this.sessionId.slice(0, 8);
  }

  /** Whether it is a client, and not the operator or a program in this process. */
  get isClient(): boolean {
    return !this.isOperator && this.door !== 'local';
  }

  /** Whether it can have another toolset than the others. */
  get choosesItself(): boolean {
    const { scope } = this;
    return scope.selection === 'own' && scope.toolset === null && !this.#seesAll;
  }

  /**
   * By what its client is known again after a restart: its principal, its agent and the id that it sends. Clients without
   * sessions are known without an id too. Null if it cannot be known again, or switches nothing of its own.
   */
  get knownAs(): string | null {
    const { identity, door, clientId = null } = this.options;
    if ((door !== 'http' && door !== 'sse') || this.callers.options.config().selection === 'shared') return null;
    if (!this.choosesItself) return null;
    if (clientId === null && this.revision !== MODERN_REVISION) return null;
    return JSON.stringify([identity.principal, identity.agent, clientId]);
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

  /** What narrows it besides the policy, for the audit. */
  get narrowedBy(): string | null {
    if (this.tasks.length > 0) return 'task';
    if (this.scope.toolset !== null) return 'toolset';
    return this.namespace === null ? null : 'namespace';
  }

  get isWindow(): boolean {
    return this.options.window !== undefined;
  }

  /** Whether its switching affects all callers that use the default selection. */
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
      const permission = this.isOperator ? null : permissionOf(this.subject);
      this.permission = permission;
      this.freshUntil = permission?.freshUntil ?? Number.POSITIVE_INFINITY;
      this.#show(views, permission);
      this.current = views.of(this.#request(permission, this.own.traits), this.own.order);
    }
    return this.current;
  }

  /**
   * Decides how `auto` shows the tools. While servers are tried for the first time, and after a new configuration, only
   * their number counts. From then on the way stays, if possible. A client that never lists again keeps the one that it
   * has listed: it could not use the tools of another.
   */
  #show(views: CallersOptions['views'], permission: Permission | null): void {
    const before = this.#showing;
    const next = views.showing(this, permission, this.#isSettled ? before : null);
    const isKept = before !== null && this.own.seen !== null && missesNewTools(this.own.traits);
    if (this.#isSettled && before === 'all' && next !== before && !isKept) this.#keepSeen();
    this.#showing = isKept && next !== null ? before : next;
    this.#isSettled = this.callers.areListsComplete;
  }

  /** There are too many tools to show all, and what its client has seen stays active: nobody knows if it lists again. */
  #keepSeen(): void {
    const { seen } = this.own;
    if (seen === null || !this.choosesItself || this.isShared) return;
    const named = (kinds: readonly Kind[]) =>
      new Set(
        kinds.flatMap((kind) =>
          [...seen.entries[kind]].flatMap(([name, { sourceId }]) => (sourceId === BUILT_IN ? [] : name)),
        ),
      );
    const on = { tools: named(['tool']), resources: named(['resource', 'template']) };
    this.selection = changeSelection(this.chosen, {
      tools: { on: on.tools, off: new Set() },
      resources: { on: on.resources, off: new Set() },
    });
  }

  /** The client that sent a message. */
  clientOf(message: Message): SeenClient {
    if (this.options.revision !== MODERN_REVISION || !claimsRevision(message)) return this.own;
    const traits = traitsIn(message);
    const known = this.#others.get(traits) ?? new SeenClient(traits, this.callers.options.listWait);
    this.#others.set(traits, known);
    return known;
  }

  /** Whether a client learns of a changed list now. */
  hears({ traits }: SeenClient): boolean {
    return this.options.hears?.(traits) === true;
  }

  /** A client has called through `toolman_call`. From now on its list has that tool, if nobody knows what it does. */
  calledThrough(client: SeenClient): void {
    if (client.traits.listsAgain !== 'unknown') return;
    client.traits = { ...client.traits, listsAgain: 'no' };
    if (client === this.own) this.look();
  }

  /** What one of its clients sees. A caller without a session may have clients of several kinds. */
  viewFor(client: SeenClient): View {
    const own = this.view();
    if (client === this.own) return own;
    return this.callers.options.views.of(this.#request(own.permission, client.traits), client.order);
  }

  #request(permission: Permission | null, client: ClientTraits): ViewRequest {
    const { sources, namespace, tasks, scope } = this;
    const showing = this.#showing;
    const selection = showing === 'all' && scope.toolset === null ? EVERYTHING : this.chosen;
    const isFixed = scope.toolset !== null;
    return { sources, namespace, tasks, permission, selection, isFixed, controls: scope.controls, client, showing };
  }

  /** What it sees, for a list that is made from items of this kind. From now on the caller counts as knowing them. */
  reading(kind: Kind): View {
    this.#note(kind);
    return this.view();
  }

  /** The result of a list method, for clients of an era. From now on the caller counts as knowing that list. */
  list(kind: Kind, era: Era): Buffer {
    this.#note(kind);
    return this.view().list(kind, era);
  }

  /** One page of that result, if the configuration sets a page size, in the form for one of its clients. */
  page(kind: Kind, era: Era, cursor: string | null, client: SeenClient = this.own): Buffer {
    if (cursor === null) this.#note(kind);
    const view = this.viewFor(client);
    if (kind === 'tool') {
      if (cursor === null) this.#countSentAgain(client.seen, view);
      client.sees(view);
    }
    const page = pageOf(view, kind, era, this.callers.options.config().limits.page, cursor);
    if (kind === 'tool') {
      if (cursor === null) this.listed.count++;
      this.listed.bytes += page.length;
    }
    return page;
  }

  /** A changed list costs its tokens once more, and what the client's provider keeps of the prompt before. */
  #countSentAgain(before: View | null, now: View): void {
    if (before === null || before === now || before.fingerprint('tool') === now.fingerprint('tool')) return;
    const tokens = tokensOfAll([...now.entries.tool.values()]);
    this.sentAgain.count++;
    this.sentAgain.tokens += tokens;
    this.callers.options.counters.sentAgain(tokens);
  }

  /** The caller reads a list. Servers that do not announce changes are listed again from time to time. */
  #note(kind: Kind): void {
    const { fleet, sets } = this.callers.options;
    if (this.sources === null) fleet.freshen(kind);
    else sets!.freshen(this.sources, kind);
    // What has changed since the last comparison is announced first: other clients of this caller may not list now.
    this.#compare(listOf(kind));
    this.options.shared?.listed?.(listOf(kind), this.known[listOf(kind)] ?? '');
    this.#keep();
  }

  /** The instructions for models: Toolgate's own, then those of the servers, as long as the client shows them. */
  introduction(client: ClientTraits = this.own.traits): string {
    const { catalog, controls } = this.view();
    const { instructions: room } = textRoom(client, this.callers.options.config().catalog);
    const own = [untrustedLine(catalog), controls.instructions?.(catalog) ?? ''];
    return this.#instruct(room, own.filter((text) => text !== '').join('\n\n'));
  }

  /** What the servers say about themselves, as a whole. */
  get serverInstructions(): string {
    return this.#instruct(Number.POSITIVE_INFINITY, '');
  }

  #instruct(room: number, ofControls: string): string {
    const own = [this.callers.options.host?.instructions ?? '', ofControls].filter((text) => text !== '');
    return instruct(this.view().catalog.introductions, own.join('\n\n'), room);
  }

  /**
   * From now on the caller is notified of changes of a resource. Rejects if there is no such resource, or if its server
   * does not announce changes.
   */
  async subscribe(uri: string): Promise<void> {
    const { subscriptions, events } = this.callers.options;
    try {
      await subscriptions.subscribe(this, this.view(), uri);
    } catch (error) {
      const method = this.revision === MODERN_REVISION ? 'subscriptions/listen' : 'resources/subscribe';
      reportDenied(events, this, method, uri, error, '');
      throw error;
    }
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

  /** From now on the caller sees only these sources, and is notified of the lists that changed. */
  give(sources: SourceSet): void {
    if (sources === this.sources) return;
    this.#take(sources);
    this.look();
  }

  #take(sources: SourceSet | null): void {
    const { sets } = this.callers.options;
    const before = this.sources;
    this.sources = sources;
    // The new set is taken before the old one is released, so that sources in both are not closed in between.
    if (sources !== null) sets?.take(sources, this);
    if (before !== null) sets?.drop(before, this);
  }

  /** A window goes on with what it had, or begins with the toolset that a window equipped last. */
  startAsWindow(): void {
    const { window, scope } = this.options;
    if (window === undefined || scope.selection !== 'own' || this.#seesAll) return;
    const { config, toolsetNow, lastOfWindows } = this.callers.options;
    const kept = window.kept?.selection ?? null;
    if (kept !== null)
      this.selection = keptSelection(basePatterns(config()), kept, (name) => toolsetNow(goneToolset(name), true));
    const last = kept === null && config().selection === 'own' ? lastOfWindows() : undefined;
    if (last === undefined) return;
    this.selection = equip(this.chosen, last);
    this.#isInherited = true;
  }

  /** A caller that another replica had before goes on with what it had. */
  startAsCopy(): void {
    const { shared } = this.options;
    if (shared === undefined) return;
    if (shared.selection !== null) this.#adopt(shared.selection);
    if (shared.known !== null) this.known = { ...shared.known };
    this.#kept = JSON.stringify(this.selection === null ? null : toKept(this.selection));
  }

  /** Another replica has switched its tools. */
  adopt(kept: KeptSelection | null): void {
    if (!this.choosesItself) return;
    if (kept === null) this.selection = null;
    else this.#adopt(kept);
    this.#kept = JSON.stringify(kept);
    this.look();
  }

  #adopt(kept: KeptSelection): void {
    if (!this.choosesItself) return;
    const { config, toolsetNow } = this.callers.options;
    this.selection = keptSelection(basePatterns(config()), kept, (name) => toolsetNow(goneToolset(name), true));
  }

  /** Resolves when all replicas know what it has switched; null if there is nothing to wait for. */
  sharing: Promise<void> | null = null;

  #share(shared: SharedCaller): void {
    if (!this.choosesItself) return;
    const selection = this.selection === null ? null : toKept(this.selection);
    const text = JSON.stringify(selection);
    if (text === this.#kept) return;
    this.#kept = text;
    const sharing = shared.keep({ selection, known: this.known }).catch(() => {});
    this.sharing = sharing;
    void sharing.then(() => {
      if (this.sharing === sharing) this.sharing = null;
    });
  }

  /** It has switched something itself. */
  choose(selection: Selection): void {
    this.selection = selection;
    this.#isInherited = false;
  }

  /** The default selection is newer than what it has from another window. */
  followDefault(): void {
    if (!this.#isInherited) return;
    this.selection = null;
    this.#isInherited = false;
  }

  #keep(): void {
    const { window, shared } = this.options;
    if (shared !== undefined) this.#share(shared);
    if (window === undefined) return;
    const selection = this.selection === null || this.#isInherited ? null : toKept(this.selection);
    const state: KeptCaller = { selection, known: this.known };
    const text = JSON.stringify(state);
    if (text === this.#kept) return;
    this.#kept = text;
    window.keep(state);
  }

  /** The configured patterns have changed. */
  rebase(base: Base): void {
    const { selection, toolset } = this.scope;
    this.#isSettled = false;
    if (toolset !== null) this.selection = this.#fixed(base, toolset);
    else if (this.#seesAll) return;
    else if (selection === 'own' && this.selection !== null) this.selection = rebase(this.selection, base);
  }

  /** Takes the toolset that it has as it is now. */
  refit(): void {
    // Its view may describe toolsets.
    this.current = null;
    const toolset = this.selection?.toolset ?? null;
    if (this.selection === null) return;
    if (this.scope.toolset === null) this.selection = refitted(this.selection, this.callers.options.toolsetNow);
    else if (toolset !== null) this.selection = this.#fixed(this.selection.base, toolset);
  }

  #fixed(base: Base, toolset: Toolset): Selection {
    return fixedSelection(this.#baseInside(base), this.callers.options.toolsetNow(toolset, true));
  }

  /** Whether everything it sees is always switched on. */
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
    this.callers.options.subscriptions.look(this, () => this.view());
    // Until all servers have been tried, lists are incomplete and keep growing. Only a caller that has already listed
    // needs to be notified.
    if (!this.callers.areListsComplete && LIST_KINDS.every((kind) => this.known[kind] === null)) {
      this.#keep();
      return;
    }
    for (const kind of LIST_KINDS) this.#compare(kind);
    this.#keep();
  }

  #compare(kind: ListKind): void {
    const now = fingerprint(this.view(), kind);
    const before = this.known[kind];
    this.known[kind] = now;
    if (before === null || before === now) return;
    if (kind === 'tools') this.changes++;
    this.callers.options.counters.listChanged(kind);
    this.options.changed?.(kind, now);
  }
}

/** Reports that a caller asked for an item otherwise than by a call, and did not get it. Errors of servers are not denials. */
export function reportDenied(
  events: EventSink,
  { agent, principal, door, namespace }: Caller,
  method: string,
  name: string,
  error: unknown,
  detail: string,
): void {
  if (!(error instanceof GatewayError)) return;
  events.emit('denied', { agent, principal, door, method, namespace, name, code: error.code, detail });
}
