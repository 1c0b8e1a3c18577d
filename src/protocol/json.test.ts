import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { patient } from '../../test/support/patience.ts';
import { anyText } from '../../test/support/random.ts';
import { runs } from '../../test/support/wide.ts';
import { decodeString, JsonError, oneLine, readElements, readMembers, skipValue } from './json.ts';

function accepts(bytes: Buffer): boolean {
  try {
    return skipValue(bytes, 0, bytes.length) === bytes.length;
  } catch (error) {
    if (error instanceof JsonError) return false;
    throw error;
  }
}

function parses(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

describe('skipValue', () => {
  it('accepts every document that JSON.stringify prints', () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 8, stringUnit: 'binary' }), fc.constantFrom(0, 1, 2), (value, indent) => {
        expect(accepts(Buffer.from(JSON.stringify(value, null, indent)))).toBe(true);
      }),
      { numRuns: runs(500) },
    );
  });

  it('agrees with JSON.parse about every damaged document', () => {
    const damage = fc.record({
      value: fc.jsonValue({ maxDepth: 4 }),
      at: fc.nat(),
      put: fc.constantFrom(
        '',
        '"',
        '\\',
        '{',
        '}',
        '[',
        ']',
        ',',
        ':',
        '0',
        '-',
        '.',
        'e',
        'x',
        '\\u12',
        '\n',
        '\u0001',
        ' ',
      ),
      cut: fc.nat(3),
    });
    fc.assert(
      fc.property(damage, ({ value, at, put, cut }) => {
        const json = JSON.stringify(value);
        const place = at % (json.length + 1);
        const text = (json.slice(0, place) + put + json.slice(place + cut)).trim();
        expect([text, accepts(Buffer.from(text))]).toEqual([text, parses(text)]);
      }),
      { numRuns: runs(3000) },
    );
  });

  it.each([
    '01',
    '1.',
    '.5',
    '+1',
    '1e',
    '-',
    'tru',
    'nul',
    '"\\x"',
    '[1,]',
    '{"a"}',
    '{"a":}',
    '{,}',
    '[',
    '"',
    '',
    '{"a":1,}',
  ])('refuses %j', (text) => {
    expect(accepts(Buffer.from(text))).toBe(false);
  });

  it('follows escapes and quotes in long strings', () => {
    fc.assert(
      fc.property(
        fc.array(fc.constantFrom('a'.repeat(600), '\\', '"', '\n', 'é', '\\"', 'x'), { maxLength: 40 }),
        (parts) => {
          const bytes = Buffer.from(JSON.stringify(['y'.repeat(600), parts.join(''), 1]));
          expect(accepts(bytes)).toBe(true);
          expect(readElements(bytes, 0, bytes.length)).toHaveLength(3);
        },
      ),
    );
  });

  it('refuses a raw line break in a long string, because it would break the framing', () => {
    expect(accepts(Buffer.from(`"${'a'.repeat(2000)}\n${'b'.repeat(10)}"`))).toBe(false);
    expect(accepts(Buffer.from(`"${'a'.repeat(2000)}\r${'b'.repeat(10)}"`))).toBe(false);
  });

  it('walks 9,000 levels without recursion and stops at the limit it is given', () => {
    const deep = Buffer.from('['.repeat(9000) + ']'.repeat(9000));
    expect(skipValue(deep, 0, deep.length)).toBe(deep.length);
    expect(() => skipValue(deep, 0, deep.length, 64)).toThrow('nested deeper than 64 levels');
    const exact = Buffer.from('['.repeat(64) + ']'.repeat(64));
    expect(skipValue(exact, 0, exact.length, 64)).toBe(exact.length);
  });

  it('takes time in proportion to the bytes for many long strings', () => {
    const one = JSON.stringify(`${'z'.repeat(700)}\\`);
    const bytes = Buffer.from(`[${Array(4000).fill(one).join(',')}]`);
    const before = performance.now();
    skipValue(bytes, 0, bytes.length);
    // If each string were searched to the end of the text, it would take more than a minute.
    expect(performance.now() - before).toBeLessThan(patient(10_000));
  });
});

describe('readMembers', () => {
  it('returns decoded keys and the positions of values', () => {
    const bytes = Buffer.from('{ "n\\u0061me" : 1.0 , "b":[1, {"c":2}] }');
    const members = readMembers(bytes)!;
    expect(members.map((m) => [m.key, bytes.toString('utf8', m.start, m.end)])).toEqual([
      ['name', '1.0'],
      ['b', '[1, {"c":2}]'],
    ]);
  });

  it('returns null if it is not an object', () => {
    expect(readMembers(Buffer.from('[1]'))).toBeNull();
  });
});

describe('decodeString', () => {
  it('reads back what JSON.stringify wrote', () => {
    fc.assert(
      fc.property(anyText(), (text) => {
        const bytes = Buffer.from(JSON.stringify(text));
        expect(decodeString(bytes, 0, bytes.length)).toBe(JSON.parse(bytes.toString()));
      }),
    );
  });
});

describe('a control character in a string', () => {
  it.each([0, 10, 511, 512, 600, 5_000, 70_000, 200_000])('is refused after %d other characters', (length) => {
    for (const control of ['\u0000', '\u0001', '\t', '\n', '\u001f'])
      for (const rest of ['', 'x'.repeat(300)]) {
        const bytes = Buffer.from(`"${'ü'.repeat(length / 2)}${control}${rest}"`);
        expect(() => skipValue(bytes, 0, bytes.length)).toThrow('control character');
      }
    const good = Buffer.from(`"${'x'.repeat(length)} \u007f\u0080\u2028"`);
    expect(skipValue(good, 0, good.length)).toBe(good.length);
  });

  it('does not keep the text from being decoded', () => {
    const bytes = Buffer.from(`"\\n${'x'.repeat(600)}\u0001"`);
    expect(decodeString(bytes, 0, bytes.length)).toBe(`\\n${'x'.repeat(600)}\u0001`);
  });
});

describe('oneLine', () => {
  it('turns line breaks between tokens into spaces and leaves a single line alone', () => {
    const single = Buffer.from('{"a":"\\n"}');
    expect(oneLine(single)).toBe(single);
    expect(oneLine(Buffer.from('{\r\n"a":\n1}')).toString()).toBe('{  "a": 1}');
  });
});
