/**
 * Environments of Python tools: created with uv and pip from the registry, and with a fake installer that fails on
 * demand.
 */
import { chmodSync, existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { forgetPythonFailures, preparePython } from '../../src/workers/python-environment.ts';
import { caches, uv } from '../support/installer.ts';
import { patient } from '../support/patience.ts';
import { running, waitFor } from '../support/processes.ts';
import { basePython, noPython, prepare, startHost } from '../support/python.ts';
import { type Files, tempFolder, writeFiles } from '../support/temp.ts';

interface Attempt {
  readonly dataDir?: string;
  readonly namespace?: string;
  readonly env?: Record<string, string>;
  readonly installTimeout?: number;
  readonly signal?: AbortSignal;
  readonly isolation?: 'auto' | 'off';
}

const make = async (files: Files | string, attempt: Attempt = {}) => {
  const { namespace = 'ns', signal = null, env = {}, installTimeout = patient(120_000), isolation = 'auto' } = attempt;
  const dataDir = attempt.dataDir ?? tempFolder();
  const folder = typeof files === 'string' ? files : tempFolder(files);
  const said: string[] = [];
  const request = {
    namespace,
    folder,
    dataDir,
    env: { ...process.env, ...caches, ...env },
    signal,
    isolation,
    packages: 'registry' as const,
    progress: (message: string) => said.push(message),
  };
  const environment = await preparePython(request, { installTimeout });
  return { environment, said, dataDir };
};

describe.skipIf(noPython)('the environment of Python tools', () => {
  it('is shared by all folders without requirements', async () => {
    const base = await basePython();
    const other = await prepare(tempFolder({ 'requirements.txt': '# nothing yet\n' }), {
      ...process.env,
      TOOLGATE_UV: 'off',
    });
    expect(other).toEqual({ ...base, versions: expect.any(Function) });
    expect(base.command.slice(0, -1)).toEqual([
      expect.stringMatching(/\/venvs\/_base\/.*\/bin\/python$/),
      '-I',
      '-B',
      '-u',
      '-X',
      'utf8',
    ]);
    expect(base.env.PATH?.startsWith(base.env.VIRTUAL_ENV!)).toBe(true);
    expect(base.reads).toContain(base.env.VIRTUAL_ENV);
    for (const path of [...base.reads, base.command.at(-1)!]) expect(existsSync(path)).toBe(true);
  });

  it('contains the requirements of the folder, including nested files, and the oldest supported FastMCP', async () => {
    const files = {
      'requirements.txt': '-r more/own.txt\n-c more/limits.txt\nfastmcp<4\n',
      'more/own.txt': 'iniconfig\n',
      'more/limits.txt': 'iniconfig<2.1\nfastmcp==3.4.0\n',
      'tools.py': `
import subprocess
from importlib.metadata import version
import iniconfig
from fastmcp import Context
from fastmcp.tools import tool

@tool
def versions() -> dict[str, str]:
    return {name: version(name) for name in ("iniconfig", "fastmcp")}

@tool
async def tells(ctx: Context) -> str:
    await ctx.info("hello")
    await ctx.report_progress(1, 2)
    return ctx.request_id

@tool
def which() -> str:
    return subprocess.run(["which", "python"], capture_output=True, text=True).stdout.strip()
`,
    };
    const environment = await prepare(tempFolder(files), { ...process.env, TOOLGATE_UV: uv });
    const host = await startHost(files, { environment });
    expect(host.ready.failed).toEqual([]);
    expect((await host.call('versions')).result?.structuredContent).toEqual({
      iniconfig: expect.stringMatching(/^2\.0/),
      fastmcp: '3.4.0',
    });
    expect((await host.call('tells', {}, { id: 'me', progress: true })).result?.structuredContent).toEqual({
      result: 'me',
    });
    expect(host.events.map(({ op }) => op)).toEqual(['log', 'progress']);
    expect((await host.call('which')).result?.structuredContent).toEqual({ result: environment.command[0] });
    expect((await host.call('versions', { x: 1 })).error?.code).toBe('invalid_arguments');
  }, 180_000);

  it('is built by pip on top of the shared one, which has FastMCP already', async () => {
    const files = {
      'requirements.txt': 'iniconfig<2.1\n',
      'tools.py': `
import fastmcp, iniconfig
from fastmcp.tools import tool

@tool
def files() -> list[str]:
    return [fastmcp.__file__, iniconfig.__file__]
`,
    };
    const base = await basePython();
    const environment = await prepare(tempFolder(files), { ...process.env, TOOLGATE_UV: 'off' });
    const own = environment.env.VIRTUAL_ENV!;
    expect(own).not.toBe(base.env.VIRTUAL_ENV);
    // Isolation shows the worker both.
    expect(environment.reads).toEqual(expect.arrayContaining([own, base.env.VIRTUAL_ENV]));
    const host = await startHost(files, { environment });
    expect((await host.call('files')).result?.structuredContent).toEqual({
      result: [expect.stringContaining(base.env.VIRTUAL_ENV!), expect.stringContaining(own)],
    });
  }, 180_000);

  it.each(['uv', 'pip'])(
    'rejects an unsupported FastMCP version, and does not run %s twice for it',
    async (installer) => {
      const folder = tempFolder({ 'requirements.txt': 'iniconfig\nfastmcp==2.14.5\n' });
      const attempt = { dataDir: tempFolder(), env: { TOOLGATE_UV: installer === 'uv' ? uv : 'off' } };
      const words =
        'requirements.txt asks for a version of FastMCP that tools in a folder cannot use; it has to be fastmcp>=3.4,<5. Change or remove that line.';
      await expect(make(folder, attempt)).rejects.toMatchObject({
        message: words,
        log: expect.stringContaining('2.14.5'),
      });
      const started = performance.now();
      await expect(make(folder, attempt)).rejects.toThrow(words);
      expect(performance.now() - started).toBeLessThan(patient(1_000));
    },
    // pip builds the shared environment first.
    600_000,
  );

  it('reports a package that does not exist', async () => {
    const name = 'a-package-that-nobody-has-made';
    await expect(make({ 'requirements.txt': `${name}\n` }, { env: { TOOLGATE_UV: uv } })).rejects.toMatchObject({
      message: expect.stringMatching(new RegExp(`^The packages could not be installed for "ns": .*${name}`)),
      log: expect.stringContaining(name),
    });
  });

  it('is abandoned after a timeout or when aborted, and leaves no process', async () => {
    const dataDir = tempFolder();
    const late = make({}, { dataDir, env: { TOOLGATE_UV: 'off' }, installTimeout: 600 });
    await expect(late).rejects.toThrow('The virtual environment could not be created: it took longer than 1 s.');
    await waitFor(() => running(dataDir).length === 0);

    const stop = new AbortController();
    const other = tempFolder();
    const stopped = make({}, { dataDir: other, env: { TOOLGATE_UV: 'off' }, signal: stop.signal });
    stopped.catch(() => {});
    await waitFor(() => running(other).length > 0);
    stop.abort();
    await expect(stopped).rejects.toThrow('Building the environment was stopped.');
    await waitFor(() => running(other).length === 0);
    expect(
      readdirSync(join(other, 'venvs', '_base')).flatMap((key) => readdirSync(join(other, 'venvs', '_base', key))),
    ).toEqual([]);
  });

  it('is not created without Python or with a broken installer', async () => {
    await expect(make({}, { env: { PATH: tempFolder() } })).rejects.toThrow('Python 3.10 or newer was not found.');
    await expect(make({}, { env: { TOOLGATE_UV: '/gone/uv' } })).rejects.toThrow(
      'TOOLGATE_UV is "/gone/uv", which does not run. Correct it, or set it to "off".',
    );
    await expect(make({ 'requirements.txt': '-r gone.txt\n' })).rejects.toThrow(
      'requirements.txt, line 1: the file "gone.txt" does not exist',
    );
  });
});

/**
 * With a replacement for uv: it quickly derives an environment from an existing one and runs a given command on the
 * way.
 */
describe.skipIf(noPython)('an installation of Python packages', () => {
  let python: string;
  beforeAll(async () => {
    python = (await basePython()).command[0]!;
  }, 180_000);

  /** Not isolated, because the replacement writes its marks elsewhere. */
  const makeFree = (files: Files | string, attempt: Attempt) => make(files, { ...attempt, isolation: 'off' });

  const installer = (onInstall: string): string => {
    const script = `#!/bin/sh
for last; do :; done
case "$1 $2" in
  venv*) mkdir -p "$last/bin" && printf '#!/bin/sh\\nexec ${python} "$@"\\n' > "$last/bin/python" && chmod +x "$last/bin/python" ;;
  "pip install") ${onInstall} ;;
esac
`;
    const file = join(tempFolder({ uv: script }), 'uv');
    chmodSync(file, 0o755);
    return file;
  };

  it('is retried after its recorded failure is cleared', async () => {
    const folder = tempFolder({ 'requirements.txt': 'x\n' });
    const mark = join(tempFolder(), 'fixed');
    const attempt = {
      dataDir: tempFolder(),
      env: { TOOLGATE_UV: installer(`test -e ${mark} || { echo "error: the registry is away"; exit 1; }`) },
    };
    const words = 'The packages could not be installed for "ns": the registry is away';
    await expect(makeFree(folder, attempt)).rejects.toThrow(words);
    writeFileSync(mark, '');
    await expect(makeFree(folder, attempt)).rejects.toThrow(words);
    await forgetPythonFailures(attempt.dataDir, 'ns');
    const { environment, said } = await makeFree(folder, attempt);
    expect(said).toEqual([
      expect.stringMatching(/^creating a virtual environment with Python 3\./),
      'installing 1 package and FastMCP',
    ]);
    expect(environment.command[0]).toContain(join(attempt.dataDir, 'venvs', 'ns', environment.key));
    // The environment is only checked, and no progress is reported.
    expect((await makeFree(folder, attempt)).said).toEqual([]);
  });

  it('on a full disk reports that and leaves nothing behind', async () => {
    const dataDir = tempFolder();
    const env = { TOOLGATE_UV: installer('echo "OSError: [Errno 28] No space left on device"; exit 1') };
    await expect(makeFree({ 'requirements.txt': 'x\n' }, { dataDir, env })).rejects.toThrow(
      'The packages could not be installed for "ns": the disk is full.',
    );
    const [key] = readdirSync(join(dataDir, 'venvs', 'ns'));
    expect(readdirSync(join(dataDir, 'venvs', 'ns', key!))).toEqual(['failed.json']);
  });

  it('gets the package index variables but none of ours, and passwords in URLs are redacted', async () => {
    const seen = join(tempFolder(), 'env');
    const env = {
      TOOLGATE_UV: installer(`env > ${seen}; echo "error: $PIP_INDEX_URL did not answer"; exit 1`),
      PIP_INDEX_URL: 'https://me:secret-word@packages.example/simple',
      PIP_TARGET: '/elsewhere',
      HTTPS_PROXY: 'http://proxy.example',
      SECRETS_KEY: 'ours',
      TOOLGATE_TOKEN: 'ours',
      AWS_SECRET_ACCESS_KEY: 'ours',
    };
    await expect(makeFree({ 'requirements.txt': 'x\n' }, { env })).rejects.toMatchObject({
      message: 'The packages could not be installed for "ns": https://***@packages.example/simple did not answer',
      log: expect.not.stringContaining('secret-word'),
    });
    const passed = readFileSync(seen, 'utf8');
    expect(passed).toContain('PIP_INDEX_URL=https://me:secret-word@');
    expect(passed).toContain('HTTPS_PROXY=');
    expect(passed).not.toMatch(/ours|PIP_TARGET|^TOOLGATE_/m);
  });

  it('is repeated if the requirements change while it runs', async () => {
    const folder = tempFolder({ 'requirements.txt': 'a\n' });
    const count = join(tempFolder(), 'count');
    const env = { TOOLGATE_UV: installer(`echo x >> ${count}; echo b > ${folder}/requirements.txt`) };
    const { environment, dataDir } = await makeFree(folder, { env });
    expect(readFileSync(count, 'utf8')).toBe('x\nx\n');
    expect((await makeFree(folder, { env, dataDir })).environment.key).toBe(environment.key);
    expect(readFileSync(count, 'utf8')).toBe('x\nx\n');
  });

  it('is redone for every change of its inputs, and only the previous environment is kept', async () => {
    const dataDir = tempFolder();
    const folder = tempFolder({ 'requirements.txt': 'a\n-r b.txt\n', 'b.txt': 'b\n' });
    const env = { TOOLGATE_UV: installer('true') };
    const keys: string[] = [];
    const next = async (more: Record<string, string> = {}) => {
      keys.push((await makeFree(folder, { dataDir, env: { ...env, ...more } })).environment.key);
    };
    await next();
    writeFiles(folder, { 'b.txt': 'b<2\n' });
    await next();
    await next({ PIP_INDEX_URL: 'https://packages.example' });
    rmSync(join(folder, 'requirements.txt'));
    writeFiles(folder, { 'requirements.txt': 'c\n' });
    await next();
    expect(new Set(keys).size).toBe(4);
    expect(readdirSync(join(dataDir, 'venvs', 'ns')).sort()).toEqual(keys.slice(-2).sort());
    // Another namespace has its own environment.
    const other = await makeFree(folder, { dataDir, env, namespace: 'other' });
    expect(other.environment.key).toBe(keys.at(-1));
    expect(other.environment.command[0]).toContain('/venvs/other/');
  });
});
