import { describe, expect, it } from 'vitest';
import { join } from '../protocol/parts.ts';
import { guessId, readAnswer, readLong } from './worker-wire.ts';

const answer = (result: string, tail = ',"latency_ms":0.25') =>
  Buffer.from(`{"id":"17","ok":true,"result":${result}${tail}}`);

describe('an answer of a worker', () => {
  it.each(['{}', '{"content":[{"type":"text","text":"ü } \\" 😀"}],"n":9007199254740993}'])(
    'is recognised: %s',
    (result) => {
      for (const tail of ['', ',"latency_ms":0.25', ',"latency_ms":12']) {
        const read = readAnswer(answer(result, tail));
        expect(read?.id).toBe(17);
        expect(join(read!.result).toString()).toBe(result);
      }
    },
  );

  it.each([
    '',
    'x',
    '{"id":"17","ok":true,"result":5}',
    '{"id":"17","ok":true,"result":{}',
    '{"id":"17","ok":true,"result":{}}}',
    '{"id":"17","ok":true,"result":{},"latency_ms":1,"x":2}',
    '{"id":"17","ok":true,"result":{"a":}}',
    '{"id":"x","ok":true,"result":{}}',
    '{"id":"12345678901234567890","ok":true,"result":{}}',
    '{"id":"17","ok":false,"error":{}}',
    '{"op":"log","id":"17"}',
  ])('is not recognised in: %s', (line) => {
    expect(readAnswer(Buffer.from(line))).toBe(null);
  });

  it('is not recognised if it is not UTF-8', () => {
    expect(readAnswer(Buffer.from('{"id":"17","ok":true,"result":{"a":"\xff"}}', 'latin1'))).toBe(null);
  });

  it('is recognised in parts, and cut where its result begins and ends', () => {
    const result = `{"text":"${'x}{'.repeat(40_000)}"}`;
    const line = answer(result);
    const parts = [line.subarray(0, 50_000), line.subarray(50_000, 65_536), line.subarray(65_536)];
    for (const read of [readLong(parts), readAnswer(line)]) {
      expect(read?.id).toBe(17);
      expect(join(read!.result).toString()).toBe(result);
    }
    expect(readLong([Buffer.from(`${line.toString().slice(0, -40)}${'}'.repeat(60)}`)])).toBe(null);
  });

  it('is found by its id when it is broken', () => {
    expect(guessId(Buffer.from('nonsense{"id":"23","ok":true,"result":{}}'))).toBe(23);
    expect(guessId(Buffer.from('nonsense'))).toBe(null);
  });
});
