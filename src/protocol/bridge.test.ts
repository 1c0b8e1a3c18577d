import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { anyText } from '../../test/support/random.ts';
import { GatewayError } from '../base/errors.ts';
import { IDENTITY } from '../base/version.ts';
import { ASKS, legacyResult, modernError, modernErrorObject, modernReply } from './bridge.ts';
import { join, type Parts } from './parts.ts';

type Json = Record<string, unknown>;
const FIELDS = ['resultType', 'ttlMs', 'cacheScope'];

/** Any keys, and some that resemble the keys that are removed. */
const keys = fc.oneof(anyText(), fc.constantFrom('resulttype', 'ttlMs ', '_meta', 'content', 'isError'));
const deep = fc.jsonValue().map((value) => ({ resultType: value, a: [{ ttlMs: 1, '}': '{"\\' }] }));
const results = fc
  .record({
    members: fc.dictionary(keys, fc.oneof(fc.jsonValue(), deep), { maxKeys: 5 }),
    bulk: fc.constantFrom(0, 300, 20_000, 200_000),
    indent: fc.constantFrom(undefined, 1, '\t', '\n'),
    cuts: fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { maxLength: 3 }),
  })
  .map(({ members, bulk, ...rest }) => {
    const content = [{ type: 'text', text: '"größe\\ }'.repeat(bulk / 10) }, { 'a]': ']' }];
    return { object: bulk > 0 ? { ...members, content } : members, ...rest };
  });

/** The text cut at these fractions of its length; in one part if there are none. */
function cutAt(text: string, cuts: readonly number[]): Parts {
  const bytes = Buffer.from(text);
  if (cuts.length === 0) return bytes;
  const places = [0, ...cuts.map((cut) => Math.floor(cut * bytes.length)).sort((a, b) => a - b), bytes.length];
  return places
    .slice(1)
    .map((end, index) => bytes.subarray(places[index], end))
    .filter((part) => part.length > 0);
}

/** Compares the order of members, too. */
function expectSame(actual: unknown, expected: unknown): void {
  expect(JSON.stringify(actual)).toBe(JSON.stringify(expected));
}

function without(object: Json, names: readonly string[]): Json {
  return Object.fromEntries(Object.entries(object).filter(([key]) => !names.includes(key)));
}

describe('a result for a legacy client', () => {
  it('loses only the fields that the era does not know', () => {
    const modern = fc.record(
      {
        resultType: fc.constant('complete'),
        ttlMs: fc.nat(),
        cacheScope: fc.constantFrom('public', 'private'),
      },
      { requiredKeys: [] },
    );
    fc.assert(
      fc.property(results, modern, fc.boolean(), ({ object, indent, cuts }, fields, first) => {
        const result: Json = first ? { ...fields, ...object } : { ...object, ...fields };
        const answer = legacyResult(cutAt(JSON.stringify(result, null, indent), cuts), false);
        expectSame(JSON.parse(answer.toString()), without(result, FIELDS));
      }),
    );
  });

  it('is the same buffer if nothing is removed', () => {
    const bytes = Buffer.from('{ "content" : [ ], "n":9007199254740993, "structuredContent": {"a":1.0} }');
    expect(legacyResult(bytes, false)).toBe(bytes);
  });

  it('keeps the bytes of the members that stay', () => {
    const text = '{"resultType":"complete", "n" : 9007199254740993 ,"\\u0074tlMs":5,"s":"\\u00e9","x":1.0}';
    expect(legacyResult(Buffer.from(text), false).toString()).toBe('{"n" : 9007199254740993,"s":"\\u00e9","x":1.0}');
  });

  it.each([
    ['[1.0, 2]', false, '{"result":[1.0, 2]}'],
    ['"text"', false, '{"result":"text"}'],
    ['null', false, '{"result":null}'],
    ['{"a":1.0}', false, '{"a":1.0}'],
    ['{"a":1.0}', true, '{"result":{"a":1.0}}'],
  ])(
    'wraps the structured content %s if it is not an object, or if the schema was wrapped: %s',
    (value, wraps, expected) => {
      const text = `{"resultType":"complete","content":[],"structuredContent":${value}}`;
      expect(legacyResult(Buffer.from(text), wraps).toString()).toBe(`{"content":[],"structuredContent":${expected}}`);
    },
  );

  it.each(['input_required', 'input\\u005frequired'])('does not exist yet if the type is "%s"', (type) => {
    expect(legacyResult(Buffer.from(`{"inputRequests":{},"resultType":"${type}"}`), false)).toBe(ASKS);
  });

  it.each(['task', ''])('is an error for the unknown type %j', (type) => {
    const answer = legacyResult(Buffer.from(JSON.stringify({ inputRequests: {}, resultType: type })), false);
    expect(answer).toMatchObject({ code: 'source_broken' });
    expect(answer).toBeInstanceOf(GatewayError);
  });

  it('is an error if the server sent invalid JSON', () => {
    const long = `{"content":[${'1,'.repeat(20_000)}1],"x"}`;
    expect(legacyResult(cutAt(long, [0.5]), false)).toMatchObject({ code: 'source_broken' });
  });
});

describe('an answer for a modern client', () => {
  const parse = ({ head, body, tail }: ReturnType<typeof modernReply>) =>
    JSON.parse(Buffer.concat([Buffer.from(head, 'latin1'), join(body), Buffer.from(tail, 'latin1')]).toString()) as {
      jsonrpc: string;
      result: Json;
      id: unknown;
    };

  it('has the result of a legacy server, with a result type', () => {
    fc.assert(
      fc.property(results, ({ object, indent, cuts }) => {
        const { result, ...rest } = parse(
          modernReply('7', 'tools/call', cutAt(JSON.stringify(object, null, indent), cuts)),
        );
        expect(rest).toEqual({ jsonrpc: '2.0', id: 7 });
        expect(result.resultType).toBe('complete');
        expectSame(without(result, FIELDS), without(object, FIELDS));
      }),
    );
  });

  it.each([
    ...[
      'server/discover',
      'tools/list',
      'prompts/list',
      'resources/list',
      'resources/templates/list',
      'resources/read',
    ],
  ])('to %s says that it must not be cached', (method) => {
    expect(parse(modernReply('1', method, Buffer.from('{}'))).result).toEqual({
      resultType: 'complete',
      ttlMs: 0,
      cacheScope: 'private',
    });
  });

  it('has the id as the client wrote it', () => {
    const id = Buffer.from('"größe \\u0041"').toString('latin1');
    expect(parse(modernReply(id, 'prompts/get', Buffer.from('{"messages":[]}')))).toEqual({
      jsonrpc: '2.0',
      id: 'größe A',
      result: { resultType: 'complete', messages: [] },
    });
  });

  it('names the server if the result is our own', () => {
    const { result } = parse(modernReply('1', 'tools/call', Buffer.from('{"content":[]}'), IDENTITY));
    expect(result).toEqual({
      resultType: 'complete',
      content: [],
      _meta: { 'io.modelcontextprotocol/serverInfo': { name: 'toolgate', version: expect.any(String) as string } },
    });
  });
});

describe('an error for a modern client', () => {
  it.each([
    [-32002, -32602],
    [-32000, -32603],
    [-32001, -32603],
    [-32042, -32603],
    [-32020, -32603],
    [-32021, -32603],
    [-32099, -32603],
    [-32100, -32100],
    [-31999, -31999],
    [-32602, -32602],
    [-32700, -32700],
    [404, 404],
  ])('from a legacy server: code %i becomes %i', (code, expected) => {
    const rest = '"message":"größe","data":{"code":-32000,"n":1.0}';
    expect(modernError(Buffer.from(`{"code":${code},${rest}}`)).toString()).toBe(`{"code":${expected},${rest}}`);
    expect(modernError(Buffer.from(`{ ${rest}, "code" : ${code} }`)).toString()).toBe(
      `{ ${rest}, "code" : ${expected} }`,
    );
  });

  it.each([
    ['header_mismatch', -32020],
    ['capability_missing', -32021],
    ['revision_unsupported', -32022],
    ['envelope_invalid', -32602],
    ['resource_unknown', -32602],
    ['source_timeout', -32603],
    ['method_unknown', -32601],
  ] as const)('of our own: %s has the code %i', (code, expected) => {
    const error = new GatewayError(code, 'It failed.', { details: { uri: 'x://y' } });
    expect(JSON.parse(modernErrorObject(error).toString())).toMatchObject({
      code: expected,
      message: 'It failed.',
      data: { uri: 'x://y' },
    });
  });
});
