import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { runs } from '../../test/support/wide.ts';
import { readFastAnswer } from './fast-answer.ts';
import { idText } from './message.ts';
import { readMessage } from './read.ts';

function read(text: string): { id: number; result: string } | null {
  const answer = readFastAnswer(Buffer.from(text));
  return answer === null ? null : { id: answer.id, result: answer.result.toString() };
}

describe('a usual answer', () => {
  it('is read like any message', () => {
    const value = fc.dictionary(fc.string(), fc.jsonValue({ maxDepth: 4 }));
    fc.assert(
      fc.property(fc.nat(), value, fc.boolean(), (id, result, idFirst) => {
        const json = JSON.stringify(result);
        const text = idFirst
          ? `{"jsonrpc":"2.0","id":${id},"result":${json}}`
          : `{"result":${json},"jsonrpc":"2.0","id":${id}}`;
        expect(read(text)).toEqual({ id, result: json });
      }),
    );
  });

  it('is recognised only if readMessage finds the same', () => {
    const damage = fc.record({
      text: fc.constantFrom(
        '{"jsonrpc":"2.0","id":12,"result":{"a":["b",1]}}',
        '{"result":{"a":["b",1]},"jsonrpc":"2.0","id":12}',
      ),
      at: fc.nat(),
      put: fc.constantFrom('', '"', '\\', '{', '}', ',', '"id":13,', ',"method":"x"', '0', '-', ' ', '\u0001', 'é'),
      cut: fc.nat(3),
    });
    fc.assert(
      fc.property(damage, ({ text, at, put, cut }) => {
        const place = at % (text.length + 1);
        const broken = text.slice(0, place) + put + text.slice(place + cut);
        const found = read(broken);
        if (found === null) return;
        const message = readMessage(Buffer.from(broken));
        expect([Number(idText(message)), message.method]).toEqual([found.id, '']);
        expect(message.bytes.toString('utf8', message.resultStart, message.resultEnd)).toBe(found.result);
      }),
      { numRuns: runs(5000) },
    );
  });

  it.each([
    '{"jsonrpc":"2.0","id":1,"result":{}} ',
    '{"jsonrpc":"2.0","id":,"result":{}}',
    '{"jsonrpc":"2.0","id":1,"result":[]}',
    '{"jsonrpc":"2.0","id":1,"result":{},"x":1}',
    '{"jsonrpc":"2.0","id":"1","result":{}}',
    '{"result":{},"jsonrpc":"2.0","id":}',
    '{"jsonrpc":"2.0","id":1,"error":{}}',
    '{"jsonrpc":"2.0","id":1,"result":{"a":"\\q"}}',
  ])('is not recognised in %s', (text) => {
    expect(read(text)).toBeNull();
  });
});
