/** The manager's work on the files of namespaces, without a process: checks before writing, versions, packages, metadata. */
import { existsSync, lstatSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import type { Config } from '../../src/config/config.ts';
import { configFromValue } from '../../src/config/load.ts';
import { addPackage, installPackages, listPackages } from '../../src/manager/dependencies.ts';
import { findManaged } from '../../src/manager/managed-namespace.ts';
import { summarizeNamespaces, toolsInSource } from '../../src/manager/namespace-list.ts';
import { writeMetadata } from '../../src/manager/namespace-metadata.ts';
import { deleteTool, listVersions, readToolSource, restoreTool, writeTool } from '../../src/manager/tool-source.ts';
import { createEmptyNamespace, removeLeftNamespaces } from '../../src/workers/namespace-folders.ts';
import { childEnv } from '../support/child.ts';
import { tempFolder, writeFiles } from '../support/temp.ts';

const python = (name = 'add') => `from fastmcp.tools import tool


@tool
def ${name}(a: float, b: float = 1) -> float:
    """Adds two numbers.

    Args:
        a: The first.
    """
    return a + b
`;
const typescript = (name = 'add') =>
  `export const ${name} = { description: 'Adds.', inputSchema: { type: 'object' }, execute: ({ a }: any) => a };\n`;
const env = childEnv();

let config: Config;
let tools: string;
beforeEach(async () => {
  const cwd = tempFolder();
  config = configFromValue({}, { cwd, env });
  tools = join(config.dataDir, 'tools');
  await createEmptyNamespace(config.dataDir, 'math');
});

const write = (file: string, code: string, namespace = 'math') => writeTool(config, env, namespace, file, code);
const text = (path: string) => readFileSync(join(tools, path), 'utf8');

describe('writing a tool', () => {
  it.each([
    ['add.py', python()],
    ['add.ts', typescript()],
    ['add.mjs', typescript().replace(': any', '')],
  ])('takes %s', async (file, code) => {
    expect(await write(file, code)).toEqual({ written: true, filename: file, tools_found: ['add'] });
    expect(text(`math/${file}`)).toBe(code);
    expect(await readToolSource(config, 'math', file)).toBe(code);
    const namespace = await findManaged(config, 'math');
    const description = file.endsWith('.py') ? 'Adds two numbers.' : 'Adds.';
    expect((await toolsInSource(namespace, env)).tools).toEqual([
      { name: 'add', description, filename: file, line: file.endsWith('.py') ? 5 : 1 },
    ]);
  });

  it.each([
    [
      'a.py',
      'def add(a: int) -> int:\n    """Adds."""\n',
      'No @tool decorator found',
      /from fastmcp\.tools import tool/,
    ],
    ['a.py', 'from fastmcp.tools import tool\n@tool\ndef add(a: int -> int:\n', /^Line 3: SyntaxError/, /^a\.py:3: /],
    ['a.py', python().replace('a: float', 'a'), /^Line 5: The parameter "a" of "add" has no type hint/, /a\.py:5/],
    ['a.py', python().replace(/ {4}"""[\s\S]*"""\n/, ''), /^Line 5: "add" has no docstring/, /a\.py:5/],
    ['a.py', python().replace('from fastmcp.tools import tool', ''), 'No @tool decorator found', /is not imported/],
    ['a.py', python('_add'), /begins with "_"/, /a\.py:5/],
    ['a.py', python().replace('b: float = 1', '*b: float'), /\*b, which a tool cannot have/, /a\.py:5/],
    ['a.py', `${python()}${python()}`, /There are two tools called "add"/, /a\.py:16/],
    ['a.py', `class A:\n    ${python().trim().split('\n').join('\n    ')}`, 'No @tool decorator found', /top level/],
    ['a.py', 'return 1\n', /^Line 1: SyntaxError: 'return' outside function/, /a\.py:1/],
    ['a.py', 'a\0b', 'The code contains a NUL character', /Remove/],
    ['a.py', `x = ${'('.repeat(5_000)}`, /^Line 1: /, /a\.py:1/],
    ['a.ts', 'export const add = 1;', 'No exported tool found', /export const my_tool/],
    ['a.ts', 'export const = 1;', /^Line 1: SyntaxError/, /a\.ts:1/],
    ['a.ts', typescript().replace("'Adds.'", "''"), /^Line 1: "add" has no description/, /a\.ts:1/],
    ['a.ts', 'x'.repeat(1024 * 1024 + 1), 'The code is too large', /1048577 bytes/],
  ])('refuses %s and writes nothing: %j', async (file, code, error, details) => {
    writeFiles(tools, { 'math/a.py': python('kept') });
    const outcome = await write(file, code);
    expect(outcome).toEqual({ written: false, error: expect.anything(), details: expect.stringMatching(details) });
    expect((outcome as { error: string }).error).toMatch(error);
    expect(readdirSync(join(tools, 'math')).filter((name) => !name.startsWith('.'))).toEqual(['a.py']);
    expect(text('math/a.py')).toBe(python('kept'));
  });

  it('does not run the code that it checks', async () => {
    const trace = join(tempFolder(), 'ran');
    const code = `${python()}\nopen(${JSON.stringify(trace)}, "w")\n`;
    expect(await write('a.py', code)).toMatchObject({ written: true });
    await toolsInSource(await findManaged(config, 'math'), env);
    expect(existsSync(trace)).toBe(false);
  });

  it.each([
    '../evil.py',
    '/etc/evil.py',
    'a/b.py',
    '.hidden.py',
    '_helper.py',
    'a.sh',
    'a.py\n',
    'a;rm -rf.py',
    'a$(id).py',
    'requirements.txt',
    'a.d.ts',
    'a.test.ts',
    '',
    `${'a'.repeat(200)}.py`,
  ])('refuses the file name %j', async (file) => {
    for (const act of [
      write(file, python()),
      readToolSource(config, 'math', file),
      deleteTool(config, 'math', file),
      restoreTool(config, 'math', file),
    ])
      await expect(act).rejects.toThrow('cannot be a tool file');
  });

  it.each(['nope', '../math', '', '_system', 'Math', 'a'.repeat(100)])('refuses the namespace %j', async (name) => {
    await expect(write('a.py', python(), name)).rejects.toThrow('There is no namespace');
    await expect(readToolSource(config, name, 'a.py')).rejects.toThrow('There is no namespace');
  });

  it('follows no links, in either direction', async () => {
    const outside = join(tempFolder({ 'secret.py': 'outside' }), 'secret.py');
    symlinkSync(outside, join(tools, 'math/link.py'));
    await expect(write('link.py', python())).rejects.toThrow('is a link');
    await expect(readToolSource(config, 'math', 'link.py')).rejects.toThrow('is a link');
    await expect(deleteTool(config, 'math', 'link.py')).rejects.toThrow('is a link');
    expect(readFileSync(outside, 'utf8')).toBe('outside');
    await write('a.py', python());
    symlinkSync(tempFolder(), join(tools, 'math/.history'));
    await expect(write('a.py', python('other'))).rejects.toThrow('in the place of the earlier versions');
    expect(text('math/a.py')).toBe(python());
    symlinkSync(tempFolder({ 'x.py': python() }), join(tools, 'linked'));
    await expect(readToolSource(config, 'linked', 'x.py')).rejects.toThrow('There is no namespace');
  });

  it('leaves folders that the configuration names to their owner', async () => {
    const cwd = tempFolder({ 'mine/add.ts': typescript() });
    const named = configFromValue({ servers: { mine: { folder: './mine' } } }, { cwd, env });
    expect(await readToolSource(named, 'mine', 'add.ts')).toBe(typescript());
    await expect(writeTool(named, env, 'mine', 'add.ts', typescript('other'))).rejects.toThrow(
      'edit its files yourself',
    );
    await expect(deleteTool(named, 'mine', 'add.ts')).rejects.toThrow('edit its files yourself');
  });
});

describe('versions', () => {
  it('are kept when a file is replaced or deleted, and can be restored', async () => {
    for (const name of ['one', 'two', 'three']) await write('a.py', python(name));
    const versions = await listVersions(config, 'math', 'a.py');
    expect(versions).toHaveLength(2);
    expect(await restoreTool(config, 'math', 'a.py')).toBe(versions[0]!.version);
    expect(text('math/a.py')).toBe(python('two'));
    expect(await restoreTool(config, 'math', 'a.py', versions[1]!.version)).toBe(versions[1]!.version);
    expect(text('math/a.py')).toBe(python('one'));
    await deleteTool(config, 'math', 'a.py');
    await expect(readToolSource(config, 'math', 'a.py')).rejects.toThrow('There is no file a.py');
    await expect(deleteTool(config, 'math', 'a.py')).rejects.toThrow('There is no file a.py');
    await restoreTool(config, 'math', 'a.py');
    expect(text('math/a.py')).toBe(python('one'));
  });

  it('are not made by writing the same text, and the oldest are forgotten', async () => {
    await write('a.ts', typescript());
    await write('a.ts', typescript());
    expect(await listVersions(config, 'math', 'a.ts')).toEqual([]);
    await expect(restoreTool(config, 'math', 'a.ts')).rejects.toThrow('There is no earlier version');
    for (let i = 0; i < 25; i++) await write('a.ts', typescript(`t${i}`));
    expect(await listVersions(config, 'math', 'a.ts')).toHaveLength(20);
    await expect(restoreTool(config, 'math', 'a.ts', '../../x')).rejects.toThrow('There is no such version');
  });
});

describe('packages', () => {
  const none = { env, signal: null, progress() {} };

  it.each([
    '-r other.txt',
    '--index-url=https://evil.example',
    './local',
    '/abs/path',
    'git+https://example.com/x',
    'x @ https://example.com/x.whl',
    'httpx; import os',
    'httpx`id`',
    'httpx\n-e .',
    'a'.repeat(400),
    '',
  ])('refuses %j for both languages', async (wanted) => {
    for (const language of ['python', 'typescript'] as const)
      await expect(addPackage(config, 'math', wanted, language, none)).rejects.toThrow('is not a package');
    await expect(addPackage(config, 'math', 'evil.whl', 'python', none)).rejects.toThrow('is not a package');
    expect(readdirSync(join(tools, 'math'))).toEqual([]);
  });

  it('are listed for both languages', async () => {
    expect(await listPackages(config, 'math')).toEqual({ python: [], typescript: [] });
    writeFiles(join(tools, 'math'), {
      'requirements.txt': '# needed\nhttpx>=0.28.0  # http\n\nbeautifulsoup4\n',
      'package.json': '{"dependencies": {"zod": "^4"}}',
    });
    expect(await listPackages(config, 'math')).toEqual({
      python: ['httpx>=0.28.0', 'beautifulsoup4'],
      typescript: ['zod@^4'],
    });
  });

  it('stay as they were if the installation fails', async () => {
    const offline = {
      ...none,
      env: { ...env, npm_config_registry: 'http://127.0.0.1:9', npm_config_fetch_retries: '0' },
    };
    await write('a.ts', typescript());
    const outcome = await addPackage(config, 'math', 'no-such-package@1', null, offline);
    expect(outcome).toMatchObject({ installed: false, error: 'npm install failed' });
    expect(existsSync(join(tools, 'math/package.json'))).toBe(false);
    writeFileSync(join(tools, 'math/package.json'), '{"dependencies": {"no-such-package": "1"}}');
    expect(await installPackages(config, 'math', offline)).toMatchObject({ installed: false });
    // Somebody edits the file while the installation runs.
    const edited = '{"dependencies": {}, "description": "edited"}';
    const progress = () => writeFileSync(join(tools, 'math/package.json'), edited);
    expect(await addPackage(config, 'math', 'other@1', null, { ...offline, progress })).toMatchObject({
      installed: false,
    });
    expect(text('math/package.json')).toBe(edited);
  });
});

describe('tooldock.yaml', () => {
  it('is written key by key, with the rest as it was', async () => {
    expect(await writeMetadata(config, 'math', { description: 'Sums', secrets: ['KEY'] })).toMatchObject({
      description: 'Sums',
      secrets: ['KEY'],
    });
    writeFileSync(join(tools, 'math/tooldock.yaml'), `# by hand\n\n${text('math/tooldock.yaml')}author: Ann # me\n`);
    await writeMetadata(config, 'math', { description: '', env: { URL: 'https://example.com' } });
    expect(text('math/tooldock.yaml')).toBe(
      '# by hand\n\nsecrets:\n  - KEY\nauthor: Ann # me\nenv:\n  URL: https://example.com\n',
    );
  });

  it.each([[{ secrets: ['not a name'] }], [{ env: { SECRETS_KEY: 'x' } }], [{ env: { 'A-B': 'x' } }]])(
    'is not written with a mistake in it: %j',
    async (changes) => {
      await expect(writeMetadata(config, 'math', changes)).rejects.toThrow('Nothing was written');
      expect(existsSync(join(tools, 'math/tooldock.yaml'))).toBe(false);
    },
  );

  it('is left alone if it cannot be read', async () => {
    writeFileSync(join(tools, 'math/tooldock.yaml'), 'a: [');
    await expect(writeMetadata(config, 'math', { description: 'x' })).rejects.toThrow('Correct it yourself');
    expect(text('math/tooldock.yaml')).toBe('a: [');
  });
});

it('lists tools, files and problems of namespaces that have never run', async () => {
  writeFiles(tools, {
    'math/add.py': python(),
    'math/broken.ts': 'export const = 1;',
    'math/tooldock.yaml': 'secrets: [API_KEY]',
    'web/get.ts': typescript('get'),
    'web/package.json': '{}',
  });
  const all = await summarizeNamespaces(config, env);
  expect(
    all.map(({ namespace, tools: found, hasRequirements, secretsStatus, problems }) => ({
      name: namespace.name,
      tools: found.map(({ name, filename }) => `${filename}: ${name}`),
      hasRequirements,
      secretsStatus,
      problems,
    })),
  ).toEqual([
    {
      name: 'math',
      tools: ['add.py: add'],
      hasRequirements: false,
      secretsStatus: 'missing',
      problems: [expect.stringMatching(/^broken\.ts:1: SyntaxError/)],
    },
    { name: 'web', tools: ['get.ts: get'], hasRequirements: true, secretsStatus: 'no_secrets_needed', problems: [] },
  ]);
});

it('refuses to create a namespace that exists, and removes what a killed process left', async () => {
  await expect(createEmptyNamespace(config.dataDir, 'math')).rejects.toThrow(`Put more tools into ${tools}/math`);
  for (const name of ['Math', 'a.b', 'a b', '../x', '_system', ''])
    await expect(createEmptyNamespace(config.dataDir, name)).rejects.toThrow('cannot be a namespace');
  mkdirSync(join(tools, '.math.4194999.old'));
  mkdirSync(join(tools, `.math.${process.pid}.new`));
  await removeLeftNamespaces(config.dataDir);
  expect(readdirSync(tools).sort()).toEqual([`.math.${process.pid}.new`, 'math']);
  expect(lstatSync(join(tools, 'math')).isDirectory()).toBe(true);
});
