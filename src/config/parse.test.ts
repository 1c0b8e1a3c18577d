import { describe, expect, it } from 'vitest';
import type { LineOf } from './issues.ts';
import { parseConfig } from './parse.ts';

const spellings = {
  'tools.toml': `# remark
start_wait = "1s"
[http]
port = 1
[[servers]]
command = "a"
[[servers]]
command = "b"
env = { X = "1" }
`,
  'toolgate.yaml': `# remark
start_wait: 1s
http:
  port: 1
servers:
  - command: a
  - command: b
    env:
      X: "1"
`,
  'toolgate.json': `// remark
{
  "start_wait": "1s",
  "http": { "port": 1 },
  "servers": [
    { "command": "a" },
    {
      "command": "b",
      "env": { "X": "1" }, },
  ],
}
`,
};

async function linesOf(text: string, name: string): Promise<LineOf> {
  const { lines } = await parseConfig(text, name);
  return lines();
}

describe.each(Object.entries(spellings))('%s', (name, text) => {
  it('is read as the same value', async () => {
    const { value } = await parseConfig(text, name);
    expect(JSON.parse(JSON.stringify(value))).toEqual({
      start_wait: '1s',
      http: { port: 1 },
      servers: [{ command: 'a' }, { command: 'b', env: { X: '1' } }],
    });
  });

  it('knows the line of every key, or of the nearest value around it', async () => {
    const lineOf = await linesOf(text, name);
    const lines = text.split('\n');
    const lineAt = (path: (string | number)[]) => lines[(lineOf(path) ?? 0) - 1];
    expect(lineAt(['start_wait'])).toContain('start_wait');
    expect(lineAt(['http', 'port'])).toContain('port');
    expect(lineAt(['servers', 0, 'command'])).toContain('command');
    expect(lineOf(['servers', 1, 'command'])).toBeGreaterThan(lineOf(['servers', 0, 'command']) ?? 0);
    expect(lineAt(['servers', 1, 'env', 'X'])).toContain('X');
    expect(lineOf(['servers', 1, 'nothing', 'here'])).toBe(lineOf(['servers', 1]));
    expect(lineOf(['nothing'])).toBeUndefined();
    expect(lineOf([])).toBeUndefined();
  });

  it('is read the same with Windows line endings', async () => {
    const windows = text.replaceAll('\n', '\r\n');
    expect((await parseConfig(windows, name)).value).toEqual((await parseConfig(text, name)).value);
    expect((await linesOf(windows, name))(['http', 'port'])).toBe((await linesOf(text, name))(['http', 'port']));
  });
});

it('follows the aliases of YAML to the lines that they stand for', async () => {
  const text = 'a: &x\n  b: 1\nc: *x\n4: d\n';
  const { value } = await parseConfig(text, 'x.yml');
  const lineOf = await linesOf(text, 'x.yml');
  expect(value).toEqual({ a: { b: 1 }, c: { b: 1 }, 4: 'd' });
  expect(lineOf(['c', 'b'])).toBe(2);
  expect(lineOf(['4'])).toBe(4);
});

it('takes an empty YAML document for an empty configuration', async () => {
  expect((await parseConfig('# nothing yet\n', 'x.yaml')).value).toEqual({});
});

it('keeps the key __proto__ a key, so that it can be refused', async () => {
  for (const [name, text] of [
    ['x.toml', '__proto__ = { polluted = 1 }'],
    ['x.yaml', '__proto__: { polluted: 1 }'],
    ['x.json', '{"__proto__": { "polluted": 1 }}'],
  ] as const) {
    const { value } = await parseConfig(text, name);
    expect(Object.keys(value as object)).toEqual(['__proto__']);
    expect(value).not.toHaveProperty('polluted');
  }
});

describe('a file that cannot be parsed', () => {
  it.each([
    ['x.toml', 'a = \nb = 1', 'x.toml:1:5: not valid TOML: invalid value. Correct this line.'],
    [
      'x.toml',
      'a = 1\na = 2',
      'x.toml:2:1: not valid TOML: trying to redefine an already defined table or value. Correct this line.',
    ],
    ['x.toml', 'key = "s3cret', 'x.toml:1:7: not valid TOML: unfinished string. Correct this line.'],
    ['x.yaml', 'a: 1\na: 2', 'x.yaml:2:1: not valid YAML: Map keys must be unique. Correct this line.'],
    [
      'x.yml',
      'a: b: s3cret',
      'x.yml:1:4: not valid YAML: Nested mappings are not allowed in compact mappings. Correct this line.',
    ],
    ['x.yaml', 'a: 1\n---\nb: 1', 'x.yaml:2:1: not valid YAML: a second document begins here. Correct this line.'],
    [
      'x.yaml',
      'a: *b',
      'x.yaml: not valid YAML: Unresolved alias (the anchor must be set before the alias): b. Correct this file.',
    ],
    ['x.json', '', 'x.json:1:1: not valid JSON: value expected. Correct this line.'],
    ['x.json', '{\n  "a" 1\n}', 'x.json:2:7: not valid JSON: colon expected. Correct this line.'],
    ['.mcp.json', '{"a": 1', '.mcp.json:1:8: not valid JSON: close brace expected. Correct this line.'],
    ['x.ini', 'a = 1', 'x.ini: cannot tell its language. Use a name that ends in .toml, .yaml, .yml, .json, .jsonc.'],
    ['x', 'a = 1', 'x: cannot tell its language. Use a name that ends in .toml, .yaml, .yml, .json, .jsonc.'],
  ])('gets an error with the position and the reason: %s %j', async (name, text, message) => {
    await expect(parseConfig(text, name)).rejects.toMatchObject({ code: 'config_invalid', message });
  });

  it.each([
    ['x.toml', `a = ${'['.repeat(100_000)}`],
    ['x.yaml', '['.repeat(100_000)],
    ['x.json', '['.repeat(200_000)],
    [
      'x.yaml',
      `a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [${'*a,'.repeat(99)}]\nc: &c [${'*b,'.repeat(99)}]\nd: [${'*c,'.repeat(99)}]`,
    ],
  ])('is refused if it would exhaust the stack or memory: %s', async (name, text) => {
    await expect(parseConfig(text, name)).rejects.toMatchObject({ code: 'config_invalid' });
  });
});
