/** Toolsets that clients are given: by a header of a proxy, by the program, or by their identity. */
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { type CreatePermissionBasedMcpServerOptions, createPermissionBasedMcpServer } from '../../src/index.ts';
import { atEnd } from '../support/cleanup.ts';
import { waitFor } from '../support/processes.ts';
import { connect, ERAS, startPermitted, withId } from './support.ts';

const set = (name: string, say = 'done') => ({
  name,
  description: 'D',
  tools: [{ name: 'do', description: 'x', inputSchema: {}, handler: () => say }],
});
const catalog = { admin: set('Admin'), user: set('User'), open: set('Open') };
const given = (permissions: CreatePermissionBasedMcpServerOptions['permissions']) => ({ catalog, permissions });

describe.each(ERAS)('with a client of SDK %s', (era) => {
  it('gives exactly the toolsets that the header names', async () => {
    const { url } = await startPermitted(given({ source: 'headers' }));
    const names = async (id: string, header: string) => {
      const client = await connect(era, url, { ...withId(id), 'mcp-toolset-permissions': header });
      return client.names();
    };
    expect(await names('a', 'user, admin')).toEqual(['admin.do', 'user.do']);
    expect(await names('a', 'user')).toEqual(['user.do']);
    expect(await names('a', 'nothing,*, ,__proto__,ADMIN')).toEqual([]);
    expect(await (await connect(era, url, withId('a'))).names()).toEqual([]);
    const one = await connect(era, url, { ...withId('b'), 'mcp-toolset-permissions': 'user' });
    expect(await one.text('user.do')).toBe('done');
    const refused = await one.call('admin.do').then(
      (result) => JSON.stringify(result),
      (error: Error) => error.message,
    );
    expect(refused).toContain('item_unknown');
  });

  it('gives what the program says: first the resolver, then the map, then the default', async () => {
    const { url } = await startPermitted(
      given({
        source: 'config',
        resolver: async (clientId) => {
          if (clientId === 'broken') throw new Error('no database');
          if (clientId === 'odd') return 'admin' as never;
          return clientId.startsWith('admin-') ? ['admin', 'user', 'nonsense'] : null;
        },
        staticMap: { 'known-client': ['user'], broken: ['admin'] },
        defaultPermissions: ['open'],
      }),
    );
    const names = async (id: string) => (await connect(era, url, withId(id))).names();
    const status = await fetch(url.replace('/mcp', '/tools'), { headers: withId('known-client') });
    expect(await status.json()).toMatchObject({ availableToolsets: ['user'], tools: ['user.do'] });
    expect(await (await fetch(url.replace('/mcp', '/tools'))).json()).toMatchObject({ availableToolsets: [] });
    expect(await names('admin-1')).toEqual(['admin.do', 'user.do']);
    expect(await names('known-client')).toEqual(['user.do']);
    expect(await names('constructor')).toEqual(['open.do']);
    // A resolver that fails gives nothing, even if the map has an entry.
    expect(await names('broken')).toEqual([]);
    expect(await names('odd')).toEqual([]);
  });

  it('asks again after a while, and removes what is no longer permitted', async () => {
    let allowed = ['admin', 'user'];
    const { url } = await startPermitted(given({ source: 'config', resolver: () => allowed, refreshMs: 0 }));
    const client = await connect(era, url, withId('a'));
    expect(await client.names()).toEqual(['admin.do', 'user.do']);
    allowed = ['user'];
    await new Promise((resolve) => setTimeout(resolve, 2));
    expect(await client.names()).toEqual(['user.do']);
    expect(client.changes()).toBeLessThanOrEqual(1);
  });

  it('admits known clients, and gives each its toolsets', async () => {
    const known: Record<string, { clientId: string; toolsets?: string[] }> = {
      'Bearer one': { clientId: 'one' },
      'Bearer two': { clientId: 'two', toolsets: ['admin', 'nonsense'] },
    };
    const { url } = await startPermitted({
      ...given({ source: 'config', staticMap: { one: ['user'], two: ['open'] } }),
      authenticate: async ({ headers }) => {
        if (headers.authorization === 'Bearer broken') throw new Error('key server gone');
        return known[String(headers.authorization)];
      },
    });
    const come = (authorization: string, more = {}) => connect(era, url, { authorization, ...more });
    // The id that the client claims is ignored then.
    expect(await (await come('Bearer one', withId('two'))).names()).toEqual(['user.do']);
    expect(await (await come('Bearer two', { 'mcp-toolset-permissions': 'user' })).names()).toEqual(['admin.do']);
    await expect(come('Bearer three')).rejects.toThrow();
    await expect(come('Bearer broken')).rejects.toThrow();
    const refused = await fetch(url, { method: 'POST', headers: withId('one'), body: '{}' });
    expect([refused.status, refused.headers.get('www-authenticate')]).toEqual([401, expect.stringContaining('Bearer')]);
    for (const [path, status] of [['/healthz', 200] as const, ['/tools', 401] as const])
      expect((await fetch(url.replace('/mcp', path))).status).toBe(status);
  });

  it('serves what could be loaded, reports what could not, and tries that again', async () => {
    let failing = true;
    const notes: string[] = [];
    const server = await startPermitted({
      catalog: { ...catalog, flaky: { name: 'F', description: 'D', modules: ['m'] } },
      moduleLoaders: {
        m: () => {
          if (failing) throw new Error('not yet');
          return catalog.user.tools;
        },
      },
      permissions: { source: 'config', staticMap: { a: ['flaky', 'user'] }, refreshMs: 20 },
    });
    server.gateway.events.listen((name, event) => {
      if (name === 'note') notes.push((event as { message: string }).message);
    });
    const client = await connect(era, server.url, withId('a'));
    expect(await client.names()).toEqual(['user.do']);
    expect(notes[0]).toContain('its loader "m" failed: not yet');
    failing = false;
    await waitFor(async () => (await client.names()).length === 2);
  });

  it('tries again within seconds what could not be loaded, although permissions are asked for once a minute', async () => {
    let failing = true;
    const server = await startPermitted({
      catalog: { ...catalog, flaky: { name: 'F', description: 'D', modules: ['m'] } },
      moduleLoaders: {
        m: () => {
          if (failing) throw new Error('not yet');
          return catalog.user.tools;
        },
      },
      permissions: { source: 'config', staticMap: { a: ['flaky', 'user'] } },
    });
    const client = await connect(era, server.url, withId('a'));
    expect(await client.names()).toEqual(['user.do']);
    failing = false;
    onTestFinished(() => void vi.useRealTimers());
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 10_000 });
    await waitFor(async () => (await client.names()).length === 2);
  });
});

it('has list_tools if it is switched on, and ignores options that permissions replace', async () => {
  const warned = vi.spyOn(process, 'emitWarning').mockImplementation(() => {});
  atEnd(() => warned.mockRestore());
  const { url } = await startPermitted({
    ...given({ source: 'config', staticMap: { a: ['user', 'open'] } }),
    registerMetaTools: true,
    exposurePolicy: { namespaceToolsWithSetKey: true, maxActiveToolsets: 1, denylist: ['user'] },
  });
  const client = await connect(ERAS[0]!, url, withId('a'));
  expect(await client.names()).toEqual(['list_tools', 'user.do', 'open.do']);
  expect(await client.json('list_tools')).toMatchObject({ toolsetToTools: { user: ['user.do'], open: ['open.do'] } });
  expect(warned.mock.calls.map(([text]) => text)).toEqual([
    expect.stringContaining('maxActiveToolsets is ignored'),
    expect.stringContaining('denylist is ignored'),
  ]);
});

it.each([
  [{}, '"permissions" is missing'],
  [{ permissions: { source: 'elsewhere' } }, 'permissions.source'],
  [{ permissions: { source: 'config' } }, 'needs a "staticMap" or a "resolver"'],
  [{ permissions: { source: 'config', staticMap: { a: 'user' } } }, 'permissions of "a"'],
  [{ permissions: { source: 'headers', headerName: 'a b' } }, 'headerName'],
  [{ permissions: { source: 'headers' }, startup: { mode: 'STATIC' } }, '"startup" cannot be used here'],
])('refuses wrong options: %j', async (options, message) => {
  await expect(createPermissionBasedMcpServer({ catalog, ...options } as never)).rejects.toThrow(message);
});
