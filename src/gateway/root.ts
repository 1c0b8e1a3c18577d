/**
 * The single mutable root of a gateway: what is in force (configuration, controls, catalog, callers) and the parts that
 * work with it. Only `change.ts` replaces the configuration. What servers offer reaches the catalog through `refresh`.
 */
import { randomUUID } from 'node:crypto';
import type { Writable } from 'node:stream';
import type { Subject } from '../access/circumstances.ts';
import { denialReason } from '../access/explain.ts';
import { hasTimes, nextMinute, type Permission, permissionAt } from '../access/permission.ts';
import { agentLimits, isBarred, rulesFor } from '../access/policy.ts';
import { isRepeatable } from '../access/repeatable.ts';
import { equip, startSelection } from '../access/selection.ts';
import { controlsFor, isMany, type Showing } from '../access/showing.ts';
import type { Toolset } from '../access/toolset.ts';
import type { View } from '../access/view.ts';
import { createViews, type Views } from '../access/views.ts';
import { GatewayError, messageOf } from '../base/errors.ts';
import { createEvents, type Events } from '../base/events.ts';
import { isSameValue } from '../base/objects.ts';
import { type Approvals, createApprovals } from '../calls/approvals/approvals.ts';
import { createGrants, type Grants } from '../calls/approvals/grants.ts';
import type { Callee } from '../calls/call.ts';
import { type Caller, type CallerHost, Callers } from '../calls/caller.ts';
import { createLimiters, type Limiters, type WatchedServer } from '../calls/limits/limiters.ts';
import { createSharedBudgets } from '../calls/limits/shared-budgets.ts';
import { createMacroSource, MACROS_ID, type MacroSource, withMacros } from '../calls/macros/macros.ts';
import { createMiddlewareStack, type MiddlewareStack } from '../calls/middleware.ts';
import { createParkedCalls, type ParkedCalls } from '../calls/parked.ts';
import { createPipeline, type Pipeline } from '../calls/pipeline.ts';
import { createRelay, type ReplicaRelay } from '../calls/relay.ts';
import { createCallerSubscriptions } from '../calls/subscriptions.ts';
import { createMcpTasks, type McpTasks, type TasksElsewhere } from '../calls/tasks/tasks.ts';
import { type Absence, buildCatalog, type Catalog, type Contribution, EMPTY_CATALOG } from '../catalog/catalog.ts';
import type { Entry } from '../catalog/entry.ts';
import type { Offer } from '../catalog/item.ts';
import { pinnedOffer } from '../catalog/pins.ts';
import type { Config } from '../config/config.ts';
import type { EnvVars } from '../config/expand.ts';
import { markInside } from '../config/inside.ts';
import type { MacroConfig } from '../config/macros.ts';
import type { ServerConfig } from '../config/servers.ts';
import type { Task } from '../config/task.ts';
import type { ProgramControl } from '../controls/control.ts';
import { type Controls, createControls } from '../controls/controls.ts';
import { createDefaultSelection, type DefaultSelection, requireEquip } from '../controls/default-selection.ts';
import { type FirstList, firstListOf } from '../controls/first-list.ts';
import { createLearning, type SearchLearning } from '../controls/learning.ts';
import { type ControlCalls, createControlCalls } from '../controls/run-control.ts';
import { Audit } from '../observe/audit.ts';
import { createMetrics, type MetricsRegistry } from '../observe/metrics.ts';
import { UNKNOWN_CLIENT } from '../protocol/known-clients.ts';
import { createRedactor, type Redactor } from '../secrets/redact.ts';
import { brokenContribution, brokenStatus, Fleet, type FleetChange, type ServerStatus } from '../sources/fleet.ts';
import type { PrintedLine, Source, SourceContext } from '../sources/source.ts';
import { type Spawn, spawnServer } from '../sources/spawn.ts';
import { createStartQueue } from '../sources/start-queue.ts';
import { createVault, type OpenVault } from '../sources/vault.ts';
import { openEraStore } from '../store/eras.ts';
import { type ExampleStore, openExamples } from '../store/examples.ts';
import { type OfferStore, openOfferStore } from '../store/offers.ts';
import { openRenames, type Renames } from '../store/renames.ts';
import type { Replica } from '../store/shared/replica.ts';
import { openVectors } from '../store/vectors.ts';
import type { ToolFolders } from './folders.ts';
import { SourceSets } from './source-sets.ts';
import { createStartupWindow, pause, type StartupWindow } from './startup.ts';

/** The name and version that clients are given. */
export interface ServerIdentity {
  readonly name: string;
  readonly version: string;
  readonly title?: string;
}

/** A program that embeds the gateway and decides itself what each caller sees. */
export interface Host extends CallerHost {
  readonly identity: ServerIdentity;
  readonly control: ProgramControl | null;
}

/** What a gateway needs besides its configuration. */
export interface GatewayOptions {
  /** @internal */
  readonly host?: Host;
  /**
   * The tool folders to serve. The gateway closes them when it closes.
   * @internal
   */
  readonly folders?: ToolFolders;
  /**
   * The environment variables of the gateway, which its servers inherit. Default: those of this process.
   * @internal
   */
  readonly env?: EnvVars;
  /**
   * How processes of servers are started.
   * @internal
   */
  readonly spawn?: Spawn;
  /**
   * Whether calls are audited if the configuration does not say. False turns the audit off even if the configuration
   * asks for it.
   */
  readonly audit?: boolean;
  /**
   * The standard output, if lines of the audit may go there. Absent: it belongs to somebody else.
   * @internal
   */
  readonly stdout?: Writable;
  /**
   * Changes a server before it is started; null leaves it out.
   * @internal
   */
  readonly adjust?: (server: ServerConfig) => ServerConfig | null;
  /**
   * Gets each line that a server or a tool prints, without secrets.
   * @internal
   */
  readonly printed?: (server: string, line: string) => void;
  /**
   * Milliseconds that an answer which switches tools waits at most until its client has listed again. Default: 1,000.
   * @internal
   */
  readonly listWait?: number;
  /**
   * Whether all callers are on this machine, so that their browsers can return to it after a login.
   * @internal
   */
  readonly isLocal?: boolean;
  /** The task that all callers except the operator work on: they see nothing outside of it. */
  readonly task?: Task | null;
  /**
   * What it shares with other replicas. The gateway closes it when it closes.
   * @internal
   */
  readonly replica?: Replica | null;
}

/** The clients that get another toolset: all, those of an agent, or the one whose id `status` shows. */
export type EquippedClients = 'all' | { readonly agent: string } | { readonly session: string };

/** In milliseconds. Changes from servers within this time result in one new catalog. */
const REFRESH_PAUSE = 5;
/** Long enough for clients that list again, and not noticed with those that do not. */
const LIST_WAIT = 1_000;
/** How long a control tool waits for a server that is still starting and is named by its arguments. */
const CONTROL_WAIT = 3_000;

export class Root {
  /** Its id. */
  readonly instance: string = randomUUID();
  /** As ISO 8601. */
  readonly startedAt = new Date().toISOString();
  readonly host: Host | null;
  readonly folders: ToolFolders | null;
  /** Null if there is no other replica. */
  readonly replica: Replica | null;
  readonly env: EnvVars;
  readonly redactor: Redactor;
  readonly events: Events;
  readonly metrics: MetricsRegistry;
  readonly audit: Audit;
  readonly views: Views;
  readonly defaults: DefaultSelection;
  readonly renames: Renames;
  readonly examples: ExampleStore;
  readonly learning: SearchLearning;
  readonly vault: OpenVault;
  readonly offers: OfferStore;
  readonly fleet: Fleet;
  readonly sets: SourceSets | null;
  readonly limiters: Limiters;
  readonly grants: Grants;
  readonly approvals: Approvals;
  readonly macros: MacroSource;
  readonly tasks: McpTasks;
  readonly parked: ParkedCalls;
  readonly relay: ReplicaRelay | null;
  readonly middleware: MiddlewareStack = createMiddlewareStack();
  readonly controlCalls: ControlCalls;
  readonly pipeline: Pipeline;
  readonly callers: Callers;
  /** Who gets the lines that servers print; null while nobody looks. */
  readonly output: { printed: PrintedLine | null };

  config: Config;
  /** The configured servers and those of tool folders, as last passed to the fleet. */
  servers: readonly ServerConfig[] = [];
  controls: Controls;
  /** Those of callers to which `auto` shows every tool. */
  #controlsBy: Readonly<Record<Showing, Controls>>;
  catalog: Catalog = EMPTY_CATALOG;
  /** All namespaces, including empty ones. */
  namespaces: ReadonlySet<string> = new Set();
  startup: StartupWindow | null = null;
  isClosed = false;
  #firstTried: Promise<void> = Promise.resolve();
  #restored: Promise<void> = Promise.resolve();
  readonly #installed = new Set<(key: string) => void>();
  #builtFrom: CatalogInputs | null = null;
  #announced = 0;
  #isUnwritable = false;
  #refreshTimer: NodeJS.Timeout | undefined;
  readonly #task: Task | null;
  readonly #adjust: NonNullable<GatewayOptions['adjust']> | null;
  #minuteTimer: NodeJS.Timeout | undefined;

  constructor(config: Config, options: GatewayOptions) {
    const { dataDir } = config;
    this.config = config;
    this.#task = options.task ?? null;
    this.#adjust = options.adjust ?? null;
    this.host = options.host ?? null;
    this.output = { printed: options.printed ?? null };
    this.folders = options.folders ?? null;
    this.replica = options.replica ?? null;
    this.relay = this.replica === null ? null : createRelay(this.replica);
    this.parked = createParkedCalls(
      this.replica === null || this.relay === null
        ? null
        : { relay: this.relay, own: this.replica.id, keys: this.replica.keysFor('states') },
    );
    this.env = options.env ?? process.env;
    this.redactor = createRedactor(config.secrets());
    const { redact } = this.redactor;
    const events = createEvents(redact);
    this.events = events;
    this.metrics = createMetrics(events, redact);
    this.audit = new Audit(config.audit, {
      events,
      redact,
      isOn: options.audit,
      stdout: options.stdout ?? null,
      reason: (request) => denialReason(this.catalog, this.config.policy, request, new Date()),
    });
    this.#controlsBy = this.#createControls();
    this.controls = this.#controlsBy.catalog;
    this.views = createViews({
      catalog: () => this.catalog,
      config: () => this.config,
      controls: (showing) => this.#controlsBy[showing ?? 'catalog'],
      permissionOf: (subject) => this.permissionOf(subject),
    });
    this.renames = openRenames(dataDir, (error) => this.#unwritable(error));
    this.examples = openExamples(dataDir, (error) => this.#unwritable(error));
    const searchConfig = () => this.config.search;
    const vectors = openVectors(searchConfig, (message) => events.emit('note', { source: 'search', message }));
    this.learning = createLearning({ config: searchConfig, store: this.examples, vectors, redact });
    this.defaults = createDefaultSelection({
      events,
      env: this.env,
      renames: this.renames,
      config: () => this.config,
      catalog: () => this.catalog,
      servers: () => this.servers.filter(({ enabled }) => enabled).map(({ key }) => key),
      changed: () => this.callers.lookAtDefault(),
      toolsetsChanged: () => this.#toolsetsChanged(),
      replica: this.replica,
    });
    this.vault = createVault({
      dataDir,
      vault: () => this.config.vault,
      learn: (values) => this.redactor.learn([...this.config.secrets(), ...values]),
    });
    this.offers = openOfferStore(dataDir, (error) => this.#unwritable(error));
    const context = this.#sourceContext(dataDir, options);
    this.fleet = new Fleet(context);
    this.sets =
      this.host === null
        ? null
        : new SourceSets(context, { naming: this.host.naming, builtIn: () => this.#ownNames(true) });
    this.macros = createMacroSource(() => this.config.macros, {
      allowed: (by) => this.views.allowed(by.view().permission),
      call: (by, entry, args, id, sink) => this.pipeline.callTool(by, entry, args, id, sink),
    });
    this.limiters = createLimiters(config, {
      events,
      find: (id) => this.calleeOf(id),
      agent: (name) => agentLimits(this.config.policy, name),
      shared: this.replica === null ? null : createSharedBudgets(this.replica, () => this.config.store),
    });
    this.grants = createGrants((agent) => this.callers.look(agent), this.replica);
    this.approvals = createApprovals({
      config: () => this.config,
      env: this.env,
      events,
      redact,
      replica: this.replica,
    });
    this.tasks = createMcpTasks((id) => this.serverOf(id), this.#tasksElsewhere());
    this.controlCalls = this.#createControlCalls();
    this.pipeline = createPipeline({
      events,
      counters: this.metrics,
      audit: this.audit,
      middleware: this.middleware,
      approvals: this.approvals,
      limiters: this.limiters,
      tasks: this.tasks,
      confirmations: () => this.config.security.confirm,
      find: (id) => this.calleeOf(id),
      runControl: this.controlCalls.run,
      isRepeatable: (entry) => this.config.store !== null && isRepeatable(entry, this.config.store),
      isStarting: () => this.startup?.current != null,
      mayBeClaimed: ({ name, sourceId }) => this.fleet.mayClaim(name, sourceId, this.config),
      heldReason: (entry) => this.#heldReason(entry),
      started: (keys) => this.#started(keys),
    });
    this.callers = new Callers({
      events,
      config: () => this.config,
      views: this.views,
      permissionOf: (subject) => this.permissionOf(subject),
      defaultSelection: () => this.defaults.selection,
      toolsetNow: (toolset, isNamed) => this.defaults.toolsetNow(toolset, isNamed),
      lastOfWindows: () => this.defaults.lastOfWindows(),
      lastToolset: (client) => this.defaults.lastOfClient(client),
      renamedToolset: (client, name) => void this.defaults.rememberClient(client, name),
      fleet: this.fleet,
      sets: this.sets,
      subscriptions: createCallerSubscriptions<Caller>(
        (id) => this.serverOf(id)?.source,
        () => this.config.limits.subscriptions,
      ),
      counters: this.metrics,
      host: this.host,
      listWait: options.listWait ?? LIST_WAIT,
      task: this.#task,
    });
  }

  /**
   * The control tools describe the toolsets. Callers are notified a moment later, because a tool that saves a toolset
   * may equip it too, and that is one change for its caller.
   */
  #toolsetsChanged(): void {
    this.views.forget();
    this.callers.refit();
    setImmediate(() => {
      if (!this.isClosed) this.callers.look();
    });
  }

  #tasksElsewhere(): TasksElsewhere | null {
    const { replica, relay } = this;
    if (replica === null || relay === null) return null;
    return {
      relay,
      own: replica.id,
      keys: replica.keysFor('tasks'),
      keyOf: (id) => this.serverOf(id)?.config.key,
      idOf: (key) => this.fleet.contributions().find((one) => one.key === key)?.id,
      isCommon: (id) => this.serverOf(id)?.config.launch.kind === 'http',
    };
  }

  /** Something that is only remembered could not be written. It is told once: the next ones fail for the same reason. */
  #unwritable(error: unknown): void {
    if (this.#isUnwritable) return;
    this.#isUnwritable = true;
    const message = `nothing is remembered for the next start: ${messageOf(error)}`;
    this.events.emit('note', { source: 'toolgate', message });
  }

  /** The parts of the gateway that sources use. */
  #sourceContext(dataDir: string, { spawn = spawnServer, isLocal = false }: GatewayOptions): SourceContext {
    return {
      instance: this.instance,
      env: markInside(this.config, this.env),
      spawn,
      vault: this.vault,
      asksLogins: isLocal,
      events: this.events,
      redact: this.redactor.redact,
      offers: this.offers,
      eras: openEraStore(dataDir, (error) => this.#unwritable(error)),
      starts: createStartQueue(),
      limits: () => this.config.limits,
      changed: () => {
        this.#refreshTimer ??= setTimeout(() => this.refresh(), REFRESH_PAUSE);
      },
      started: (key) => this.limiters.restarted(key),
      output: this.output,
      dependenciesInstalled: (key) => {
        for (const installed of this.#installed) installed(key);
      },
      updated: (source, uri, client) => {
        const id = this.#idOf(source);
        if (id !== undefined) this.callers.updated(id, uri, client);
      },
      taskChanged: (source, message) => this.tasks.notified(this.#idOf(source), message),
    };
  }

  #createControlCalls(): ControlCalls {
    const { events, defaults, approvals, grants } = this;
    return createControlCalls({
      controls: () => this.controls,
      defaults,
      program: this.host?.control ?? null,
      approving: {
        approvals,
        grants,
        events,
        security: () => this.config.security,
        catalog: () => this.catalog,
        isGrantable: (agent, entry) =>
          this.config.policy !== null && !isBarred(rulesFor(this.config.policy, agent), entry),
      },
      learning: this.learning,
      started: (keys) => this.#started(keys),
      servers: (caller) =>
        this.statuses().filter((status) => this.views.sees(caller, caller.view().permission, status)),
    });
  }

  /** Starts the servers, and the startup window in which lists and early calls wait for them. */
  start(): void {
    this.applyServers(this.serversOf(this.config));
    this.rebuildCatalog();
    this.watchClock();
    this.#firstTried = this.fleet.tried().then(() => {
      this.callers.areListsComplete = true;
      this.refresh();
      // From now on every caller is notified of changes, even if it has not listed anything yet.
      this.callers.look();
    });
    this.#restored = this.defaults.restore();
    this.startup = createStartupWindow(
      // What every server offered the last time is listed at once: there is nothing to wait for.
      this.fleet.isKnown ? Promise.resolve() : this.#firstTried,
      this.config.startWait,
      this.#restored,
      this.pipeline.retry,
    );
  }

  /** Resolves when these servers have been tried and their items are in the catalog, and after a few seconds at most. */
  async #started(keys: readonly string[]): Promise<void> {
    await Promise.race([this.fleet.hurry(keys), pause(Math.min(CONTROL_WAIT, this.config.startWait))]);
    this.refresh();
  }

  /** Resolves when every server has been tried once, its items are in the catalog, and the last toolset is equipped. */
  async tried(): Promise<void> {
    await Promise.all([this.#firstTried, this.fleet.tried(), this.#restored]);
    this.refresh();
  }

  permissionOf(subject: Subject): Permission | null {
    return permissionAt(this.config.policy, subject, Date.now(), this.grants.of(subject.agent));
  }

  /** The toolset of this name, if the agent may know it. While servers are starting, it waits for them if it has to. */
  async findToolset(subject: Subject, name: string): Promise<Toolset | null> {
    const find = async (permission: Permission | null) => {
      const library = this.defaults.libraryOf(subject.agent, permission && this.views.allowed(permission));
      try {
        return await library.find(name);
      } catch (error) {
        // Its file is damaged. Until it is mended, the toolset stays as it was, if it was ever understood.
        const known = this.defaults.toolsets.find((toolset) => toolset.name === name);
        if (known === undefined) throw error;
        return known;
      }
    };
    const permission = this.permissionOf(subject);
    const found = await find(permission);
    // Which servers an agent may know depends on the tools that they turn out to have.
    if (found !== null || permission === null || this.startup?.current == null) return found;
    await this.startup.current;
    return find(this.permissionOf(subject));
  }

  /** Equips a toolset for clients that are connected, whatever they have chosen themselves. Returns how many. */
  async equipClients(name: string | null, who: EquippedClients): Promise<number> {
    if (name !== null) requireEquip(this.config);
    if (who !== 'all' && this.config.selection === 'shared')
      throw new GatewayError('usage', 'With selection = "shared" all clients have the same toolset. Equip it for all.');
    const toolset = name === null ? null : await this.defaults.libraryOf('', null).find(name);
    if (name !== null && toolset === null) throw new GatewayError('item_unknown', `There is no toolset "${name}".`);
    if (who === 'all') await this.defaults.equip(name);
    const meant = [...this.callers.all].filter((caller) => caller.isClient && isAmong(caller, who));
    const able = meant.filter((caller) => caller.choosesItself);
    if (able.length === 0 && who !== 'all') throw nobodyToEquip(who, meant.length > 0);
    const saving: Promise<string | null>[] = [];
    for (const caller of able) {
      // The default selection has it already.
      if (who === 'all' && caller.selection === null) continue;
      caller.choose(equip(caller.chosen, toolset));
      caller.refit();
      if (caller.knownAs !== null) saving.push(this.defaults.rememberClient(caller.knownAs, name));
      caller.look();
    }
    const [failure] = (await Promise.all(saving)).filter((one) => one !== null);
    if (failure !== undefined) throw new GatewayError('storage_failed', failure);
    if (who !== 'all') {
      const detail = `${name ?? 'none'} for ${'agent' in who ? `agent ${who.agent}` : `session ${who.session}`}`;
      this.events.emit('admin', { act: name === null ? 'toolset_unequipped' : 'toolset_equipped', agent: '', detail });
    }
    return able.length;
  }

  /** What a new client of an agent sees before it changes anything. */
  firstList(agent: string): FirstList {
    return firstListOf(this.#firstView(agent));
  }

  /** All tools that an agent may use, and those that a new client of it sees. */
  shownTo(agent: string): { readonly all: readonly Entry[]; readonly first: readonly Entry[] } {
    const { catalog, entries } = this.#firstView(agent);
    return { all: [...catalog.entries.tool.values()], first: [...entries.tool.values()] };
  }

  #firstView(agent: string): View {
    const from = { sources: null, namespace: null, tasks: this.#task === null ? [] : [this.#task] };
    const permission = this.permissionOf({ agent, claims: null, task: this.#task });
    const showing = this.views.showing(from, permission, null);
    const seesAll = showing === 'all' || from.tasks.length > 0;
    const selection = seesAll ? startSelection(null) : this.defaults.selection;
    const client = UNKNOWN_CLIENT;
    return this.views.of({ ...from, permission, showing, selection, isFixed: false, controls: true, client });
  }

  serverOf(id: number): { readonly source: Source; readonly config: ServerConfig } | undefined {
    return id < MACROS_ID ? this.sets?.find(id) : this.fleet.find(id);
  }

  calleeOf(id: number): { readonly source: Callee; readonly config: ServerConfig } | undefined {
    return id === MACROS_ID ? this.macros : this.serverOf(id);
  }

  #idOf(source: Source): number | undefined {
    return this.fleet.idOf(source) ?? this.sets?.idOf(source);
  }

  statuses(): ServerStatus[] {
    const broken = this.config.broken.flatMap((one) => brokenStatus(one, this.startedAt));
    return [...this.fleet.statuses(), ...broken, ...(this.sets?.statuses() ?? [])];
  }

  watchedStatuses(): WatchedServer[] {
    return this.statuses().map(this.limiters.watch);
  }

  /** All servers of a configuration: its own, and those of the tool folders. */
  serversOf(config: Config): readonly ServerConfig[] {
    const all = [...config.servers, ...(this.folders?.serversOf(config) ?? [])];
    const adjust = this.#adjust;
    return adjust === null ? all : all.map(adjust).filter((server) => server !== null);
  }

  applyServers(servers: readonly ServerConfig[]): FleetChange {
    const change = this.fleet.apply(servers);
    this.servers = servers;
    return change;
  }

  /** Everybody has the toolsets as they are now. */
  refitToolsets(): void {
    this.defaults.refit();
    this.callers.refit();
  }

  renewControls(): void {
    this.#controlsBy = this.#createControls();
    this.controls = this.#controlsBy.catalog;
  }

  /** Where the configuration says `auto`, they depend on how the tools are shown. */
  #createControls(): Readonly<Record<Showing, Controls>> {
    const { callThrough, catalog, markActive } = this.config;
    const options = {
      program: this.host?.control ?? null,
      toolsets: () => this.defaults.toolsets,
      callThrough,
      markActive,
      catalog,
    };
    const create = (showing: Showing) =>
      createControls(controlsFor(this.config, showing), {
        ...options,
        former: showing === 'search' ? controlsFor(this.config, 'catalog') : [],
      });
    return { all: create('all'), catalog: create('catalog'), search: create('search') };
  }

  /** The names that no server's tool can have. They are the same for every caller. `areMany` says whether tools may be searched. */
  #ownNames(areMany: boolean): readonly string[] {
    const { catalog, search } = this.#controlsBy;
    return [...new Set([...catalog.names, ...(areMany ? search.names : [])])];
  }

  /**
   * Calls `installed` with the key of each server whose dependencies have been installed; returns the function that
   * removes it.
   */
  whenInstalled(installed: (key: string) => void): () => void {
    this.#installed.add(installed);
    return () => this.#installed.delete(installed);
  }

  /**
   * Servers have changed: builds a new catalog if it would differ, and retries calls that came before their item was
   * known.
   */
  refresh(): void {
    clearTimeout(this.#refreshTimer);
    this.#refreshTimer = undefined;
    if (this.isClosed) return;
    if (this.rebuildCatalog()) {
      this.callers.look();
      this.announceCatalog();
    }
    this.pipeline.retry();
  }

  /** Replaces the catalog if the new one would differ, and returns whether it did. Callers are not notified yet. */
  rebuildCatalog(): boolean {
    const { config } = this;
    const since = Date.parse(this.startedAt);
    const broken = config.broken.flatMap((one) => brokenContribution(one, since));
    const contributions = [...this.fleet.contributions(), ...broken].map((one) => ({
      ...one,
      offer: pinnedOffer(one.key, one.offer, config.pins),
    }));
    const names = [...contributions.map(({ namespace }) => namespace), ...(this.folders?.namespacesOf(config) ?? [])];
    this.namespaces = new Set(names.filter((name) => name !== ''));
    const { names: style, nameLimit, macros } = config;
    // Few tools are never searched, and may have the names of the tools that search.
    const tools = contributions.reduce(
      (sum, { offer }) => sum + offer.items.filter(({ kind }) => kind === 'tool').length,
      0,
    );
    const areMany = !config.searchesMany || isMany(tools);
    const inputs: CatalogInputs = { contributions, builtIn: this.#ownNames(areMany), style, nameLimit, macros };
    if (this.#builtFrom !== null && isSameCatalog(inputs, this.#builtFrom)) return false;
    this.#builtFrom = inputs;
    this.catalog = buildCatalog(this.catalog.version + 1, withMacros(macros, contributions), inputs.builtIn, config);
    this.views.forget();
    this.#seeNames();
    return true;
  }

  /** Saved toolsets keep the tools of a server that was renamed, and tools that their server renamed. */
  #seeNames(): void {
    const { version } = this.renames;
    const servers = this.fleet.contributions().flatMap(({ id, key, offer, absence }) => {
      const config = this.fleet.find(id)?.config;
      if (config === undefined || (config.launch.kind !== 'stdio' && config.launch.kind !== 'http')) return [];
      return [{ key, launchHash: config.launchHash, offer, isCurrent: absence == null }];
    });
    this.renames.see(servers);
    if (this.renames.version !== version) this.refitToolsets();
  }

  #heldReason({ sourceId, sourceKey, kind, item }: Entry): string | null {
    const { pins } = this.config;
    if (pins.mode !== 'hold') return null;
    const offer = this.fleet.contributions().find(({ id }) => id === sourceId)?.offer;
    if (offer === undefined) return null;
    const now = pinnedOffer(sourceKey, offer, pins).items.find((one) => one.kind === kind && one.name === item.name);
    return now?.held ?? null;
  }

  /** Emits the event for the catalog in force, once per catalog. */
  announceCatalog(): void {
    const { version, problems } = this.catalog;
    if (this.#announced === version) return;
    this.#announced = version;
    this.events.emit('catalog', { version, problems });
  }

  /** Policies may depend on the time of day. If any does, lists are compared at every full minute. */
  watchClock(): void {
    clearTimeout(this.#minuteTimer);
    const { policy } = this.config;
    if (policy === null || !hasTimes(policy)) return;
    const now = Date.now();
    this.#minuteTimer = setTimeout(() => {
      this.watchClock();
      this.callers.look();
    }, nextMinute(now) - now).unref();
  }

  async close(): Promise<void> {
    this.isClosed = true;
    this.approvals.stop();
    this.folders?.close();
    clearTimeout(this.#refreshTimer);
    clearTimeout(this.#minuteTimer);
    this.parked.close();
    this.grants.close();
    await this.approvals.close();
    await Promise.all([this.fleet.close(), this.sets?.close()]);
    await this.limiters.close();
    await Promise.all([
      this.defaults.close(),
      this.renames.close(),
      this.examples.close(),
      this.offers.close(),
      this.audit.close(),
    ]);
    await this.replica?.close();
  }
}

/** Everything a catalog is built from. */
interface CatalogInputs {
  readonly contributions: readonly Contribution[];
  readonly builtIn: readonly string[];
  readonly style: Config['names'];
  readonly nameLimit: number | null;
  readonly macros: readonly MacroConfig[];
}

function isSameCatalog(a: CatalogInputs, b: CatalogInputs): boolean {
  return (
    a.contributions.length === b.contributions.length &&
    a.contributions.every((one, i) => isSameContribution(one, b.contributions[i]!)) &&
    a.style === b.style &&
    a.nameLimit === b.nameLimit &&
    isSameValue(a.builtIn, b.builtIn) &&
    isSameValue(a.macros, b.macros)
  );
}

function isSameContribution(a: Contribution, b: Contribution): boolean {
  return (
    a.id === b.id &&
    a.key === b.key &&
    a.namespace === b.namespace &&
    a.present === b.present &&
    a.description === b.description &&
    isSameAbsence(a.absence, b.absence) &&
    isSameOffer(a.offer, b.offer)
  );
}

/**
 * Numbers in the reason do not count: a server that is tried again and again may name another port or process each time,
 * and every new catalog is news for clients.
 */
function isSameAbsence(a: Contribution['absence'], b: Contribution['absence']): boolean {
  if (a == null || b == null) return a == null && b == null;
  const reasonOf = ({ reason }: Absence) => reason.replace(/\d+/g, '0');
  return a.state === b.state && a.since === b.since && reasonOf(a) === reasonOf(b);
}

/** Cheap even for long lists, because unchanged items are the same objects. */
function isSameOffer(a: Offer, b: Offer): boolean {
  if (a === b) return true;
  return (
    a.items.length === b.items.length &&
    a.items.every((item, i) => item === b.items[i]) &&
    a.instructions === b.instructions &&
    a.about === b.about &&
    isSameValue(a.problems, b.problems)
  );
}

function isAmong({ agent, label }: Caller, who: EquippedClients): boolean {
  if (who === 'all') return true;
  return 'agent' in who ? agent === who.agent : label === who.session;
}

function nobodyToEquip(who: Exclude<EquippedClients, 'all'>, isConnected: boolean): GatewayError {
  const whom = 'agent' in who ? `client of agent "${who.agent}"` : `client "${who.session}"`;
  const why = isConnected
    ? `No ${whom} can be given a toolset: its address names a toolset, a namespace or a task.`
    : `No ${whom} is connected. toolgate status shows who is.`;
  return new GatewayError('usage', why);
}
