/** `toolgate dev`: one folder, with the output, errors, calls and edits for its author in one terminal. */
import { mkdirSync, rmSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { type Child, untilPrinted } from '../support/child.ts';
import { runCli, startCli } from '../support/cli.ts';
import { callTool, dockEnv, save, sharedPython } from '../support/dock.ts';
import { noPython } from '../support/python.ts';
import { tempFolder } from '../support/temp.ts';

const typescript = `export const add = {
  description: 'Adds.',
  inputSchema: { type: 'object', properties: { a: { type: 'number' }, b: { type: 'number' }, why: { type: 'string' } } },
  async execute({ a, b, why }) {
    console.log('adding', a, why);
    await null;
    if (b < 0) throw new RangeError('too small');
    return a + b;
  },
};
`;

const python = `
from fastmcp.tools import tool

@tool
def add(a: int, b: int, why: str = "") -> int:
    """Adds."""
    print("adding", a, why)
    if b < 0:
        raise ValueError("too small")
    return a + b
`;

const more = {
  'sums.ts': `${typescript}export const twice = { description: 'Doubles.', inputSchema: {}, execute: () => 2 };\n`,
  'sums.py': `${python}\n@tool\ndef twice() -> int:\n    """Doubles."""\n    return 2\n`,
};

/** Starts it on a folder with this file. */
async function start(file: keyof typeof more, text: string): Promise<{ child: Child; folder: string; url: string }> {
  const cwd = tempFolder({ [`My Sums/${file}`]: text });
  if (file.endsWith('.py')) {
    mkdirSync(join(cwd, '.toolgate/venvs'), { recursive: true });
    symlinkSync(await sharedPython(), join(cwd, '.toolgate/venvs/_base'));
  }
  const child = startCli(['dev', 'My Sums', '--port', '0'], { cwd, env: dockEnv() });
  const [url] = await untilPrinted(child, /http:\S+\/mcp/);
  await untilPrinted(child, new RegExp(`found ${file}: 1 tool \\(add\\)`), 60_000);
  return { child, folder: join(cwd, 'My Sums'), url };
}

describe.each([
  ['sums.ts', typescript, 'sums.ts:7', 'RangeError'],
  ['sums.py', python, 'line 9', 'ValueError'],
] as const)('a folder with %s', (file, text, place, kind) => {
  it.skipIf(file.endsWith('.py') && noPython)(
    'shows output, calls, errors and edits, and ends with Ctrl-C',
    async () => {
      const { child, folder, url } = await start(file, text);
      expect(child.stdout()).toContain('as "my-sums" on http://127.0.0.1:');

      // Typed calls print their results, after what the tool printed.
      child.stdin.write('add a=1 b=2 why="for fun"\n');
      await untilPrinted(child, /^add: adding 1 for fun$/m);
      await untilPrinted(child, /^3$/m);
      await untilPrinted(child, /tool "my-sums_add" of "my-sums" for "local": ok in [\d.]+ ms/);
      child.stdin.write('ad\n');
      await untilPrinted(child, /There is no tool "ad"/);

      // A client that connects is shown as well, and its errors have a traceback.
      expect((await callTool(url, 'my-sums_add', { a: 1, b: -1 })).text).toContain('too small');
      await untilPrinted(child, new RegExp(`${kind}: too small`));
      expect(child.stdout()).toContain(place);

      save(join(folder, file), more[file]);
      await untilPrinted(child, new RegExp(`edited ${file}: 2 tools, 1 new \\(twice\\)`), 60_000);
      save(join(folder, file), `${text}\nthis is not code\n`);
      await untilPrinted(
        child,
        new RegExp(`${file}:\\d+: .*last good version[^]*edited ${file}: 2 tools$`, 'im'),
        60_000,
      );
      save(join(folder, file), text);
      await untilPrinted(child, new RegExp(`edited ${file}: 1 tool, 1 gone \\(twice\\)`), 60_000);
      rmSync(join(folder, file));
      await untilPrinted(child, new RegExp(`deleted ${file}: no tools, 1 gone \\(add\\)`), 60_000);
      expect((await child.stop('SIGINT')).code).toBe(0);
    },
    120_000,
  );
});

it('serves a namespace by its name, and says which folder is missing', async () => {
  const cwd = tempFolder({ '.toolgate/tools/sums/sums.ts': typescript, '.toolgate/tools/other/other.ts': typescript });
  const child = startCli(['dev', 'sums', '--port', '0'], { cwd, env: dockEnv() });
  await untilPrinted(child, /found sums.ts: 1 tool/, 60_000);
  expect(child.stdout()).not.toContain('other');
  expect((await child.stop('SIGINT')).code).toBe(0);
  const { code, stderr } = await runCli(['dev', 'nothing'], { cwd });
  expect(code).toBe(2);
  expect(stderr).toContain('There is no folder');
  expect((await runCli(['dev'], { cwd })).stderr).toContain('Which folder?');
});

it('the log of a gateway shows at debug what tools print', async () => {
  const cwd = tempFolder({ '.toolgate/tools/sums/sums.ts': typescript, 'tools.toml': 'controls = []\n' });
  const { stdout, stderr } = await runCli(['call', 'sums_add', 'a=1', 'b=2', 'why=fun', '--log-level', 'debug'], {
    cwd,
  });
  expect(stdout).toBe('3\n');
  expect(stderr).toContain('"source":"sums","message":"adding 1 fun"');
});
