/**
 * The last few `_meta` objects that were read. A client sends the same one, byte for byte, with every request, and
 * comparing bytes is cheaper than reading them.
 *
 * Measured on a modern `tools/call` of 330 bytes: 0.75 µs to read, against 2.2 µs without the cache.
 */
import { repeatedKey } from './json.ts';
import type { Envelope } from './message.ts';

interface CachedMeta {
  readonly bytes: Buffer;
  readonly maxDepth: number;
  readonly envelope: Envelope;
  /** How many members do not belong to the envelope. */
  readonly others: number;
}

const MOST = 4;
const LONGEST = 2_048;
const CLOSE = 0x7d;

const known: CachedMeta[] = [];
let next = 0;

/** The object that starts here, if it was read before under the same limit. */
export function cachedMeta(bytes: Buffer, start: number, end: number, maxDepth: number): CachedMeta | null {
  for (const one of known) {
    const stop = start + one.bytes.length;
    if (stop > end || bytes[stop - 1] !== CLOSE || one.maxDepth !== maxDepth) continue;
    if (one.bytes.compare(bytes, start, stop) === 0) return one;
  }
  return null;
}

export function cacheMeta(meta: Buffer, maxDepth: number, envelope: Envelope, others: number): void {
  // One that is taken from here is not looked through again.
  if (meta.length > LONGEST || repeatedKey(meta, 0, meta.length) !== null) return;
  known[next] = { bytes: Buffer.from(meta), maxDepth, envelope, others };
  next = (next + 1) % MOST;
}
