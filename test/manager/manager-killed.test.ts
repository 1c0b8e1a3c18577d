/** The manager as a process: `serve` starts it, starts it again, and ends it; a kill at any moment leaves whole files and a core that answers. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { untilPrinted } from '../support/child.ts';
import { startCli } from '../support/cli.ts';
import { connectHttp } from '../support/connection.ts';
import { startHttp } from '../support/gateway.ts';
import { freePort } from '../support/ports.ts';
import { waitFor } from '../support/processes.ts';
import { createRandom } from '../support/random.ts';
import { useProcesses } from '../support/switch.ts';
import { isWide } from '../support/wide.ts';

useProcesses();

const authorization = 'Bearer of-the-client';
const code = (name: string) =>
  `export const say = { description: 'Says ${name}.', inputSchema: { type: 'object' }, execute: () => '${name}' };\n${`// ${name}\n`.repeat(2_000)}`;

const healthOf = (port: number) =>
  fetch(`http://127.0.0.1:${port}/health`).then(
    ({ ok }) => ok,
    () => false,
  );

it('is started by serve where there are folders of tools, started again if it ends, and ends with it', async () => {
  const port = await freePort();
  const env = { BEARER_TOKEN: 'of-the-client', MANAGER_PORT: String(port) };
  const files = { '.toolgate/tools/web/say.ts': code('one') };
  const core = await startHttp({ config: 'controls = []\n', files, env, manager: true });
  await untilPrinted(core, new RegExp(`The manager is at http://127.0.0.1:${port}/mcp`));
  const ask = async (name: string) => {
    const { client } = await connectHttp(`http://127.0.0.1:${port}/mcp`, { authorization });
    const { content } = await client.callTool({ name, arguments: {} });
    return JSON.parse((content as [{ text: string }])[0].text) as unknown;
  };
  // Nobody set MANAGER_INTERNAL_TOKEN: the two share a random one.
  expect(await ask('reload_core')).toMatchObject({ reloaded: true, namespaces: ['web'] });
  const pids = () =>
    readdirSync('/proc')
      .filter((pid) => /^\d+$/.test(pid))
      .filter((pid) => {
        try {
          return (
            readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('\0manager') &&
            readFileSync(`/proc/${pid}/environ`, 'utf8').includes(`MANAGER_PORT=${port}`)
          );
        } catch {
          return false;
        }
      });
  const [first] = pids();
  process.kill(Number(first), 'SIGKILL');
  await waitFor(() => !pids().includes(first!) || null);
  await waitFor(() => healthOf(port), 30_000);
  expect(await ask('health')).toMatchObject({ core_reachable: true });
  // No orphans, also after a kill.
  core.signal('SIGKILL');
  await core.exited;
  await waitFor(() => pids().length === 0 || null, 20_000);
});

it.each([
  ['without a token', {}, []],
  ['with --no-manager', { BEARER_TOKEN: 'of-the-client' }, ['--no-manager']],
  ['with manager = false', { BEARER_TOKEN: 'of-the-client' }, []],
])('is not started %s', async (how, more, args) => {
  const port = await freePort();
  const config = how.includes('false') ? 'manager = false\n' : '';
  const files = { '.toolgate/tools/web/say.ts': code('one') };
  const env = { MANAGER_PORT: String(port), ...more };
  // In the process of the test: whether a manager was started can be seen at its port.
  const serve = startCli(['serve', '--port', '0', ...args], { config, files, env, process: isWide });
  await untilPrinted(serve, /Serving:/);
  expect(await healthOf(port)).toBe(false);
  if (how === 'without a token') expect(serve.stdout()).toContain('The manager is off: it needs BEARER_TOKEN.');
});

const KILLS = isWide ? 100 : 3;
it(`leaves whole files and a core that answers, ${KILLS} times killed at random moments`, async () => {
  const random = createRandom();
  const files = { '.toolgate/tools/web/say.ts': code('one') };
  const env = { MANAGER_INTERNAL_TOKEN: 'of-the-manager', BEARER_TOKEN: 'of-the-client' };
  const core = await startHttp({ config: 'controls = []\n', files, env });
  const tools = join(core.cwd, '.toolgate/tools');
  const whole = new Set(['one', ...Array.from({ length: 1_000 }, (_, i) => `text${i}`)].map(code));
  let failed = 0;
  let calls = 0;
  let isOver = false;
  const calling = (async () => {
    const { client } = await core.connect({ headers: { authorization } });
    while (!isOver) {
      calls++;
      const { isError } = await client.callTool({ name: 'web_say', arguments: {} });
      if (isError === true) failed++;
      await sleep(50);
    }
  })();
  let written = 0;
  for (let round = 0; round < KILLS; round++) {
    const manager = startCli(['manager', '--port', '0'], {
      cwd: core.cwd,
      env: { ...env, HOME: core.cwd, CORE_URL: core.origin },
    });
    const [, url] = await untilPrinted(manager, /listening on (http\S+)/);
    let isKilled = false;
    const working = (async () => {
      const { client } = await connectHttp(url!, { authorization });
      const call = (name: string, args: Record<string, unknown>) => client.callTool({ name, arguments: args });
      while (!isKilled) {
        const at = { namespace: 'web', filename: 'say.ts' };
        await call('write_tool', { ...at, code: code(`text${written++ % 1_000}`) });
        await call('create_namespace', { name: 'extra' });
        await call('write_tool', { namespace: 'extra', filename: 'say.ts', code: code('one') });
        await call('configure_namespace', { namespace: 'extra', description: `The ${written}th` });
        await call('prepare_secret', { key: `KEY_${written}` });
        await call('restore_tool', at);
        await call('delete_namespace', { name: 'extra' });
      }
    })().catch(() => {});
    await sleep(50 + random.number(400));
    manager.signal('SIGKILL');
    isKilled = true;
    await manager.exited;
    await Promise.race([working, sleep(5_000)]);
    expect(whole.has(readFileSync(join(tools, 'web/say.ts'), 'utf8'))).toBe(true);
    for (const version of readdirSync(join(tools, 'web'), { recursive: true, encoding: 'utf8' }))
      if (/\.history\/say\.ts\/[^.]+Z(?:-\d+)?$/.test(version))
        expect(whole.has(readFileSync(join(tools, 'web', version), 'utf8')), version).toBe(true);
  }
  isOver = true;
  await calling;
  expect(written).toBeGreaterThan(0);
  expect({ failed, hasCalls: calls > 10 }).toEqual({ failed: 0, hasCalls: true });
}, 600_000);
