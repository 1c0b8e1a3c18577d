/** A program for Toolception works the same with Toolgate, or better where docs/migrate.md says so. */
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { expect, it } from 'vitest';
import { atEnd } from '../support/cleanup.ts';
import { dynamic, exceeded, fixed, permitted } from './migrated.ts';
import { connect, ERAS, META, textOf, withId } from './support.ts';

it.each(ERAS)('runs the dynamic program after its import is changed: %s', async (era) => {
  exceeded.length = 0;
  const { server, origin, close } = await dynamic();
  atEnd(close);
  expect(server).toBeInstanceOf(McpServer);
  const config = Buffer.from('{"USER_ID":"u1","OTHER":1}').toString('base64');
  const client = await connect(era, `${origin}/mcp?config=${config}`, withId('one'));
  expect(client.server()).toMatchObject({ name: 'my-mcp-server', version: '0.4.2' });
  expect((await client.names()).sort()).toEqual([...META].sort());
  await client.json('enable_toolset', { name: 'quotes' });
  expect(await client.text('quotes.price', { symbol: 'X' })).toBe('X: 1');
  await client.json('enable_toolset', { name: 'tenant' });
  expect(await client.text('tenant.whoami')).toBe('shared u1');
  expect(JSON.parse(textOf(await client.call('enable_toolset', { name: 'math' })))).toMatchObject({ success: false });
  expect(exceeded).toEqual([[['math'], ['quotes', 'tenant']]]);
  await client.json('disable_toolset', { name: 'quotes' });
  await client.json('enable_toolset', { name: 'math' });
  expect(await client.text('math.sum', { a: 1, b: 2 })).toBe('3');
  expect(JSON.parse(textOf(await client.call('enable_toolset', { name: 'secret' })))).toMatchObject({ success: false });
  const users = await fetch(`${origin}/api/users?limit=2`, { headers: withId('one') });
  expect(await users.json()).toEqual({ users: [{ id: 'one' }], limit: 2 });
  expect(await (await fetch(`${origin}/healthz`)).json()).toEqual({ ok: true });
  expect(await (await fetch(`${origin}/.well-known/mcp-config`)).json()).toMatchObject({ required: ['USER_ID'] });
});

it('runs the static program', async () => {
  const { url, close } = await fixed();
  atEnd(close);
  const client = await connect(ERAS[0]!, url!, withId('one'));
  expect(await client.names()).toEqual(['list_tools', 'quotes.price', 'math.sum']);
});

it('runs the programs with permissions', async () => {
  const headers = await permitted('headers');
  atEnd(headers.close);
  const one = await connect(ERAS[0]!, headers.url!, { ...withId('one'), 'mcp-toolset-permissions': 'math,quotes' });
  expect(await one.names()).toEqual(['quotes.price', 'math.sum']);
  const config = await permitted('config');
  atEnd(config.close);
  const admin = await connect(ERAS[1]!, config.url!, withId('admin-1'));
  expect(await admin.names()).toEqual(['quotes.price', 'math.sum']);
  expect(await (await connect(ERAS[1]!, config.url!, withId('special-client'))).names()).toEqual([]);
  const me = await fetch(config.url!.replace('/mcp', '/api/me'), { headers: withId('admin-1') });
  expect(await me.json()).toEqual({ clientId: 'admin-1', allowedToolsets: ['quotes', 'math'], isAdmin: true });
});
