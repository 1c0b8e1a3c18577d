/** npm packages of a namespace: installed from the registry, once per version of its package.json. */
import { chmodSync, existsSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { EnvironmentError, type EnvironmentRequest } from '../../src/workers/environment.ts';
import { forgetNodeFailures, prepareNode } from '../../src/workers/node-environment.ts';
import { startHttp } from '../support/gateway.ts';
import { alive, waitFor } from '../support/processes.ts';
import { logOf } from '../support/running-gateway.ts';
import { type Files, tempFolder, writeFiles } from '../support/temp.ts';
import { environmentRequest, startWorker, textOf } from './worker.ts';

const manifest = (dependencies: Record<string, string>, more: object = {}) =>
  JSON.stringify({ private: true, dependencies, ...more });

const usesMs = `
  import ms from 'ms';
  export const parse = { description: 'x', inputSchema: { type: 'object' }, execute: ({ text }) => String(ms(text)) };`;

function request(files: Files): EnvironmentRequest & { said: string[] } {
  const said: string[] = [];
  // A second request that waits for the same installation reports progress too, which is not counted here.
  const progress = (message: string) => message.startsWith('installing') && said.push(message);
  return { ...environmentRequest(tempFolder(files)), progress, said };
}

/** The installed packages, one folder per version of package.json. */
function environments({ dataDir }: EnvironmentRequest): string[] {
  const root = join(dataDir, 'venvs/demo.node');
  const ready = readdirSync(root).filter((key) => existsSync(join(root, key, 'ready.json')));
  return ready.map((key) => join(root, key, JSON.parse(readFileSync(join(root, key, 'ready.json'), 'utf8')).folder));
}

/** The error of an environment that cannot be created. */
async function failure(of: Promise<unknown>): Promise<EnvironmentError> {
  const error = await of.then(
    () => null,
    (thrown: unknown) => thrown,
  );
  expect(error).toBeInstanceOf(EnvironmentError);
  return error as EnvironmentError;
}

describe('npm packages', () => {
  it('are installed and can be imported by the tools', { timeout: 90_000 }, async () => {
    const worker = await startWorker({ 'a.ts': usesMs, 'package.json': manifest({ ms: '2.1.3' }) });
    expect(worker.failed).toEqual([]);
    expect(textOf(await worker.result('parse', { text: '2 days' }))).toBe('172800000');
  });

  it('follow the lock file if there is one', { timeout: 90_000 }, async () => {
    const lock = {
      name: 'x',
      lockfileVersion: 3,
      requires: true,
      packages: {
        '': { name: 'x', dependencies: { ms: '^2.0.0' } },
        'node_modules/ms': {
          version: '2.1.2',
          integrity: 'sha512-sGkPx+VjMtmA6MX27oA4FBFELFCZZ4S4XqeGOXCv68tT+jb3vk/RyaKWP0PTKyWtmLSM0b+adUTEvbs1PEaH2w==',
        },
      },
    };
    const asked = request({
      'package.json': manifest({ ms: '^2.0.0' }, { name: 'x' }),
      'package-lock.json': JSON.stringify(lock),
    });
    await prepareNode(asked);
    const [made] = environments(asked);
    const installed = join(made!, 'node_modules/ms/package.json');
    expect(JSON.parse(readFileSync(installed, 'utf8')).version).toBe('2.1.2');
  });

  it('are installed once, and again when package.json changes', { timeout: 120_000 }, async () => {
    const asked = request({ 'a.ts': usesMs, 'package.json': manifest({ ms: '2.1.3' }) });
    const [first, same] = await Promise.all([prepareNode(asked), prepareNode(asked)]);
    expect(same!.key).toBe(first!.key);
    expect(asked.said).toEqual(['installing 1 package with npm']);
    expect((await prepareNode(asked)).key).toBe(first!.key);
    expect(asked.said).toHaveLength(1);
    expect(first!.command.slice(1, 3)).toEqual(['--enable-source-maps', '--max-old-space-size=512']);

    writeFiles(asked.folder, { 'package.json': manifest({ ms: '2.0.0' }) });
    const next = await prepareNode(asked);
    expect(next.key).not.toBe(first!.key);
    expect(asked.said).toHaveLength(2);
    // The previous environment is kept for a worker that still runs in it.
    expect(environments(asked)).toHaveLength(2);
  });

  it('never run install scripts', { timeout: 90_000 }, async () => {
    const asked = request({
      'package.json': manifest({ ms: '2.1.3' }, { scripts: { postinstall: 'touch ran', prepare: 'touch ran' } }),
    });
    const { reads } = await prepareNode(asked);
    const [made] = environments(asked);
    expect(existsSync(join(made!, 'ran'))).toBe(false);
    expect(reads.every((path) => existsSync(path))).toBe(true);
  });

  it('do not need npm if package.json names none', async () => {
    const env = { PATH: '/nowhere' };
    // A sandbox would find the npm next to Node.
    const asked = {
      ...request({ 'a.ts': 'export {};', 'package.json': '{"type":"commonjs"}' }),
      isolation: 'off',
    } as const;
    await prepareNode({ ...asked, env });
    expect(asked.said).toEqual([]);
    writeFiles(asked.folder, { 'package.json': manifest({ ms: '2.1.3' }) });
    expect((await failure(prepareNode({ ...asked, env }))).message).toContain('npm was not found');
  });
});

describe('npm packages that cannot be installed', () => {
  it('are reported with the reason, and not retried immediately', { timeout: 120_000 }, async () => {
    const asked = request({ 'a.ts': usesMs, 'package.json': manifest({ ms: '99.99.99' }) });
    const error = await failure(prepareNode(asked));
    expect(error.message).toMatch(/^npm could not install the packages: .*ms@99\.99\.99/);
    expect(error.log).toContain('npm error');
    expect(asked.said).toHaveLength(1);
    expect((await failure(prepareNode(asked))).message).toBe(error.message);
    expect(asked.said).toHaveLength(1);
    await forgetNodeFailures(asked);
    await failure(prepareNode(asked));
    expect(asked.said).toHaveLength(2);
    expect(environments(asked)).toEqual([]);
  });

  it('are abandoned after the timeout, together with all processes npm has started', { timeout: 60_000 }, async () => {
    const bin = tempFolder({ npm: '#!/bin/sh\nsleep 30 &\necho started $!\n: > "$0.started"\nwait\n' });
    chmodSync(join(bin, 'npm'), 0o755);
    const env = { PATH: `${bin}:${process.env.PATH}` };
    // Not isolated, because this npm writes next to itself.
    const asked = { ...request({ 'package.json': manifest({ ms: '2.1.3' }) }), isolation: 'off' } as const;
    const error = await failure(prepareNode({ ...asked, env }, { installTimeout: 1500 }));
    expect(error.message).toContain('npm did not finish within 1.5 s');
    expect(error.log).toMatch(/^started \d+\n$/);
    expect(alive(Number(/\d+/.exec(error.log)![0]))).toBe(false);

    const abort = new AbortController();
    await forgetNodeFailures(asked);
    rmSync(join(bin, 'npm.started'));
    const stopped = failure(prepareNode({ ...asked, env, signal: abort.signal }));
    await waitFor(() => existsSync(join(bin, 'npm.started')));
    abort.abort();
    expect((await stopped).message).toContain('was stopped');
  });

  it('are reported if package.json is invalid JSON', async () => {
    const asked = request({ 'package.json': '{ "dependencies": ' });
    expect((await failure(prepareNode(asked))).message).toContain('package.json is not valid JSON');
  });
});

it('an install is reported as progress of the start, not as a warning', { timeout: 90_000 }, async () => {
  const files = { '.toolgate/tools/demo/a.ts': usesMs, '.toolgate/tools/demo/package.json': manifest({ ms: '2.1.3' }) };
  const gateway = await startHttp({ config: 'controls = []', files, args: ['--log-level', 'info'] });
  const lines = logOf(gateway).filter(({ source }) => source === 'demo');
  expect(lines.map(({ level, message }) => [level, message])).toContainEqual([
    'info',
    'starting: installing 1 package with npm',
  ]);
  expect(lines.filter(({ level }) => level !== 'info')).toEqual([]);
});
