import { describe, expect, it } from 'vitest';
import { idText, isRequest, isResponse, parseParams } from './message.ts';
import { readMessage } from './read.ts';

const read = (text: string, depth?: number) => readMessage(Buffer.from(text), depth);

describe('readMessage', () => {
  it('finds the parts of a call in any order', () => {
    const text =
      '{"params":{"arguments":{"name":"inner"},"_meta":{"x":1,"progressToken":"t-1"},"name":"fs_read"},"id":7.0,"method":"tools/call","jsonrpc":"2.0","extra":1}';
    const message = read(text);
    expect(message.method).toBe('tools/call');
    expect(idText(message)).toBe('7.0');
    expect(text.slice(message.nameStart, message.nameEnd)).toBe('"fs_read"');
    expect(text.slice(message.tokenStart, message.tokenEnd)).toBe('"t-1"');
    expect(isRequest(message)).toBe(true);
    expect(parseParams(message).arguments).toEqual({ name: 'inner' });
  });

  it('tells requests, notifications and responses apart', () => {
    expect(isRequest(read('{"jsonrpc":"2.0","method":"notifications/x"}'))).toBe(false);
    expect(isResponse(read('{"jsonrpc":"2.0","id":1,"result":{}}'))).toBe(true);
    expect(isResponse(read('{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"x"}}'))).toBe(true);
  });

  it.each([
    ['{"jsonrpc":"2.0","id":1,"id":2,"method":"x"}', 'it has "id" twice'],
    ['{"jsonrpc":"2.0","id":1,"method":"a","method":"b"}', 'it has "method" twice'],
    ['{"id":1,"method":"tools/call","params":{"name":"a","name":"b"}}', 'it has "name" twice'],
    ['{"id":1,"method":"tools/call","params":{"name":"a","n\\u0061me":"b"}}', 'it has "name" twice'],
    ['{"id":1,"method":"tools/call","params":{"name":"a","Name":"b"}}', 'could be taken for "name"'],
    ['{"id":1,"method":"tools/call","params":{"name":"a","argument\u017f":{}}}', 'could be taken for "arguments"'],
    ['{"id":1,"method":"tools/call","Params":{"name":"a"}}', 'could be taken for "params"'],
    ['{"jsonrpc":"1.0","id":1,"method":"x"}', '"jsonrpc" must be "2.0"'],
    ['[1]', 'a batch is not accepted here'],
    ['3', 'a JSON-RPC message is an object'],
    ['{"id":1,"method":3}', '"method" must be a string'],
    ['{"id":1,"method":"","method":"x"}', '"method" must be a string that is not empty'],
  ])('refuses %s', (text, why) => {
    expect(() => read(text)).toThrow(why);
  });

  it.each(['{"id":1', '{"id":1} x', '{"id":}', '', '{"a":"\\q"}'])('reports %j as not JSON', (text) => {
    expect(() => read(text)).toThrow('The message is not valid JSON');
  });

  it('reports bytes that are not UTF-8', () => {
    expect(() => readMessage(Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d]))).toThrow('not UTF-8');
  });

  it('counts depth from the outermost brace, in parameters and in arguments', () => {
    const nested = (levels: number) =>
      `{"id":1,"method":"tools/call","params":{"name":"a","arguments":${'['.repeat(levels)}${']'.repeat(levels)}}}`;
    expect(() => read(nested(62), 64)).not.toThrow();
    expect(() => read(nested(63), 64)).toThrow('nested deeper');
    expect(() => read(nested(5000), 64)).toThrow('nested deeper');
  });
});
