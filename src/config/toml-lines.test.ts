import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import fc from 'fast-check';
import { parse, stringify } from 'smol-toml';
import { describe, expect, it } from 'vitest';
import { runs } from '../../test/support/wide.ts';
import { parseConfig } from './parse.ts';
import { tomlLines } from './toml-lines.ts';

function linesOf(text: string): Record<string, number> {
  // Lines of a document that smol-toml refuses would prove nothing.
  parse(text);
  return Object.fromEntries(tomlLines(text));
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

describe('reads what smol-toml reads', () => {
  it.each([
    ['a mark of the byte order', '\uFEFFa = 1\nb = 2'],
    ['line ends of Windows', 'a = 1\r\n\r\n[b]\r\nc = """\r\nx"""\r\nd = 1'],
    ['inline tables over many lines', 'a = {\n  b = 1, # one\n  c = { d = 2 },\n}\ne = 1'],
    ['dates and times', 'a = 1979-05-27T07:32:00.5-07:00\nb = 1979-05-27\nc = 07:32\nd = 1979-05-27 07:32Z'],
    ['numbers', 'a = [0xDEAD, 0o7, 0b1, 1_000, -0, +inf, nan, 1e5, 9007199254740991]\nb = 1'],
    ['escapes', 'a = "\\e\\x41\\u00e9\\U0001F600"\nb = """\\\n   c"""'],
    ['other alphabets', '"é" = "😀"\n["日本"]\n"語" = [ "ü",\n"ñ" ]'],
    ['dotted keys', 'a.b.c = 1\na.b."d.e" = 2\n[f]\ng.h = 3\n[f.i]\nj = 4'],
    ['lists of tables in lists of tables', '[[a]]\n[[a.b]]\nc = 1\n[[a.b]]\nc = 2\n[a.b.d]\ne = 1\n[[a]]\n[[a.b]]'],
    ['keys of prototypes', '__proto__.a = 1\n[constructor]\ntoString = 1'],
    ['empty keys', '"" = 1\n[a."".b]\n\'\' = 2'],
    ['deep lists', `a = ${'['.repeat(900)}${']'.repeat(900)}\nb = 1`],
  ])('%s', (_, text) => {
    expectEveryLine(text);
  });

  it('the documents of docs/ and rules/', () => {
    const root = fileURLToPath(new URL('../../', import.meta.url));
    const read = (path: string) => readFileSync(root + path, 'utf8');
    const pages = readdirSync(`${root}docs`)
      .filter((name) => name.endsWith('.md'))
      .map((name) => `docs/${name}`);
    const blocks = pages.flatMap((page) =>
      [...read(page).matchAll(/^```toml[^\n]*\n(.*?)^```/gms)].map((match) => match[1]!),
    );
    expect(blocks.length).toBeGreaterThan(20);
    for (const text of [read('rules/tasks.toml'), ...blocks]) expectEveryLine(text);
  });

  it('documents of any shape', () => {
    const key = fc.string({
      unit: fc.constantFrom('a', 'b', ' ', '.', '=', ']', '[', '#', "'", '{', ','),
      maxLength: 4,
    });
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
      fc.property(document, (value) => expectEveryLine(stringify(value))),
      { numRuns: runs(300) },
    );
  });
});

it('has no lines for a document that only smol-toml accepts', async () => {
  const text = 'date = 2024-02-30\nb = 1';
  expect(linesOf(text)).toEqual({});
  const { lines } = await parseConfig(text, 'tools.toml');
  expect((await lines())(['b'])).toBeUndefined();
});

/** Checks that every key and every item has a line, and that keys are on theirs. */
function expectEveryLine(text: string): void {
  const lines = tomlLines(text);
  const written = text.split('\n');
  for (const path of pathsOf(parse(text))) {
    const line = lines.get(JSON.stringify(path));
    expect(line, `${JSON.stringify(path)} in\n${text}`).toBeTypeOf('number');
    const name = path.at(-1);
    if (typeof name === 'string') expect(written[line! - 1]).toContain(name);
  }
}

function pathsOf(value: unknown, path: (string | number)[] = []): (string | number)[][] {
  if (typeof value !== 'object' || value === null || value instanceof Date)
    return [path].filter((one) => one.length > 0);
  const inner = Object.entries(value).flatMap(([key, one]) =>
    pathsOf(one, [...path, Array.isArray(value) ? Number(key) : key]),
  );
  return path.length > 0 ? [path, ...inner] : inner;
}
