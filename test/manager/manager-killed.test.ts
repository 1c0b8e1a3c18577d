/** The manager as a process: `serve` starts it, starts it again, and ends it; a kill at any moment leaves whole files and a core that answers. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { parse } from 'yaml';
import { untilPrinted } from '../support/child.ts';
import { startCli } from '../support/cli.ts';
import { connectHttp } from '../support/connection.ts';
import { startHttp } from '../support/gateway.ts';
import { freePort } from '../support/ports.ts';
import { waitFor } from '../support/processes.ts';
import { createRandom } from '../support/random.ts';
import { gitRepository } from '../support/repository.ts';
import { useProcesses } from '../support/switch.ts';
import { isSoak, isWide } from '../support/wide.ts';

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

const AGENT = '[agents.helper]\ntoken = "of-the-helper-0123456789"\n';

it('is started for agents without BEARER_TOKEN where a policy names it, and says for whom', async () => {
  const port = await freePort();
  const policy =
    '[agent_policies.helper]\nallowed_servers = ["_system"]\n[agent_policies.helper.tool_overrides]\n_system = ["*"]\n';
  const files = { '.toolgate/tools/web/say.ts': code('one') };
  const env = { MANAGER_PORT: String(port) };
  const core = await startHttp({ config: `controls = []\n${AGENT}${policy}`, files, env, manager: true });
  await untilPrinted(core, new RegExp(`The manager is at http://127.0.0.1:${port}/mcp, for helper\n`));
  const { client } = await connectHttp(`http://127.0.0.1:${port}/mcp`, {
    authorization: 'Bearer of-the-helper-0123456789',
  });
  const ask = async (name: string) => {
    const { content } = await client.callTool({ name, arguments: {} });
    return JSON.parse((content as [{ text: string }])[0].text) as unknown;
  };
  expect(await ask('reload_core')).toMatchObject({ reloaded: true, namespaces: ['web'] });
  // The policy closes the folder to the agent, and its state is known nevertheless.
  expect(await ask('list_namespaces')).toMatchObject([{ name: 'web', state: 'up', tool_count: 1 }]);
});

it.each([
  ['without a credential', '', {}, [], 'The manager is off: it needs a credential.'],
  ['for agents that no policy names', AGENT, {}, [], 'The manager is off: no agent was given it.'],
  ['with --no-manager', '', { BEARER_TOKEN: 'of-the-client' }, ['--no-manager'], null],
  ['with manager = false', 'manager = false\n', { BEARER_TOKEN: 'of-the-client' }, [], null],
])('is not started %s', async (_, config, more, args, said) => {
  const port = await freePort();
  const files = { '.toolgate/tools/web/say.ts': code('one') };
  const env = { MANAGER_PORT: String(port), ...more };
  // In the process of the test: whether a manager was started can be seen at its port.
  const serve = startCli(['serve', '--port', '0', ...args], { config, files, env, process: isWide });
  await untilPrinted(serve, /Serving:/);
  expect(await healthOf(port)).toBe(false);
  if (said === null) expect(serve.stdout()).not.toContain('manager');
  else expect(serve.stdout()).toContain(said);
});

/** All paths, without drafts: names that begin with a dot and end so. Nobody reads those, and one may be removed just now. */
function pathsIn(dataDir: string, folder: string): string[] {
  return readdirSync(join(dataDir, folder), { withFileTypes: true })
    .filter(({ name }) => !/^\..*\.(?:new|old|tmp)$/.test(name))
    .flatMap((entry) => {
      const path = join(folder, entry.name);
      return entry.isDirectory() ? [path, ...pathsIn(dataDir, path)] : [path];
    });
}

/** Every file that the manager writes is whole: as it was before an operation, or as it is after it. */
function requireWhole(dataDir: string, whole: ReadonlySet<string>): void {
  const readable = (path: string) => readFileSync(join(dataDir, path), 'utf8');
  const paths = pathsIn(dataDir, '');
  for (const path of paths) {
    if (/^tools\/[^.][^/]*\/say\.ts$|\.history\/say\.ts\/[^.]+Z(?:-\d+)?$/.test(path))
      expect(whole.has(readable(path)), path).toBe(true);
    else if (/^tools\/[^.][^/]*\/tooldock\.yaml$/.test(path))
      expect(parse(readable(path)), path).toHaveProperty('description');
    else if (/^tools\/[^.][^/]*\/package\.json$|^repos\/[^.][^/]*\/origin\.json$/.test(path))
      JSON.parse(readable(path));
    else if (path === 'secrets.meta.yaml') expect(parse(readable(path)), path).toBeTypeOf('object');
    else if (/^repos\/[0-9a-f]{32}$/.test(path)) expect(paths, path).toContain(`${path}/origin.json`);
  }
}

/** Every operation is cut more than twice in a wide run. */
const KILLS = isSoak ? 100 : isWide ? 30 : 3;
it(`leaves whole files and a core that answers, ${KILLS} times killed at random moments`, async () => {
  const random = createRandom();
  const files = { '.toolgate/tools/web/say.ts': code('one') };
  const env = {
    MANAGER_INTERNAL_TOKEN: 'of-the-manager',
    BEARER_TOKEN: 'of-the-client',
    // So that nothing is installed: the attempt and its end are what is cut.
    npm_config_registry: 'http://127.0.0.1:9',
    npm_config_fetch_retries: '0',
  };
  const core = await startHttp({ config: 'controls = []\nrepositories.from = "local"\n', files, env });
  const repo = gitRepository({ 'src/a.ts': "server.registerTool('a', { description: 'A' }, run);\n" });
  const dataDir = join(core.cwd, '.toolgate');
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
  let begun = 0;
  const at = { namespace: 'web', filename: 'say.ts' };
  const operations: readonly (() => [string, Record<string, unknown>])[] = [
    () => ['write_tool', { ...at, code: code(`text${written++ % 1_000}`) }],
    () => ['create_namespace', { name: 'extra' }],
    () => ['generate_tool', { namespace: 'extra', filename: 'say.ts', code: code('one') }],
    () => ['configure_namespace', { namespace: 'extra', description: `The ${written}th` }],
    () => ['prepare_secret', { key: `KEY_${written}` }],
    () => ['remove_secret', { key: `KEY_${written}` }],
    () => ['restore_tool', at],
    () => ['analyze_repo', { repo_url: repo }],
    () => ['delete_tool', { namespace: 'extra', filename: 'say.ts' }],
    () => ['add_requirement', { namespace: 'extra', package: 'tiny', language: 'typescript' }],
    () => ['delete_namespace', { name: 'extra' }],
    () => ['reload_core', {}],
  ];
  const first = random.number(operations.length);
  for (let round = 0; round < KILLS; round++) {
    const manager = startCli(['manager', '--port', '0'], {
      cwd: core.cwd,
      env: { ...env, HOME: core.cwd, CORE_URL: core.origin },
    });
    const [, url] = await untilPrinted(manager, /listening on (http\S+)/).catch((error: Error) => {
      throw new Error(`round ${round}: ${error.message}\n${manager.stderr()}`);
    });
    let isKilled = false;
    const before = begun;
    // Each round begins with the next operation, so that every one of them is cut.
    let next = first + round;
    const working = (async () => {
      const { client } = await connectHttp(url!, { authorization });
      while (!isKilled) {
        const [name, args] = operations[next++ % operations.length]!();
        begun++;
        await client.callTool({ name, arguments: args });
      }
    })().catch(() => {});
    await waitFor(() => begun > before);
    await sleep(random.number(400));
    manager.signal('SIGKILL');
    isKilled = true;
    await manager.exited;
    await Promise.race([working, sleep(5_000)]);
    requireWhole(dataDir, whole);
  }
  isOver = true;
  await calling;
  expect(begun).toBeGreaterThanOrEqual(KILLS);
  expect({ failed, hasCalls: calls > 10 }).toEqual({ failed: 0, hasCalls: true });
}, 1_800_000);
