/** Results of tools that the operator declares cacheable, for equal calls to come: so many bytes of them, the oldest go first. */
import type { Entry } from '../../catalog/entry.ts';
import { readElements, readMembers } from '../../protocol/json.ts';
import type { Message } from '../../protocol/message.ts';
import { join, type Parts, sizeOf } from '../../protocol/parts.ts';
import type { Era } from '../../protocol/revisions.ts';

export interface CachedResult {
  readonly result: Buffer;
  readonly era: Era;
  /** When it came, by `performance.now`. */
  readonly time: number;
}

export interface ResultCache {
  /** The key of a call; null for one that cannot be kept. */
  keyOf(entry: Entry, message: Message): string | null;
  /** A result that is at most so many milliseconds old. */
  find(key: string, age: number): CachedResult | null;
  keep(key: string, result: Parts, era: Era): void;
}

const MOST_BYTES = 64 * 1024 * 1024;
const MOST_RESULT = 1024 * 1024;
const MOST_ARGUMENTS = 64 * 1024;

export function createResultCache(most = MOST_BYTES): ResultCache {
  const results = new Map<string, CachedResult>();
  let bytes = 0;
  // A definition that changed, or comes from another server, is another entry: what was known of the old one is not found.
  const numbers = new WeakMap<Entry, number>();
  let lastNumber = 0;

  function numberOf(entry: Entry): number {
    const number = numbers.get(entry) ?? ++lastNumber;
    numbers.set(entry, number);
    return number;
  }

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
      // A copy: the bytes it came in are larger, and would stay with it.
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

/** The same text for the same value, in whatever order its keys stand. All else stays as it is written: 1 and 1.0 may differ. */
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
