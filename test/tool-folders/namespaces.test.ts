/** Scanning `tools/` of the data folder: names, languages, metadata and hashes, including odd and hostile content. */
import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, rmSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { scanNamespaces } from '../../src/workers/namespaces.ts';
import type { Namespace } from '../../src/workers/scan-folder.ts';
import { asOtherUser } from '../support/other-user.ts';
import { type Files, tempFolder, writeFiles } from '../support/temp.ts';

/** A data folder with these files in `tools/`. */
function dataDir(files: Files): string {
  const folder = tempFolder();
  mkdirSync(join(folder, 'tools'));
  writeFiles(join(folder, 'tools'), files);
  return folder;
}

async function scanOne(files: Files): Promise<Namespace> {
  const { namespaces } = await scanNamespaces(dataDir(files));
  expect(namespaces).toHaveLength(1);
  return namespaces[0]!;
}

const TOOL = 'from fastmcp.tools import tool\n';

describe('the namespace scan', () => {
  it('finds nothing and reports nothing if the folder does not exist', async () => {
    expect(await scanNamespaces(join(tempFolder(), 'none'))).toEqual({
      namespaces: [],
      problems: [],
      watched: new Map(),
    });
  });

  it('finds every folder, sorted by name, with its languages', async () => {
    const data = dataDir({ 'git/x.py': TOOL, 'git/y.ts': '', 'both-2/a.mjs': '', 'README.md': 'not a folder' });
    mkdirSync(join(data, 'tools/empty'));
    const { namespaces, problems } = await scanNamespaces(data);
    expect(
      namespaces.map(({ name, parts }) => [name, ...parts.map(({ language, files }) => [language, files])]),
    ).toEqual([
      ['both-2', ['typescript', ['a.mjs']]],
      ['empty'],
      ['git', ['python', ['x.py']], ['typescript', ['y.ts']]],
    ]);
    expect(problems).toEqual([]);
  });

  it.each(['_system', 'Git', 'a_b', '-a', 'a-', 'a b', 'a.b', 'ä', 'x'.repeat(65), 'a\nb', '$(id)'])(
    'ignores a folder named %j, and reports it',
    async (name) => {
      const { namespaces, problems } = await scanNamespaces(dataDir({ [`${name}/x.py`]: TOOL, 'ok/x.py': TOOL }));
      expect(namespaces.map((one) => one.name)).toEqual(['ok']);
      expect(problems).toEqual([{ source: name, message: expect.stringContaining('is ignored: the name') }]);
    },
  );

  it('ignores hidden folders silently, and accepts a name of 64 characters', async () => {
    const name = 'x'.repeat(64);
    const { namespaces, problems } = await scanNamespaces(dataDir({ '.git/x.py': '', [`${name}/x.py`]: '' }));
    expect([namespaces.map((one) => one.name), problems]).toEqual([[name], []]);
  });

  it('lists folders from other locations after the others', async () => {
    const elsewhere = tempFolder({ 'x.py': TOOL });
    const { namespaces } = await scanNamespaces(dataDir({ 'a/x.py': '' }), [{ name: 'My_Own', folder: elsewhere }]);
    expect(namespaces.map(({ name, folder }) => [name, folder === elsewhere])).toEqual([
      ['a', false],
      ['My_Own', true],
    ]);
  });

  it('reports a folder in another location that does not exist', async () => {
    const { namespaces, problems } = await scanNamespaces(dataDir({}), [{ name: 'a', folder: '/nowhere/at/all' }]);
    expect(namespaces[0]?.parts).toEqual([]);
    expect(problems).toEqual([{ source: 'a', message: 'the folder cannot be read (ENOENT).' }]);
  });
});

describe('tool files', () => {
  it.each([
    ['a.py', 'python'],
    ['a.ts', 'typescript'],
    ['a.mts', 'typescript'],
    ['a.js', 'typescript'],
    ['a.mjs', 'typescript'],
    ['a.d.js', 'typescript'],
  ])('%s is a tool file', async (name, language) => {
    expect((await scanOne({ [`n/${name}`]: '' })).parts).toMatchObject([{ language, files: [name] }]);
  });

  it.each([
    '_a.py',
    '.a.py',
    'a.test.ts',
    'a.test.py',
    'a.d.ts',
    'a.d.mts',
    'a.cjs',
    'a.json',
    'a.py~',
    'a.pyc',
    'requirements.txt',
    'README.md',
    'LICENSE',
    'lib/a.py',
    'node_modules/a.js',
    '__pycache__/a.py',
    '.git/a.py',
  ])('%s is not a tool file', async (name) => {
    expect((await scanOne({ [`n/${name}`]: '' })).parts).toEqual([]);
  });
});

describe('the hash of a language', () => {
  const files = {
    'n/a.py': 'a',
    'n/b.ts': 'b',
    'n/lib/c.py': 'c',
    'n/lib/d.ts': 'd',
    'n/_e.py': 'e',
    'n/requirements.txt': 'f',
    'n/package.json': '{}',
    'n/package-lock.json': '{}',
    'n/tooldock.yaml': 'description: g',
    'n/README.md': 'h',
    'n/data.sqlite': 'i',
    'n/node_modules/j.js': 'j',
    'n/__pycache__/k.py': 'k',
    'n/.venv/l.py': 'l',
    'n/own/pyvenv.cfg': '',
    'n/own/lib/m.py': 'm',
  };
  const hashes = async (data: string) => {
    const [namespace] = (await scanNamespaces(data)).namespaces;
    return namespace!.parts.map(({ hash }) => hash);
  };

  it.each([
    ['n/a.py', [true, false]],
    ['n/b.ts', [false, true]],
    ['n/lib/c.py', [true, false]],
    ['n/lib/d.ts', [false, true]],
    ['n/_e.py', [true, false]],
    ['n/requirements.txt', [true, false]],
    ['n/package.json', [false, true]],
    ['n/package-lock.json', [false, true]],
    ['n/tooldock.yaml', [true, true]],
    ['n/README.md', [false, false]],
    ['n/data.sqlite', [false, false]],
    ['n/node_modules/j.js', [false, false]],
    ['n/__pycache__/k.py', [false, false]],
    ['n/.venv/l.py', [false, false]],
    ['n/own/lib/m.py', [false, false]],
  ])('depends on %s ([Python, TypeScript]): %j', async (path, changes) => {
    const data = dataDir(files);
    const before = await hashes(data);
    writeFiles(join(data, 'tools'), { [path]: 'version: 2' });
    const after = await hashes(data);
    expect(after.map((hash, i) => hash !== before[i])).toEqual(changes);
  });

  it('does not depend on the location of the folder or the modification times', async () => {
    const [one, other] = [dataDir(files), dataDir(files)];
    utimesSync(join(other, 'tools/n/a.py'), 1, 1);
    expect(await hashes(one)).toEqual(await hashes(other));
  });

  it('detects an edit that keeps size and modification time, despite the cached scan', async () => {
    const data = dataDir({ 'n/a.py': 'one' });
    const file = join(data, 'tools/n/a.py');
    const known = new Map();
    utimesSync(file, 1_000, 1_000);
    const [before] = (await scanNamespaces(data, [], known)).namespaces;
    writeFileSync(file, 'two');
    utimesSync(file, 1_000, 1_000);
    const [after] = (await scanNamespaces(data, [], known)).namespaces;
    expect(after!.hash).not.toBe(before!.hash);
  });
});

describe('tooldock.yaml', () => {
  const read = (text: string) => scanOne({ 'n/tooldock.yaml': text });

  it('is parsed as documented', async () => {
    const { metadata, problems } = await read(
      'description: "GitHub API tools"\nversion: 1.0\nauthor: someone\nsecrets:\n  - GITHUB_TOKEN\nenv:\n  URL: "https://x"\n  PORT: 80\n  DEBUG: true\n',
    );
    expect([metadata, problems]).toEqual([
      {
        description: 'GitHub API tools',
        version: '1',
        author: 'someone',
        secrets: ['GITHUB_TOKEN'],
        env: { URL: 'https://x', PORT: '80', DEBUG: 'true' },
        limits: { timeout: null, memory: null, network: true },
      },
      [],
    ]);
  });

  it.each([
    ['descripton: x\nauthor: a\n', 'tooldock.yaml:1: unknown key "descripton". Did you mean "description"?', 'a'],
    ['author: a\nenv: [1]\n', 'tooldock.yaml:2: "env" needs a map of texts.', 'a'],
    ['author: a\nenv: { A: { b: 1 } }\n', 'tooldock.yaml:2: "env" needs a text.', 'a'],
    ['author: a\nenv:\n  LD_PRELOAD: x\n', 'tooldock.yaml:2: "env" cannot set LD_PRELOAD, which is for Toolgate.', 'a'],
    [
      'author: a\nsecrets: ["A B"]\n',
      'tooldock.yaml:2: "secrets" needs names of environment variables: letters, digits and "_".',
      'a',
    ],
    ['secrets: TOKEN\n', 'tooldock.yaml:1: "secrets" needs a list of names.', ''],
    ['- a\n', 'tooldock.yaml: needs a map with description, version, author, secrets, env, limits.', ''],
    ['a: [\n', expect.stringMatching(/^tooldock\.yaml:\d+:\d+: not valid YAML: .*Correct this line\.$/), ''],
  ])('with a problem is reported and keeps its valid keys: %j', async (text, problem, author) => {
    const { metadata, problems } = await read(text);
    expect([problems, metadata.author]).toEqual([[problem], author]);
  });

  it('is safe to parse: prototype key, alias bomb, huge file, folder of that name', async () => {
    expect((await read('__proto__: { author: x }\n')).metadata.author).toBe('');
    const bomb = ['a: &a [x,x,x,x,x,x,x,x,x]', ...'bcdefghi'].map((c, i, all) =>
      i === 0 ? c : `${c}: &${c} [${Array(9).fill(`*${i === 1 ? 'a' : all[i - 1]}`)}]`,
    );
    expect((await read(bomb.join('\n'))).problems[0]).toContain('tooldock.yaml');
    expect((await read(`description: ${'x'.repeat(70_000)}`)).problems).toEqual([
      'tooldock.yaml: is larger than 64 KiB. Make it shorter.',
    ]);
    expect((await scanOne({ 'n/tooldock.yaml/x.py': '' })).problems).toEqual([]);
  });
});

describe('the namespace scan of odd folders', () => {
  it('follows a symlink inside the folder, and ignores one that leads out of it', async () => {
    const data = dataDir({ 'n/lib/real.py': 'x' });
    const secret = tempFolder({ 'secret.py': 'x' });
    const folder = join(data, 'tools/n');
    symlinkSync('lib/real.py', join(folder, 'linked.py'));
    symlinkSync(join(secret, 'secret.py'), join(folder, 'out.py'));
    symlinkSync('../../..', join(folder, 'up'));
    symlinkSync('.', join(folder, 'ring'));
    symlinkSync('round.py', join(folder, 'round.py'));
    const [namespace] = (await scanNamespaces(data)).namespaces;
    expect(namespace!.parts.map(({ files }) => files)).toEqual([['linked.py']]);
    expect(namespace!.problems).toEqual([
      '"out.py" is a link out of the folder and is ignored. Copy the file instead of linking it.',
      '"round.py" cannot be read (ELOOP).',
      '"up" is a link out of the folder and is ignored. Copy the file instead of linking it.',
    ]);
  });

  it('ignores a namespace that is a symlink', async () => {
    const data = dataDir({ 'a/x.py': '' });
    symlinkSync(tempFolder({ 'x.py': '' }), join(data, 'tools/b'));
    const { namespaces, problems } = await scanNamespaces(data);
    expect(namespaces.map(({ name }) => name)).toEqual(['a']);
    expect(problems[0]?.message).toContain('it is a link; copy the folder here, or name it with folder =');
  });

  it('does not open anything other than regular files', async () => {
    const data = dataDir({ 'n/a.py': '' });
    execFileSync('mkfifo', [join(data, 'tools/n/pipe.py')]);
    const [namespace] = (await scanNamespaces(data)).namespaces;
    expect(namespace!.parts).toMatchObject([{ files: ['a.py'] }]);
  });

  it('reports what it has no permission to read', async () => {
    const data = dataDir({ 'n/a.py': '', 'n/lib/x.py': '' });
    chmodSync(join(data, 'tools/n/lib'), 0o000);
    chmodSync(join(data, 'tools/n/a.py'), 0o000);
    const { problems } = await asOtherUser(data, () => scanNamespaces(data));
    chmodSync(join(data, 'tools/n/lib'), 0o755);
    expect(problems.map(({ message }) => message)).toEqual([
      '"lib" cannot be read (EACCES).',
      '"a.py" cannot be read.',
    ]);
  });

  it('is bounded: thousands of files, a deep tree', async () => {
    const data = dataDir({});
    const folder = join(data, 'tools/n');
    mkdirSync(join(folder, ...Array<string>(20).fill('d')), { recursive: true });
    for (let i = 0; i < 4_200; i++) writeFileSync(join(folder, `t${i}.py`), '');
    const [namespace] = (await scanNamespaces(data)).namespaces;
    expect(namespace!.problems).toEqual([
      expect.stringContaining('is nested too deeply'),
      expect.stringContaining('too many files'),
    ]);
    expect(namespace!.parts[0]!.files.length).toBeLessThanOrEqual(4_000);
  });

  it('hashes a large file by size and modification time only', async () => {
    const data = dataDir({ 'n/a.py': Buffer.alloc(5 * 1024 * 1024) });
    const [before] = (await scanNamespaces(data)).namespaces;
    writeFileSync(join(data, 'tools/n/a.py'), Buffer.alloc(5 * 1024 * 1024 + 1));
    const [after] = (await scanNamespaces(data)).namespaces;
    expect(after!.hash).not.toBe(before!.hash);
  });

  it('never rejects while folders are created and deleted', async () => {
    const data = dataDir({});
    const folder = join(data, 'tools/n');
    let rounds = 0;
    const churn = setInterval(() => {
      rounds++;
      writeFiles(folder, { 'a.py': `${rounds}`, 'lib/b.py': '' });
      rmSync(folder, { recursive: true, force: true });
    }, 0);
    try {
      for (let i = 0; i < 100 || rounds <= 10; i++) await scanNamespaces(data);
    } finally {
      clearInterval(churn);
    }
    expect(rounds).toBeGreaterThan(10);
  });
});
