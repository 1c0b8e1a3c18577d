import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Message } from './message.ts';
import { readMessage } from './read.ts';
import { readTrace, stampTrace, toTrace, withHeaderTrace, withTrace } from './trace.ts';

const ONE = `00-${'ab'.repeat(16)}-${'12'.repeat(8)}-01`;
const OTHER = `00-${'cd'.repeat(16)}-${'34'.repeat(8)}-00`;
const trace = { traceparent: ONE, tracestate: null };
const stated = { traceparent: ONE, tracestate: 'a=1,b="2"' };

const call = (params: string, tail = '') =>
  readMessage(Buffer.from(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":${params}${tail}}`));

const envelope =
  '"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}';

describe('a trace', () => {
  it.each([
    ['no value', undefined],
    ['a version that is too short', ONE.slice(1)],
    ['upper case', ONE.toUpperCase()],
    ['a trace id of zeros', `00-${'0'.repeat(32)}-${'12'.repeat(8)}-01`],
    ['a span id of zeros', `00-${'ab'.repeat(16)}-${'0'.repeat(16)}-01`],
    ['another version', `01${ONE.slice(2)}`],
    ['two of them', `${ONE}, ${ONE}`],
    ['a line break', `${ONE}\n`],
  ])('with %s counts as absent', (_, text) => {
    expect(toTrace(text, null)).toBeNull();
  });

  it('has no state if that is no valid header or too long', () => {
    expect(toTrace(ONE, 'a=1')).toEqual({ traceparent: ONE, tracestate: 'a=1' });
    for (const state of ['', 'a=\n', 'ä=1', 'x'.repeat(513), 7]) expect(toTrace(ONE, state)).toEqual(trace);
  });
});

/** Without what the reader remembers of equal messages. */
const placed = (message: Message) => ({ ...message, isPlain: false });

describe('withTrace', () => {
  const cases = [
    '{"name":"x"}',
    '{"name":"x","_meta":{}}',
    '{"_meta": { } ,"name":"x","arguments":{"_meta":1}}',
    '{"_meta":{"progressToken":7},"name":"x"}',
    `{"_meta":{${envelope},"progressToken":"t"},"name":"größe","arguments":{"a":[1.0]}}`,
    `{"name":"x","_meta":{"baggage":"k=v",${envelope}}}`,
    `{"name":"x","_meta":{"traceparent":"${OTHER}","tracestate":"z=9","baggage":"k=v"}}`,
    '{"name":"x","_meta":{"traceparent":7}}',
  ];

  it.each(cases)('moves the positions of all parts of %s', (params) => {
    for (const wanted of [trace, stated]) {
      const made = withTrace(call(params, ',"extra":[1]'), wanted);
      expect(placed(made)).toEqual(placed(readMessage(made.bytes)));
      expect(readTrace(made)).toEqual(wanted);
      const { _meta, ...others } = JSON.parse(params) as { _meta?: Record<string, unknown> };
      const { traceparent: _, tracestate: __, ...rest } = _meta ?? {};
      const after = JSON.parse(made.bytes.toString()) as { params: object };
      expect(after.params).toEqual({
        ...others,
        _meta: { ...rest, traceparent: ONE, ...(wanted.tracestate !== null && { tracestate: wanted.tracestate }) },
      });
    }
  });

  it('returns the same message if the trace has no place in it', () => {
    for (const params of ['{"name":"x","_meta":null}', '[]']) {
      const message = call(params);
      expect(withTrace(message, trace)).toBe(message);
    }
  });

  it('moves the positions of all parts of any request', () => {
    const key = fc.constantFrom('name', 'uri', 'arguments', '_meta', 'task', 'taskId', 'requestState', 'other');
    const params = fc.uniqueArray(fc.tuple(key, fc.jsonValue({ maxDepth: 2 })), { selector: ([name]) => name });
    fc.assert(
      fc.property(params, (members) => {
        const message = call(JSON.stringify(Object.fromEntries(members)));
        const made = withTrace(message, stated);
        if (made !== message) expect(placed(made)).toEqual(placed(readMessage(made.bytes)));
      }),
    );
  });
});

describe('stampTrace', () => {
  it('replaces the parent in place', () => {
    const made = withTrace(call('{"_meta":{"a":1},"name":"x"}'), trace);
    stampTrace(made, OTHER);
    expect(readTrace(made)).toEqual({ traceparent: OTHER, tracestate: null });
    expect(placed(made)).toEqual(placed(readMessage(made.bytes)));
  });
});

describe('withHeaderTrace', () => {
  it('adds the trace of the headers if the request has none', () => {
    const headers = { traceparent: ONE, tracestate: 'a=1' };
    const made = withHeaderTrace(call('{"name":"x","_meta":{"baggage":"k=v"}}'), headers);
    expect(readTrace(made)).toEqual({ traceparent: ONE, tracestate: 'a=1' });
    const own = call(`{"name":"x","_meta":{"traceparent":"${OTHER}"}}`);
    expect(withHeaderTrace(own, headers)).toBe(own);
  });

  it('ignores invalid traces, and requests that are not calls', () => {
    const plain = call('{"name":"x"}');
    expect(withHeaderTrace(plain, { traceparent: 'x"y' })).toBe(plain);
    const list = readMessage(Buffer.from('{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}'));
    expect(withHeaderTrace(list, { traceparent: ONE })).toBe(list);
  });
});
