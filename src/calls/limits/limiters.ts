/**
 * Which limits hold for which calls. What is counted belongs to a server, a tool or an agent and outlives the configuration
 * that limits it; a lane is put together of that once for each agent and item, and found again from then on.
 */

import type { EventSink } from '../../base/events.ts';
import type { Entry } from '../../catalog/entry.ts';
import { type AgentLimits, type CallLimits, limitsFor, type ToolLimits } from '../../config/call-limits.ts';
import type { Config } from '../../config/config.ts';
import type { ServerConfig } from '../../config/servers.ts';
import type { ServerStatus } from '../../sources/fleet.ts';
import { openUsageStore } from '../../store/usage.ts';
import type { Callee } from '../call.ts';
import { Breaker, type BreakerState } from './breaker.ts';
import { createResultCache } from './cache.ts';
import { createCounters, type Scope } from './counters.ts';
import { Days } from './days.ts';
import { CallLimiter, type LimiterContext } from './limiter.ts';
import { createSpillStore, type SpillStore } from './spill-store.ts';

export interface Limiters {
  /** Without an agent, those that hold for everybody. */
  of(agent: string | null, entry: Entry, server: ServerConfig): CallLimiter;
  /** What was cut off results. */
  readonly kept: SpillStore;
  /** The status of a server with whether it is asked at present. */
  watch(status: ServerStatus): WatchedServer;
  /** A server came up: where its breaker is open, the next call tries it at once. */
  restarted(key: string): void;
  /** Other limits hold for calls to come; what was counted goes on. */
  apply(config: Config): void;
  close(): Promise<void>;
}

/** A server with its calls. */
export interface WatchedServer extends ServerStatus {
  readonly breaker: BreakerState;
  /** Calls that have one of its places, and that wait for one. */
  readonly places: { readonly running: number; readonly waiting: number };
}

export interface LimitersOptions {
  readonly events: EventSink;
  /** A server as it is at present; undefined for one that was removed. */
  find(id: number): { readonly source: Callee; readonly config: ServerConfig } | undefined;
  /** The limits of an agent; null where it has none. */
  agent(name: string): AgentLimits | null;
  /** A call that waited has reached no server. */
  readonly refused: LimiterContext['refused'];
}

interface Agent {
  readonly own: AgentLimits | null;
  readonly limiters: WeakMap<Entry, CallLimiter>;
}

const MOST_AGENTS = 10_000;
const CLOSED: BreakerState = { state: 'closed', failures: 0, until: null };

export function createLimiters(
  config: Config,
  { events, find, agent: agentLimits, refused }: LimitersOptions,
): Limiters {
  const server = (id: number) => find(id)?.config;
  const context: LimiterContext = { cache: createResultCache(), kept: createSpillStore(), find, refused };
  const report = (message: string) => events.emit('note', { source: 'toolgate', message });
  const days = new Days(openUsageStore(config.dataDir), report);
  const counters = createCounters(days, limitsOf, forget);
  const breakers = new Map<number, Breaker>();
  let { maxResult } = config.limits;
  /** All agents without limits share what holds for nobody. */
  let nobody: Agent = { own: null, limiters: new WeakMap() };
  let agents = new Map<string, Agent>();

  /** Those that hold for a scope at present. */
  function limitsOf({ agent, sourceId, tool }: Scope): CallLimits | null {
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
      opened(error) {
        events.emit('note', { source: key, message: error.message });
        counters.gate({ agent: null, sourceId: id, tool: null })?.clear(error);
      },
      closed: () => events.emit('note', { source: key, message: 'answers again, and is asked as before' }),
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
    // A macro takes no place of its agent: its steps do, and would wait for it.
    const ofAgent = item.uses === undefined ? (own?.all ?? null) : null;
    const parts: Part[] = [
      { scope: { agent, sourceId: null, tool: null }, owner: `Agent "${agent}"`, limits: ofAgent },
      { scope: { agent, sourceId, tool }, owner: `Agent "${agent}" with the ${name}`, limits: ofAgentTool },
      { scope: { agent: null, sourceId, tool }, owner: `The ${name}`, limits: ofTool },
      { scope: { agent: null, sourceId, tool: null }, owner: ownerOf(config.key), limits: config.limits },
    ];
    const held = parts.filter((part): part is Held => part.limits !== null);
    // Of clocks and sizes the nearest holds, and an agent's can only make it less.
    const timeout = ofTool?.timeout ?? config.timeout;
    const totalTimeout = ofTool?.totalTimeout ?? Math.max(config.totalTimeout, ofTool?.timeout ?? 0);
    const agentTimeout = least(ofAgentTool?.timeout ?? own?.all?.timeout, timeout);
    const agentTotal = least(ofAgentTool?.totalTimeout ?? own?.all?.totalTimeout, totalTimeout);
    const limits = {
      gates: held.flatMap(({ scope, owner }) => counters.gate(scope, owner) ?? []),
      rates: held.flatMap(({ scope, owner }) => counters.rate(scope, owner) ?? []),
      days: held.flatMap(({ scope, owner, limits }) => {
        if (limits.callsPerDay === null) return [];
        return { owner, limit: limits.callsPerDay, count: days.of(counters.lastingKey(scope, config.key)) };
      }),
      maxArguments: smallestArguments(held),
      maxResult: leastOf(
        ofAgentTool?.maxResult ?? own?.all?.maxResult,
        ofTool?.maxResult ?? config.limits.maxResult ?? maxResult,
      ),
      timeout: agentTimeout,
      totalTimeout: agentTotal,
      isFair: agentTimeout === timeout && agentTotal === totalTimeout,
      cacheFor: config.share === 'session' ? null : (ofTool?.cache ?? null),
    };
    // Where each client has a connection of its own, what one of them breaks is not broken for the others.
    const breaker = config.share === 'session' ? null : breakerOf(sourceId, config);
    return new CallLimiter(limits, breaker, context);
  }

  function agentOf(name: string): Agent {
    const known = agents.get(name);
    if (known !== undefined) return known;
    // Names may be for clients to make up.
    if (agents.size >= MOST_AGENTS) agents.clear();
    const own = agentLimits(name);
    const agent = own === null ? nobody : { own, limiters: new WeakMap() };
    agents.set(name, agent);
    return agent;
  }

  function forget(): void {
    nobody = { own: null, limiters: new WeakMap() };
    agents = new Map();
  }

  return {
    of(agent, entry, config) {
      const { own, limiters } = agent === null ? nobody : agentOf(agent);
      const known = limiters.get(entry);
      if (known !== undefined) return known;
      const limiter = build(agent ?? '', own, entry, config);
      limiters.set(entry, limiter);
      return limiter;
    },
    kept: context.kept,
    watch(status) {
      const breaker = [...breakers.values()].find(({ server }) => server === status.key)?.state() ?? CLOSED;
      const detail = breaker.state === 'closed' ? status.detail : `${status.detail}; ${wordsFor(breaker)}`;
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
      context.kept.close();
      await days.close();
    },
  };
}

/** A server, in messages. */
function ownerOf(server: string): string {
  return `Server "${server}"`;
}

function wordsFor({ state, failures, until }: BreakerState): string {
  const when = state === 'open' ? `is tried again at ${until}` : 'is being tried again';
  return `failed ${failures} times in a row and ${when}`;
}

interface Part {
  readonly scope: Scope;
  readonly owner: string;
  readonly limits: CallLimits | null;
}

interface Held extends Part {
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

/** All of them hold, so the smallest does. */
function smallestArguments(held: readonly Held[]) {
  const sizes = held.flatMap(({ owner, limits }) =>
    limits.maxArguments === null ? [] : { owner, bytes: limits.maxArguments },
  );
  return sizes.sort((a, b) => a.bytes - b.bytes)[0] ?? null;
}
