/** Generated JSON text with everything that parsing and printing would change. */
import fc from 'fast-check';
import { anyText } from '../support/random.ts';
import { repeatsKey } from './members.ts';

/** Values that a JavaScript number cannot hold or would print differently. */
const numbers = [
  '9007199254740993',
  '-9007199254740993',
  '123456789012345678901234567890',
  '1.0',
  '1.10',
  '-0',
  '-0.0',
  '0e0',
  '1e400',
  '-1e400',
  '1E+2',
  '1e-400',
  '0.30000000000000004441',
];

export const number = fc.oneof(
  fc.constantFrom(...numbers),
  fc.double({ noNaN: true, noDefaultInfinity: true }).map((value) => JSON.stringify(value)),
  fc.bigInt().map(String),
);

/** Parts of strings, verbatim between the quotes. */
const fragment = fc.oneof(
  fc.constantFrom(
    '\\u0041',
    '\\u00E9',
    '\\u00e9',
    '\\ud83d\\ude00',
    '\\ud800',
    '\\udfff x',
    '\\u0000',
    '\\/',
    '/',
    '\\b\\f\\n\\r\\t',
    '\\"',
    '\\\\',
    '\\\\n',
    'é',
    '日本語',
    '😀',
    'e\u0301',
    '\u2028\u2029',
    '\u007f\u0085\u009b',
    '\ufeff',
    '{"not":"an object"}'.replaceAll('"', '\\"'),
    '__proto__',
    '</script>',
  ),
  anyText({ maxLength: 12 }).map((text) => JSON.stringify(text).slice(1, -1)),
);

export const string = fc.array(fragment, { maxLength: 5 }).map((parts) => `"${parts.join('')}"`);

/** Whitespace between two tokens of a line. */
export const space = fc.constantFrom('', '', '', ' ', '  ', '\t');

/** Keys of MCP, unknown keys, and keys that are special in JavaScript. A key may occur twice. */
export const key = fc.oneof(
  fc.constantFrom(
    '"_meta"',
    '"icons"',
    '"annotations"',
    '"structuredContent"',
    '"content"',
    '"type"',
    '"name"',
    '"Name"',
    '"uri"',
    '"progressToken"',
    '"id"',
    '"result"',
    '"__proto__"',
    '"constructor"',
    '"\\u006eame"',
    '""',
    '"io.example/unknown"',
  ),
  string,
);

const { value, object } = fc.letrec<{ value: string; object: string; array: string }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 5, depthSize: 'small' },
    fc.oneof(number, string, fc.constantFrom('true', 'false', 'null', '{}', '[]', '[ ]', '{\t}')),
    tie('object'),
    tie('array'),
  ),
  object: fc
    .array(
      fc
        .tuple(space, key, space, space, tie('value'), space)
        .map(([a, name, b, c, inner, d]) => `${a}${name}${b}:${c}${inner}${d}`),
      { maxLength: 5 },
    )
    .map((members) => `{${members.join(',')}}`),
  array: fc
    .array(
      fc.tuple(space, tie('value'), space).map((parts) => parts.join('')),
      { maxLength: 5 },
    )
    .map((elements) => `[${elements.join(',')}]`),
}));

/** An array in an array, `levels` deep. */
export function nested(levels: number): string {
  return '['.repeat(levels) + ']'.repeat(levels);
}

/** About a megabyte, of one string or of many small things. */
export const megabyte = fc.oneof(
  fragment.map((part) => `"${(part || 'x').repeat(Math.ceil(1_000_000 / Math.max(1, part.length)))}"`),
  number.map((one) => `[${Array.from({ length: Math.ceil(1_000_000 / (one.length + 1)) }, () => one).join(',')}]`),
  value.map((one) => `[${Array.from({ length: Math.ceil(1_000_000 / (one.length + 1)) }, () => one).join(',')}]`),
);

/** Any JSON value on one line. */
export const json = value;

/** Any JSON object on one line. */
export const jsonObject = object;

/** Any JSON value without a key twice in one object. Only `arguments` may have that. */
export const distinctJson = value.filter((text) => !repeatsKey(text));

/** Any JSON object without a key twice in one object. */
export const distinctObject = object.filter((text) => !repeatsKey(text));

/** The same value with line breaks between its tokens. */
export function spread(text: string, newline: string): string {
  let out = '';
  let inString = false;
  for (let i = 0; i < text.length; i++) {
    const c = text[i]!;
    out += c;
    if (inString && c === '\\') out += text[++i];
    else if (c === '"') inString = !inString;
    else if (!inString && '{}[],:'.includes(c)) out += `${newline}  `;
  }
  return out;
}

/** Objects shaped like the answers of MCP methods, with unknown members everywhere. */
export const outcome = fc.oneof(
  { weight: 3, arbitrary: object.map((body) => `"result":${body}`) },
  {
    weight: 3,
    arbitrary: fc
      .tuple(fc.array(fc.tuple(string, object), { maxLength: 3 }), value, object, value)
      .map(([blocks, structured, meta, unknown]) => {
        const content = blocks.map(([type, extra]) => `{"type":${type},"extra":${extra},"annotations":${extra}}`);
        return `"result":{"content":[${content.join(', ')}],"structuredContent":${structured},"_meta":${meta},"future":${unknown}}`;
      }),
  },
  {
    weight: 2,
    arbitrary: fc
      .tuple(number, string, value, value)
      .map(([code, message, data, more]) => `"error":{"code":${code},"message":${message},"data":${data},"x":${more}}`),
  },
);
