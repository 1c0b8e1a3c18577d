/** How often each item was called, with which outcome, and how long that took. Always on, so a call adds numbers and nothing else. */
import type { Entry } from '../catalog/entry.ts';
import type { Events } from '../events.ts';

export type CallKind = 'tool' | 'resource' | 'prompt' | 'completion';

/**
 * `tool_error`: the tool itself said that it failed. `error`: the server answered with an error of the protocol. `failed`:
 * no answer, because the server was not there or made no sense.
 */
export const OUTCOMES = ['ok', 'tool_error', 'error', 'failed', 'timeout', 'cancelled'] as const;
export type Outcome = (typeof OUTCOMES)[number];
export const [OK, TOOL_ERROR, ERROR, FAILED, TIMEOUT, CANCELLED] = [0, 1, 2, 3, 4, 5] as const;

export interface EntryFigures {
  /** The key of the server, and what it calls the item. Both are empty for what is counted together. */
  readonly server: string;
  readonly name: string;
  readonly kind: CallKind;
  readonly calls: number;
  readonly outcomes: Readonly<Record<Outcome, number>>;
  /** Milliseconds, of calls that were answered or timed out; null where there was none. */
  readonly p50: number | null;
  readonly p99: number | null;
}

/** How many of the durations, in seconds, were at most `bound`. */
export interface Duration {
  readonly sum: number;
  readonly count: number;
  readonly buckets: readonly { readonly bound: number; readonly count: number }[];
}

export interface Figures {
  entries(): EntryFigures[];
  /** The same rows in the same order. */
  durations(): Duration[];
  /** Calls that servers are working on. */
  readonly inFlight: number;
  /** Calls that reached no server, because what they ask for is not there, or not like this. */
  readonly refused: number;
  /** Clients that were left because they did not read. */
  readonly cut: number;
}

export interface FigureDesk extends Figures {
  of(entry: Entry, method: string): CallFigures;
  refuse(): void;
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

// Four buckets to each doubling, from an eighth of a millisecond to about two minutes: a tenth is as far as a figure is off.
const PER_OCTAVE = 4;
const FIRST = 1 / 8;
const OCTAVES = 20;
const LAST = PER_OCTAVE * OCTAVES + 1;

function bucketOf(ms: number): number {
  if (ms <= FIRST) return 0;
  return Math.min(LAST, Math.ceil(Math.log2(ms / FIRST) * PER_OCTAVE));
}

function boundOf(bucket: number): number {
  return FIRST * 2 ** (bucket / PER_OCTAVE);
}

/** One item's. */
export class CallFigures {
  readonly server: string;
  readonly name: string;
  readonly kind: CallKind;
  readonly counts = new Float64Array(OUTCOMES.length);
  readonly buckets = new Uint32Array(LAST + 1);
  readonly totals: Totals;
  ms = 0;

  constructor(server: string, name: string, kind: CallKind, totals: Totals) {
    this.server = server;
    this.name = name;
    this.kind = kind;
    this.totals = totals;
  }

  begin(): void {
    this.totals.inFlight++;
  }

  end(outcome: number, ms: number): void {
    this.totals.inFlight--;
    this.counts[outcome]!++;
    if (outcome === CANCELLED || outcome === FAILED) return;
    this.ms += ms;
    this.buckets[bucketOf(ms)]!++;
  }

  /** In the middle of its bucket, as far as logarithms have one. */
  quantile(share: number): number | null {
    const rank = Math.ceil(share * this.timed());
    let seen = 0;
    for (let bucket = 0; bucket <= LAST; bucket++) {
      seen += this.buckets[bucket]!;
      if (seen >= rank && seen > 0) return boundOf(bucket - 0.5);
    }
    return null;
  }

  timed(): number {
    return this.buckets.reduce((sum, count) => sum + count, 0);
  }

  /** One bucket to each doubling, from half a millisecond on. */
  duration(): Duration {
    const buckets: { bound: number; count: number }[] = [];
    let count = 0;
    for (let bucket = 0; bucket < LAST; bucket++) {
      count += this.buckets[bucket]!;
      if (bucket % PER_OCTAVE === 0 && bucket >= 2 * PER_OCTAVE)
        buckets.push({ bound: boundOf(bucket) / 1_000, count });
    }
    return { sum: this.ms / 1_000, count: this.timed(), buckets };
  }
}

interface Totals {
  inFlight: number;
}

export function createFigures(events: Events): FigureDesk {
  const totals: Totals = { inFlight: 0 };
  const rows = new Map<string, CallFigures>();
  /** So that a call has to put no key together. Completion is counted apart, and is rare. */
  const byEntry = new WeakMap<Entry, CallFigures>();
  let refused = 0;
  let cut = 0;
  events.listen((name) => {
    if (name === 'cut') cut++;
  });

  function find({ sourceKey, item }: Entry, kind: CallKind): CallFigures {
    const key = JSON.stringify([sourceKey, kind, item.name]);
    const known = rows.get(key);
    if (known !== undefined) return known;
    if (rows.size >= MOST) return findShared(kind);
    const row = new CallFigures(sourceKey, item.name, kind, totals);
    rows.set(key, row);
    return row;
  }

  function findShared(kind: CallKind): CallFigures {
    const row = rows.get(kind) ?? new CallFigures('', '', kind, totals);
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
    refuse() {
      refused++;
    },
    entries: () =>
      [...rows.values()].map((row) => ({
        server: row.server,
        name: row.name,
        kind: row.kind,
        calls: row.counts.reduce((sum, count) => sum + count, 0),
        outcomes: Object.fromEntries(OUTCOMES.map((outcome, i) => [outcome, row.counts[i]!])) as Record<
          Outcome,
          number
        >,
        p50: row.quantile(0.5),
        p99: row.quantile(0.99),
      })),
    durations: () => [...rows.values()].map((row) => row.duration()),
    get inFlight() {
      return totals.inFlight;
    },
    get refused() {
      return refused;
    },
    get cut() {
      return cut;
    },
  };
}
