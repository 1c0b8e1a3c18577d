import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { anyText } from '../../test/support/random.ts';
import {
  checkMethodHeader,
  checkNameHeader,
  checkParamHeaders,
  decodeHeader,
  encodeHeader,
  findMirrored,
  isParamHeader,
  type MirroredArgument,
  mirrorHeaders,
} from './param-headers.ts';
import { readMessage } from './read.ts';

const call = (params: string, method = 'tools/call') =>
  readMessage(Buffer.from(`{"jsonrpc":"2.0","id":1,"method":"${method}","params":${params}}`));
const marked = (type: unknown, mark: unknown = 'A') => ({ type, 'x-mcp-header': mark });
const object = (properties: object, more: object = {}) => ({ type: 'object', properties, ...more });

describe('findMirrored', () => {
  it('finds marks at any depth of properties, and nowhere else', () => {
    const schema = object({
      region: marked('string', 'Region'),
      place: object({ deeper: object({ 'x-mcp-header': marked('integer', 'X.y') }) }, marked('boolean', 'Both')),
      // Values and names, not marks.
      plain: { type: 'string', default: { 'x-mcp-header': 'no' }, examples: [{ 'x-mcp-header': 1 }] },
    });
    expect(findMirrored(schema)).toEqual([
      { header: 'mcp-param-region', path: ['region'], integer: false },
      { header: 'mcp-param-both', path: ['place'], integer: false },
      { header: 'mcp-param-x.y', path: ['place', 'deeper', 'x-mcp-header'], integer: true },
    ]);
  });

  it('does not take a dependency with the name of the mark for a mark', () => {
    const schema = object({ a: marked('string', 'A') }, { dependencies: { 'x-mcp-header': ['a'] } });
    expect(findMirrored(schema)).toEqual([{ header: 'mcp-param-a', path: ['a'], integer: false }]);
  });

  it.each([[true], [{}], [{ type: 'object' }], [object({ a: { type: 'string' } })], [object({ a: true })]])(
    'finds none in %j',
    (schema) => {
      expect(findMirrored(schema)).toEqual([]);
    },
  );

  it.each([
    ['that is empty', object({ a: marked('string', '') })],
    ['that is not a string', object({ a: marked('string', 1) })],
    ['with a space', object({ a: marked('string', 'a b') })],
    ['with a line break', object({ a: marked('string', 'a\r\nb') })],
    ['that is not ASCII', object({ a: marked('string', 'größe') })],
    ['that is used twice', object({ a: marked('string', 'A'), b: object({ c: marked('string', 'a') }) })],
    ['on a number', object({ a: marked('number') })],
    ['on an object', object({ a: marked('object') })],
    ['on null', object({ a: marked('null') })],
    ['on several types', object({ a: marked(['string', 'null']) })],
    ['on a list of one type', object({ a: marked(['string']) })],
    ['without a type', object({ a: marked(undefined) })],
    ['at the root', { ...object({}), 'x-mcp-header': 'A' }],
    ['in items', object({ a: { type: 'array', items: marked('string') } })],
    ['in prefixItems', object({ a: { type: 'array', prefixItems: [marked('string')] } })],
    ['in additionalProperties', object({}, { additionalProperties: marked('string') })],
    ['in patternProperties', object({}, { patternProperties: { '^a': marked('string') } })],
    ['in dependencies', object({}, { dependencies: { default: object({ a: marked('string') }) } })],
    ['in oneOf', object({ a: { oneOf: [marked('string')] } })],
    ['in anyOf', object({}, { anyOf: [object({ a: marked('string') })] })],
    ['in allOf', object({}, { allOf: [object({ a: marked('string') })] })],
    ['in not', object({ a: { not: marked('string') } })],
    ['in if', object({}, { if: object({ a: marked('string') }) })],
    ['in else', object({}, { else: object({ a: marked('string') }) })],
    ['in a definition', object({ a: { $ref: '#/$defs/a' } }, { $defs: { a: marked('string') } })],
  ])('refuses a mark %s', (_, schema) => {
    expect(findMirrored(schema)).toEqual(expect.any(String));
  });
});

describe('a value in a header', () => {
  it.each([
    ['us-west1', 'us-west1'],
    ['a b\tc', 'a b\tc'],
    ['Hello, 世界', '=?base64?SGVsbG8sIOS4lueVjA==?='],
    [' padded ', '=?base64?IHBhZGRlZCA=?='],
    ['line1\nline2', '=?base64?bGluZTEKbGluZTI=?='],
    ['=?base64?literal?=', '=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?='],
    ['', '=?base64??='],
    ['=?base64?=', '=?base64?='],
    ['SGVsbG8=', 'SGVsbG8='],
  ])('%j is written as %j', (text, header) => {
    expect(encodeHeader(text)).toBe(header);
    expect(decodeHeader(header)).toBe(text);
  });

  it('is decoded to the same text, and never contains a line break', () => {
    const texts = fc.oneof(
      anyText(),
      fc.string().map((text) => `=?base64?${text}?=`),
    );
    fc.assert(
      fc.property(texts, (text) => {
        const header = encodeHeader(text);
        expect(header).toMatch(/^[\x21-\x7e]([\x20-\x7e\t]*[\x21-\x7e])?$/);
        expect(decodeHeader(header)).toBe(text);
      }),
    );
  });

  it.each([
    '=?base64?SGVsbG8?=',
    '=?base64?SGVs!!!bG8=?=',
    '=?base64?/w==?=',
    '=?base64?_-8=?=',
    'gr\xf6\xdfe',
    'a\x7f',
  ])('%j is refused', (header) => {
    expect(decodeHeader(header)).toBeNull();
  });

  it.each(['', '=?BASE64?SGVsbG8=?=', '=?base64?SGVsbG8=', 'SGVsbG8=?='])('%j stands for itself', (header) => {
    expect(decodeHeader(header)).toBe(header);
  });
});

const mirrored: readonly MirroredArgument[] = [
  { header: 'mcp-param-text', path: ['text'], integer: false },
  { header: 'mcp-param-count', path: ['in', 'count'], integer: true },
];
const toRecord = (flat: readonly string[]) =>
  Object.fromEntries(flat.flatMap((name, index) => (index % 2 === 0 ? [[name, flat[index + 1]!]] : [])));

describe('the headers of a request', () => {
  it('have the method, and the name that the server uses', () => {
    const name = Buffer.from('"größe"').toString('latin1');
    expect(mirrorHeaders(call('{"name":"up_größe"}'), name, null)).toEqual([
      ...['mcp-method', 'tools/call', 'mcp-name', '=?base64?Z3LDtsOfZQ==?='],
    ]);
    expect(mirrorHeaders(call('{"ref":{}}', 'completion/complete'), '"x"', null)).toEqual([
      'mcp-method',
      'completion/complete',
    ]);
  });

  it.each([
    ['{"text":"a","in":{"count":42.0}}', { 'mcp-param-text': 'a', 'mcp-param-count': '42' }],
    ['{"text":false,"in":{"count":-7}}', { 'mcp-param-text': 'false', 'mcp-param-count': '-7' }],
    ['{"text":null,"in":null}', {}],
    ['{"text":["a"],"in":{"count":9007199254740993}}', {}],
    ['{"text":{},"in":[{"count":1}]}', {}],
    ['"text"', {}],
    ['null', {}],
  ])('repeat the marked arguments of %s', (args, expected) => {
    const headers = mirrorHeaders(call(`{"name":"x","arguments":${args}}`), '"x"', mirrored);
    expect(toRecord(headers)).toEqual({ 'mcp-method': 'tools/call', 'mcp-name': 'x', ...expected });
  });

  it('pass the check, and fail it if one of them is missing, changed or added', () => {
    const value = fc.oneof(anyText(), fc.integer(), fc.boolean(), fc.constant(null));
    const args = fc.record(
      { text: value, in: fc.oneof(value, fc.record({ count: value }, { requiredKeys: [] })) },
      { requiredKeys: [] },
    );
    fc.assert(
      fc.property(args, fc.constantFrom(...mirrored), (object, { header }) => {
        const message = call(`{"name":"x","arguments":${JSON.stringify(object)}}`);
        const headers = toRecord(mirrorHeaders(message, '"x"', mirrored));
        expect(() => checkParamHeaders(headers, message, mirrored)).not.toThrow();
        expect(() =>
          checkParamHeaders({ ...headers, [header]: `${headers[header] ?? ''}~` }, message, mirrored),
        ).toThrow(header);
        if (!(header in headers)) return;
        expect(() => checkParamHeaders({ ...headers, [header]: undefined }, message, mirrored)).toThrow(header);
      }),
    );
  });
});

describe('a header that repeats part of the body', () => {
  it.each([[undefined], ['TOOLS/CALL'], ['tools/list'], ['=?base64?dG9vbHMvY2FsbA==?=']])(
    'is refused for the method: %s',
    (header) => {
      expect(() => checkMethodHeader({ 'mcp-method': header }, 'tools/call')).toThrow('Mcp-Method');
    },
  );

  const checkName = (params: string, header: string | undefined) => {
    const message = call(params);
    checkNameHeader({ 'mcp-name': header }, message, message.nameStart, message.nameEnd);
  };

  it.each([
    ['{"name":"a"}', undefined],
    ['{"name":"a"}', 'A'],
    ['{"name":"a"}', 'a, a'],
    ['{"name":"a"}', '=?base64?YQ=?='],
    ['{"name":"=?base64?YQ==?="}', '=?base64?YQ==?='],
    ['{"name":"\u00e9"}', '\xe9'],
    ['{"name":1}', '1'],
    ['{}', 'undefined'],
    ['{}', undefined],
  ])('is refused for the name in %s: %s', (params, header) => {
    expect(() => checkName(params, header)).toThrow('Mcp-Name');
  });

  it.each([
    ['{"name":"a"}', 'a'],
    ['{"name":"\\u0061"}', 'a'],
    ['{"name":"a"}', '=?base64?YQ==?='],
    ['{"name":"\u00e9"}', '=?base64?w6k=?='],
    ['{"name":""}', ''],
  ])('is accepted for the name in %s: %s', (params, header) => {
    expect(() => checkName(params, header)).not.toThrow();
  });

  const checkParams = (args: string, headers: Record<string, string>) =>
    checkParamHeaders(headers, call(`{"name":"x","arguments":${args}}`), mirrored);

  it.each([
    ['{"in":{"count":42}}', '42.0'],
    ['{"in":{"count":42.0}}', '42'],
    ['{"in":{"count":4.2e1}}', '=?base64?NDI=?='],
    ['{"in":{"count":"42"}}', '42'],
  ])('is accepted for a number in another notation: %s, %s', (args, header) => {
    expect(() => checkParams(args, { 'mcp-param-count': header })).not.toThrow();
  });

  it.each([
    ['a number with a space', '{"in":{"count":42}}', { 'mcp-param-count': '42 ' }],
    ['a string that is written as another number', '{"in":{"count":"42"}}', { 'mcp-param-count': '42.0' }],
    ['a number that is not declared as an integer', '{"text":42}', { 'mcp-param-text': '42.0' }],
    ['a boolean in capitals', '{"text":true}', { 'mcp-param-text': 'TRUE' }],
    ['an argument that is null', '{"text":null}', { 'mcp-param-text': 'null' }],
    ['an argument that is missing', '{}', { 'mcp-param-text': '' }],
    ['an argument of another name', '{"Text":"a"}', { 'mcp-param-text': 'a' }],
    ['an argument that no header can hold', '{"text":["a"]}', { 'mcp-param-text': 'a' }],
    ['an argument that is given twice', '{"text":"a","text":"b"}', { 'mcp-param-text': 'b' }],
    ['an object that is given twice', '{"in":{"count":1},"in":{"count":2}}', { 'mcp-param-count': '2' }],
    ['arguments that are not an object', '"text"', { 'mcp-param-text': 'text' }],
  ])('is refused for %s', (_, args, headers) => {
    expect(() => checkParams(args, headers)).toThrow('do not agree');
  });
});

it.each([
  ['mcp-param-a', true],
  ['mcp-param-x.y~1', true],
  ['mcp-param-', false],
  ['mcp-param-a b', false],
  ['mcp-name', false],
])('%s repeats an argument: %s', (name, expected) => {
  expect(isParamHeader(name)).toBe(expected);
});
