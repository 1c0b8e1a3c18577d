/** The gateway: the one mutable root. Holds configuration, servers, catalog and callers, and replaces each whole.
 * Doors join callers to it; every change ends in `swap`, which tells only those whose view really changed. */

import { hasTimes, type Permission, permissionAt } from '../access/permission.ts';
import { agentLimits, isBarred, rulesFor } from '../access/policy.ts';
import { createViews } from '../access/views.ts';
import { createEvents } from '../base/events.ts';
import { IDENTITY } from '../base/version.ts';
import { createApprovals } from '../calls/approvals/approvals.ts';
import { createGrants } from '../calls/approvals/grants.ts';
import { type Caller, Callers } from '../calls/caller.ts';
import { createLimiters } from '../calls/limits/limiters.ts';
import { createMacroPlace, MACROS_ID, withMacros } from '../calls/macros/macros.ts';
import { createMiddlewareStack } from '../calls/middleware.ts';
import { createParkedCalls } from '../calls/parked.ts';
import { createPipeline } from '../calls/pipeline.ts';
import { withProgramCalls } from '../calls/program.ts';
import { createCallerSubscriptions } from '../calls/subscriptions.ts';
import { createMcpTasks } from '../calls/tasks/tasks.ts';
import { buildCatalog, type Catalog, EMPTY_CATALOG } from '../catalog/catalog.ts';
import type { Config } from '../config/config.ts';
import { createControls } from '../controls/controls.ts';
import { createDefaultSelection } from '../controls/default-selection.ts';
import { createControlCalls } from '../controls/run-control.ts';
import { tellEquipped, withToolsetEvents } from '../controls/toolset-events.ts';
import { createAudit } from '../observe/audit.ts';
import { measure } from '../observe/collect.ts';
import { createMetrics } from '../observe/metrics.ts';
import { createCallTracer } from '../observe/tracing.ts';
import type { ClientChannel } from '../protocol/contract.ts';
import type { Message } from '../protocol/message.ts';
import { createRedactor } from '../secrets/redact.ts';
import { createFleet, type FleetReport, isComplete, reportText } from '../sources/fleet.ts';
import type { Source } from '../sources/source.ts';
import { createSourceSets } from '../sources/source-sets.ts';
import { createVault } from '../sources/vault.ts';
import { openEraStore } from '../store/eras.ts';
import { openOfferStore } from '../store/offers.ts';
import { createMinutes } from './minutes.ts';
import { createReloading } from './reloading.ts';
import { createStartupWindow } from './startup.ts';
import type { Beside, Gateway, GatewayOptions } from './types.ts';

/** Bursts of changes make one new catalog. */
const SWAP_PAUSE = 5;

/** Starts the servers of a configuration and gives the gateway at once; `tried()` waits for them. */
export function createGateway(initial: Config, options: GatewayOptions = {}): Gateway {
  const { redact, learn } = createRedactor(initial.secrets());
  const events = createEvents(redact);
  let config = initial;
  let beside: Omit<Beside, 'close'> = options.beside ?? { servers: [], namespaces: [] };
  const audit = createAudit(config.audit, { events, redact, isOn: options.audit });
  const { host = null } = options;
  let controls = createControls(config.controls, host?.control);
  let catalog: Catalog = EMPTY_CATALOG;
  let namespaces: ReadonlySet<string> = new Set();
  const views = createViews({
    catalog: () => catalog,
    config: () => config,
    controls: () => controls,
    permissionOf,
  });
  let swapTimer: NodeJS.Timeout | undefined;
  let closed = false;
  const defaults = createDefaultSelection(
    () => config,
    () => callers.lookAtDefault(),
  );
  const stack = createMiddlewareStack();
  const metrics = createMetrics(events, redact);
  const { dataDir } = config;
  const keep = (values: readonly string[]) => learn([...config.secrets(), ...values]);
  const vault = createVault({ dataDir, vault: () => config.vault, learn: keep, changed: () => fleet.refill() });
  const context = {
    vault,
    events,
    redact,
    offers: openOfferStore(dataDir),
    eras: openEraStore(dataDir),
    limits: config.limits,
    changed: scheduleSwap,
    started: (key: string) => limiters.restarted(key),
    updated(source: Source, uri: string, client: ClientChannel | null) {
      const id = idOf(source);
      if (id !== undefined) callers.updated(id, uri, client);
    },
    taskChanged: (source: Source, message: Message) => tasks.told(idOf(source), message),
  };
  const fleet = createFleet(context);
  const sets = host === null ? null : createSourceSets(context, { naming: host.naming, builtIn: () => controls.names });
  const idOf = (source: Source) => fleet.idOf(source) ?? sets?.idOf(source);
  const macros = createMacroPlace(() => config.macros, {
    allowed: (by) => views.allowed(by.view().permission),
    call: (by, entry, args, id, sink) => pipeline.callTool(by, entry, args, id, sink),
  });
  const serverOf = (id: number) => (id < MACROS_ID ? sets?.find(id) : fleet.find(id));
  const placeOf = (id: number) => (id === MACROS_ID ? macros : serverOf(id));
  const limiters = createLimiters(config, {
    events,
    find: placeOf,
    agent: (name) => agentLimits(config.policy, name),
  });
  const grants = createGrants((agent) => callers.look(agent));
  const approvals = createApprovals({ config: () => config, events, redact });
  const parked = createParkedCalls();
  const tasks = createMcpTasks(serverOf);
  const subscriptions = createCallerSubscriptions<Caller>((id) => serverOf(id)?.source);
  const own = createControlCalls({
    events,
    controls: () => controls,
    defaults,
    program: host?.control ?? null,
    approving: {
      approvals,
      grants,
      events,
      security: () => config.security,
      catalog: () => catalog,
      isGrantable: (agent, entry) => config.policy !== null && !isBarred(rulesFor(config.policy, agent), entry),
    },
    servers: (caller) => statuses().filter((status) => views.sees(caller, caller.view().permission, status)),
  });

  const pipeline = createPipeline({
    events,
    counters: metrics,
    audit,
    middleware: stack,
    approvals,
    limiters,
    tasks,
    confirmations: () => config.security.confirm,
    find: placeOf,
    runControl: own.run,
    isStarting: () => opening.current !== null,
    mayBeClaimed: ({ name, sourceId }) => fleet.mayClaim(name, sourceId, config),
  });

  const minutes = createMinutes(
    () => config.policy !== null && hasTimes(config.policy),
    () => callers.look(),
  );

  const callers = new Callers({
    config: () => config,
    views,
    permissionOf,
    defaultSelection: () => defaults.selection,
    fleet,
    sets,
    subscriptions,
    counters: metrics,
    host,
    task: options.task ?? null,
  });

  function permissionOf(agent: string): Permission | null {
    return permissionAt(config.policy, agent, Date.now(), grants.of(agent));
  }

  const statuses = () => [...fleet.statuses(), ...(sets?.statuses() ?? [])];

  function scheduleSwap(): void {
    swapTimer ??= setTimeout(swap, SWAP_PAUSE);
  }

  function swap(): void {
    clearTimeout(swapTimer);
    swapTimer = undefined;
    if (closed) return;
    const before = catalog;
    const contributions = fleet.contributions();
    const named = [...contributions.map(({ namespace }) => namespace), ...beside.namespaces];
    namespaces = new Set(named.filter((name) => name !== ''));
    catalog = buildCatalog(before.version + 1, withMacros(config.macros, contributions), controls.names, config);
    events.emit('catalog', { version: catalog.version, problems: catalog.problems });
    views.forget();
    callers.look();
    pipeline.retry();
  }

  function apply(next: Config): FleetReport {
    config = next;
    learn(next.secrets());
    audit.apply(next.audit);
    controls = createControls(next.controls, host?.control);
    context.limits = next.limits;
    defaults.rebase();
    callers.rebase();
    minutes.reset();
    const report = fleet.apply([...next.servers, ...beside.servers]);
    fleet.revive();
    limiters.apply(next);
    swap();
    sets?.renew();
    events.emit('config', { ok: true, message: reportText(report, next.notices) });
    return report;
  }

  function serve(next: Omit<Beside, 'close'>): FleetReport {
    beside = next;
    const report = fleet.apply([...config.servers, ...beside.servers]);
    limiters.apply(config);
    swap();
    return report;
  }

  minutes.reset();
  fleet.apply([...config.servers, ...beside.servers]);
  swap();
  const tried = fleet.tried().then(() => {
    callers.areListsComplete = true;
    swap();
  });
  const opening = createStartupWindow(tried, config.startWait, defaults.restore(), pipeline.retry);

  const toolsets = withToolsetEvents(defaults.toolsetLibrary, events, '');

  return withProgramCalls({
    events,
    get config() {
      return config;
    },
    get catalog() {
      return catalog;
    },
    get opening() {
      return opening.current;
    },
    get introducing() {
      return fleet.isKnown ? null : opening.brief;
    },
    apply,
    serve,
    async equip(name) {
      await defaults.equip(name);
      tellEquipped(events, '', name);
    },
    toolsets,
    shelf: toolsets,
    get audit() {
      return audit.metrics;
    },
    vault,
    redact,
    join: (options) => callers.join(options),
    identity: host?.identity ?? IDENTITY,
    sets,
    knows: (agent, namespace) => namespaces.has(namespace) && views.knows(agent, namespace),
    parked,
    pipeline,
    tasks,
    approvals,
    reloading: createReloading(),
    namespaces: () => namespaces,
    use: stack.use,
    trace: (tracer) => pipeline.trace(tracer === null ? null : createCallTracer(tracer)),
    metrics,
    figures: metrics,
    measure: () =>
      measure({
        metrics,
        servers: statuses().map(limiters.watch),
        catalog,
        callers: callers.all,
        audit: audit.metrics,
      }),
    setLogLevel(level) {
      fleet.setLogLevel(level);
      sets?.setLogLevel(level);
    },
    statuses: () => statuses().map(limiters.watch),
    tried: () => Promise.all([tried, fleet.tried()]).then(swap),
    isReady: () => callers.areListsComplete && isComplete(config, fleet.statuses()),
    async close() {
      closed = true;
      options.beside?.close();
      clearTimeout(swapTimer);
      minutes.stop();
      parked.close();
      grants.close();
      await approvals.close();
      await Promise.all([fleet.close(), sets?.close()]);
      await limiters.close();
      await audit.close();
    },
  });
}
