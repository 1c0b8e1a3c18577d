/** Packages of npm and PyPI as something to read: they are downloaded and read, and nothing of them is unpacked or run. */
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import type { RepositoriesConfig } from '../../src/config/repositories.ts';
import { analyzeRepo } from '../../src/manager/builder/analyze-repo.ts';
import { readRepoFile } from '../../src/manager/builder/read-repo-file.ts';
import type { Work } from '../../src/manager/builder/repositories.ts';
import { type Answer, servePackages, tarball, zip } from '../support/archives.ts';
import { freePort } from '../support/ports.ts';
import { tempFolder } from '../support/temp.ts';

const CONFIG: RepositoriesConfig = {
  from: 'public',
  size: 10 * 1024 * 1024,
  timeout: 60_000,
  quota: 100 * 1024 * 1024,
  keep: 3_600_000,
};

type Packages = Parameters<typeof servePackages>[0];

async function source(packages: Packages) {
  const server = await servePackages(packages);
  const work: Work = { dataDir: tempFolder(), env: server.env, signal: null, progress: () => {} };
  return {
    server,
    work,
    analyze: (url: string, more: Partial<RepositoriesConfig> = {}) => analyzeRepo(url, { ...CONFIG, ...more }, work),
    read: (url: string, path: string) => readRepoFile(url, path, work),
  };
}

const SERVER = "server.registerTool('echo', { description: 'Says it again' }, run);\n";
const MANIFEST = '{"dependencies": {"@modelcontextprotocol/sdk": "^1.0.0"}, "scripts": {"postinstall": "touch ran"}}';
const npm = (text = SERVER) =>
  tarball(
    { path: 'package/package.json', text: MANIFEST },
    { path: 'package/dist/index.js', text },
    { path: 'package/dist/', type: '5' },
  );
const PYTHON =
  'from mcp.server.fastmcp import FastMCP\n\n@mcp.tool()\ndef now(zone: str) -> str:\n    """The time."""\n';

describe('the registry', () => {
  it('is the one that npm and pip name in their own files', async () => {
    const { server } = await source({
      'x@1.0.0': npm(),
      'a-1.0-py3-none-any.whl': zip({ path: 'a.py', text: 'x = 1' }),
    });
    const home = tempFolder({
      '.npmrc': `registry=${server.env.npm_config_registry}\n`,
      '.config/pip/pip.conf': `[global]\nindex-url = ${server.env.PIP_INDEX_URL}\n`,
    });
    const env = { PATH: process.env.PATH, HOME: home, NO_UPDATE_NOTIFIER: '1' };
    const work: Work = { dataDir: tempFolder(), env, signal: null, progress: () => {} };
    await analyzeRepo('npm:x', CONFIG, work);
    await analyzeRepo('pypi:a', CONFIG, work);
    expect(server.requests).toEqual(expect.arrayContaining(['/npm/x', '/simple/a/']));
    const without = { ...work, env: { PATH: tempFolder(), HOME: home } };
    await expect(analyzeRepo('npm:y', CONFIG, without)).rejects.toThrow('set npm_config_registry');
    await expect(analyzeRepo('pypi:y', CONFIG, without)).rejects.toThrow('set PIP_INDEX_URL');
  }, 60_000);
});

describe('a package', () => {
  it('of npm is read in the version that was asked for, or the latest', async () => {
    const { analyze, read, server, work } = await source({
      '@acme/echo@1.0.0': npm(),
      '@acme/echo@1.10.0': npm(SERVER.replace("'echo'", "'shout'")),
    });
    expect(await analyze('npm:@acme/echo')).toMatchObject({
      repo_url: 'npm:@acme/echo',
      language: 'typescript',
      framework: 'mcp-sdk',
      files: ['dist/index.js', 'package.json'],
      tools_found: [{ name: 'shout', file: 'dist/index.js', description: 'Says it again' }],
      dependencies: { '@modelcontextprotocol/sdk': '^1.0.0' },
      notes: ['This is version 1.10.0 of the package.'],
    });
    expect(await analyze('npm:@acme/echo@1.0.0')).toMatchObject({ tools_found: [{ name: 'echo' }] });
    expect(await read('npm:@acme/echo@1.0.0', 'dist/index.js')).toEqual({ path: 'dist/index.js', content: SERVER });
    await expect(read('npm:@acme/other', 'x')).rejects.toThrow('Call analyze_repo first');
    // What is kept: contents, names and where it came from.
    const [first] = readdirSync(join(work.dataDir, 'repos'));
    expect(readdirSync(join(work.dataDir, 'repos', first!)).sort()).toEqual(['contents', 'files.json', 'origin.json']);
    expect(server.requests).toContain('/npm/@acme/echo');
  });

  it('of PyPI is read from its wheel, or from its source distribution, in the latest finished version', async () => {
    const metadata = 'Name: acme-time\nRequires-Dist: httpx>=0.28\nRequires-Dist: pytest; extra == "dev"\n';
    const wheel = zip(
      { path: 'acme/time.py', text: PYTHON },
      { path: 'acme_time-1.9.dist-info/METADATA', text: metadata },
    );
    const { analyze, read } = await source({
      'acme_time-1.9-py3-none-any.whl': wheel,
      'acme_time-1.10-cp312-cp312-manylinux_2_17_x86_64.whl': wheel,
      'acme-time-1.10.tar.gz': tarball(
        { path: 'acme-time-1.10/pyproject.toml', text: '[project]\ndependencies = ["httpx"]\n' },
        { path: 'acme-time-1.10/setup.py', text: 'raise SystemExit("never run")\n' },
        { path: 'acme-time-1.10/src/time.py', text: PYTHON.replace('now', 'later') },
      ),
      'acme_time-2.0rc1-py3-none-any.whl': wheel,
    });
    expect(await analyze('pypi:Acme_Time')).toMatchObject({
      language: 'python',
      framework: 'fastmcp',
      tools_found: [{ name: 'later', file: 'src/time.py', parameters: [{ name: 'zone', type: 'string' }] }],
      dependencies: { httpx: '*' },
      notes: ['This is version 1.10 of the package.'],
    });
    expect(await analyze('pypi:acme-time==1.9')).toMatchObject({
      files: ['acme/time.py', 'acme_time-1.9.dist-info/METADATA'],
      tools_found: [{ name: 'now' }],
      dependencies: { httpx: '>=0.28' },
    });
    expect(await read('pypi:acme-time==1.9', 'acme/time.py')).toHaveProperty('content', PYTHON);
    await expect(analyze('pypi:acme-time@7')).rejects.toThrow('it has no version 7');
  });

  it('has long names, and names that lead out of it are left out', async () => {
    const deep = `${'a/'.repeat(60)}b.ts`;
    const record = (text: string) => `${text.length + 4} ${text}\n`;
    const { analyze } = await source({
      'odd@1.0.0': tarball(
        { path: 'x', type: 'x', text: record(`path=package/${deep}`) },
        { path: 'package/short', text: SERVER },
        { path: '././@LongLink', type: 'L', text: `package/${'c'.repeat(120)}.ts\0` },
        { path: 'package/cut', text: '' },
        { path: 'package/../../evil.ts', text: SERVER },
        { path: '/etc/passwd', text: 'x' },
        { path: 'package/back\\slash.ts', text: 'x' },
        { path: 'package/link.ts', type: '2', link: '/etc/passwd' },
        { path: 'package/hard.ts', type: '1', link: 'package/short' },
        { path: 'package/pipe', type: '6' },
        { path: 'package/twice.ts', text: 'old' },
        { path: 'package/twice.ts', text: 'new' },
      ),
    });
    const { files } = await analyze('npm:odd');
    expect(files).toEqual([deep, `${'c'.repeat(120)}.ts`, 'twice.ts'].sort());
  });

  it('of PyPI has no links either', async () => {
    const wheel = zip(
      { path: 'a.py', text: PYTHON },
      { path: 'b.py', text: '/etc/passwd', isLink: true },
      { path: '../c.py', text: PYTHON },
    );
    const { analyze } = await source({ 'w-1.0-py3-none-any.whl': wheel });
    expect((await analyze('pypi:w')).files).toEqual(['a.py']);
  });
});

describe('a package is refused', () => {
  const redirect =
    (location: string): Answer =>
    (_, response) =>
      void response.writeHead(302, { location }).end();
  const document = (tarballUrl: string): Answer => {
    const dist = { tarball: tarballUrl, integrity: 'sha512-AAAA' };
    return (_, response) =>
      void response.end(JSON.stringify({ 'dist-tags': { latest: '1.0.0' }, versions: { '1.0.0': { dist } } }));
  };
  const big = 'x'.repeat(2_000_000);

  it.each<[string, Packages, Partial<RepositoriesConfig>, string]>([
    ['that does not exist', {}, {}, 'does not have it'],
    ['in a version that does not exist', { 'x@1.0.0': npm() }, {}, 'it has no version 2.0.0'],
    ['that is no archive', { 'x@2.0.0': Buffer.from('<html>') }, {}, 'its archive is broken'],
    ['that is no tar', { 'x@2.0.0': gzipSync('x'.repeat(2_000)) }, {}, 'its archive is broken'],
    ['that ends too early', { 'x@2.0.0': tarball({ path: 'package/a', text: 'x', size: 9_000 }) }, {}, 'is broken'],
    [
      'larger than its limit',
      { 'x@2.0.0': tarball({ path: 'p/a', text: big }) },
      { size: 1e6 },
      'Raise repositories.size',
    ],
    [
      'whose archive is larger than its limit',
      { 'x@2.0.0': Buffer.from(big) },
      { size: 1e6 },
      'Raise repositories.size',
    ],
  ])('%s', async (_, packages, more, why) => {
    const { analyze, work } = await source(packages);
    await expect(analyze('npm:x@2.0.0', more)).rejects.toThrow(why);
    expect(readdirSync(join(work.dataDir, 'repos'))).toEqual([]);
  });

  it.each([
    ['of this machine', 'http://127.0.0.1:1/x.tgz', 'is not an https address'],
    ['of a private network', 'https://10.0.0.1/x.tgz', 'leads to a private address'],
    ['of another kind', 'file:///etc/passwd', 'is not an https address'],
  ])('if its archive is at an address %s, named or redirected to', async (_, address, why) => {
    const named = await source({ '/npm/x': document(address) });
    await expect(named.analyze('npm:x')).rejects.toThrow(why);
    const led = await source({ '/npm/x': redirect(address) });
    await expect(led.analyze('npm:x')).rejects.toThrow(why);
  });

  it('if its checksum is another, its registry leads in a circle or is away, or it takes too long', async () => {
    const { server, analyze } = await source({
      'x@1.0.0': npm(),
      '/npm/y': (_, response) => document(`${server.origin}/files/x@1.0.0`)(_, response),
      '/npm/z': redirect('/npm/z'),
      '/npm/slow': () => {},
    });
    await expect(analyze('npm:y')).rejects.toThrow('differs from the checksum of the registry');
    await expect(analyze('npm:z')).rejects.toThrow('without end');
    await expect(analyze('npm:slow', { timeout: 300 })).rejects.toThrow('Raise repositories.timeout');
    const work: Work = {
      dataDir: tempFolder(),
      env: { npm_config_registry: `http://user:geheim@127.0.0.1:${await freePort()}` },
      signal: null,
      progress: () => {},
    };
    const away = analyzeRepo('npm:x', CONFIG, work);
    await expect(away).rejects.toThrow('ECONNREFUSED');
    await expect(away).rejects.not.toThrow('geheim');
    await expect(analyzeRepo('npm:x', CONFIG, { ...work, signal: AbortSignal.abort() })).rejects.toThrow('cancelled');
  });

  it.each([
    'npm:',
    'npm:../x',
    'npm:x@^1.0.0',
    'npm:x@latest;id',
    'npm:$(id)',
    'npm:x y',
    'npm:file:/etc',
    'npm:@a/b/c',
    'pypi:-e .',
    'pypi:x @ https://evil.example/x.whl',
    'pypi:x[extra]',
    `npm:${'a'.repeat(300)}`,
    'npm:x\0',
  ])('if it is %j', async (url) => {
    const { analyze, server, work } = await source({});
    await expect(analyze(url)).rejects.toThrow('is not a package');
    expect(server.requests).toEqual([]);
    expect(existsSync(join(work.dataDir, 'repos'))).toBe(false);
  });

  it('if a wheel lies about its sizes', async () => {
    const { analyze } = await source({
      'a-1.0-py3-none-any.whl': zip({ path: 'a.py', text: big, size: 10 }),
      'b-1.0-py3-none-any.whl': zip({ path: 'a.py', text: 'x', size: 100 }),
      'c-1.0-py3-none-any.whl': zip({ path: 'a.py', text: 'x', size: 0xffff_ffff }),
    });
    await expect(analyze('pypi:a')).rejects.toThrow('its archive is broken');
    await expect(analyze('pypi:b')).rejects.toThrow('its archive is broken');
    await expect(analyze('pypi:c')).rejects.toThrow('Raise repositories.size');
  });
});
