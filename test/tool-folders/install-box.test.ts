/** What an installer of a folder's packages can see and run. */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { EnvironmentRequest } from '../../src/workers/environment.ts';
import { prepareNode } from '../../src/workers/node-environment.ts';
import { preparePython } from '../../src/workers/python-environment.ts';
import { sharedPython } from '../support/dock.ts';
import { installer, uv } from '../support/installer.ts';
import { isWithoutIsolation } from '../support/needs.ts';
import { noPython } from '../support/python.ts';
import { type Files, tempFolder } from '../support/temp.ts';
import { isWide } from '../support/wide.ts';

const TOKEN = 'a-bearer-token-of-the-gateway';

/** A package whose build writes down what it finds. It looks at the folders above it and at all processes. */
const SPY = `
import glob, json, os
from setuptools import setup
found = {"env": dict(os.environ), "processes": [], "files": {}}
for name in glob.glob("/proc/[0-9]*/environ"):
    try:
        found["processes"].append(open(name, "rb").read().decode("utf8", "replace"))
    except OSError:
        pass
for name in open("look-at.txt").read().split():
    try:
        found["files"][name] = open(name).read()
    except OSError as error:
        found["files"][name] = error.__class__.__name__
open("found.json", "w").write(json.dumps(found))
setup(name="spy", version="1.0", py_modules=[])
`;

interface Place extends EnvironmentRequest {
  readonly home: string;
}

function place(files: Files, more: Partial<EnvironmentRequest> = {}): Place {
  const root = tempFolder({ 'home/private.txt': 'private', 'data/secrets.key': 'the key of the secrets' });
  const folder = join(root, 'data/tools/demo');
  mkdirSync(folder, { recursive: true });
  const written = tempFolder(files);
  execFileSync('cp', ['-r', `${written}/.`, folder]);
  const home = join(root, 'home');
  return {
    namespace: 'demo',
    folder,
    dataDir: join(root, 'data'),
    env: { ...process.env, ...installer, HOME: home, BEARER_TOKEN: TOKEN },
    progress: () => {},
    signal: null,
    isolation: 'required',
    packages: 'registry',
    ...more,
    home,
  };
}

/** pip takes long, also on top of the shared environment. */
const INSTALLERS: [name: string, uv: string][] = isWide
  ? [
      ['uv', uv],
      ['pip', 'off'],
    ]
  : [['uv', uv]];

const failureOf = (of: Promise<unknown>): Promise<string> =>
  of.then(
    () => 'nothing failed',
    (error: Error) => error.message,
  );

describe.skipIf(noPython)('requirements.txt', () => {
  it.each([
    ['a folder', './spy'],
    ['a folder with another spelling', 'spy/'],
    ['an editable folder', '-e ./spy'],
    ['an editable folder, written long', '--editable=./spy'],
    ['an address of a file', 'spy @ file:///tmp/spy'],
    ['a repository', 'git+https://example.com/spy.git'],
    ['a package in a repository', 'spy @ git+https://example.com/spy.git'],
    ['an address', 'https://example.com/spy.tar.gz'],
    ['an archive in the folder', 'spy.zip'],
    ['a wheel in the folder', 'spy-1.0-py3-none-any.whl'],
    ['requirements at an address', '-r https://example.com/more.txt'],
    ['an option that builds packages', '--no-binary :all:'],
    ['a folder of packages', '--find-links ./wheels'],
    ['a variable of the installer in an address', '--index-url https://example.com/${PIP_INDEX_URL}'],
    ['a constraint that names an address', '-c limits.txt'],
  ])('with %s is refused, and nothing is run', async (_, line) => {
    const asked = place({
      'requirements.txt': `iniconfig\n${line}\n`,
      'limits.txt': 'iniconfig @ https://example.com/x.whl\n',
      'spy/setup.py': SPY,
      'spy/look-at.txt': '',
    });
    expect(await failureOf(preparePython(asked))).toMatch(
      /^(?:requirements|limits)\.txt, line [12]: .* folders\.packages = "any"/,
    );
    expect(existsSync(join(asked.folder, 'spy/found.json'))).toBe(false);
    expect(existsSync(join(asked.dataDir, 'venvs'))).toBe(false);
  });
});

describe.skipIf(noPython !== undefined || (await isWithoutIsolation()))(
  'a package that runs code when it is built',
  () => {
    it.each(INSTALLERS)(
      'by %s sees neither the data folder, nor the home folder, nor the gateway',
      { timeout: 180_000 },
      async (_, uvPath) => {
        const asked = place({ 'requirements.txt': './spy\n', 'spy/setup.py': SPY }, { packages: 'any' });
        const env = { ...asked.env, TOOLGATE_UV: uvPath };
        const looked = [join(asked.dataDir, 'secrets.key'), join(asked.home, 'private.txt'), '/etc/shadow'];
        execFileSync('sh', ['-c', `echo "${looked.join(' ')}" > ${asked.folder}/spy/look-at.txt`]);
        // pip would build it first, which takes a minute.
        mkdirSync(join(asked.dataDir, 'venvs'));
        symlinkSync(await sharedPython(), join(asked.dataDir, 'venvs/_base'));
        await preparePython({ ...asked, env });
        const found = JSON.parse(readFileSync(join(asked.folder, 'spy/found.json'), 'utf8'));
        expect(Object.values(found.files)).toEqual(looked.map(() => 'FileNotFoundError'));
        expect(JSON.stringify(found.env)).not.toContain(TOKEN);
        expect(found.processes.join('\n')).not.toMatch(/VITEST|TOOLGATE_(?!SANDBOX=1)/);
      },
    );
  },
);

describe('package.json', () => {
  it.each([
    ['a repository', { dependencies: { x: 'git+ssh://git@example.com/x.git' } }],
    ['a repository, written short', { dependencies: { x: 'someone/x' } }],
    ['a host of repositories', { dependencies: { x: 'gitlab:someone/x' } }],
    ['a folder', { dependencies: { x: 'file:../x' } }],
    ['a folder without a scheme', { optionalDependencies: { x: './x' } }],
    ['an address', { dependencies: { x: 'https://example.com/x.tgz' } }],
    ['an archive in the folder', { dependencies: { x: 'x.tgz' } }],
    ['a repository for development', { dependencies: { ms: '2.1.3' }, devDependencies: { x: 'someone/x' } }],
    [
      'a repository in place of a version of another package',
      { dependencies: { ms: '2.1.3' }, overrides: { a: { b: 'someone/x' } } },
    ],
    ['an alias of an address', { dependencies: { x: 'npm:https://example.com/x.tgz' } }],
  ])('with %s is refused', async (_, manifest) => {
    const asked = place({
      'package.json': JSON.stringify(manifest),
      'x/package.json': '{"name":"x","version":"1.0.0"}',
    });
    expect(await failureOf(prepareNode(asked))).toMatch(/^package\.json: .* folders\.packages = "any"/);
    expect(existsSync(join(asked.dataDir, 'venvs'))).toBe(false);
  });

  it('with versions, ranges, tags and aliases of the registry is taken', { timeout: 90_000 }, async () => {
    const dependencies = { ms: '2.1.3', a: 'npm:ms@^2.0.0', b: 'npm:ms@latest' };
    const asked = place({
      'package.json': JSON.stringify({ dependencies, overrides: { x: '$ms', y: { '.': '>=1 <2 || 3.x' } } }),
    });
    await prepareNode({ ...asked, isolation: 'auto' });
    const root = join(asked.dataDir, 'venvs/demo.node');
    expect(readdirSync(root)).toHaveLength(1);
  });

  it('with a lock file that names a repository or a folder is refused', async () => {
    const lock = {
      lockfileVersion: 3,
      packages: { 'node_modules/ms': { resolved: 'git+ssh://git@example.com/x.git#1' } },
    };
    const asked = place({
      'package.json': JSON.stringify({ dependencies: { ms: '2.1.3' } }),
      'package-lock.json': JSON.stringify(lock),
    });
    expect(await failureOf(prepareNode(asked))).toMatch(
      /^package-lock\.json: .*node_modules\/ms.* folders\.packages = "any"/,
    );
  });
});
