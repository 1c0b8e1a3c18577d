/** How often each item was called, and by which agent; what was refused, and why. */

import type { Events } from '../base/events.ts';
import type { AgentCounter, CallCounter, CallCounters } from '../calls/observers.ts';
import { type CallKind, kindOf } from '../calls/outcome.ts';
import type { Entry } from '../catalog/entry.ts';
import type { Family } from './families.ts';
import { bucketOf, type Duration, Tally, type TallyMetrics } from './histogram.ts';

/** How the calls of one item went. */
export interface EntryMetrics extends TallyMetrics {
  /** The key of the server, and what it calls the item. Both are empty for what is counted together. */
  readonly server: string;
  readonly name: string;
  readonly kind: CallKind;
  /** Calls of a cacheable tool for which there was nothing yet. */
  readonly cacheMisses: number;
}

/** How the calls of one agent went. */
export interface AgentMetrics extends TallyMetrics {
  /** Empty for those that are counted together. */
  readonly agent: string;
  /** Calls of it that reached no server. */
  readonly refused: number;
  readonly inFlight: number;
}

/** How often, by reason or name. */
export type Counts = ReadonlyMap<string, number>;

/** How calls went since the start, counted for each item and each agent. */
export interface CallMetrics {
  entries(): EntryMetrics[];
  /** The same rows in the same order. */
  durations(): Duration[];
  agents(): AgentMetrics[];
  /** Calls that servers are working on. */
  readonly inFlight: number;
  /** Calls that reached no server, because what they ask for is not there, or not like this. */
  readonly refused: number;
  /** The same by the code of the error. */
  readonly refusals: Counts;
  /** Requests that the HTTP door sent away, by the code of the error; `unauthorized` is a wrong token, or none. */
  readonly sentAway: Counts;
  /** Configurations that were read while running: `ok` or `refused`. */
  readonly reloads: Counts;
  /** Clients that were left because they did not read. */
  readonly cut: number;
  /** Further figures, asked for whenever somebody looks; gives the function that takes them away again. */
  add(read: () => readonly Family[]): () => void;
  /** What was added. */
  added(): Family[];
}

/** What the gateway counts with; programs only read. */
export interface MetricsRegistry extends CallMetrics, CallCounters {}

/** What is called for the first time beyond this is counted together: names are for servers to make up, memory is ours. */
const MOST = 1_000;
const MOST_AGENTS = 200;

/** One agent's. */
class AgentTally extends Tally implements AgentCounter {
  readonly agent: string;
  inFlight = 0;
  refused = 0;

  constructor(agent: string) {
    super();
    this.agent = agent;
  }
}

/** One item's. */
class EntryTally extends Tally implements CallCounter {
  readonly server: string;
  readonly name: string;
  readonly kind: CallKind;
  readonly totals: Totals;
  cacheMisses = 0;

  constructor(server: string, name: string, kind: CallKind, totals: Totals) {
    super();
    this.server = server;
    this.name = name;
    this.kind = kind;
    this.totals = totals;
  }

  begin(agent: AgentTally): void {
    this.totals.inFlight++;
    agent.inFlight++;
  }

  end(outcome: number, ms: number, bytes: number, agent: AgentTally): void {
    const bucket = bucketOf(ms);
    this.totals.inFlight--;
    agent.inFlight--;
    this.add(outcome, ms, bucket, bytes);
    agent.add(outcome, ms, bucket, bytes);
  }
}

interface Totals {
  inFlight: number;
}

export function createMetrics(events: Events, redact: (text: string) => string): MetricsRegistry {
  const totals: Totals = { inFlight: 0 };
  const rows = new Map<string, EntryTally>();
  /** So that a call has to put no key together. Completion is counted apart, and is rare. */
  const byEntry = new WeakMap<Entry, EntryTally>();
  const agents = new Map<string, AgentTally>();
  const refusals = new Map<string, number>();
  const sentAway = new Map<string, number>([
    ['unauthorized', 0],
    ['forbidden', 0],
  ]);
  const reloads = new Map<string, number>([
    ['ok', 0],
    ['refused', 0],
  ]);
  const more = new Set<() => readonly Family[]>();
  let refused = 0;
  let cut = 0;
  events.on('cut', () => cut++);
  events.on('config', ({ ok }) => count(reloads, ok ? 'ok' : 'refused'));
  events.on('sent_away', ({ code }) => count(sentAway, code));

  function find({ sourceKey, item }: Entry, kind: CallKind): EntryTally {
    const key = JSON.stringify([sourceKey, kind, item.name]);
    const known = rows.get(key);
    if (known !== undefined) return known;
    if (rows.size >= MOST) return findShared(kind);
    // The name of a resource is an address, and may have a password in it.
    const row = new EntryTally(sourceKey, redact(item.name), kind, totals);
    rows.set(key, row);
    return row;
  }

  function findShared(kind: CallKind): EntryTally {
    const row = rows.get(kind) ?? new EntryTally('', '', kind, totals);
    rows.set(kind, row);
    return row;
  }

  return {
    of(entry, method) {
      if (method === 'completion/complete') return find(entry, 'completion');
      const known = byEntry.get(entry);
      if (known !== undefined) return known;
      const row = find(entry, kindOf(method));
      byEntry.set(entry, row);
      return row;
    },
    ofAgent(agent) {
      const name = agents.has(agent) || agents.size < MOST_AGENTS ? agent : '';
      const tally = agents.get(name) ?? new AgentTally(name);
      agents.set(name, tally);
      return tally;
    },
    refuse(agent: AgentTally, code) {
      refused++;
      agent.refused++;
      count(refusals, code);
    },
    entries: () =>
      [...rows.values()].map((row) => ({
        server: row.server,
        name: row.name,
        kind: row.kind,
        cacheMisses: row.cacheMisses,
        ...row.report(),
      })),
    durations: () => [...rows.values()].map((row) => row.duration()),
    agents: () =>
      [...agents.values()].map((tally) => ({
        agent: tally.agent,
        refused: tally.refused,
        inFlight: tally.inFlight,
        ...tally.report(),
      })),
    get inFlight() {
      return totals.inFlight;
    },
    get refused() {
      return refused;
    },
    refusals,
    sentAway,
    reloads,
    get cut() {
      return cut;
    },
    add(read) {
      const one = () => read();
      more.add(one);
      return () => void more.delete(one);
    },
    added: () => [...more].flatMap((read) => read()),
  };
}

function count(counts: Map<string, number>, key: string): void {
  counts.set(key, (counts.get(key) ?? 0) + 1);
}
