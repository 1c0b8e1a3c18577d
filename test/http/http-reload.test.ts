/** POST /reload: who may call it, from which address, and what it does. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, it } from 'vitest';
import { isWithin } from '../../src/doors/http/admin/reload.ts';
import { type HttpGateway, startHttp } from '../support/gateway.ts';
import { server, serversToml } from '../support/server.ts';
import { tempFolder } from '../support/temp.ts';

const tool = (text: string) =>
  `export const say = { description: 'Say', inputSchema: { type: 'object' }, execute: () => '${text}' };\n`;
const config = `controls = []\nfolders.watch = false\n${serversToml({ a: server('basic') })}`;
const env = { BEARER_TOKEN: 'of-the-client', MANAGER_INTERNAL_TOKEN: 'of-the-manager' };
const both = { authorization: 'Bearer of-the-client', 'x-manager-token': 'of-the-manager' };

let gateway: HttpGateway;
beforeAll(async () => {
  const files = { '.toolgate/tools/one/say.ts': tool('one'), '.toolgate/tools/two/say.ts': tool('two') };
  gateway = await startHttp({ config, env, cwd: tempFolder(files) });
});

const reload = (headers: Record<string, string> = both, at = gateway) =>
  fetch(`${at.origin}/reload`, { method: 'POST', headers });

it('rescans the folders and restarts only what has changed', async () => {
  const { client } = await gateway.connect({ headers: { authorization: both.authorization } });
  const say = async (name: string) =>
    ((await client.callTool({ name, arguments: {} })).content as { text: string }[])[0]!.text;
  expect(await (await reload()).json()).toEqual({
    reloaded: true,
    namespaces: ['a', 'one', 'two'],
    workers_restarted: [],
    deps_synced: [],
  });
  writeFileSync(join(gateway.cwd, '.toolgate/tools/two/say.ts'), tool('changed'));
  mkdirSync(join(gateway.cwd, '.toolgate/tools/three'));
  writeFileSync(join(gateway.cwd, '.toolgate/tools/three/say.ts'), tool('three'));
  expect(await (await reload()).json()).toMatchObject({
    namespaces: ['a', 'one', 'three', 'two'],
    workers_restarted: ['three', 'two'],
  });
  expect([await say('one_say'), await say('two_say'), await say('three_say')]).toEqual(['one', 'changed', 'three']);
});

it('names the files that did not load, and so does /namespaces', async () => {
  const files = {
    '.toolgate/tools/one/say.ts': tool('one'),
    '.toolgate/tools/one/bad.ts': 'throw new Error("as told");',
  };
  const half = await startHttp({ config, env, cwd: tempFolder(files) });
  const problem = 'bad.ts:1: as told';
  expect(await (await reload(both, half)).json()).toMatchObject({
    reloaded: true,
    problems: [{ source: 'one', message: problem }],
  });
  const { authorization } = both;
  const listed = await (await fetch(`${half.origin}/namespaces`, { headers: { authorization } })).json();
  expect(listed).toContainEqual({ name: 'one', tool_count: 1, state: 'up', problems: [problem] });
});

it('requires both tokens and an allowed source address', async () => {
  expect((await reload({})).status).toBe(401);
  expect((await reload({ authorization: both.authorization })).status).toBe(403);
  expect((await reload({ ...both, 'x-manager-token': 'another' })).status).toBe(403);
  expect((await fetch(`${gateway.origin}/reload`, { headers: both })).status).toBe(405);
  const elsewhere = await startHttp({ config, env: { ...env, INTERNAL_ALLOWED_CIDRS: '10.1.0.0/16' } });
  const refused = await reload(both, elsewhere);
  expect([refused.status, await refused.text()]).toEqual([403, expect.stringContaining('INTERNAL_ALLOWED_CIDRS')]);
  const without = await startHttp({ config, env: { BEARER_TOKEN: env.BEARER_TOKEN } });
  expect((await reload(both, without)).status).toBe(404);
});

it.each([
  [['127.0.0.1/32'], '::ffff:127.0.0.1', true],
  [['10.1.0.0/16'], '10.1.255.1', true],
  [['10.1.0.0/16'], '10.2.0.1', false],
  [['fd00::/8'], 'fd12::1', true],
  [['fd00::/8', '10.0.0.1'], '10.0.0.1', true],
  [['10.0.0.1'], '', false],
])('%j and %s: %s', (networks, address, expected) => {
  expect(isWithin(networks, address)).toBe(expected);
});
