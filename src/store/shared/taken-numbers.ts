import { BoundedMap } from '../../base/bounded-map.ts';
import { getOrMake } from '../../base/memo.ts';

/** How many numbers of a sender are told apart, and of how many senders. */
const NUMBERS = 1_024;
const MOST_SENDERS = 256;

/**
 * The numbers of messages that were taken. Somebody who can write the store cannot make a message, but could put one there
 * again: a call would be made twice. Messages may come a little out of order.
 */
export class TakenNumbers {
  readonly #senders = new BoundedMap<string, { readonly slots: Float64Array; last: number }>(MOST_SENDERS);

  /** False if it came before, or is so old that nobody knows. */
  take(sender: string, number: unknown): boolean {
    if (typeof number !== 'number') return false;
    const known = getOrMake(this.#senders, sender, () => ({ slots: new Float64Array(NUMBERS), last: 0 }));
    if (number <= known.last - NUMBERS || known.slots[number % NUMBERS]! >= number) return false;
    known.slots[number % NUMBERS] = number;
    known.last = Math.max(known.last, number);
    return true;
  }
}
