/**
 * Texts at the edges of JSON, by construction: numbers, strings, structures, white space, encodings and depth, well-formed
 * and not. They are the places where parsers are known to differ.
 */

/** About 340 texts as bytes, since some are not even text. */
export function jsonCorpus(): Buffer[] {
  const texts = [...numbers(), ...strings(), ...structures(), ...whitespace(), ...depths()];
  return [...texts.map((text) => Buffer.from(text)), ...encodings()];
}

/** As `JSON.parse` judges it, which takes text that is not Unicode for replaced characters. */
export function isJson(bytes: Buffer): boolean {
  try {
    const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

function numbers(): string[] {
  const good = [
    '0',
    '-0',
    '1',
    '-1',
    '123456789',
    '0.5',
    '-0.1',
    '1e5',
    '1E5',
    '1e+5',
    '1e-5',
    '1.5e10',
    '0e1',
    '0e+1',
  ];
  const large = [
    '1e400',
    '-1e400',
    '1e-400',
    '1'.repeat(500),
    `0.${'1'.repeat(500)}`,
    '9007199254740993',
    `1e${'9'.repeat(30)}`,
  ];
  const bad = [
    '01',
    '-01',
    '00',
    '1.',
    '.5',
    '-.5',
    '1.e5',
    '1e',
    '1e+',
    '1e-',
    '+1',
    '++1',
    '--1',
    '-',
    '-a',
    '1 000',
    '1_000',
  ];
  const odd = [
    '0x1',
    '0b1',
    '0o7',
    '1f',
    '1n',
    '1d',
    'NaN',
    '-NaN',
    'Infinity',
    '-Infinity',
    '∞',
    '１',
    '1e5.5',
    '1.2.3',
    '1-1',
    '0.1.2',
    '2.e3',
    '0e',
    '0E+',
    '-1x',
    '1,5',
    '1/2',
    "1'000",
  ];
  return [...good, ...large, ...bad, ...odd].map((number) => `[${number}]`);
}

function strings(): string[] {
  const escapes = [
    '\\"',
    '\\\\',
    '\\/',
    '\\b',
    '\\f',
    '\\n',
    '\\r',
    '\\t',
    '\\u0000',
    '\\u001f',
    '\\u0041',
    '\\uD834\\uDD1E',
  ];
  const alone = [
    '\\uD800',
    '\\uDC00',
    '\\uD800\\uD800',
    '\\uDC00\\uD800',
    '\\uD800x',
    '\\ud83d\\u0041',
    '\\uFFFE',
    '\\uFFFF',
  ];
  const bad = [
    '\\',
    '\\x41',
    '\\a',
    '\\e',
    '\\v',
    '\\0',
    '\\1',
    "\\'",
    '\\`',
    '\\ ',
    '\\\n',
    '\\u',
    '\\u1',
    '\\u12',
    '\\u123',
    '\\u123g',
    '\\U0041',
    '\\u{41}',
    '\\u 041',
    '\\u+041',
    '\\uD83D\\u',
    '\\uD83D\\uD',
    '\\ud83d\\',
    '\\🌀',
  ];
  const controls = Array.from({ length: 32 }, (_, code) => String.fromCharCode(code));
  const plain = [
    '',
    ' ',
    'a',
    'é',
    '€',
    '𝄞',
    '\u007f',
    '\u0080',
    '\u2028',
    '\u2029',
    '\u200b',
    '\u202e',
    '\ufeff',
    '\ufffd',
    '\u{10ffff}',
    '/',
    "'",
    '{',
    '[',
    ',',
    ':',
  ];
  const inside = [...escapes, ...alone, ...bad, ...controls, ...plain].map((text) => `["${text}"]`);
  const broken = [
    '["',
    '["a',
    '["\\',
    '["\\"',
    "['a']",
    '[`a`]',
    '["a" "b"]',
    '["a"b]',
    '[a]',
    '[“a”]',
    '["a]',
    '[a"]',
    '"',
    '"a',
    'a"',
    '["a",\n"b',
    '["\\u00A"]',
  ];
  const long = [
    `["${'x'.repeat(600)}\u0001"]`,
    `["${'x'.repeat(600)}\\q"]`,
    `["${'\\u0041'.repeat(200)}"]`,
    `["${'é'.repeat(600)}"]`,
  ];
  return [...inside, ...broken, ...long];
}

function structures(): string[] {
  const good = [
    '[]',
    '{}',
    '[[]]',
    '[{}]',
    '{"a":{}}',
    '{"":0}',
    '{"a":1,"b":2}',
    '[null,true,false]',
    '{"a":[]}',
    '"a"',
    '1',
    'null',
    'true',
  ];
  const twice = [
    '{"a":1,"a":2}',
    '{"a":1,"\\u0061":2}',
    '{"a":{},"a":[]}',
    '{"":1,"":2}',
    '{"__proto__":{"x":1}}',
    '{"constructor":{"prototype":{"x":1}}}',
    '{"toString":1}',
    '{"__proto__":1,"__proto__":2}',
  ];
  const arrays = [
    '[',
    ']',
    '[1',
    '1]',
    '[1,',
    '[1,]',
    '[,1]',
    '[,]',
    '[1,,2]',
    '[1 2]',
    '[1;2]',
    '[1:2]',
    '[1]]',
    '[[1]',
    '[}',
    '[1}',
    '[(1)]',
    '[<1>]',
    '[...]',
    '[*]',
    '[1]x',
    '[1],',
    '[1][2]',
    '[],[]',
    '[1]#',
    '[1]\u0000',
  ];
  const objects = [
    '{',
    '}',
    '{"a"',
    '{"a":',
    '{"a":1',
    '{"a":1,',
    '{"a":1,}',
    '{,}',
    '{,"a":1}',
    '{"a"}',
    '{"a",1}',
    '{"a"::1}',
    '{:1}',
    '{a:1}',
    "{'a':1}",
    '{1:1}',
    '{null:1}',
    '{"a":1 "b":2}',
    '{"a":1;"b":2}',
    '{"a" "b"}',
    '{"a":1,,"b":2}',
    '{"a":a}',
    '{"a":1}}',
    '{{"a":1}',
    '{"a":1]',
    '{[1]:1}',
    '{"a":1}x',
    '{"a":1}{"b":2}',
    '{"a":1,"b"}',
    '{"a"=1}',
    '{"a"=>1}',
    '{"a":"b}',
    '{"a:1}',
    '{“a”:1}',
  ];
  const words = [
    '',
    'nul',
    'nulll',
    'NULL',
    'Null',
    'tru',
    'truee',
    'True',
    'TRUE',
    'fals',
    'False',
    'undefined',
    'none',
    'None',
    'yes',
    'a',
    'null null',
    'truefalse',
    '[nul]',
    '[tru]',
    '[fals]',
    '[True]',
    '[undefined]',
    '[NULL]',
  ];
  const extras = [
    '/**/[]',
    '[]/**/',
    '[1/*x*/]',
    '//x\n[]',
    '[]//x',
    '#x\n[]',
    '[1,//x\n2]',
    '<null>',
    '<?xml?>',
    '---\na: 1',
    'a=1',
    '[1]\n[2]',
    '@',
    '$',
    '&',
    '*',
    '!',
    '%',
    '^',
    '|',
    '~',
    '\\',
    ';',
    ',',
    ':',
    '.',
    '?',
  ];
  return [...good, ...twice, ...arrays, ...objects, ...words, ...extras];
}

function whitespace(): string[] {
  const good = [' ', '\t', '\n', '\r', '\r\n', ' \t\r\n '].flatMap((space) => [`${space}[1]`, `[${space}1${space}]`]);
  const bad = [
    '\f',
    '\v',
    '\u0000',
    '\u0085',
    '\u00a0',
    '\u1680',
    '\u2000',
    '\u2028',
    '\u2060',
    '\u3000',
    '\ufeff',
  ].map((space) => `[1,${space}2]`);
  return [...good, ...bad, ' ', '\n'];
}

function depths(): string[] {
  const nested = (open: string, close: string, depth: number) => open.repeat(depth) + close.repeat(depth);
  return [
    ...[10, 100, 500, 10_000].flatMap((depth) => [
      nested('[', ']', depth),
      `${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}`,
    ]),
    '['.repeat(100_000),
    '{"a":'.repeat(20_000),
    '[{"":'.repeat(20_000),
    `${'['.repeat(500)}${']'.repeat(499)}`,
  ];
}

function encodings(): Buffer[] {
  const inString = (...bytes: number[]) => Buffer.concat([Buffer.from('["'), Buffer.from(bytes), Buffer.from('"]')]);
  return [
    inString(0x80),
    inString(0xff),
    inString(0xc0, 0xaf),
    inString(0xc3),
    inString(0xc3, 0x28),
    inString(0xe0, 0x80, 0x80),
    inString(0xed, 0xa0, 0x80),
    inString(0xf0, 0x82, 0x82, 0xac),
    inString(0xf4, 0x90, 0x80, 0x80),
    inString(0xf8, 0x88, 0x80, 0x80, 0x80),
    inString(0xfe),
    inString(0xe2, 0x82),
    Buffer.from([0x5b, 0xff, 0x5d]),
    Buffer.from([0xef, 0xbb, 0xbf]),
    Buffer.from([0xef, 0xbb, 0xbf, 0x7b, 0x7d]),
    Buffer.from([0xef, 0xbb, 0x7b, 0x7d]),
    Buffer.from([0xff, 0xfe, 0x5b, 0x00, 0x5d, 0x00]),
    Buffer.from([0xfe, 0xff, 0x00, 0x5b, 0x00, 0x5d]),
    Buffer.from('["é"]', 'utf16le'),
    Buffer.from('["é"]', 'latin1'),
    Buffer.from([0x5b, 0x22, 0x00, 0x22, 0x5d]),
    Buffer.from([0x00]),
  ];
}
