/**
 * Decides which limits apply to which calls. Counters belong to a server, a tool or an agent and outlive the
 * configuration that sets their limits. A limiter is compiled from them once for each agent and entry.
 */
import { BoundedMap } from '../../base/bounded-map.ts';
import { GatewayError } from '../../base/errors.ts';
import type { EventSink } from '../../base/events.ts';
import type { Entry } from '../../catalog/entry.ts';
import { type AgentLimits, type CallLimits, limitsFor, type ToolLimits } from '../../config/call-limits.ts';
import type { Config } from '../../config/config.ts';
import type { ServerConfig } from '../../config/servers.ts';
import type { ServerStatus } from '../../sources/fleet.ts';
import { openUsageStore } from '../../store/usage.ts';
import { Breaker, type BreakerState } from './breaker.ts';
import { createResultCache } from './cache.ts';
import { createCounters, type LimitScope } from './counters.ts';
import { Days } from './days.ts';
import { CallLimiter, type LimiterContext } from './limiter.ts';
import type { SharedBudgets } from './shared-budgets.ts';
import { createSpillStore, type SpillStore } from './spill-store.ts';

export interface Limiters {
  /** Without an agent, returns the limits that apply to everyone. Throws if the entry's server was removed. */
  of(agent: string | null, entry: Entry): CallLimiter;
  /** The parts that were cut off results. */
  readonly spilled: SpillStore;
  /** A server's status, with the state of its breaker and its places. */
  watch(status: ServerStatus): WatchedServer;
  /** A server has started. If its breaker is open, the next call tries it at once. */
  restarted(key: string): void;
  /** Applies new limits to later calls. Counters keep their values. */
  apply(config: Config): void;
  close(): Promise<void>;
}

/** A server's status together with its calls. */
export interface WatchedServer extends ServerStatus {
  readonly breaker: BreakerState;
  /** Calls that occupy one of the server's places, and calls that wait for one. */
  readonly places: { readonly running: number; readonly waiting: number };
}

export interface LimitersOptions {
  readonly events: EventSink;
  /** A server's current configuration; undefined if the server was removed. */
  find(id: number): { readonly config: ServerConfig } | undefined;
  /** The limits of an agent; null if it has none. */
  agent(name: string): AgentLimits | null;
  /** Budgets that all replicas share; null if there is one replica. */
  readonly shared?: SharedBudgets | null;
}

interface AgentLimiters {
  readonly own: AgentLimits | null;
  readonly limiters: WeakMap<Entry, CallLimiter>;
}

const MOST_AGENTS = 10_000;
const CLOSED: BreakerState = { state: 'closed', failures: 0, until: null };

export function createLimiters(config: Config, options: LimitersOptions): Limiters {
  const { events, find, agent: agentLimits, shared = null } = options;
  const server = (id: number) => find(id)?.config;
  const context: LimiterContext = { cache: createResultCache(), spilled: createSpillStore(), shared };
  const report = (message: string) => events.emit('note', { source: 'toolgate', message });
  const days = new Days(openUsageStore(config.dataDir), report);
  const counters = createCounters(days, limitsOf, forget);
  const breakers = new Map<number, Breaker>();
  let { maxResult } = config.limits;
  /** Shared by all agents that have no limits of their own. */
  let common: AgentLimiters = { own: null, limiters: new WeakMap() };
  /** Bounded, because clients can invent any number of agent names. */
  const agents = new BoundedMap<string, AgentLimiters>(MOST_AGENTS);

  /** The limits that currently apply to a scope. */
  function limitsOf({ agent, sourceId, tool }: LimitScope): CallLimits | null {
    const config = sourceId === null ? undefined : server(sourceId);
    if (agent === null) return tool === null ? (config?.limits ?? null) : toolLimits(config, tool);
    const { own } = agentOf(agent);
    if (tool === null) return own?.all ?? null;
    return config === undefined ? null : agentToolLimits(own, config, tool);
  }

  function breakerOf(id: number, { key }: ServerConfig): Breaker {
    const known = breakers.get(id);
    if (known?.server === key) return known;
    const breaker = new Breaker(key, {
      opened(error, culprit) {
        events.emit('note', { source: key, message: error.message });
        counters.gate({ agent: null, sourceId: id, tool: null })?.clear(error, culprit);
      },
      closed: () => events.emit('note', { source: key, message: 'answers again, and is called as before' }),
    });
    breakers.set(id, breaker);
    return breaker;
  }

  function build(agent: string, own: AgentLimits | null, entry: Entry, config: ServerConfig): CallLimiter {
    const { sourceId, item, kind } = entry;
    const tool = kind === 'tool' ? item.name : null;
    const ofTool = tool === null ? null : toolLimits(config, tool);
    const ofAgentTool = tool === null ? null : agentToolLimits(own, config, tool);
    const name = `tool "${entry.name}"`;
    // A macro takes no place from its agent. Its steps do, and they would wait forever for the place the macro holds.
    const ofAgent = item.uses === undefined ? (own?.all ?? null) : null;
    const parts: ScopedLimits[] = [
      { scope: { agent, sourceId: null, tool: null }, owner: `Agent "${agent}"`, limits: ofAgent },
      { scope: { agent, sourceId, tool }, owner: `Agent "${agent}" with the ${name}`, limits: ofAgentTool },
      { scope: { agent: null, sourceId, tool }, owner: `The ${name}`, limits: ofTool },
      { scope: { agent: null, sourceId, tool: null }, owner: ownerOf(config.key), limits: config.limits },
    ];
    const present = parts.filter((part): part is PresentLimits => part.limits !== null);
    // The most specific timeout and size apply. An agent's limits can only lower them.
    const timeout = ofTool?.timeout ?? config.timeout;
    const totalTimeout = ofTool?.totalTimeout ?? Math.max(config.totalTimeout, ofTool?.timeout ?? 0);
    const agentTimeout = least(ofAgentTool?.timeout ?? own?.all?.timeout, timeout);
    const agentTotal = least(ofAgentTool?.totalTimeout ?? own?.all?.totalTimeout, totalTimeout);
    const limits = {
      gates: present.flatMap(({ scope, owner }) => counters.gate(scope, owner) ?? []),
      rates: present.flatMap(({ scope, owner }) => counters.rate(scope, owner, config.key) ?? []),
      days: present.flatMap(({ scope, owner, limits }) => {
        if (limits.callsPerDay === null) return [];
        return { owner, limit: limits.callsPerDay, count: days.of(counters.lastingKey(scope, config.key)) };
      }),
      maxArguments: smallestArguments(present),
      maxResult: leastOf(
        ofAgentTool?.maxResult ?? own?.all?.maxResult,
        ofTool?.maxResult ?? config.limits.maxResult ?? maxResult,
      ),
      timeout: agentTimeout,
      totalTimeout: agentTotal,
      hasFullTime: agentTimeout === timeout && agentTotal === totalTimeout,
      cacheFor: config.share === 'session' ? null : (ofTool?.cache ?? null),
    };
    // If each client has its own connection, a failure on one says nothing about the others, so there is no shared
    // breaker.
    const breaker = config.share === 'session' ? null : breakerOf(sourceId, config);
    return new CallLimiter(limits, breaker, context);
  }

  function agentOf(name: string): AgentLimiters {
    const known = agents.get(name);
    if (known !== undefined) return known;
    const own = agentLimits(name);
    const agent = own === null ? common : { own, limiters: new WeakMap() };
    agents.set(name, agent);
    return agent;
  }

  function forget(): void {
    common = { own: null, limiters: new WeakMap() };
    agents.clear();
  }

  return {
    of(agent, entry) {
      const { own, limiters } = agent === null ? common : agentOf(agent);
      const known = limiters.get(entry);
      if (known !== undefined) return known;
      const config = server(entry.sourceId);
      if (config === undefined) throw removed(entry);
      const limiter = build(agent ?? '', own, entry, config);
      limiters.set(entry, limiter);
      return limiter;
    },
    spilled: context.spilled,
    watch(status) {
      const breaker = [...breakers.values()].find(({ server }) => server === status.key)?.state() ?? CLOSED;
      const detail = breaker.state === 'closed' ? status.detail : `${status.detail}; ${describeBreaker(breaker)}`;
      const { running = 0, waiting = 0 } = counters.placesOf(ownerOf(status.key)) ?? {};
      return { ...status, detail, breaker, places: { running, waiting } };
    },
    restarted(key) {
      for (const [id, breaker] of breakers) if (server(id)?.key === key) breaker.restarted();
    },
    apply(next) {
      ({ maxResult } = next.limits);
      forget();
      counters.renew();
      for (const id of breakers.keys()) if (server(id) === undefined) breakers.delete(id);
    },
    async close() {
      context.spilled.close();
      days.close();
    },
  };
}

/** The error for a server that is no longer configured. */
export function removed({ sourceKey }: Entry): GatewayError {
  return new GatewayError('source_unavailable', `Server "${sourceKey}" has been removed.`);
}

/** How messages name a server. */
function ownerOf(server: string): string {
  return `Server "${server}"`;
}

function describeBreaker({ state, failures, until }: BreakerState): string {
  const when = state === 'open' ? `is tried again at ${until}` : 'is being tried again';
  return `failed ${failures} times in a row and ${when}`;
}

interface ScopedLimits {
  readonly scope: LimitScope;
  readonly owner: string;
  readonly limits: CallLimits | null;
}

interface PresentLimits extends ScopedLimits {
  readonly limits: CallLimits;
}

function toolLimits(config: ServerConfig | undefined, tool: string): ToolLimits | null {
  return config === undefined || config.tools.length === 0 ? null : limitsFor(config.tools, tool);
}

function agentToolLimits(own: AgentLimits | null, config: ServerConfig, tool: string): ToolLimits | null {
  if (own === null || own.tools.length === 0) return null;
  return limitsFor(own.tools, `${config.key}.${tool}`, `${config.namespace}.${tool}`);
}

function least(own: number | null | undefined, other: number): number {
  return own == null ? other : Math.min(own, other);
}

function leastOf(own: number | null | undefined, other: number | null): number | null {
  return other === null ? (own ?? null) : least(own, other);
}

/** All of these limits apply, so the smallest one decides. */
function smallestArguments(present: readonly PresentLimits[]) {
  const sizes = present.flatMap(({ owner, limits }) =>
    limits.maxArguments === null ? [] : { owner, bytes: limits.maxArguments },
  );
  return sizes.sort((a, b) => a.bytes - b.bytes)[0] ?? null;
}
