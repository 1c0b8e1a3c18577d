/** Where items come from. */
import type { EventSink } from '../base/events.ts';
import type { Absence } from '../catalog/catalog.ts';
import type { Kind, Offer } from '../catalog/item.ts';
import type { EnvVars } from '../config/expand.ts';
import type { LimitsConfig } from '../config/limits.ts';
import type { ServerConfig } from '../config/servers.ts';
import type { AgentLogin, ShownLogin } from '../logins/record.ts';
import type { ClientChannel, SourceRequest, Ticket } from '../protocol/contract.ts';
import type { LogLevel } from '../protocol/levels.ts';
import type { Message } from '../protocol/message.ts';
import type { EraStore } from '../store/eras.ts';
import type { OfferStore } from '../store/offers.ts';
import type { TaskAbilities } from './handshake.ts';
import type { Checks } from './health.ts';
import type { FileProblem, LastGoodFiles } from './last-good.ts';
import type { Spawn } from './spawn.ts';
import type { StartQueue } from './start-queue.ts';
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
  /** The files of a tool folder that cannot be loaded as they are now. Its other files are served. */
  readonly problems: readonly FileProblem[];
  /** Who Toolgate is logged in as; absent if the server did not ask. */
  readonly login?: ShownLogin;
  /** Which agents have a login of their own; absent if the server has one for all. */
  readonly agentLogins?: readonly AgentLogin[];
}

/** What every source can do. Optional members are absent if the source has nothing to do for them. */
export interface Source {
  readonly offer: Offer;
  /** Whether its items are listed. */
  readonly present: boolean;
  /** Why it is not up; null or absent if it is. A sleeping source counts as up. */
  readonly absence?: Absence | null;
  /** Whether its last connection used HTTP+SSE, the older of the two HTTP transports. */
  readonly isSse?: boolean;
  readonly inFlight: number;
  /** Resolves when the first attempt to start is over, successful or not. Never rejects. */
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
  /** A caller wants log messages of this level and above. */
  setLogLevel?(level: LogLevel): void;
  /** A caller lists its items of this kind. Lists that are no longer valid are listed again. */
  freshen?(kind: Kind): void;
  /** Passes a notification of a client to the client's private connection, if it has one. */
  tell?(client: ClientChannel, message: Buffer): void;
  /** The client is gone. Closes its private connection. */
  leave?(client: ClientChannel): void;
}

export interface ResourceSubscriptions {
  /** Resolves when the server reports changes of the resource. Rejects if it refuses. */
  add(uri: string): Promise<void>;
  remove(uri: string): void;
}

/** A source that is a server, or the worker of a folder. */
export interface ServerSource extends Required<Source> {
  /** New settings for the same launch. Nothing is restarted. */
  update(config: ServerConfig): void;
  /** Starts it at once if it is in a crash loop. */
  revive(): void;
  /** Starts it at once if it waits for its turn. */
  hurry(): void;
  subscriptions(client: ClientChannel | null): ResourceSubscriptions;
  /** The current subscriptions: of all clients together (null), and of each client with a private connection. */
  readonly subscribed: readonly (readonly [ClientChannel | null, readonly string[]])[];
}

export interface SourceContext {
  /** The id of the gateway. */
  readonly instance: string;
  readonly events: EventSink;
  /** Removes secrets from what servers and systems say. */
  readonly redact: (text: string) => string;
  readonly offers: OfferStore;
  readonly eras: EraStore;
  /** Decides when each of many servers is started. */
  readonly starts: StartQueue;
  /** The current limits. A new configuration replaces them. */
  limits(): LimitsConfig;
  readonly vault: Vault;
  /** Whether callers may be asked to log in, because their browsers can return to this machine. */
  readonly asksLogins: boolean;
  /** The environment that servers inherit. */
  readonly env: EnvVars;
  readonly spawn: Spawn;
  /** The offer or the presence changed. */
  changed(): void;
  /** The server with this key came up. */
  started(key: string): void;
  /** New dependencies were installed for the folder of tools that is served under this key. */
  dependenciesInstalled(key: string): void;
  /** Who gets each line that a server writes to its standard error, without secrets; null while nobody looks. */
  readonly output: { readonly printed: PrintedLine | null };
  /** A resource changed: for all its subscribers, or only for this client. */
  updated(source: Source, uri: string, client: ClientChannel | null): void;
  /** A legacy server reports on an MCP task, or on its progress. */
  taskChanged(source: Source, message: Message): void;
}

export type PrintedLine = (key: string, line: string) => void;

/** The same, with what only the servers of a fleet share. */
export interface ServerContext extends SourceContext {
  readonly lastGood: LastGoodFiles;
}
