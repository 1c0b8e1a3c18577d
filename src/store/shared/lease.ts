/**
 * For how long a replica certainly has the calls that it makes. Another one takes a call only while the store has no sign of
 * life of its replica. So a call that was admitted since these signs come without a gap is still its own.
 */
export interface Lease {
  /** The store has had a sign of life, between these two times. */
  renewed(sent: number, answered: number): void;
  /** Whether a call that was asked for at `since` cannot have been taken. */
  holds(since: number, now: number): boolean;
  end(): void;
}

/** `margin`: milliseconds before the end of a sign of life in which it is no longer relied on. */
export function createLease(length: number, margin: number): Lease {
  let unbroken = Number.POSITIVE_INFINITY;
  let until = Number.NEGATIVE_INFINITY;
  return {
    renewed(sent, answered) {
      if (answered >= until) unbroken = answered;
      // The store counts from when it was told, which is later.
      until = sent + length - margin;
    },
    holds: (since, now) => since >= unbroken && now < until,
    end() {
      unbroken = Number.POSITIVE_INFINITY;
    },
  };
}
