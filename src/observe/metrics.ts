/** How often each item was called, and by which agent; what was refused, and why. */

import type { ErrorCode } from '../base/errors.ts';
import type { Events } from '../base/events.ts';
import type { Entry } from '../catalog/entry.ts';
import type { Family } from './families.ts';
import { bucketOf, type Duration, Tally, type TallyMetrics } from './histogram.ts';

export {
  CACHED,
  CANCELLED,
  type Duration,
  ERROR,
  FAILED,
  OK,
  OUTCOMES,
  type Outcome,
  TIMEOUT,
  TOOL_ERROR,
} from './histogram.ts';

/** What a call is for. */
export type CallKind = 'tool' | 'resource' | 'prompt' | 'completion';

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

export interface MetricsRegistry extends CallMetrics {
  of(entry: Entry, method: string): EntryCounter;
  /** Where the calls of an agent are counted: looked for once a caller, not once a call. */
  usageOf(agent: string): Usage;
  refuse(usage: Usage, code: ErrorCode): void;
}

const KIND_OF: Readonly<Record<string, CallKind>> = {
  'tools/call': 'tool',
  'resources/read': 'resource',
  'prompts/get': 'prompt',
  'completion/complete': 'completion',
};

export function kindOf(method: string): CallKind {
  return KIND_OF[method] ?? 'tool';
}

/** What is called for the first time beyond this is counted together: names are for servers to make up, memory is ours. */
const MOST = 1_000;
const MOST_AGENTS = 200;

/** One agent's. */
export class Usage extends Tally {
  readonly agent: string;
  inFlight = 0;
  refused = 0;

  constructor(agent: string) {
    super();
    this.agent = agent;
  }
}

/** One item's. */
export class EntryCounter extends Tally {
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

  begin(usage: Usage): void {
    this.totals.inFlight++;
    usage.inFlight++;
  }

  end(outcome: number, ms: number, bytes: number, usage: Usage): void {
    const bucket = bucketOf(ms);
    this.totals.inFlight--;
    usage.inFlight--;
    this.add(outcome, ms, bucket, bytes);
    usage.add(outcome, ms, bucket, bytes);
  }
}

interface Totals {
  inFlight: number;
}

export function createMetrics(events: Events, redact: (text: string) => string): MetricsRegistry {
  const totals: Totals = { inFlight: 0 };
  const rows = new Map<string, EntryCounter>();
  /** So that a call has to put no key together. Completion is counted apart, and is rare. */
  const byEntry = new WeakMap<Entry, EntryCounter>();
  const agents = new Map<string, Usage>();
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

  function find({ sourceKey, item }: Entry, kind: CallKind): EntryCounter {
    const key = JSON.stringify([sourceKey, kind, item.name]);
    const known = rows.get(key);
    if (known !== undefined) return known;
    if (rows.size >= MOST) return findShared(kind);
    // The name of a resource is an address, and may have a password in it.
    const row = new EntryCounter(sourceKey, redact(item.name), kind, totals);
    rows.set(key, row);
    return row;
  }

  function findShared(kind: CallKind): EntryCounter {
    const row = rows.get(kind) ?? new EntryCounter('', '', kind, totals);
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
    usageOf(agent) {
      const name = agents.has(agent) || agents.size < MOST_AGENTS ? agent : '';
      const usage = agents.get(name) ?? new Usage(name);
      agents.set(name, usage);
      return usage;
    },
    refuse(usage, code) {
      refused++;
      usage.refused++;
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
      [...agents.values()].map((usage) => ({
        agent: usage.agent,
        refused: usage.refused,
        inFlight: usage.inFlight,
        ...usage.report(),
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
