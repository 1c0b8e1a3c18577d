/** The roots of a client are available only to servers with a connection of that client. */
import { pathToFileURL } from 'node:url';
import type { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { ListRootsRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { describe, expect, it } from 'vitest';
import { startFixture } from '../support/conformance-suite.ts';
import { type HttpGateway, startHttp, startStdio } from '../support/gateway.ts';
import { textOf } from '../support/modern-servers.ts';
import { waitFor } from '../support/processes.ts';
import { answersTo, callModern, jsonOf, type ModernReply, request } from '../support/questions.ts';
import { server } from '../support/server.ts';
import { tempFolder } from '../support/temp.ts';
import { configOf, OVER, placeOf, startPersonal } from './personal.ts';

const capabilities = { roots: { listChanged: true } };
const rootsOf = (...names: string[]) => ({ roots: names.map((name) => ({ uri: `file:///${name}`, name })) });

/** A client with these roots, which can be replaced. */
function have(client: Client, ...names: string[]) {
  const own = { client, names, asked: 0 };
  client.setRequestHandler(ListRootsRequestSchema, () => {
    own.asked++;
    return rootsOf(...own.names);
  });
  return own;
}

async function open(gateway: HttpGateway, ...names: string[]) {
  return have((await gateway.connect({ capabilities })).client, ...names);
}

const call = async ({ client }: { client: Client }, name: string, args: Record<string, unknown> = {}) =>
  jsonOf(await client.callTool({ name, arguments: args }));

interface Told {
  readonly roots: readonly unknown[];
  readonly seen: readonly unknown[];
}

describe.each(OVER)('roots for a server over %s with share = "session"', (over) => {
  it('are those of its client, during a call and outside of one', async () => {
    const { gateway } = await startPersonal(over);
    const [one, two] = await Promise.all([open(gateway, 'a', 'b'), open(gateway, 'c')]);
    expect(await call(one, 'roots')).toEqual(['file:///a', 'file:///b']);
    expect(await call(two, 'roots')).toEqual(['file:///c']);
    await one.client.callTool({ name: 'roots', arguments: { later: 50 } });
    await waitFor(() => one.asked === 2);
    await waitFor(async () => ((await call(one, 'whoami')) as Told).seen.length > 0);
    expect(((await call(one, 'whoami')) as Told).seen).toEqual([['file:///a', 'file:///b']]);
    expect(two.asked).toBe(1);
  });

  it('are announced again when they have changed', async () => {
    const { gateway } = await startPersonal(over);
    const [one, two] = await Promise.all([open(gateway, 'a'), open(gateway, 'b')]);
    await Promise.all([call(one, 'roots'), call(two, 'roots')]);
    one.names = ['x', 'y'];
    await one.client.sendRootsListChanged();
    const told = await waitFor(async () => {
      const now = (await call(one, 'whoami')) as Told;
      return now.roots.length > 0 && now;
    });
    expect(told.roots).toEqual([['file:///x', 'file:///y']]);
    expect(((await call(two, 'whoami')) as Told).roots).toEqual([]);
  });

  it('are asked of a stateless client during a call, and empty outside of one', async () => {
    const { gateway } = await startPersonal(over);
    const asked = await request(gateway, 'tools/call', { name: 'roots', arguments: {} }, capabilities);
    expect(asked.result).toMatchObject({
      resultType: 'input_required',
      inputRequests: { 'question-1': { method: 'roots/list' } },
    });
    const params = { name: 'roots', arguments: {}, ...answersTo(asked, rootsOf('m')) };
    expect(jsonOf((await request(gateway, 'tools/call', params, capabilities)).result)).toEqual(['file:///m']);
    // A client without the roots capability is not asked.
    expect(jsonOf((await request(gateway, 'tools/call', { name: 'roots', arguments: {} }, {})).result)).toEqual([]);
    await callModern(gateway, 'roots', { later: 20 });
    const { seen } = await waitFor(async () => {
      // Sent without capabilities, because the server's question could be attributed to a call whose client can be
      // asked.
      const now = jsonOf((await request(gateway, 'tools/call', { name: 'whoami' }, {})).result) as Told;
      return now.seen.length > 0 && now;
    });
    expect(seen).toEqual([[]]);
    expect(gateway.stderr()).toContain('asked for roots');
  });
});

it('a stdio client is asked for its roots', async () => {
  const config = configOf(await placeOf('stdio'));
  const { client } = await startStdio({ config, capabilities });
  expect(await call(have(client, 'p'), 'roots')).toEqual(['file:///p']);
});

it('a shared legacy server always gets an empty list of roots', async () => {
  const { gateway } = await startPersonal('stdio', '');
  const one = await open(gateway, 'a');
  expect(await call(one, 'roots')).toEqual([]);
  await one.client.sendRootsListChanged();
  expect(((await call(one, 'whoami')) as Told).roots).toEqual([]);
  const { result } = await request(gateway, 'tools/call', { name: 'roots', arguments: {} }, capabilities);
  expect(jsonOf(result)).toEqual([]);
  expect(one.asked).toBe(0);
});

describe.each(['stdio', 'http'])('roots for a modern server over %s', (way) => {
  it.each(['project', 'session'])('are those of the caller in both eras, with share = "%s"', async (share) => {
    const place =
      way === 'stdio'
        ? `command = ${JSON.stringify(server('conformance', '--era', 'modern'))}`
        : `url = ${JSON.stringify(await startFixture('--era', 'modern'))}`;
    const config = `controls = []\n[[servers]]\nnamespace = ""\n${place}\nshare = "${share}"\n`;
    const gateway = await startHttp({ config });
    const name = 'test_input_required_result_list_roots';
    const one = await open(gateway, 'a');
    expect(textOf(await one.client.callTool({ name }))).toContain('file:///a');
    const asked: ModernReply = await request(gateway, 'tools/call', { name, arguments: {} }, capabilities);
    expect(Object.values(asked.result!.inputRequests!)).toMatchObject([{ method: 'roots/list' }]);
    const params = { name, arguments: {}, ...answersTo(asked, rootsOf('m')) };
    const { result } = await request(gateway, 'tools/call', params, capabilities);
    expect(result?.content?.[0]?.text).toContain('file:///m');
  });
});

it('the public filesystem server serves the folder that its client names as a root', async () => {
  const [first, second] = [tempFolder({ 'a.txt': 'in a' }), tempFolder({ 'b.txt': 'in b' })];
  const line = `node ${process.cwd()}/node_modules/@modelcontextprotocol/server-filesystem/dist/index.js ${tempFolder()}`;
  const config = configOf({ toml: `command = ${JSON.stringify(line)}\n`, count: async () => 0, processes: () => [] });
  const gateway = await startHttp({ config });
  const folders = [first, second];
  const clients = await Promise.all(
    folders.map(async (folder) => {
      const { client } = await gateway.connect({ capabilities });
      client.setRequestHandler(ListRootsRequestSchema, () => ({ roots: [{ uri: pathToFileURL(folder).href }] }));
      return client;
    }),
  );
  const allowed = async (client: Client) => JSON.stringify(await client.callTool({ name: 'list_allowed_directories' }));
  await waitFor(async () => (await allowed(clients[0]!)).includes(first));
  await waitFor(async () => (await allowed(clients[1]!)).includes(second));
  expect(await allowed(clients[0]!)).not.toContain(second);
});
