/**
 * The gateway: the one mutable root. Holds the configuration, the servers, the catalog and the callers, and replaces each
 * of them whole. Doors join callers to it; every change ends in `swap`, which tells only those whose view really changed.
 */

import { isHidden } from './access/find.ts';
import { hasTimes, permissionAt, permitted, requireArguments } from './access/permission.ts';
import { basePatterns, type Selection } from './access/selection.ts';
import { type Toolset, withinCatalog } from './access/toolset.ts';
import { buildView } from './access/view.ts';
import { createViews } from './access/views.ts';
import { type Call, findCall } from './calls/call.ts';
import type { Caller, CallerOptions } from './calls/caller.ts';
import { dispatch, NO_TICKET } from './calls/dispatch.ts';
import { createEarlyCalls, MAY_CHANGE } from './calls/early.ts';
import { createFigures, type Figures } from './calls/figures.ts';
import { type Home, Member } from './calls/member.ts';
import { createMiddlewareStack, type Middleware, runThrough } from './calls/middleware.ts';
import { createMinutes } from './calls/minutes.ts';
import { createOpening } from './calls/opening.ts';
import { createParkedCalls, type ParkedCalls } from './calls/parked.ts';
import { createSubscriptionDesk } from './calls/subscriptions.ts';
import { createTaskDesk, type TaskDesk } from './calls/tasks.ts';
import { buildCatalog, type Catalog, EMPTY_CATALOG } from './catalog/catalog.ts';
import { BUILT_IN } from './catalog/entry.ts';
import { introduce } from './catalog/introduction.ts';
import type { Config } from './config/config.ts';
import { createControls } from './controls/controls.ts';
import { createDefaultChoice } from './controls/default-choice.ts';
import { createControlDesk } from './controls/desk.ts';
import { toGatewayError } from './errors.ts';
import { createEvents, type Events } from './events.ts';
import type { LogLevel } from './protocol/levels.ts';
import { type Message, parseParams } from './protocol/message.ts';
import type { Sink, Ticket } from './sources/connection.ts';
import { createFleet, type FleetReport, type ServerStatus } from './sources/fleet.ts';
import type { Guest } from './sources/guest.ts';
import type { Source } from './sources/source.ts';
import { openOfferStore } from './store/offers.ts';
import type { Shelf } from './store/shelf.ts';
import { openVerdictStore } from './store/verdicts.ts';

export interface Gateway {
  readonly events: Events;
  readonly config: Config;
  readonly catalog: Catalog;
  /** While servers are starting: resolves when all have been tried or `start_wait` is over. Null from then on. */
  readonly opening: Promise<void> | null;
  /** The same, but for a moment only, and null as soon as something is known of every server. */
  readonly introducing: Promise<void> | null;
  /** Equips the toolset for all callers without a choice of their own; null for none. Rejects where there is none of that name. */
  equip(name: string | null): Promise<void>;
  /** All toolsets there are. */
  readonly shelf: Shelf;
  /** Takes a new configuration into force. What did not change is not restarted. */
  apply(config: Config): FleetReport;
  join(options: CallerOptions): Caller;
  /** Calls that wait for an answer of a client without a session. */
  readonly parked: ParkedCalls;
  readonly tasks: TaskDesk;
  /** Puts a function around every call, inside of those that are there; gives the one that removes it again. */
  use(middleware: Middleware): () => void;
  /** How the calls went so far. */
  readonly figures: Figures;
  /** Somebody wants to hear the log messages of servers from this level on. */
  setLogLevel(level: LogLevel): void;
  statuses(): ServerStatus[];
  /** Every server has been tried once. */
  tried(): Promise<void>;
  /** Every server has been tried once and every required one is there. */
  isReady(): boolean;
  close(): Promise<void>;
}

/** Bursts of changes make one new catalog. */
const SWAP_PAUSE = 5;

export function createGateway(initial: Config): Gateway {
  const events = createEvents();
  let config = initial;
  let controls = createControls(config.controls);
  let catalog: Catalog = EMPTY_CATALOG;
  const views = createViews((permission, selection) =>
    buildView(permitted(catalog, permission), selection, controls, permission),
  );
  let swapTimer: NodeJS.Timeout | undefined;
  let allTried = false;
  let closed = false;
  const members = new Set<Member>();
  const early = createEarlyCalls();
  const controlDesk = createControlDesk();
  const defaults = createDefaultChoice(
    () => config,
    () => {
      for (const member of members) if (member.selection === null) member.look();
    },
  );
  const stack = createMiddlewareStack();
  const figures = createFigures(events);
  const context = {
    events,
    offers: openOfferStore(config.dataDir),
    verdicts: openVerdictStore(config.dataDir),
    limits: config.limits,
    changed: scheduleSwap,
    updated: tellUpdate,
    taskChanged: (source: Source, message: Message) => tasks.told(fleet.idOf(source), message),
  };
  const fleet = createFleet(context);
  const parked = createParkedCalls();
  const tasks = createTaskDesk((id) => fleet.find(id));
  const desk = createSubscriptionDesk<Member>((id) => fleet.find(id)?.source);

  const minutes = createMinutes(
    () => config.policy !== null && hasTimes(config.policy),
    () => {
      for (const member of members) member.look();
    },
  );

  const home: Home = {
    get base() {
      return basePatterns(config);
    },
    get defaultSelection() {
      return defaults.selection;
    },
    get isShared() {
      return config.selection === 'shared';
    },
    get pageSize() {
      return config.limits.page;
    },
    get allTried() {
      return allTried;
    },
    desk,
    permissionOf: ({ agent, options }) =>
      options.operator === true ? null : permissionAt(config.policy, agent, Date.now()),
    viewOf: (permission, selection) => views.of(permission, selection),
    introduce: (member) =>
      introduce(
        fleet.contributions().filter(({ key }) => sees(member, key)),
        config,
      ),
    freshen: (kind) => fleet.freshen(kind),
    call: routeCall,
    tell: (guest, message) => fleet.tell(guest, message),
    leave(member) {
      members.delete(member);
      desk.leave(member);
      fleet.leave(member.guest);
    },
  };

  /** Whether there is anything of the server that the caller may use. */
  function sees(member: Member, key: string): boolean {
    const { permission, catalog } = member.view();
    return permission === null || catalog.sources.has(key);
  }

  function tellUpdate(source: Source, uri: string, guest: Guest | null): void {
    const id = fleet.idOf(source);
    if (id === undefined) return;
    for (const [member, words] of desk.hearers(id, uri))
      if ((guest === null || member.guest === guest) && !isHidden(member.view(), words))
        member.options.updated?.(words);
  }

  function scheduleSwap(): void {
    swapTimer ??= setTimeout(swap, SWAP_PAUSE);
  }

  function swap(): void {
    clearTimeout(swapTimer);
    swapTimer = undefined;
    if (closed) return;
    const before = catalog;
    catalog = buildCatalog(before.version + 1, fleet.contributions(), controls.names, config);
    events.emit('catalog', { version: catalog.version, problems: catalog.problems });
    views.forget();
    for (const member of members) member.look();
    early.retry();
  }

  function routeCall(member: Member, message: Message, sink: Sink): Ticket {
    try {
      return route(member, message, sink);
    } catch (error) {
      const known = toGatewayError(error);
      if (known.code === 'internal') events.emit('failure', { where: message.method, error });
      if (opening.current !== null && MAY_CHANGE.has(known.code)) return routeWhenKnown(member, message, sink);
      figures.refuse();
      sink.fail(known);
      return NO_TICKET;
    }
  }

  /** What is meant may come with a server that is still starting. */
  function routeWhenKnown(member: Member, message: Message, sink: Sink): Ticket {
    return early.add(() => routeCall(member, message, sink));
  }

  function route(member: Member, message: Message, sink: Sink): Ticket {
    const call = findCall(member, message, sink);
    const { permission } = member.view();
    if (permission !== null && permission.onArguments.length > 0) requireArguments(permission, call.entry, message);
    if (opening.current !== null && isEarly(call)) return routeWhenKnown(member, message, sink);
    sink.admit(call);
    if (stack.all.length === 0) return send(member, call);
    return runThrough(stack.all, call, member.agent, events, (seen) => send(member, seen));
  }

  function send(member: Member, found: Call): Ticket {
    const { entry, message, inner: sink } = found;
    if (entry.sourceId === BUILT_IN) return runControl(member, entry.name, message, sink);
    return dispatch(found, fleet.find(entry.sourceId), member.guest, tasks, figures);
  }

  /** Whether a server that is still starting could change what is meant: then the quickest server must not decide it. */
  function isEarly({ entry, exact }: Call): boolean {
    return entry.sourceId === BUILT_IN || !exact || fleet.mayClaim(entry.name, entry.sourceId, config);
  }

  function runControl(member: Member, name: string, message: Message, sink: Sink): Ticket {
    const args = parseParams(message).arguments;
    const work = () => controls.run(name, { ...controlContext(member), selection: member.chosen }, args);
    controlDesk.run(member.shares ? defaults : member, name, work, {
      outcome({ selection, result }) {
        choose(member, selection);
        sink.result(result, 'legacy');
      },
      failed: (error) => sink.fail(error),
    });
    return NO_TICKET;
  }

  function controlContext(member: Member) {
    const { catalog, permission } = member.view();
    return {
      catalog,
      servers: fleet.statuses().filter(({ key }) => sees(member, key)),
      shelf: defaults.shelf,
      show: <T extends Toolset>(toolset: T) => (permission === null ? toolset : withinCatalog(toolset, catalog)),
      isFixed: member.options.toolset !== undefined,
    };
  }

  function choose(member: Member, selection: Selection): void {
    if (selection.key === member.chosen.key) return;
    if (!member.shares) {
      member.selection = selection;
      member.look();
    } else defaults.choose(selection);
  }

  function apply(next: Config): FleetReport {
    config = next;
    controls = createControls(next.controls);
    context.limits = next.limits;
    const base = basePatterns(next);
    defaults.rebase();
    for (const member of members) member.rebase(base);
    minutes.reset();
    const report = fleet.apply(next.servers);
    swap();
    return report;
  }

  minutes.reset();
  fleet.apply(config.servers);
  swap();
  const tried = fleet.tried().then(() => {
    allTried = true;
    swap();
  });
  const opening = createOpening(tried, config.startWait, defaults.restore(), early.retry);

  return {
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
    equip: defaults.equip,
    shelf: defaults.shelf,
    join(options) {
      const member = new Member(home, options);
      members.add(member);
      if (allTried) member.look();
      return member;
    },
    parked,
    tasks,
    use: stack.use,
    figures,
    setLogLevel: (level) => fleet.setLogLevel(level),
    statuses: () => fleet.statuses(),
    tried: () => tried,
    isReady: () => allTried && fleet.statuses().every((status) => !status.required || status.present),
    async close() {
      closed = true;
      clearTimeout(swapTimer);
      minutes.stop();
      parked.close();
      await fleet.close();
    },
  };
}
