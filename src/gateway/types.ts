/** The gateway as doors, the command line and programs use it. */

import type { Events } from '../base/events.ts';
import type { ApprovalRequests } from '../calls/approvals/approvals.ts';
import type { Caller, CallerHost, CallerOptions } from '../calls/caller.ts';
import type { WatchedServer } from '../calls/limits/limiters.ts';
import type { Middleware } from '../calls/middleware.ts';
import type { ParkedCalls } from '../calls/parked.ts';
import type { Pipeline } from '../calls/pipeline.ts';
import type { ProgramCalls } from '../calls/program.ts';
import type { McpTasks } from '../calls/tasks/tasks.ts';
import type { Catalog } from '../catalog/catalog.ts';
import type { Config } from '../config/config.ts';
import type { ServerConfig } from '../config/servers.ts';
import type { Task } from '../config/task.ts';
import type { ProgramControl } from '../controls/program-control.ts';
import type { AuditMetrics } from '../observe/audit.ts';
import type { Family } from '../observe/families.ts';
import type { CallMetrics } from '../observe/metrics.ts';
import type { Tracer } from '../observe/span.ts';
import type { LogLevel } from '../protocol/levels.ts';
import type { FleetReport } from '../sources/fleet.ts';
import type { SourceSets } from '../sources/source-sets.ts';
import type { Vault } from '../sources/vault.ts';
import type { ToolsetLibrary } from '../store/toolset-library.ts';
import type { Reloading } from './reloading.ts';

/**
 * All servers of a configuration behind one set of names, and whoever uses them. Doors lead to it; `close` ends it.
 *
 * @example
 * const gateway = createGateway(config);
 * await gateway.tried();
 * for (const { key, state } of gateway.statuses()) console.log(key, state);
 * await gateway.close();
 */
export interface Gateway extends ProgramCalls {
  /** What happens: servers, catalogs, configurations, failures. */
  readonly events: Events;
  /** The configuration in force. */
  readonly config: Config;
  /** What all servers offer at this moment. */
  readonly catalog: Catalog;
  /**
   * While servers are starting: resolves when all have been tried or `start_wait` is over. Null from then on.
   * @internal
   */
  readonly opening: Promise<void> | null;
  /**
   * The same, but for a moment only, and null as soon as something is known of every server.
   * @internal
   */
  readonly introducing: Promise<void> | null;
  /** Equips the toolset for all callers without a choice of their own; null for none. Rejects where there is none of that name. */
  equip(name: string | null): Promise<void>;
  /** All toolsets there are. */
  readonly toolsets: ToolsetLibrary;
  /** @deprecated Use `toolsets`. */
  readonly shelf: ToolsetLibrary;
  /** Takes a new configuration into force. What did not change is not restarted. */
  apply(config: Config): FleetReport;
  /**
   * Serves these beside the servers of the configuration, instead of those that were given before.
   * @internal
   */
  serve(beside: Omit<Beside, 'close'>): FleetReport;
  /** @internal */
  join(options: CallerOptions): Caller;
  /**
   * Who we say we are.
   * @internal
   */
  readonly identity: ServerIdentity;
  /**
   * What callers may be given for themselves; null without a host.
   * @internal
   */
  readonly sets: SourceSets | null;
  /**
   * Whether there is a namespace of that name with something in it that the agent may use.
   * @internal
   */
  knows(agent: string, namespace: string): boolean;
  /**
   * Calls that wait for an answer of a client without a session.
   * @internal
   */
  readonly parked: ParkedCalls;
  /**
   * What every call goes through.
   * @internal
   */
  readonly pipeline: Pipeline;
  /** @internal */
  readonly tasks: McpTasks;
  /**
   * Looks at everything again.
   * @internal
   */
  readonly reloading: Reloading;
  /** Those that there are, with something in them or not. */
  namespaces(): ReadonlySet<string>;
  /** What waits for a person. */
  readonly approvals: ApprovalRequests;
  /** Puts a function around every call, inside of those that are there; gives the one that removes it again. */
  use(middleware: Middleware): () => void;
  /** Follows every call from now on, instead of whoever did; null for nobody. */
  trace(tracer: Tracer | null): void;
  /** How the calls went so far. */
  readonly metrics: CallMetrics;
  /** @deprecated Use `metrics`. */
  readonly figures: CallMetrics;
  /** How the writing down of calls goes. */
  readonly audit: AuditMetrics;
  /** The secrets that servers are given. */
  readonly vault: Vault;
  /** A text without the secrets of the configuration and of the environment. */
  redact(text: string): string;
  /** The same, and all else that can be measured, at this moment. */
  measure(): Family[];
  /**
   * Somebody wants to hear the log messages of servers from this level on.
   * @internal
   */
  setLogLevel(level: LogLevel): void;
  /** How each server is. */
  statuses(): WatchedServer[];
  /** Every server that is there now has been tried once. */
  tried(): Promise<void>;
  /** Every server has been tried once and every required one is there. */
  isReady(): boolean;
  /** Ends every server, after the calls under way. */
  close(): Promise<void>;
}

/** What is served beside the servers of the configuration. */
export interface Beside {
  readonly servers: readonly ServerConfig[];
  /** Namespaces that there are, with something in them or not. */
  readonly namespaces: readonly string[];
  /** Ends with the gateway. */
  close(): void;
}

/** Who we say we are. */
export interface ServerIdentity {
  readonly name: string;
  readonly version: string;
  readonly title?: string;
}

/** A program around the gateway that decides itself what each caller sees. */
export interface Host extends CallerHost {
  readonly identity: ServerIdentity;
  readonly control: ProgramControl | null;
}

/** What a gateway does beside its configuration. */
export interface GatewayOptions {
  /** @internal */
  readonly host?: Host;
  /** @internal */
  readonly beside?: Beside;
  /** Whether calls are written down where the configuration does not say; false: never, whatever it says. */
  readonly audit?: boolean;
  /** What everybody works on but the operator: nothing else is seen. */
  readonly task?: Task | null;
}
