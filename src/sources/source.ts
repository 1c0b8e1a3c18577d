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
import type { Spawn } from './spawn.ts';
import type { StateReport } from './state.ts';
import type { Vault } from './vault.ts';

export interface SourceStatus extends StateReport {
  readonly revision: string | null;
  readonly pid: number | null;
  readonly restarts: number;
  /** How often it was asked whether it still answers, and how often it did not. */
  readonly checks: Checks;
  /** The end of what the server wrote to its standard error. */
  readonly stderr: string;
}

/** What every source can do. Members that are optional are absent if there is nothing to do. */
export interface Source {
  readonly offer: Offer;
  /** Whether its items are listed. */
  readonly present: boolean;
  readonly inFlight: number;
  /** Resolves when the first attempt is over, well or not. Never rejects. */
  readonly tried: Promise<void>;
  status(): SourceStatus;
  call(request: SourceRequest): Ticket;
  /** Lets running calls finish, then closes. */
  drain(): Promise<void>;
  close(): Promise<void>;
  /** Whether it knows `completion/complete`. */
  readonly completes?: boolean;
  /** What it does with MCP tasks. */
  readonly tasks?: TaskAbilities;
  /** Whether it reports changes inside resources. */
  readonly subscribes?: boolean;
  /** The subscriptions of this client, or of all together if they share a connection. */
  subscriptions?(client: ClientChannel): ResourceSubscriptions;
  /** Somebody wants log messages from this level on. */
  setLogLevel?(level: LogLevel): void;
  /** Somebody looks at its items of this kind. Lists that are no longer valid are listed again. */
  freshen?(kind: Kind): void;
  /** Passes on a notification of a client to the connection that it has to itself, if it has one. */
  tell?(client: ClientChannel, message: Buffer): void;
  /** The client is gone, and the connection that it had to itself is closed. */
  leave?(client: ClientChannel): void;
}

export interface ResourceSubscriptions {
  /** Resolves when the server reports changes of the resource. Rejects if it does not agree. */
  add(uri: string): Promise<void>;
  remove(uri: string): void;
}

/** A source that is a server, or the worker of a folder. */
export interface ServerSource extends Required<Source> {
  /** New settings for the same launch. Nothing is restarted. */
  update(config: ServerConfig): void;
  /** Starts it at once if it is in a crash loop. */
  revive(): void;
  subscriptions(client: ClientChannel | null): ResourceSubscriptions;
  /** What is subscribed to at present, and by whom if clients have connections of their own. */
  readonly subscribed: readonly (readonly [ClientChannel | null, readonly string[]])[];
}

export interface SourceContext {
  readonly events: EventSink;
  /** Removes secrets from what servers and systems say. */
  readonly redact: (text: string) => string;
  readonly offers: OfferStore;
  readonly eras: EraStore;
  /** Those in force: a new configuration replaces them. */
  limits(): LimitsConfig;
  readonly vault: Vault;
  readonly spawn: Spawn;
  /** The offer or the presence changed. */
  changed(): void;
  /** The server with this key came up. */
  started(key: string): void;
  /** New dependencies were installed for the folder of tools that is served under this key. */
  dependenciesInstalled(key: string): void;
  /** A resource that was subscribed to changed: for all who did, or for this client alone. */
  updated(source: Source, uri: string, client: ClientChannel | null): void;
  /** A server of the revision before reports on a task, or on its progress. */
  taskChanged(source: Source, message: Message): void;
}

/** The same, with what the servers of one fleet share. */
export interface ServerContext extends SourceContext {
  readonly guard: RegressionGuard;
}
