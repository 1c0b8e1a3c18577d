/** Outcomes and durations, counted. Always on, so that a call adds numbers and nothing else. */
import { CACHED, CANCELLED, FAILED, OUTCOMES, type Outcome } from '../calls/outcome.ts';

/** How calls went. */
export interface TallyMetrics {
  readonly calls: number;
  readonly outcomes: Readonly<Record<Outcome, number>>;
  /** Bytes of the results. */
  readonly bytes: number;
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

// Four buckets to each doubling, from an eighth of a millisecond to about two minutes: a tenth is as far as a figure is off.
const PER_OCTAVE = 4;
const FIRST = 1 / 8;
const OCTAVES = 20;
const LAST = PER_OCTAVE * OCTAVES + 1;

export function bucketOf(ms: number): number {
  if (ms <= FIRST) return 0;
  return Math.min(LAST, Math.ceil(Math.log2(ms / FIRST) * PER_OCTAVE));
}

function boundOf(bucket: number): number {
  return FIRST * 2 ** (bucket / PER_OCTAVE);
}

export class Tally {
  readonly counts = new Float64Array(OUTCOMES.length);
  readonly buckets = new Uint32Array(LAST + 1);
  ms = 0;
  bytes = 0;

  /** `bucket` is that of `ms`, so that who counts twice looks for it once. */
  add(outcome: number, ms: number, bucket: number, bytes: number): void {
    this.counts[outcome]!++;
    this.bytes += bytes;
    if (outcome === CANCELLED || outcome === FAILED || outcome === CACHED) return;
    this.ms += ms;
    this.buckets[bucket]!++;
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

  report(): TallyMetrics {
    return {
      calls: this.counts.reduce((sum, count) => sum + count, 0),
      outcomes: Object.fromEntries(OUTCOMES.map((outcome, i) => [outcome, this.counts[i]!])) as Record<Outcome, number>,
      bytes: this.bytes,
      p50: this.quantile(0.5),
      p99: this.quantile(0.99),
    };
  }
}
