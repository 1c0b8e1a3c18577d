/**
 * Caches the results of tools that the operator declares cacheable, for later calls with equal arguments. The total
 * size is bounded, and the oldest results are dropped first.
 */
import { memo } from '../../base/memo.ts';
import type { Entry } from '../../catalog/entry.ts';
import { readElements, readMembers } from '../../protocol/json.ts';
import type { Message } from '../../protocol/message.ts';
import { join, type Parts, sizeOf } from '../../protocol/parts.ts';
import type { Era } from '../../protocol/revisions.ts';

export interface CachedResult {
  readonly result: Buffer;
  readonly era: Era;
  /** When the result arrived, on the clock of `performance.now`. */
  readonly time: number;
}

export interface ResultCache {
  /** The cache key of a call; null if its result cannot be cached. */
  keyOf(entry: Entry, message: Message): string | null;
  /** A cached result that is at most `age` milliseconds old. */
  find(key: string, age: number): CachedResult | null;
  keep(key: string, result: Parts, era: Era): void;
}

const MOST_BYTES = 64 * 1024 * 1024;
const MOST_RESULT = 1024 * 1024;
const MOST_ARGUMENTS = 64 * 1024;

export function createResultCache(most = MOST_BYTES): ResultCache {
  const results = new Map<string, CachedResult>();
  let bytes = 0;
  // A changed definition, or one from another server, is a different entry object. So its calls do not find the results
  // of the old one.
  let lastNumber = 0;
  const numberOf = memo<Entry, number>(() => ++lastNumber);

  function drop(key: string): void {
    const known = results.get(key);
    if (known === undefined) return;
    results.delete(key);
    bytes -= costOf(key, known);
  }

  return {
    keyOf(entry, { bytes: message, argumentsStart, argumentsEnd, taskStart, stateStart }) {
      if (taskStart >= 0 || stateStart >= 0 || argumentsEnd - argumentsStart > MOST_ARGUMENTS) return null;
      const args = argumentsStart < 0 ? '{}' : canonical(message, argumentsStart, argumentsEnd);
      return `${numberOf(entry)} ${args}`;
    },
    find(key, age) {
      const known = results.get(key);
      if (known === undefined) return null;
      if (performance.now() - known.time <= age) return known;
      drop(key);
      return null;
    },
    keep(key, result, era) {
      if (sizeOf(result) > MOST_RESULT) return;
      drop(key);
      // Copy the bytes: they may be a slice of a larger buffer, which would stay in memory with them.
      const kept = { result: Buffer.from(join(result)), era, time: performance.now() };
      results.set(key, kept);
      bytes += costOf(key, kept);
      for (const oldest of results.keys()) {
        if (bytes <= most) break;
        drop(oldest);
      }
    },
  };
}

function costOf(key: string, { result }: CachedResult): number {
  return result.length + 2 * key.length;
}

/**
 * Returns equal text for equal JSON objects, regardless of the order of their keys. Everything else is kept as written,
 * because a server may treat 1 and 1.0 differently.
 */
export function canonical(bytes: Buffer, start: number, end: number): string {
  const first = bytes[start];
  if (first === 0x7b) {
    const members = readMembers(bytes, start, end) ?? [];
    const texts = members.map((member) => {
      const key = bytes.toString('latin1', member.keyStart, member.start).replace(/\s*:\s*$/, '');
      return { key, text: canonical(bytes, member.start, member.end) };
    });
    texts.sort((a, b) => (a.key < b.key ? -1 : Number(a.key > b.key)));
    return `{${texts.map(({ key, text }) => `${key}:${text}`).join(',')}}`;
  }
  if (first === 0x5b) {
    const elements = readElements(bytes, start, end) ?? [];
    return `[${elements.map((one) => canonical(bytes, one.start, one.end)).join(',')}]`;
  }
  return bytes.toString('latin1', start, end);
}
