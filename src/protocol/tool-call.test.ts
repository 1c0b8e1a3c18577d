import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { anyText } from '../../test/support/random.ts';
import { readMessage } from './read.ts';
import { nameInCall, toolCallMessage } from './tool-call.ts';

const make = (args: string, depth = 64) => toolCallMessage('7', '"a_b"', Buffer.from(args), depth);

describe('a call built from a name and arguments', () => {
  it('is the same message as readMessage reads from its bytes', () => {
    const name = fc.oneof(anyText(), fc.constantFrom('x', 'größe', '"', '\u2028'));
    const id = fc.constantFrom('1', '"a-b"', '123456789');
    fc.assert(
      fc.property(
        id,
        name,
        fc.dictionary(fc.string(), fc.jsonValue()),
        fc.constantFrom('', ' ', '\n'),
        (id, name, args, space) => {
          const made = toolCallMessage(
            id,
            nameInCall(name),
            Buffer.from(`${space}${JSON.stringify(args)}${space}`),
            64,
          );
          const read = readMessage(made.bytes);
          expect({ ...made, argumentsEnd: 0 }).toEqual({ ...read, argumentsEnd: 0 });
          const text = made.bytes.toString('utf8', made.argumentsStart, made.argumentsEnd);
          expect(JSON.parse(text)).toEqual(JSON.parse(JSON.stringify(args)));
        },
      ),
    );
  });

  it('is the same for long arguments', () => {
    const args = JSON.stringify({ text: 'ü'.repeat(20_000) });
    const made = make(args);
    expect(readMessage(made.bytes)).toEqual(made);
  });

  it('has empty arguments for an empty body', () => {
    expect(make('').bytes.toString()).toBe(
      '{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"a_b","arguments":{}}}',
    );
  });

  it('keeps every byte of its arguments', () => {
    const args = '{ "n": 9007199254740993, "f": 1.0, "__proto__": {"a": 1e400}, "n": 2 }';
    expect(make(args).bytes.toString()).toContain(args);
  });

  it.each(['[]', '1', 'null', '"a"', 'true', ' [ 1 ] '])('refuses %s, because arguments are an object', (body) => {
    expect(() => make(body)).toThrow(expect.objectContaining({ code: 'arguments_invalid' }));
  });

  it.each(['{', '{}}', '{} {}', '{"a":}', "{'a':1}", '\ufeff{}', ' ', '{"a":NaN}', 'undefined', '{"a":1,}'])(
    'refuses %j, because it is not JSON',
    (body) => {
      expect(() => make(body)).toThrow(expect.objectContaining({ code: 'parse' }));
    },
  );

  it('refuses what is not UTF-8, and what is nested too deeply', () => {
    const broken = Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d]);
    expect(() => toolCallMessage('1', '"x"', broken, 64)).toThrow(/not UTF-8/);
    expect(() => make(`{"a":${'['.repeat(70)}${']'.repeat(70)}}`)).toThrow(/nested deeper than 62 levels/);
    expect(make(`{"a":${'['.repeat(61)}${']'.repeat(61)}}`).method).toBe('tools/call');
  });
});
