import { describe, expect, it } from 'vitest';
import { readServerMessage } from './long.ts';
import { idText } from './message.ts';

const long = 'x\n"é'.repeat(10_000);
const result = JSON.stringify({ content: [{ type: 'text', text: long }], n: 1 });

function read(text: string): { id: string; result: string } {
  const message = readServerMessage(Buffer.from(text));
  return { id: idText(message), result: message.bytes.toString('utf8', message.resultStart, message.resultEnd) };
}

describe('a long answer', () => {
  it.each([
    ['id first', `{"jsonrpc":"2.0","id":42,"result":${result}}`],
    ['id last', `{"result":${result},"jsonrpc":"2.0","id":42}`],
    ['another order', `{"jsonrpc":"2.0","result":${result},"id":42}`],
    ['spaces', `{ "jsonrpc": "2.0", "id": 42, "result": ${result} }`],
  ])('is found with %s', (_, text) => {
    expect(read(text)).toEqual({ id: '42', result });
  });

  it('that is cut off is refused, not passed on', () => {
    const text = `{"jsonrpc":"2.0","id":42,"result":${result}}`;
    expect(() => read(text.slice(0, -100))).toThrow('not valid JSON');
  });

  it('that is not UTF-8 is refused', () => {
    const bytes = Buffer.from(`{"jsonrpc":"2.0","id":42,"result":${result}}`);
    bytes[20_000] = 0xff;
    expect(() => readServerMessage(bytes)).toThrow('not UTF-8');
  });
});
