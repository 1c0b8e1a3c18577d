/** Counts the calls of each item and each agent, and the refusals by reason. */
import { LIST_KINDS } from '../access/view.ts';
import type { Events } from '../base/events.ts';
import type { AgentCounter, CallCounter, CallCounters, ListCounters } from '../calls/observers.ts';
import { type CallKind, kindOf } from '../calls/outcome.ts';
import type { Entry } from '../catalog/entry.ts';
import type { Family } from './families.ts';
import { bucketOf, type Duration, Tally, type TallyMetrics } from './histogram.ts';

/** The calls of one item. */
export interface EntryMetrics extends TallyMetrics {
  /**
   * The key of the server, and the server's name for the item. Both are empty for the row that counts all further items
   * together.
   */
  readonly server: string;
  readonly name: string;
  readonly kind: CallKind;
  /** Calls of a cacheable tool that found no cached result. */
  readonly cacheMisses: number;
}

/** The calls of one agent. */
export interface AgentMetrics extends TallyMetrics {
  /** Empty for the row that counts all further agents together. */
  readonly agent: string;
  /** Calls of this agent that reached no server. */
  readonly refused: number;
  readonly inFlight: number;
}

/** Numbers by reason or name. */
export type Counts = ReadonlyMap<string, number>;

/** The calls since the start, counted for each item and each agent. */
export interface CallMetrics {
  entries(): EntryMetrics[];
  /** The durations of `entries()`, in the same order. */
  durations(): Duration[];
  agents(): AgentMetrics[];
  /** Calls that servers are working on. */
  readonly inFlight: number;
  /**
   * Calls that reached no server, because Toolgate refused them: the item is unknown or not allowed, the request does
   * not fit it, or a limit is reached.
   */
  readonly refused: number;
  /** Refused calls by error code. */
  readonly refusals: Counts;
  /** Calls that a dry run let pass, by what the policy would have decided: `deny` or `confirm`. */
  readonly dryRuns: Counts;
  /** Requests that the HTTP door rejected, by error code; `unauthorized` means a wrong token or none. */
  readonly sentAway: Counts;
  /** Configurations that were loaded while the gateway was running: `ok` or `refused`. */
  readonly reloads: Counts;
  /** Clients that were disconnected because they did not read. */
  readonly cut: number;
  /** Notifications of changed lists that clients were sent, by list. */
  readonly listChanges: Counts;
  /** Changed lists of tools that clients were sent after their first one: how many, and about how many tokens they have. */
  readonly sentLists: { readonly count: number; readonly tokens: number };
  /**
   * Adds metrics of your own. `read` is called each time the metrics are collected. Returns a function that removes
   * them.
   */
  add(read: () => readonly Family[]): () => void;
  /** The metrics that were added. */
  added(): Family[];
}

/** Adds the methods with which the gateway counts. Programs only read. */
export interface MetricsRegistry extends CallMetrics, CallCounters, ListCounters {}

/**
 * The maximum number of rows. Items beyond it are counted together, because servers can invent any number of names and
 * memory is limited.
 */
const MOST = 1_000;
const MOST_AGENTS = 200;

class AgentTally extends Tally implements AgentCounter {
  readonly agent: string;
  inFlight = 0;
  refused = 0;

  constructor(agent: string) {
    super();
    this.agent = agent;
  }
}

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
  /**
   * Finds the row of an entry without building a key for each call. Completions are rare and counted separately, so
   * they are not in here.
   */
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
  const dryRuns = new Map<string, number>([
    ['deny', 0],
    ['confirm', 0],
  ]);
  const listChanges = new Map<string, number>(LIST_KINDS.map((kind) => [kind, 0]));
  const sentLists = { count: 0, tokens: 0 };
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
    // The name of a resource is a URI, which may contain a password.
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
    tried: (decision) => count(dryRuns, decision),
    listChanged: (kind) => count(listChanges, kind),
    sentAgain(tokens) {
      sentLists.count++;
      sentLists.tokens += tokens;
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
    dryRuns,
    sentAway,
    reloads,
    listChanges,
    sentLists,
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
