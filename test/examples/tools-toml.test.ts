/** examples/tools.toml, copied into an empty folder as its first line says, with its public servers. */
import { copyFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { runCli } from '../support/cli.ts';
import { commandFolder } from '../support/commands.ts';
import { root } from '../support/docs-page.ts';
import { startHttp } from '../support/gateway.ts';
import { tempFolder } from '../support/temp.ts';

it('examples/tools.toml passes doctor, serves its active tools, and activates others', async () => {
  const cwd = tempFolder({ 'notes/todo.txt': 'Water the plants.' });
  copyFileSync(join(root, 'examples/tools.toml'), join(cwd, 'tools.toml'));
  const env = { PATH: `${commandFolder()}:${process.env.PATH}`, HOME: cwd };
  const doctor = await runCli(['doctor'], { cwd, env });
  expect(doctor.code, doctor.stdout + doctor.stderr).toBe(0);

  const gateway = await startHttp({ cwd, env });
  const { client } = await gateway.connect();
  const names = (await client.listTools()).tools.map(({ name }) => name);
  expect(names[0]).toBe('toolman_activate');
  expect(names).toContain('files_read_text_file');
  expect(names.filter((name) => !/^(toolman_activate|files_(read|list)_.+)$/.test(name))).toEqual([]);
  const call = async (name: string, args: Record<string, unknown> = {}) =>
    JSON.stringify(await client.callTool({ name, arguments: args }));
  expect(await call('files_read_text_file', { path: join(cwd, 'notes/todo.txt') })).toContain('Water the plants.');

  expect(await call('memory_read_graph')).toContain('item_inactive');
  const lists = { tools_on: ['memory_*'], tools_off: [], resources_on: [], resources_off: [] };
  expect(await call('toolman_activate', lists)).toContain('Activated');
  expect(await call('memory_read_graph')).toContain('entities');
});
