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
  expect((await fetch(`${gateway.origin}/reload`, { method: 'PUT', headers: both })).status).toBe(405);
  expect((await fetch(`${gateway.origin}/reload`, { headers: { authorization: both.authorization } })).status).toBe(
    403,
  );
  const elsewhere = await startHttp({ config, env: { ...env, INTERNAL_ALLOWED_CIDRS: '10.1.0.0/16' } });
  const refused = await reload(both, elsewhere);
  expect([refused.status, await refused.text()]).toEqual([403, expect.stringContaining('INTERNAL_ALLOWED_CIDRS')]);
  const without = await startHttp({ config, env: { BEARER_TOKEN: env.BEARER_TOKEN } });
  expect((await reload(both, without)).status).toBe(404);
});

it('takes the key of the operator in place of the token of an agent', async () => {
  const key = 'the-key-of-the-operator-4711';
  const own = await startHttp({ config, env: { ...env, TOOLGATE_OPERATOR_KEY: key } });
  expect((await reload({ ...both, authorization: `Bearer ${key}` }, own)).status).toBe(200);
  expect((await reload({ authorization: `Bearer ${key}` }, own)).status).toBe(403);
  expect((await reload({ ...both, authorization: 'Bearer another' }, own)).status).toBe(401);
});

it('says what is served, whatever agents may use', async () => {
  const files = { '.toolgate/tools/one/say.ts': tool('one') };
  const closed = `${config}\n[agent_policies.default]\nallowed_servers = ["a"]\n`;
  const policed = await startHttp({ config: closed, env, cwd: tempFolder(files) });
  const { authorization } = both;
  const seen = await (await fetch(`${policed.origin}/namespaces`, { headers: { authorization } })).json();
  expect(JSON.stringify(seen)).not.toContain('"one"');
  const { namespaces } = (await (await fetch(`${policed.origin}/reload`, { headers: both })).json()) as {
    namespaces: object[];
  };
  expect(namespaces).toContainEqual({
    name: 'one',
    tool_count: 1,
    state: 'up',
    tools: [{ name: 'say', description: 'Say', filename: 'say.ts' }],
  });
});

it('reports progress as events, then the report, to a client that accepts them', async () => {
  const slow = `await new Promise((resolve) => setTimeout(resolve, 1_500));\n${tool('slow')}`;
  mkdirSync(join(gateway.cwd, '.toolgate/tools/slow'));
  writeFileSync(join(gateway.cwd, '.toolgate/tools/slow/say.ts'), slow);
  const answer = await reload({ ...both, accept: 'text/event-stream' });
  expect(answer.headers.get('content-type')).toBe('text/event-stream');
  const events = (await answer.text())
    .split('\n\n')
    .filter((block) => block !== '')
    .map((block) => /^event: (\w+)\ndata: (.*)$/.exec(block)!.slice(1));
  expect(events[0]).toEqual(['progress', '{"message":"The core reads its folders."}']);
  expect(events.slice(0, -1).map(([event]) => event)).toEqual(events.slice(0, -1).map(() => 'progress'));
  expect(events.some(([, data]) => data!.includes('slow'))).toBe(true);
  const [last, report] = events.at(-1)!;
  expect([last, JSON.parse(report!)]).toEqual([
    'report',
    expect.objectContaining({ reloaded: true, workers_restarted: ['slow'] }),
  ]);
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
