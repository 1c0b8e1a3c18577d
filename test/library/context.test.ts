/** What clients say about themselves, and how long they are remembered. */
import { beforeAll, describe, expect, it } from 'vitest';
import type { McpServerHandle } from '../../src/index.ts';
import { connectHttp } from '../support/connection.ts';
import { waitFor } from '../support/processes.ts';
import { connect, ERAS, META, startServer, withId } from './support.ts';

const seen: unknown[] = [];

const catalog = { tenant: { name: 'Tenant', description: 'Its own', modules: ['tenant'] } };

const moduleLoaders = {
  tenant: async (context: { TOKEN?: string; deep?: object }) => {
    seen.push(context);
    return [{ name: 'whoami', description: 'x', inputSchema: {}, handler: () => context.TOKEN ?? 'nobody' }];
  },
};

const base64 = (value: unknown) => encodeURIComponent(Buffer.from(JSON.stringify(value)).toString('base64'));

describe.each(ERAS)('with a client of SDK %s', (era) => {
  let server: McpServerHandle & { url: string };
  beforeAll(async () => {
    seen.length = 0;
    server = await startServer({
      catalog,
      moduleLoaders,
      context: { shared: true, deep: { a: 1, b: 1 } },
      sessionContext: { queryParam: { allowedKeys: ['TOKEN', 'deep'] }, merge: 'deep' },
    });
  });
  const open = async (id: string, config?: unknown) => {
    const query = config === undefined ? '' : `?config=${base64(config)}`;
    const client = await connect(era, `${server.url}${query}`, withId(id));
    await client.json('enable_toolset', { name: 'tenant' });
    return client;
  };

  it('passes to loaders what each client says, and loads once for clients that say the same', async () => {
    const [one, two] = [await open('a', { TOKEN: 'ta', evil: 1 }), await open('b', { TOKEN: 'tb' })];
    const [same, none] = [await open('c', { TOKEN: 'ta' }), await open('d')];
    const who = await Promise.all([one, two, same, none].map((client) => client.text('tenant.whoami')));
    expect(who).toEqual(['ta', 'tb', 'ta', 'nobody']);
    expect(seen).toEqual([
      { shared: true, deep: { a: 1, b: 1 }, TOKEN: 'ta' },
      { shared: true, deep: { a: 1, b: 1 }, TOKEN: 'tb' },
      { shared: true, deep: { a: 1, b: 1 } },
    ]);
    await open('a', { deep: { b: 2 } });
    expect(seen.at(-1)).toEqual({ shared: true, deep: { a: 1, b: 2 } });
  });

  it('keeps two contexts of one client apart', async () => {
    const one = await open('e', { TOKEN: 'first' });
    const two = await connect(era, `${server.url}?config=${base64({ TOKEN: 'second' })}`, withId('e'));
    expect(await two.names()).toEqual(META);
    await two.json('enable_toolset', { name: 'tenant' });
    expect([await one.text('tenant.whoami'), await two.text('tenant.whoami')]).toEqual(['first', 'second']);
  });

  it('unloads what only one client had when that client leaves', async () => {
    const before = seen.length;
    const one = await open('f', { TOKEN: 'short' });
    await one.json('disable_toolset', { name: 'tenant' });
    await one.json('enable_toolset', { name: 'tenant' });
    expect(await one.text('tenant.whoami')).toBe('short');
    expect(seen.length).toBe(before + 2);
  });

  it('refuses a context that it cannot understand, and never misreads one', async () => {
    for (const [query, why] of [
      ['config=%%%', 'is not base64'],
      ['config=bm90IGpzb24', 'is not JSON in base64'],
      [`config=${base64([1])}`, 'is not a JSON object'],
      [`config=${base64({})}&config=${base64({})}`, 'more than once'],
    ]) {
      const response = await fetch(`${server.url}?${query}`, {
        method: 'POST',
        headers: { ...withId('a'), 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
        body: '{"jsonrpc":"2.0","id":1,"method":"ping"}',
      });
      expect(response.status).toBe(400);
      expect(await response.text()).toContain(why);
    }
  });
});

it('asks the resolver once for each client, and refuses the client if it throws', async () => {
  const asked: unknown[] = [];
  const { url } = await startServer({
    catalog,
    moduleLoaders,
    context: { shared: 1 },
    sessionContext: {
      queryParam: { name: 'c', encoding: 'json' },
      contextResolver: async (request, base, said) => {
        asked.push([request.clientId, request.query, request.headers['x-tenant'], base, said]);
        if (request.headers['x-tenant'] === undefined) throw new Error('secret detail');
        return { TOKEN: `${request.headers['x-tenant']} ${request.clientId}` };
      },
    },
  });
  const client = await connect(ERAS[1]!, `${url}?c=${encodeURIComponent('{"k":1}')}`, {
    ...withId('a'),
    'x-tenant': 't',
  });
  await client.json('enable_toolset', { name: 'tenant' });
  expect(await client.text('tenant.whoami')).toBe('t a');
  expect(asked).toEqual([['a', { c: '{"k":1}' }, 't', { shared: 1 }, { k: 1 }]]);
  // The same query from another client is another context.
  const other = await connect(ERAS[1]!, `${url}?c=${encodeURIComponent('{"k":1}')}`, {
    ...withId('c'),
    'x-tenant': 'u',
  });
  await other.json('enable_toolset', { name: 'tenant' });
  expect([await other.text('tenant.whoami'), await client.text('tenant.whoami')]).toEqual(['u c', 't a']);
  const refused = await fetch(url, { method: 'POST', headers: withId('b'), body: '{}' });
  expect(refused.status).toBe(400);
  expect(await refused.text()).not.toContain('secret');
});

describe('clients that do not reconnect', () => {
  it('are forgotten after a while, and what was loaded for them is unloaded', async () => {
    const server = await startServer({ catalog, moduleLoaders, sessionContext: {}, clients: { ttlMs: 1_000 } });
    const url = `${server.url}?config=${base64({ TOKEN: 'gone' })}`;
    const { client, transport } = await connectHttp(url, withId('a'));
    await client.callTool({ name: 'enable_toolset', arguments: { name: 'tenant' } });
    const [id] = server.gateway.sets!.ids();
    expect(server.gateway.sets!.find(id!)).toBeDefined();
    await transport.terminateSession();
    await waitFor(() => server.gateway.sets!.find(id!) === undefined);
    expect(await (await connect(ERAS[0]!, url, withId('a'))).names()).toEqual(META);
  });

  it('are forgotten to make room for others, the longest disconnected first', async () => {
    const era = ERAS[0]!;
    const { url } = await startServer({ catalog, moduleLoaders, clients: { most: 2 } });
    for (const id of ['a', 'b', 'c']) {
      const client = await connect(era, url, withId(id));
      await client.json('enable_toolset', { name: 'tenant' });
      await client.leave();
    }
    expect(await (await connect(era, url, withId('c'))).names()).toContain('tenant.whoami');
    expect(await (await connect(era, url, withId('a'))).names()).toEqual(META);
  });
});
