/** A caller as the gateway keeps it: who it is, what it has switched on, and what it was last told. */

import type { Permission } from '../access/permission.ts';
import { type Base, fixedSelection, rebase, type Selection, startSelection } from '../access/selection.ts';
import { fingerprint, LIST_KINDS, type ListKind, listOf, pageOf, type View } from '../access/view.ts';
import type { ViewRequest } from '../access/views.ts';
import type { Kind } from '../catalog/item.ts';
import type { Task } from '../config/task.ts';
import type { MetricsRegistry, Usage } from '../observe/metrics.ts';
import { type ClientChannel, type Sink, silentChannel, type Ticket } from '../protocol/contract.ts';
import type { Message } from '../protocol/message.ts';
import type { Era } from '../protocol/revisions.ts';
import type { SourceSet, SourceSets } from '../sources/source-sets.ts';
import type { Caller, CallerOptions, DoorKind } from './caller.ts';
import type { CallerSubscriptions } from './subscriptions.ts';

/** What a member needs of its gateway. */
export interface Home {
  readonly base: Base;
  /** What those have switched on who have no choice of their own. */
  readonly defaultSelection: Selection;
  /** Whether nobody has a choice of their own. */
  readonly isShared: boolean;
  readonly pageSize: number | null;
  /** What everybody works on; null for anything. */
  readonly task: Task | null;
  /** Whether every server has been tried. */
  readonly allTried: boolean;
  readonly desk: CallerSubscriptions<Member>;
  readonly metrics: MetricsRegistry;
  /** What the policy lets the caller use now. */
  permissionOf(member: Member): Permission | null;
  viewOf(request: ViewRequest): View;
  introduce(member: Member): string;
  freshen(member: Member, kind: Kind): void;
  /** Those that callers have for themselves. */
  readonly sets: Pick<SourceSets, 'take' | 'drop'> | null;
  call(member: Member, message: Message, sink: Sink): Ticket;
  tell(member: Member, message: Buffer): void;
  leave(member: Member): void;
}

export class Member implements Caller {
  readonly home: Home;
  readonly agent: string;
  readonly isOperator: boolean;
  readonly principal: string;
  readonly door: DoorKind;
  readonly revision: string | null;
  readonly namespace: string | null;
  /** What it works on: it sees what all of them need. */
  readonly tasks: readonly Task[];
  readonly options: CallerOptions;
  readonly client: ClientChannel;
  readonly usage: Usage;
  sources: SourceSet | null = null;
  /** Null: follows the default. */
  selection: Selection | null = null;
  /** Forgotten at every change, so that a call looks into nothing but a field. */
  current: View | null = null;
  /** When the time of day may have changed what it may use. */
  freshUntil = Number.POSITIVE_INFINITY;
  /** What the caller was last told of each list; null before there was anything to know. */
  told: Record<ListKind, string | null> = { tools: null, resources: null, prompts: null };

  constructor(home: Home, options: CallerOptions) {
    this.home = home;
    this.agent = options.agent;
    this.isOperator = options.operator === true;
    this.principal = options.principal ?? options.agent;
    this.door = options.door ?? 'local';
    this.revision = options.revision ?? null;
    this.namespace = options.namespace ?? null;
    const common = this.isOperator ? null : home.task;
    this.tasks = [common, options.task ?? null].filter((task) => task !== null);
    this.options = options;
    this.client = options.client ?? silentChannel();
    this.usage = home.metrics.usageOf(options.agent);
    if (options.selection === 'all' || this.#isInside) this.selection = startSelection(null);
    if (options.toolset !== undefined) this.selection = fixedSelection(this.#fixed(home.base), options.toolset);
  }

  /** Whether what it switches is everybody's. */
  get shares(): boolean {
    return this.selection === null && (this.options.selection === 'default' || this.home.isShared);
  }

  get chosen(): Selection {
    return this.selection ?? this.home.defaultSelection;
  }

  view(): View {
    const isStale = this.freshUntil !== Number.POSITIVE_INFINITY && Date.now() >= this.freshUntil;
    if (this.current === null || isStale) {
      const permission = this.home.permissionOf(this);
      this.freshUntil = permission?.freshUntil ?? Number.POSITIVE_INFINITY;
      const { sources, namespace, tasks, chosen: selection } = this;
      const controls = this.options.controls !== false;
      this.current = this.home.viewOf({ sources, namespace, tasks, permission, selection, controls });
    }
    return this.current;
  }

  list(kind: Kind, era: Era): Buffer {
    this.note(kind);
    return this.view().list(kind, era);
  }

  /** The caller looks at a list. */
  note(kind: Kind): void {
    this.home.freshen(this, kind);
    const list = listOf(kind);
    this.told[list] = fingerprint(this.view(), list);
  }

  page(kind: Kind, era: Era, cursor: string | null): Buffer {
    if (cursor === null) this.note(kind);
    return pageOf(this.view(), kind, era, this.home.pageSize, cursor);
  }

  introduction(): string {
    return this.home.introduce(this);
  }

  call(message: Message, sink: Sink): Ticket {
    return this.home.call(this, message, sink);
  }

  subscribe(uri: string): Promise<void> {
    return this.home.desk.subscribe(this, this.view(), uri);
  }

  unsubscribe(uri: string): void {
    this.home.desk.unsubscribe(this, uri);
  }

  tell(message: Buffer): void {
    this.home.tell(this, message);
  }

  leave(): void {
    this.home.leave(this);
    this.#take(null);
  }

  give(sources: SourceSet): void {
    if (sources === this.sources) return;
    this.#take(sources);
    this.look();
  }

  #take(sources: SourceSet | null): void {
    const before = this.sources;
    this.sources = sources;
    // In this order, so that what both have in common is not let go in between.
    if (sources !== null) this.home.sets?.take(sources, this);
    if (before !== null) this.home.sets?.drop(before, this);
  }

  /** Other patterns are in force. */
  rebase(base: Base): void {
    const { selection, toolset } = this.options;
    if (toolset !== undefined) this.selection = fixedSelection(this.#fixed(base), toolset);
    else if (this.#isInside) return;
    else if (selection === 'own' && this.selection !== null) this.selection = rebase(this.selection, base);
  }

  /** Whether all that it sees is switched on, and stays so. */
  get #isInside(): boolean {
    return this.namespace !== null || this.tasks.length > 0;
  }

  /** Patterns are over exposed names, and say nothing about what is inside a namespace or a task. */
  #fixed(base: Base): Base {
    return !this.#isInside ? base : startSelection(null).base;
  }

  /** Tells of the lists that changed since the last time. */
  look(): void {
    this.current = null;
    // Before all servers have been tried lists only grow into shape: that is news only to who has listed already.
    if (!this.home.allTried && LIST_KINDS.every((kind) => this.told[kind] === null)) return;
    for (const kind of LIST_KINDS) {
      const now = fingerprint(this.view(), kind);
      const before = this.told[kind];
      this.told[kind] = now;
      if (before !== null && before !== now) this.options.changed(kind);
    }
  }
}
