/**
 * The gateway's interface for doors, the command line and programs. `root.ts` holds its state; `change.ts` changes it.
 */
import type { Subject } from '../access/circumstances.ts';
import type { Toolset } from '../access/toolset.ts';
import { GatewayError } from '../base/errors.ts';
import type { Events } from '../base/events.ts';
import { IDENTITY } from '../base/version.ts';
import type { ApprovalRequests } from '../calls/approvals/approvals.ts';
import type { CallWatcher } from '../calls/call.ts';
import type { Caller, CallerOptions } from '../calls/caller.ts';
import type { WatchedServer } from '../calls/limits/limiters.ts';
import type { Middleware } from '../calls/middleware.ts';
import type { ParkedCalls } from '../calls/parked.ts';
import type { Pipeline } from '../calls/pipeline.ts';
import { createProgramCalls, type ProgramCalls } from '../calls/program.ts';
import type { McpTasks } from '../calls/tasks/tasks.ts';
import type { Catalog } from '../catalog/catalog.ts';
import type { Offer } from '../catalog/item.ts';
import type { Config } from '../config/config.ts';
import type { EnvVars } from '../config/expand.ts';
import type { FirstList } from '../controls/first-list.ts';
import type { SearchLearning } from '../controls/learning.ts';
import type { AuditMetrics } from '../observe/audit.ts';
import { measure } from '../observe/collect.ts';
import type { Family } from '../observe/families.ts';
import type { CallMetrics } from '../observe/metrics.ts';
import type { Tracer } from '../observe/span.ts';
import { createCallTracer } from '../observe/tracing.ts';
import type { LogLevel } from '../protocol/levels.ts';
import { type FleetReport, isComplete } from '../sources/fleet.ts';
import type { PrintedLine } from '../sources/source.ts';
import type { Vault } from '../sources/vault.ts';
import type { ExampleStore } from '../store/examples.ts';
import type { Replica } from '../store/shared/replica.ts';
import type { RenamedTool, ToolsetLibrary } from '../store/toolset-library.ts';
import { type Applier, ChangeQueue, type ChangeReport, type ChangeRequest } from './change.ts';
import { openToolFolders } from './folders.ts';
import { type EquippedClients, type GatewayOptions, Root, type ServerIdentity } from './root.ts';
import type { SourceSets } from './source-sets.ts';
import { type GatewayOutline, type GatewayStatus, outlineOf, statusOf } from './status.ts';
import { reportTokens, reportTokensSoon, type TokenReport } from './token-report.ts';

/**
 * All servers of a configuration in one catalog, and the callers that use them. Clients reach it through doors; `close`
 * ends it.
 *
 * @example
 * const gateway = createGateway(config);
 * await gateway.tried();
 * for (const { key, state } of gateway.statuses()) console.log(key, state);
 * await gateway.close();
 */
export interface Gateway extends ProgramCalls {
  /** Reports what happens to servers, catalogs and configurations, and failures. */
  readonly events: Events;
  /** The configuration in force. */
  readonly config: Config;
  /**
   * Its id, by which it recognizes itself.
   * @internal
   */
  readonly instance: string;
  /**
   * Its environment variables.
   * @internal
   */
  readonly env: EnvVars;
  /** What all servers offer now. */
  readonly catalog: Catalog;
  /**
   * While servers are starting: resolves when all have been tried or `start_wait` has passed. Null afterwards.
   * @internal
   */
  readonly opening: Promise<void> | null;
  /**
   * Like `opening`, but resolves within a second, and is null as soon as something is known about every server.
   * @internal
   */
  readonly introducing: Promise<void> | null;
  /**
   * Equips a toolset in the default selection, which all callers without their own share; null equips none. Rejects if
   * no toolset has that name.
   */
  equip(name: string | null): Promise<void>;
  /**
   * Equips a toolset for connected clients, whatever they have chosen themselves; null equips none. Returns how many.
   * @internal
   */
  equipClients(name: string | null, who: EquippedClients): Promise<number>;
  /**
   * Equips a toolset for windows that open from now on. Rejects as `equip` does.
   * @internal
   */
  equipForWindows(name: string): Promise<void>;
  /**
   * The toolset that is equipped in the default selection; null for none. It may be missing now.
   * @internal
   */
  readonly equipped: { readonly name: string; readonly isMissing: boolean } | null;
  /**
   * What a new client of an agent sees before it activates or equips anything, and about how many tokens that costs.
   * Default: the agent `default`.
   */
  firstList(agent?: string): FirstList;
  /** All toolsets. */
  readonly toolsets: ToolsetLibrary;
  /**
   * The tools of saved toolsets that have another name now than in their file.
   * @internal
   */
  readonly renamed: readonly RenamedTool[];
  /**
   * What the search learns from use.
   * @internal
   */
  readonly learning: SearchLearning;
  /**
   * What it has learned.
   * @internal
   */
  readonly examples: ExampleStore;
  /**
   * The folders of the saved toolsets.
   * @internal
   */
  readonly toolsetFolders: readonly string[];
  /** @deprecated Use `toolsets`. */
  readonly shelf: ToolsetLibrary;
  /** Puts a new configuration into force. Servers whose configuration did not change are not restarted. */
  apply(config: Config): FleetReport;
  /**
   * Queues a change; the report says what it did. Never rejects.
   * @internal
   */
  change(request: ChangeRequest): Promise<ChangeReport>;
  /**
   * Resolves when edits of files that were made before are in force, except of a file that somebody goes on writing.
   * @internal
   */
  caughtUp(): Promise<void>;
  /**
   * Registers an applier for future changes; returns the function that removes it.
   * @internal
   */
  addApplier(applier: Applier): () => void;
  /** @internal */
  join(options: CallerOptions): Caller;
  /**
   * The name and version that clients are given.
   * @internal
   */
  readonly identity: ServerIdentity;
  /**
   * The source sets of individual callers; null without a host.
   * @internal
   */
  readonly sets: SourceSets | null;
  /**
   * Whether the namespace exists and contains something that the agent may use.
   * @internal
   */
  knows(subject: Subject, namespace: string): boolean;
  /**
   * The toolset of this name; null if there is none that the agent may know.
   * @internal
   */
  findToolset(subject: Subject, name: string): Promise<Toolset | null>;
  /**
   * Calls that wait for an answer from a client without a session.
   * @internal
   */
  readonly parked: ParkedCalls;
  /**
   * The pipeline that every call goes through.
   * @internal
   */
  readonly pipeline: Pipeline;
  /**
   * What it shares with other replicas; null if there is none.
   * @internal
   */
  readonly replica: Replica | null;
  /** @internal */
  readonly tasks: McpTasks;
  /** All namespaces, including empty ones. */
  namespaces(): ReadonlySet<string>;
  /** The approval requests: calls that wait for a person's decision. */
  readonly approvals: ApprovalRequests;
  /**
   * Wraps every call in a middleware. It runs inside of those added before it. Returns the function that removes it.
   */
  use(middleware: Middleware): () => void;
  /** Sets the tracer for all calls from now on, in place of the previous one; null turns tracing off. */
  trace(tracer: Tracer | null): void;
  /** Counts and durations of calls. */
  readonly metrics: CallMetrics;
  /** @deprecated Use `metrics`. */
  readonly figures: CallMetrics;
  /** Whether the audit can be written, and how much has been written. */
  readonly audit: AuditMetrics;
  /** The secrets that are passed to servers. */
  readonly vault: Vault;
  /** Returns the text with the secrets of the configuration and the environment removed. */
  redact(text: string): string;
  /** All current metrics. */
  measure(): Family[];
  /** What tools cost models, counted with a tokenizer, which is loaded for that. */
  tokens(): Promise<TokenReport>;
  /**
   * Lets somebody look on: at each call, and at each line that servers print. Returns the function that ends it. There
   * is room for one.
   * @internal
   */
  lookOn(onlooker: Onlooker): () => void;
  /**
   * Everybody who uses it now, apart from the operator.
   * @internal
   */
  clients(): readonly Caller[];
  /**
   * The parts of its status that are about no particular server or client.
   * @internal
   */
  outline(): GatewayOutline;
  /**
   * Starts a server again. The present one serves until the new one is up. Resolves then; false if there is none.
   * @internal
   */
  restart(key: string): Promise<boolean>;
  /**
   * A caller wants the servers' log messages from this level on.
   * @internal
   */
  setLogLevel(level: LogLevel): void;
  /** The state of each server. */
  statuses(): WatchedServer[];
  /**
   * What each server offers, or last offered, as it says itself.
   * @internal
   */
  offers(): readonly ServerOffer[];
  /**
   * Everything about its servers and clients.
   * @internal
   */
  status(): GatewayStatus;
  /** Resolves when every server has been tried once. */
  tried(): Promise<void>;
  /** Whether every server has been tried once and every required one is available. */
  isReady(): boolean;
  /** Lets running calls finish, then stops every server. */
  close(): Promise<void>;
}

/** Somebody who looks on. */
export interface Onlooker {
  readonly calls: CallWatcher;
  readonly printed: PrintedLine;
}

/** What a server offers, or last offered. */
export interface ServerOffer {
  readonly key: string;
  readonly offer: Offer;
  /** Whether it runs, so that this is what it offers now. */
  readonly isCurrent: boolean;
}

/** Starts the servers of a configuration and returns the gateway without waiting for them; `tried()` waits. */
export function createGateway(config: Config, options: GatewayOptions = {}): Gateway {
  if (config.store !== null && options.replica == null)
    throw new GatewayError(
      'usage',
      'A gateway with a "store" is opened by openGateway, because it has to reach the store first.',
    );
  const root = new Root(config, options);
  root.start();
  const changes = new ChangeQueue(root);
  root.folders?.watch(() => void changes.change({}));
  root.replica?.hear('reload', () => void changes.change({ config: 'file' }));
  return publicGateway(root, changes);
}

/**
 * Creates a gateway that also serves tool folders: those in its data folder and those that the configuration names.
 * Resolves once the folders have been scanned, before their dependencies are installed.
 */
export async function openGateway(config: Config, options: GatewayOptions = {}): Promise<Gateway> {
  if (config.store === null || options.replica != null)
    return createGateway(config, { ...options, folders: await openToolFolders(config) });
  let gateway: Gateway | null = null;
  const { openReplicaOf } = await import('./open-replica.ts');
  const replica = await openReplicaOf(config, {
    note: (message) => gateway?.events.emit('note', { source: 'store', message }),
    failure: (where, error) => gateway?.events.emit('failure', { where, error }),
  });
  gateway = createGateway(config, { ...options, replica, folders: await openToolFolders(config) });
  await replica.loaded();
  return gateway;
}

function publicGateway(root: Root, changes: ChangeQueue): Gateway {
  const { events, metrics, sets, vault, defaults, fleet, views } = root;
  const { redact } = root.redactor;
  const toolsets = defaults.libraryOf('', null);
  const gateway: Omit<Gateway, keyof ProgramCalls> = {
    events,
    instance: root.instance,
    env: root.env,
    metrics,
    figures: metrics,
    sets,
    offers: () => fleet.contributions().map(({ key, offer, absence }) => ({ key, offer, isCurrent: absence === null })),
    toolsets,
    shelf: toolsets,
    toolsetFolders: defaults.folders,
    redact,
    identity: root.host?.identity ?? IDENTITY,
    parked: root.parked,
    learning: root.learning,
    examples: root.examples,
    pipeline: root.pipeline,
    tasks: root.tasks,
    replica: root.replica,
    approvals: root.approvals,
    use: root.middleware.use,
    get config() {
      return root.config;
    },
    get catalog() {
      return root.catalog;
    },
    get opening() {
      return root.startup?.current ?? null;
    },
    get introducing() {
      return fleet.isKnown ? null : (root.startup?.brief ?? null);
    },
    get audit() {
      return root.audit.metrics;
    },
    vault: {
      fill: vault.fill,
      stampOf: vault.stampOf,
      loginFor: vault.loginFor,
      present: vault.present,
      offerPage: vault.offerPage,
      shownLogin: vault.shownLogin,
      agentLogins: vault.agentLogins,
      async reload() {
        await changes.change({ secrets: true });
        return vault.problem;
      },
      get problem() {
        return vault.problem;
      },
    },
    apply(config) {
      const { started, replaced, stopped, kept } = changes.apply(config);
      return { started, replaced, stopped, kept };
    },
    change(request) {
      // The others have the same file, or will have it. An edit is seen by each of them.
      if (request.config === 'file' && request.isEdit !== true) root.replica?.publish('reload', {}).catch(() => {});
      return changes.change(request);
    },
    caughtUp: () => changes.caughtUp(),
    addApplier: (applier) => changes.add(applier),
    equip: defaults.equip,
    equipClients: (name, who) => root.equipClients(name, who),
    equipForWindows: defaults.equipForWindows,
    get equipped() {
      const { toolset } = defaults.selection;
      return toolset === null ? null : { name: toolset.name, isMissing: toolset.standing === 'gone' };
    },
    get renamed() {
      return defaults.renamed;
    },
    join: (options) => root.callers.join(options),
    knows: (subject, namespace) => root.namespaces.has(namespace) && views.knows(subject, namespace),
    firstList: (agent = 'default') => root.firstList(agent),
    findToolset: (subject, name) => root.findToolset(subject, name),
    namespaces: () => root.namespaces,
    trace: (tracer) => root.pipeline.trace(tracer === null ? null : createCallTracer(tracer)),
    tokens: () => reportTokens(root),
    measure: () =>
      measure({
        metrics,
        tokens: reportTokensSoon(root),
        servers: root.watchedStatuses(),
        catalog: root.catalog,
        callers: root.callers.all,
        audit: root.audit.metrics,
      }),
    lookOn({ calls, printed }) {
      const before = root.output.printed;
      root.pipeline.watch(calls);
      root.output.printed = printed;
      return () => {
        root.pipeline.watch(null);
        root.output.printed = before;
      };
    },
    outline: () => outlineOf(root),
    restart: (key) => fleet.restart(key),
    clients: () => [...root.callers.all].filter(({ isOperator }) => !isOperator),
    setLogLevel(level) {
      fleet.setLogLevel(level);
      sets?.setLogLevel(level);
    },
    statuses: () => root.watchedStatuses(),
    status: () => statusOf(root),
    tried: () => root.tried(),
    isReady: () => root.callers.areListsComplete && isComplete(root.config, fleet.statuses()),
    close: () => root.close(),
  };
  return Object.assign(gateway, createProgramCalls(gateway));
}
