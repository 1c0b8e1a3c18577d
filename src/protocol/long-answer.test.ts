import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { readLongAnswer } from './long-answer.ts';

const result = JSON.stringify({ content: [{ type: 'text', text: 'x\n"é'.repeat(10_000) }], n: 1 });

/** The bytes cut into parts of at least 100 at the given places. */
function cutUp(bytes: Buffer, cuts: readonly number[]): Buffer[] {
  const places = [0, ...[...cuts].sort((a, b) => a - b), bytes.length];
  return places.slice(1).map((end, i) => bytes.subarray(places[i], end));
}

describe('a long answer', () => {
  it.each([
    ['id first', `{"jsonrpc":"2.0","id":42,"result":${result}}`],
    ['id last', `{"result":${result},"jsonrpc":"2.0","id":42}`],
  ])('is recognised with its %s, in any parts', (_, text) => {
    const bytes = Buffer.from(text);
    const places = fc.uniqueArray(fc.nat({ max: Math.floor(bytes.length / 100) - 2 }).map((n) => (n + 1) * 100));
    fc.assert(
      fc.property(places, (cuts) => {
        const answer = readLongAnswer(cutUp(bytes, cuts));
        expect([answer?.id, Buffer.concat(answer?.result ?? []).toString()]).toEqual([42, result]);
      }),
    );
  });

  it.each([
    ['is cut off', `{"jsonrpc":"2.0","id":42,"result":${result}}`.slice(0, -100)],
    ['has its members in another order', `{"jsonrpc":"2.0","result":${result},"id":42}`],
    ['has spaces between its members', `{ "jsonrpc": "2.0", "id": 42, "result": ${result} }`],
    ['is an error', `{"jsonrpc":"2.0","id":42,"error":${result}}`],
    ['has more members after its result', `{"jsonrpc":"2.0","id":42,"result":${result},"method":"ping","params":{}}`],
    ['has more before its end', `{"result":${result},"x":{},"jsonrpc":"2.0","id":42}`],
    ['has a last part that is too short', `{"result":${result},"jsonrpc":"2.0","id":42}`, -20],
  ])('is not recognised if it %s', (_, text, cutAt = 1000) => {
    const bytes = Buffer.from(text);
    expect(readLongAnswer([bytes.subarray(0, cutAt), bytes.subarray(cutAt)])).toBeNull();
  });
});
