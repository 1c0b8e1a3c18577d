/** Servers that `npx` installs: they are installed once, and started without `npx`. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { expect, it } from 'vitest';
import { startStdio } from '../support/gateway.ts';
import { startRegistry } from '../support/npm-registry.ts';
import { callText, toml } from '../support/running-gateway.ts';
import { tempFolder } from '../support/temp.ts';

const INHERITED = ['PATH', 'INIT_CWD', 'NODE', 'npm_execpath', 'npm_config_user_agent', 'npm_lifecycle_event', 'TOKEN'];

async function whoami(client: Client, namespace: string) {
  const text = await callText(client, `${namespace}_whoami`, { env: INHERITED });
  return JSON.parse(text) as { name: string; pid: number; argv: string[]; env: Record<string, string | null> };
}

function parentOf(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]);
}

it('installs a package once, starts its program without npx, and later without asking npm at all', async () => {
  const registry = await startRegistry(
    { name: '@acme/notes', version: '1.2.0', bins: ['notes-server'] },
    { name: 'many', version: '2.0.0', bins: ['other', 'many'] },
  );
  const env = registry.env();
  const cwd = tempFolder();
  const notes = 'npx -y @acme/notes@1.2.0 --tools whoami';
  const first = await startStdio({
    // The programs are its children.
    process: false,
    cwd,
    env,
    config: toml(
      [
        // The variable makes a shell expand the arguments.
        { namespace: 'a', command: `${notes} --instructions "$TOKEN"`, env: { TOKEN: 'not for installs' } },
        { namespace: 'b', command: notes },
        { namespace: 'many', command: 'npx -y many --tools whoami' },
      ],
      { start_wait: '60s' },
    ),
  });
  const a = await whoami(first.client, 'a');
  const b = await whoami(first.client, 'b');
  const many = await whoami(first.client, 'many');
  expect(a).toMatchObject({
    name: 'notes-server 1.2.0',
    argv: ['--tools', 'whoami', '--instructions', 'not for installs', '--name', 'notes-server 1.2.0'],
  });
  // The program that has the name of the package.
  expect([b.name, many.name]).toEqual(['notes-server 1.2.0', 'many 2.0.0']);
  expect([a, b, many].map(({ pid }) => parentOf(pid))).toEqual([process.pid, process.pid, process.pid]);
  expect(registry.requests.filter((path) => path.endsWith('.tgz'))).toEqual(
    expect.arrayContaining(['@acme/notes/-/1.2.0.tgz', 'many/-/2.0.0.tgz']),
  );
  expect(registry.requests.filter((path) => path === '@acme/notes/-/1.2.0.tgz')).toHaveLength(1);
  await first.stop();

  registry.requests.length = 0;
  const [record] = readdirSync(join(env.HOME!, '.cache/toolgate/packages'));
  expect(readFileSync(join(env.HOME!, '.cache/toolgate/packages', record!), 'utf8')).not.toContain('not for installs');
  const second = await startStdio({
    // The programs are its children.
    process: false,
    cwd,
    env,
    config: toml([{ namespace: 'b', command: notes }], { start_wait: '60s' }),
  });
  const again = await whoami(second.client, 'b');
  expect(registry.requests).toEqual([]);
  expect(parentOf(again.pid)).toBe(process.pid);
  await second.stop();

  const third = await startStdio({
    // The programs are its children.
    process: false,
    cwd,
    env,
    config: toml([{ namespace: 'written', command: notes }], { start_wait: '60s', resolve_packages: false }),
  });
  const written = await whoami(third.client, 'written');
  expect(parentOf(written.pid)).not.toBe(process.pid);
  expect(again).toEqual({ ...written, pid: again.pid });
  expect(again.env.PATH).toMatch(/\/npm\/_npx\/[0-9a-f]{16}\/node_modules\/\.bin:/);
});

it('reports why a package cannot be installed', async () => {
  const registry = await startRegistry();
  const { client, stop, stderr } = await startStdio({
    // The programs are its children.
    process: false,
    env: registry.env(),
    config: toml([{ namespace: 'x', command: 'npx -y @acme/missing' }], { start_wait: '60s' }),
  });
  expect((await client.listTools()).tools.map(({ name }) => name)).toEqual(['toolman_activate']);
  await stop();
  expect(stderr()).toContain('npx could not install @acme/missing: the registry does not have it');
});
