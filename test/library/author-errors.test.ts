/** Authors see what their own functions throw; clients do not. */
import { describe, expect, it, vi } from 'vitest';
import { createMcpServer, createPermissionBasedMcpServer } from '../../src/index.ts';
import { atEnd } from '../support/cleanup.ts';
import { connect, ERAS, startPermitted, startServer, withId } from './support.ts';

function thrower(message: string) {
  return function brokenFunctionOfTheAuthor(): never {
    throw new Error(message, { cause: new TypeError(`the cause of ${message}`) });
  };
}

const catalog = {
  own: {
    name: 'Own',
    description: 'D',
    tools: [
      { name: 'throws', description: 'x', handler: thrower('tool failed') },
      { name: 'big', description: 'x', handler: () => ({ n: 1n }) },
      { name: 'circular', description: 'x', handler: circular },
    ],
  },
  lazy: { name: 'Lazy', description: 'D', modules: ['lazy'] },
};

function circular() {
  const value: Record<string, unknown> = {};
  value.self = value;
  return value;
}

const http = {
  port: 0,
  customEndpoints: [{ method: 'GET' as const, path: '/boom', handler: thrower('endpoint failed') }],
};

/** What was written to standard error. */
function stderr(): () => string {
  const written = vi.spyOn(process.stderr, 'write').mockImplementation(() => true);
  atEnd(() => written.mockRestore());
  return () => written.mock.calls.map(([text]) => String(text)).join('');
}

const STACK = /\n {4}at (Object\.)?brokenFunctionOfTheAuthor .*author-errors\.test\.ts:\d+/;

describe('by default, standard error has the stack of', () => {
  it('a tool, a loader and an endpoint', async () => {
    const said = stderr();
    const { url } = await startServer({ catalog, moduleLoaders: { lazy: thrower('loader failed') }, http });
    const client = await connect(ERAS[0]!, url, withId('a'));
    await client.json('enable_toolset', { name: 'own' });
    const seen = JSON.stringify(await client.call('own.throws'));
    expect(seen).toContain('tool failed');
    expect(seen).not.toContain('brokenFunctionOfTheAuthor');
    expect(said()).toContain('toolgate: own: throws: Error: tool failed');
    expect(said()).toMatch(STACK);
    expect(said()).toContain('caused by: TypeError: the cause of tool failed');

    await client.call('enable_toolset', { name: 'lazy' });
    expect(said()).toContain('toolgate: loader "lazy" of the toolset "lazy": Error: loader failed');

    const answer = await (await fetch(url.replace('/mcp', '/boom'))).text();
    expect(answer).toBe('{"error":{"code":"INTERNAL_ERROR","message":"Internal server error"}}');
    expect(said()).toContain('toolgate: GET /boom: Error: endpoint failed');
  });

  it('a resolver, authenticate, and permissions that name unknown toolsets', async () => {
    const said = stderr();
    const failing = await startPermitted({
      catalog: {},
      permissions: { source: 'config', resolver: thrower('no db') },
    });
    await (await connect(ERAS[1]!, failing.url, withId('ann'))).names();
    expect(said()).toContain('toolgate: permissions of the client "ann": Error: no db');
    expect(said()).toMatch(STACK);

    const permissions = { source: 'config' as const, resolver: () => ['ownn'] };
    const named = await createPermissionBasedMcpServer({
      catalog: { own: catalog.own },
      permissions,
      authenticate: ({ headers }) => (headers.authorization === undefined ? thrower('no keys')() : { clientId: 'bob' }),
      http: { port: 0 },
    });
    atEnd(() => named.close());
    await named.start();
    expect((await fetch(named.url!, { method: 'POST' })).status).toBe(401);
    expect(said()).toContain('toolgate: authenticate: Error: no keys');
    await (await connect(ERAS[1]!, named.url!, { authorization: 'x' })).names();
    expect(said()).toContain(
      'toolgate: permissions.resolver: It names toolsets that do not exist: ownn. Did you mean "own"?',
    );
  });

  it('a loader of a server that cannot be created', async () => {
    const said = stderr();
    const moduleLoaders = { lazy: thrower('loader failed') };
    await expect(createMcpServer({ catalog, moduleLoaders, startup: { toolsets: 'ALL' } })).rejects.toThrow();
    expect(said()).toMatch(STACK);
  });
});

it('removes secrets from what is logged', async () => {
  vi.stubEnv('AUTHORS_API_TOKEN', 's3cr3t-v4lue-of-the-author');
  atEnd(() => vi.unstubAllEnvs());
  const said = stderr();
  const leaks = { name: 'leaks', description: 'x', handler: thrower('the key is s3cr3t-v4lue-of-the-author') };
  const { url } = await startServer({
    catalog: { own: { ...catalog.own, tools: [leaks] } },
    startup: { toolsets: 'ALL' },
  });
  await (await connect(ERAS[0]!, url, withId('a'))).call('own.leaks');
  expect(said()).toContain('own: leaks: Error: the key is');
  expect(said()).toContain('caused by: TypeError: the cause of the key is');
  expect(said()).not.toContain('s3cr3t-v4lue');
});

it('is silent with logger: false, and gives a logger the stack as a field', async () => {
  const said = stderr();
  const quiet = await startServer({ catalog: { own: catalog.own }, startup: { toolsets: 'ALL' }, logger: false });
  await (await connect(ERAS[0]!, quiet.url, withId('a'))).call('own.throws');
  expect(said()).toBe('');
  const records: [object, string | undefined][] = [];
  const take = (fields: object, message?: string) => void records.push([fields, message]);
  const logged = await startServer({
    catalog: { own: catalog.own },
    startup: { toolsets: 'ALL' },
    logger: { info: take, warn: take, error: take },
  });
  await (await connect(ERAS[0]!, logged.url, withId('a'))).call('own.throws');
  const [fields, message] = records.find(([one]) => 'stack' in one)!;
  expect(message).toBe('own: throws: tool failed');
  expect(fields).toMatchObject({ event: 'failure', where: 'own: throws', stack: expect.stringMatching(STACK) });
  expect(said()).toBe('');
});

it('does not name a place in Toolgate for a result that has no JSON', async () => {
  stderr();
  const { url } = await startServer({ catalog: { own: catalog.own }, startup: { toolsets: 'ALL' } });
  const client = await connect(ERAS[0]!, url, withId('a'));
  for (const name of ['own.big', 'own.circular']) {
    const result = await client.call(name);
    expect(JSON.stringify(result)).toContain('The result cannot be written as JSON');
    expect(JSON.stringify(result)).not.toMatch(/result-json|dist/);
  }
});
