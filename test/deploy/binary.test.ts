/** The single file that `npm run binary` makes: it needs no Node, and does what an installed Toolgate does. */
import { execFile } from 'node:child_process';
import { copyFileSync, readdirSync, readFileSync, statSync, truncateSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { beforeAll, expect, it } from 'vitest';
import { startChild } from '../support/child.ts';
import { openPipe } from '../support/connection.ts';
import { root } from '../support/docs-page.ts';
import { waitFor } from '../support/processes.ts';
import { pidOf } from '../support/running-gateway.ts';
import { server, serversToml } from '../support/server.ts';
import { tempFolder } from '../support/temp.ts';

const run = promisify(execFile);
const binary = join(tempFolder(), 'toolgate');

beforeAll(async () => {
  await run(process.execPath, [join(root, 'scripts/binary.mjs'), binary], { cwd: root });
}, 300_000);

/** A user who has never run it. */
function user() {
  const home = tempFolder();
  const runtime = tempFolder();
  const env = { HOME: home, XDG_RUNTIME_DIR: runtime, PATH: '/usr/bin:/bin', TOOLGATE_TRUST: '1' };
  const cache = join(home, '.cache/toolgate/program');
  const use = (cwd: string, ...args: string[]) => run(binary, args, { cwd, env });
  return { home, env, cache, use };
}

it('unpacks itself once, for this user only, also if it is started several times at once', async () => {
  const { cache, use } = user();
  const cwd = tempFolder();
  const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string };
  const all = await Promise.all(Array.from({ length: 4 }, () => use(cwd, '--version')));
  for (const { stdout, stderr } of all) expect([stdout, stderr]).toEqual([`${version}\n`, '']);
  const [name, ...more] = readdirSync(cache);
  expect([name, more]).toEqual([expect.stringMatching(/^[\d.]+-[0-9a-f]{12}$/), []]);
  expect(statSync(join(cache, name!)).mode & 0o777).toBe(0o700);
  const made = statSync(join(cache, name!)).ctimeMs;
  await use(cwd, '--help');
  expect(statSync(join(cache, name!)).ctimeMs).toBe(made);
});

it('serves tools in TypeScript files, with the Node that it brings', async () => {
  const { cache, use } = user();
  const tool =
    "export const where = { description: 'x', inputSchema: {}, execute: () => process.execPath + ' ' + process.version };\n";
  const cwd = tempFolder({
    'tools.toml': 'controls = []\n',
    '.toolgate/tools/mine/index.ts': tool,
  });
  const { stdout } = await use(cwd, 'call', 'mine_where');
  expect(stdout.startsWith(cache)).toBe(true);
  expect(stdout).toContain(process.version);
});

it('shares a gateway between clients on stdio, and imports what clients have', async () => {
  const { home, env, use } = user();
  const cwd = tempFolder({ 'tools.toml': `active_toolsets = ["*"]\n${serversToml({ a: server('basic') })}` });
  const windows = await Promise.all(
    [1, 2].map(async () => {
      const child = startChild(binary, ['stdio'], { cwd, env, ending: 'stdin' });
      const pipe = openPipe(child);
      await pipe.connect();
      return { child, client: pipe.client };
    }),
  );
  const pids = await Promise.all(windows.map(({ client }) => pidOf(client, 'a')));
  expect(pids[0]).toBe(pids[1]);
  const { gateways } = JSON.parse((await use(cwd, 'daemon', 'status', '--json')).stdout) as { gateways: object[] };
  expect(gateways).toMatchObject([{ windows: 2 }]);
  for (const { child } of windows) await child.stop();
  expect((await use(cwd, 'daemon', 'stop')).stdout).toContain('Stopped process');
  const project = tempFolder({ '.mcp.json': JSON.stringify({ mcpServers: { one: { command: 'one' } } }) });
  await use(project, 'init', '--yes', '--point', '--from', '.mcp.json');
  expect(readFileSync(join(project, '.mcp.json'), 'utf8')).toContain(JSON.stringify(binary));
  await waitFor(() => readdirSync(join(home, '.config/toolgate')).includes('init'));
});

it('says so if it is damaged, or cannot be unpacked, and leaves nothing half', async () => {
  const { env, cache } = user();
  const damaged = join(tempFolder(), 'toolgate');
  copyFileSync(binary, damaged);
  truncateSync(damaged, statSync(binary).size - 1_000_000);
  const failed = await run(damaged, ['--version'], { env }).catch((error) => error as { code: number; stderr: string });
  expect(failed).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/toolgate: .*(damaged|could not be unpacked)/),
  });
  expect(readdirSync(cache)).toEqual([]);
  const homeless = await run(binary, ['--version'], { env: { PATH: '/usr/bin:/bin' } }).catch((error) => error);
  expect((homeless as { stderr: string }).stderr).toContain('Set HOME or XDG_CACHE_HOME');
});
