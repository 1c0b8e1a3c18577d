/** Counts outcomes and durations. This is always on, so counting a call only adds numbers. */
import { CACHED, CANCELLED, FAILED, OUTCOMES, type Outcome } from '../calls/outcome.ts';

/** How many calls there were, how they ended and how long they took. */
export interface TallyMetrics {
  readonly calls: number;
  readonly outcomes: Readonly<Record<Outcome, number>>;
  /** The total size of the results in bytes. */
  readonly bytes: number;
  /** In milliseconds, for calls that were answered or timed out; null if there were none. */
  readonly p50: number | null;
  readonly p99: number | null;
}

/** Durations as a histogram: for each `bound`, in seconds, how many calls took at most that long. */
export interface Duration {
  readonly sum: number;
  readonly count: number;
  readonly buckets: readonly { readonly bound: number; readonly count: number }[];
}

// Four buckets for each doubling, from an eighth of a millisecond to about two minutes. A reported duration is off by
// at most a tenth.
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

  /**
   * `bucket` is the bucket of `ms`. The caller passes it, because it adds each call twice and computes the bucket once.
   */
  add(outcome: number, ms: number, bucket: number, bytes: number): void {
    this.counts[outcome]!++;
    this.bytes += bytes;
    if (outcome === CANCELLED || outcome === FAILED || outcome === CACHED) return;
    this.ms += ms;
    this.buckets[bucket]!++;
  }

  /** The logarithmic middle of the bucket that contains the quantile. */
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

  /** One bucket for each doubling, starting at half a millisecond. */
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
