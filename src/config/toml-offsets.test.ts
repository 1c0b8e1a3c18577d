import fc from 'fast-check';
import { parse, stringify } from 'smol-toml';
import { expect, it } from 'vitest';
import { positionsIn } from './positions.ts';
import { tomlOffsets } from './toml-offsets.ts';

function linesOf(text: string): Record<string, number> {
  // Not every valid document is found in a file: this one must be, or the test means nothing.
  parse(text);
  const position = positionsIn(text);
  return Object.fromEntries([...tomlOffsets(text)].map(([path, offset]) => [path, position(offset).line]));
}

it('finds keys, tables and lists of tables', () => {
  expect(
    linesOf(`# a remark = 1
active = [ "a",
  "b" ]
http.port = 3
[[servers]]
command = """
[[servers]]
foo = 1 \\"""
"""
env = { A = "1", "B c" = 'x', D = { e = 1 } } # [x]
[[servers]]
  [servers.env]
  TOKEN = "\\"]"
  ['a b'."c"]
`),
  ).toEqual({
    '["active"]': 2,
    '["active",0]': 2,
    '["active",1]': 3,
    '["http"]': 4,
    '["http","port"]': 4,
    '["servers"]': 5,
    '["servers",0]': 5,
    '["servers",0,"command"]': 6,
    '["servers",0,"env"]': 10,
    '["servers",0,"env","A"]': 10,
    '["servers",0,"env","B c"]': 10,
    '["servers",0,"env","D"]': 10,
    '["servers",0,"env","D","e"]': 10,
    '["servers",1]': 11,
    '["servers",1,"env"]': 12,
    '["servers",1,"env","TOKEN"]': 13,
    '["a b"]': 14,
    '["a b","c"]': 14,
  });
});

it('reads the quotes that end a long string, dates with blanks and lists over many lines', () => {
  expect(
    linesOf(`a = """x"""""
b = '''y'''''
c = 1979-05-27 07:32:00
d = [ {x = 1}, # one ]
  {x = [1,
  2], y = ''},
]
e = true`),
  ).toMatchObject({ '["b"]': 2, '["c"]': 3, '["d",0,"x"]': 4, '["d",1,"x",1]': 6, '["d",1,"y"]': 6, '["e"]': 8 });
});

it('finds every key of every document', () => {
  const key = fc.string({ unit: fc.constantFrom('a', 'b', ' ', '.', '=', ']', '[', '#', "'", '{', ','), maxLength: 4 });
  const { value: document } = fc.letrec((again) => ({
    leaf: fc.oneof(
      fc.string(),
      fc.integer(),
      fc.boolean(),
      fc.string({ unit: fc.constantFrom('"', "'", '\n', '[', '=', '#') }),
    ),
    list: fc.array(again('any'), { maxLength: 3 }),
    map: fc.dictionary(key, again('any'), { maxKeys: 4, noNullPrototype: true }),
    any: fc.oneof({ maxDepth: 3 }, again('leaf'), again('list'), again('map')),
    value: fc.dictionary(key, again('any'), { maxKeys: 4, noNullPrototype: true }),
  }));
  fc.assert(
    fc.property(document, (value) => {
      const text = stringify(value);
      const offsets = tomlOffsets(text);
      for (const path of pathsOf(parse(text))) {
        const offset = offsets.get(JSON.stringify(path));
        expect(offset, `${JSON.stringify(path)} in\n${text}`).toBeTypeOf('number');
        const [name] = path.slice(-1);
        if (typeof name === 'string') expect(text.slice(offset)).toContain(name);
      }
    }),
    { numRuns: 300 },
  );
});

function pathsOf(value: unknown, path: (string | number)[] = []): (string | number)[][] {
  if (typeof value !== 'object' || value === null || value instanceof Date)
    return [path].filter((one) => one.length > 0);
  const inner = Object.entries(value).flatMap(([key, one]) =>
    pathsOf(one, [...path, Array.isArray(value) ? Number(key) : key]),
  );
  return path.length > 0 ? [path, ...inner] : inner;
}
