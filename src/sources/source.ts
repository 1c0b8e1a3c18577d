/** Where items come from. */

import type { EventSink } from '../base/events.ts';
import type { Kind, Offer } from '../catalog/item.ts';
import type { LimitsConfig } from '../config/limits.ts';
import type { ServerConfig } from '../config/servers.ts';
import type { ClientChannel, SourceRequest, Ticket } from '../protocol/contract.ts';
import type { LogLevel } from '../protocol/levels.ts';
import type { Message } from '../protocol/message.ts';
import type { EraStore } from '../store/eras.ts';
import type { OfferStore } from '../store/offers.ts';
import type { TaskAbilities } from './handshake.ts';
import type { Checks } from './health.ts';
import type { RegressionGuard } from './regression-guard.ts';
import type { Report } from './state.ts';
import type { Subscriptions } from './subscriptions.ts';
import type { Vault } from './vault.ts';

export interface SourceStatus extends Report {
  readonly revision: string | null;
  readonly pid: number | null;
  readonly restarts: number;
  /** Whether it was asked if it still answers, and did. */
  readonly checks: Checks;
  /** The end of what the server wrote to its standard error. */
  readonly stderr: string;
}

export interface Source {
  readonly offer: Offer;
  /** Whether its items are listed. */
  readonly present: boolean;
  readonly inFlight: number;
  /** Resolves when the first attempt is over, well or not. Never rejects. */
  readonly tried: Promise<void>;
  status(): SourceStatus;
  /** New settings for the same launch: nothing is restarted. */
  update(config: ServerConfig): void;
  /** Tries it at once, if it is in a crash loop. */
  revive(): void;
  /** Whether it tells of changes inside resources. */
  readonly subscribes: boolean;
  /** Those that this client wants to hear of, or all together where they share it. */
  subscriptions(client: ClientChannel | null): Pick<Subscriptions, 'add' | 'remove'>;
  /** What is wanted at present, and by whom where they do not share it. */
  readonly wanted: readonly (readonly [ClientChannel | null, readonly string[]])[];
  /** Passes on a notification of a client to the connection that it has to itself, if it has one. */
  tell(client: ClientChannel, message: Buffer): void;
  /** The client is gone, and what it had to itself goes with it. */
  leave(client: ClientChannel): void;
  /** Whether it knows `completion/complete`. */
  readonly completes: boolean;
  readonly tasks: TaskAbilities;
  /** Somebody wants to hear log messages from this level on. */
  setLogLevel(level: LogLevel): void;
  /** Somebody looks at its items of this kind: lists them again where they hold no longer. */
  freshen(kind: Kind): void;
  call(request: SourceRequest): Ticket;
  /** Finishes the calls under way, then closes. */
  drain(): Promise<void>;
  close(): Promise<void>;
}

export interface SourceContext {
  readonly events: EventSink;
  /** Takes secrets out of what servers and systems say. */
  readonly redact: (text: string) => string;
  readonly offers: OfferStore;
  readonly eras: EraStore;
  /** Those in force: a new configuration replaces them. */
  limits(): LimitsConfig;
  readonly vault: Vault;
  /** The offer or the presence changed. */
  changed(): void;
  /** The server with this key came up. */
  started(key: string): void;
  /** The folder of tools that is served under this key got new dependencies. */
  dependenciesInstalled(key: string): void;
  /** A resource that was subscribed to changed: for all who did, or for this one alone. */
  updated(source: Source, uri: string, client: ClientChannel | null): void;
  /** A server of the revision before tells of a task, or of its progress. */
  taskChanged(source: Source, message: Message): void;
}

/** The same, with what the servers of one fleet share. */
export interface ServerContext extends SourceContext {
  readonly guard: RegressionGuard;
}
