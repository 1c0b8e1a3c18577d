/** `toolgate namespaces` from a user's point of view. */
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { scanNamespaces } from '../../src/workers/namespaces.ts';
import { CONTROL, runCli } from '../support/cli.ts';
import { root } from '../support/docs-page.ts';
import { tempFolder } from '../support/temp.ts';

const CONFIG = 'controls = []\n';

function project(files: Record<string, string> = {}) {
  const cwd = tempFolder({ 'tools.toml': CONFIG, ...files });
  return { cwd, tools: join(cwd, '.toolgate/tools'), run: (...args: string[]) => runCli(args, { cwd }) };
}

describe('toolgate namespaces create', () => {
  it.each([
    [[], 'hello.ts', 'typescript'],
    [['--language', 'typescript'], 'hello.ts', 'typescript'],
    [['--language', 'python'], 'hello.py', 'python'],
  ] as const)('%j creates a folder with %s', async (flags, file, language) => {
    const { tools, run } = project();
    const { code, stdout, stderr } = await run('namespace', 'create', 'my-tools', '--description', 'a "b"', ...flags);
    expect([code, stderr, stdout]).toEqual([0, '', expect.stringContaining(join(tools, 'my-tools', file))]);
    expect(readFileSync(join(tools, 'my-tools', file), 'utf8')).toContain('say_hello');
    expect(readdirSync(tools)).toEqual(['my-tools']);
    const listed = JSON.parse((await run('namespaces', 'list', '--json')).stdout);
    expect(listed).toEqual([
      {
        name: 'my-tools',
        folder: join(tools, 'my-tools'),
        state: 'new',
        description: 'a "b"',
        version: '0.1.0',
        author: '',
        secrets: [],
        env: {},
        limits: { timeout: null, memory: null, network: true },
        languages: { [language]: [file] },
        problems: [],
      },
    ]);
  });

  it('never changes an existing folder', async () => {
    const { tools, run } = project({ '.toolgate/tools/a/mine.py': 'x' });
    mkdirSync(join(tools, 'empty'));
    for (const name of ['a', 'empty']) {
      const { code, stderr } = await run('namespaces', 'create', name);
      expect([code, stderr]).toEqual([2, expect.stringContaining(`The namespace "${name}" exists already.`)]);
    }
    expect([readdirSync(join(tools, 'a')), readdirSync(join(tools, 'empty')), readdirSync(tools)]).toEqual([
      ['mine.py'],
      [],
      ['a', 'empty'],
    ]);
  });

  it.each(['../x', '_system', 'A', '.', 'a/b', ''])('refuses the name %j', async (name) => {
    const { cwd, run } = project();
    const { code, stderr } = await run('namespaces', 'create', name);
    expect([code, stderr]).toEqual([2, expect.stringMatching(/cannot be a namespace|needs one name/)]);
    expect(readdirSync(cwd)).toEqual(['tools.toml']);
  });

  it('reports an unknown language, a wrong number of names and a folder that is not writable', async () => {
    const { cwd, run } = project();
    expect((await run('namespaces', 'create', 'a', '--language', 'ruby')).stderr).toContain('not "ruby"');
    expect((await run('namespaces', 'create')).stderr).toContain('needs one name');
    expect((await run('namespaces', 'make', 'a')).stderr).toContain('has no "make"');
    writeFileSync(join(cwd, '.toolgate'), 'a file');
    expect((await run('namespaces', 'create', 'a')).stderr).toContain('cannot be created (ENOTDIR)');
  });

  it('answers in JSON with --json', async () => {
    const { tools, run } = project();
    const { stdout } = await run('namespaces', 'create', 'a', '--json');
    expect(JSON.parse(stdout)).toEqual({ name: 'a', folder: join(tools, 'a'), file: join(tools, 'a/hello.ts') });
  });
});

describe('toolgate namespaces list', () => {
  it('shows the namespaces and their problems', async () => {
    const { run } = project({
      '.toolgate/tools/both/a.py': '',
      '.toolgate/tools/both/b.ts': '',
      '.toolgate/tools/bad/tooldock.yaml': 'nme: "\\u001b[31m"\n',
      '.toolgate/tools/Wrong/a.py': '',
    });
    const { code, stdout, stderr } = await run('namespaces');
    expect(code).toBe(0);
    expect(stdout.split('\n').map((line) => line.trim())).toEqual([
      expect.stringMatching(/^bad\s+problems$/),
      expect.stringMatching(/^both\s+new\s+python: a\.py; typescript: b\.ts$/),
      '',
    ]);
    expect(stderr).toContain('warning: bad: tooldock.yaml:1: unknown key "nme".');
    expect(stderr).toContain('"Wrong" in');
    expect(CONTROL.test(stdout + stderr)).toBe(false);
    expect((await run('namespaces', 'list', 'bot')).stderr).toContain(
      'There is no namespace "bot". Did you mean "both"',
    );
  });

  it('explains how to create the first namespace if there is none', async () => {
    const { run } = project();
    expect((await run('namespaces')).stdout).toContain('Make one: toolgate namespaces create NAME');
    expect(JSON.parse((await run('namespaces', '--json')).stdout)).toEqual([]);
  });
});

describe('toolgate namespaces delete', () => {
  it('requires --yes without a terminal, and then removes the folder and its environments', async () => {
    const { cwd, tools, run } = project({
      '.toolgate/tools/a/x.py': '',
      '.toolgate/tools/b/x.py': '',
      '.toolgate/venvs/a/key/x': '',
      '.toolgate/venvs/a.node/key/x': '',
      '.toolgate/venvs/ab/key/x': '',
    });
    const refused = await run('namespaces', 'delete', 'a');
    expect([refused.code, refused.stderr]).toEqual([2, expect.stringContaining('Add --yes to do it.')]);
    expect(existsSync(join(tools, 'a/x.py'))).toBe(true);
    const { code, stdout } = await run('namespaces', 'delete', 'a', '--yes', '--json');
    expect([code, JSON.parse(stdout)]).toEqual([0, { name: 'a', deleted: true }]);
    expect([readdirSync(tools), readdirSync(join(cwd, '.toolgate/venvs'))]).toEqual([['b'], ['ab']]);
  });

  it.each(['none', '..', '../tools', '_system'])('refuses %j', async (name) => {
    const { tools, run } = project({ '.toolgate/tools/a/x.py': '' });
    const { code, stderr } = await run('namespaces', 'delete', name, '--yes');
    expect([code, stderr]).toEqual([2, expect.stringContaining('There is no namespace')]);
    expect(existsSync(join(tools, 'a/x.py'))).toBe(true);
  });
});

it('the tool folders in examples/ are namespaces without problems, in both languages', async () => {
  const folders = readdirSync(join(root, 'examples')).filter((name) => name.includes('-tool'));
  const places = folders.map((name) => ({ name, folder: join(root, 'examples', name) }));
  const { namespaces, problems } = await scanNamespaces(tempFolder(), places);
  expect(problems).toEqual([]);
  expect(
    namespaces.map(({ name, parts }) => [name, ...parts.map(({ language, files }) => [language, ...files])]),
  ).toEqual([
    ['async-tool', ['python', 'weather.py']],
    ['async-tool-ts', ['typescript', 'weather.ts']],
    ['basic-tool', ['python', 'hello.py']],
    ['basic-tool-ts', ['typescript', 'hello.ts']],
    ['multi-tool', ['python', 'math_tools.py', 'string_tools.py']],
    ['multi-tool-ts', ['typescript', 'math-tools.ts', 'string-tools.ts']],
  ]);
  const weather = namespaces.find(({ name }) => name === 'async-tool')!;
  expect(weather.metadata).toMatchObject({ version: '1.0.0', secrets: ['WEATHER_API_KEY'] });
});
