/** Who lists and calls, as doors and the gateway know each other. */

import type { Toolset } from '../access/toolset.ts';
import type { ListKind, View } from '../access/view.ts';
import type { Kind } from '../catalog/item.ts';
import type { Task } from '../config/task.ts';
import type { Usage } from '../observe/metrics.ts';
import type { ClientChannel, Sink, Ticket } from '../protocol/contract.ts';
import type { Message } from '../protocol/message.ts';
import type { Era } from '../protocol/revisions.ts';
import type { SourceSet } from '../sources/source-sets.ts';

/** The kind of door that a caller came in by. */
export type DoorKind = 'stdio' | 'http' | 'sse' | 'rest' | 'local';

export interface CallerOptions {
  /** By whose name policies and limits are looked up. */
  readonly agent: string;
  /** Whom sessions, parked calls and tasks belong to: several people may come as one agent. Default: the agent. */
  readonly principal?: string;
  /** Where it came in, and which revision it speaks. */
  readonly door?: DoorKind;
  readonly revision?: string;
  /**
   * Whether what the caller switches is its own or the gateway's default, which all without a choice of their own share.
   * `all` is for those who have nothing to switch, and see everything switched on.
   */
  readonly selection: 'own' | 'default' | 'all';
  /** Policies do not hold for the operator, who writes them. */
  readonly operator?: boolean;
  /** The only tools the caller is to see, whatever it switches: its address says so. */
  readonly toolset?: Toolset;
  /** The only namespace the caller is to see, under the names that its servers give, and all of it: its address says so. */
  readonly namespace?: string;
  /** False where Toolgate's own tools are not for it. */
  readonly controls?: boolean;
  /** What the caller works on: it sees only what that needs, and all of it. Its address says so, or whoever started us. */
  readonly task?: Task;
  /** A list that the caller sees has changed. */
  changed(kind: ListKind): void;
  /** A resource that it subscribed to has changed, by the URI that it used. */
  updated?(uri: string): void;
  /** How servers reach it that do not share their callers. Absent: they do not. */
  readonly client?: ClientChannel;
}

/** Somebody who lists and calls: a session, or a program. */
export interface Caller {
  readonly agent: string;
  readonly principal: string;
  /** Policies do not hold for the operator. */
  readonly isOperator: boolean;
  readonly door: DoorKind;
  readonly revision: string | null;
  /** The one that it sees; null where it sees all of them. */
  readonly namespace: string | null;
  /** What is its own to see, and nothing else is; null where it sees what everybody does. */
  readonly sources: SourceSet | null;
  /** Sees this from here on, and is told of what changed by that. */
  give(sources: SourceSet): void;
  /** Where its calls are counted. */
  readonly usage: Usage;
  view(): View;
  /** The result of a list method, for clients of an era. The caller counts as told of that list. */
  list(kind: Kind, era: Era): Buffer;
  /** The same in pages, where the configuration has them. */
  page(kind: Kind, era: Era, cursor: string | null): Buffer;
  /** What servers tell models about their use. */
  introduction(): string;
  /** `tools/call`, `prompts/get`, `resources/read` or `completion/complete`, from the caller's own bytes. */
  call(message: Message, sink: Sink): Ticket;
  /** From here on the caller hears of changes of a resource. Rejects where there is none, or its server does not tell. */
  subscribe(uri: string): Promise<void>;
  unsubscribe(uri: string): void;
  /** Passes on a notification to the servers that have a connection for this caller alone. */
  tell(message: Buffer): void;
  leave(): void;
}
