/** Toolsets that all clients have, exposure policies, and wrong options. */
import { beforeAll, describe, expect, it, vi } from 'vitest';
import * as z from 'zod';
import * as z3 from 'zod/v3';
import { createMcpServer, fromFolder, fromServer, ToolingError } from '../../src/index.ts';
import { atEnd } from '../support/cleanup.ts';
import { waitFor } from '../support/processes.ts';
import { serverEntry } from '../support/server.ts';
import { tempFolder, writeFiles } from '../support/temp.ts';
import { connect, ERAS, META, startServer, textOf, withId } from './support.ts';

const tool = (name: string, say = name) => ({ name, description: `Says ${say}`, inputSchema: {}, handler: () => say });
const set = (...names: string[]) => ({ name: 'N', description: 'D', tools: names.map((name) => tool(name)) });

describe('the mode STATIC', () => {
  it.each(ERAS)('gives all clients the same toolsets from the start: %s', async (era) => {
    const loader = vi.fn((context) => [tool('loaded', String(context.word))]);
    const { url } = await startServer({
      catalog: { one: set('a'), two: { name: 'Two', description: 'D', modules: ['m'] }, off: set('x') },
      moduleLoaders: { m: loader },
      context: { word: 'base' },
      sessionContext: { queryParam: { encoding: 'json' } },
      startup: { mode: 'STATIC', toolsets: ['two', 'one', 'unknown'] },
    });
    const said = encodeURIComponent('{"word":"mine"}');
    const clients = [
      await connect(era, url, withId('a')),
      await connect(era, `${url}?config=${said}`, withId('b')),
      // The context is not used here, so it cannot be wrong.
      await connect(era, `${url}?config=nonsense`, withId('c')),
    ];
    for (const client of clients) {
      expect(await client.names()).toEqual(['list_tools', 'one.a', 'two.loaded']);
      expect(await client.text('two.loaded')).toBe('base');
    }
    expect(await clients[0]!.json('list_tools')).toEqual({
      tools: ['one.a', 'two.loaded'],
      toolsetToTools: { one: ['one.a'], two: ['two.loaded'] },
    });
    expect(loader).toHaveBeenCalledTimes(1);
    const status = (await (await fetch(url.replace('/mcp', '/tools'))).json()) as object;
    expect(status).toEqual({
      availableToolsets: ['one', 'two', 'off'],
      activeToolsets: ['one', 'two'],
      registeredModules: ['m'],
      totalToolsets: 3,
      activeCount: 2,
      tools: ['one.a', 'two.loaded'],
      toolsetToTools: { one: ['one.a'], two: ['two.loaded'] },
    });
  });

  it('has all toolsets with ALL, and no meta-tools if they are switched off', async () => {
    const { url } = await startServer({
      catalog: { one: set('a'), two: set('b') },
      startup: { toolsets: 'ALL' },
      registerMetaTools: false,
      exposurePolicy: { namespaceToolsWithSetKey: false },
    });
    expect(await (await connect(ERAS[0]!, url, withId('a'))).names()).toEqual(['a', 'b']);
  });

  it('does not start if a loader fails, two tools have the same name, or there are too many toolsets', async () => {
    const failing = { a: { name: 'A', description: 'D', modules: ['m'] } };
    const open = (more: object) => createMcpServer({ catalog: {}, startup: { toolsets: 'ALL' }, ...more } as never);
    await expect(
      open({ catalog: failing, moduleLoaders: { m: () => Promise.reject(new Error('gone')) } }),
    ).rejects.toThrow('The toolset "a" could not be loaded: its loader "m" failed: gone.');
    const bare = { exposurePolicy: { namespaceToolsWithSetKey: false } };
    await expect(open({ catalog: { a: set('x'), b: set('x') }, ...bare })).rejects.toMatchObject({
      reason: 'E_TOOL_NAME_CONFLICT',
    });
    await expect(open({ catalog: { a: set('list_tools') }, ...bare })).rejects.toThrow('the meta-tools');
    await expect(open({ catalog: { a: set('x', 'x') } })).rejects.toMatchObject({ reason: 'E_TOOL_NAME_CONFLICT' });
    await expect(
      open({ catalog: { a: set('x'), b: set('x') }, exposurePolicy: { maxActiveToolsets: 1 } }),
    ).rejects.toMatchObject({ reason: 'E_POLICY_MAX_ACTIVE' });
  });
});

describe('the exposure policy', () => {
  it('limits how many and which toolsets can be enabled, and can leave names without a prefix', async () => {
    const onLimitExceeded = vi.fn();
    const { url } = await startServer({
      catalog: { a: set('x'), b: set('x'), c: set('y'), d: set('z'), e: set('w') },
      exposurePolicy: {
        maxActiveToolsets: 2,
        namespaceToolsWithSetKey: false,
        allowlist: ['a', 'b', 'c', 'd'],
        denylist: ['d'],
        onLimitExceeded,
      },
    });
    const client = await connect(ERAS[1]!, url, withId('a'));
    await client.names();
    const enable = async (name: string) => JSON.parse(textOf(await client.call('enable_toolset', { name })));
    expect(await enable('a')).toMatchObject({ success: true, tools: ['x'] });
    // A toolset that is not allowed answers like one that does not exist.
    expect(await enable('d')).toMatchObject({
      code: 'E_VALIDATION',
      message: expect.stringContaining('no toolset "d"'),
    });
    expect(await enable('e')).toMatchObject({ code: 'E_VALIDATION' });
    // All or nothing, and a failure does not affect the next toolset.
    expect(await enable('b')).toEqual({
      success: false,
      code: 'E_TOOL_NAME_CONFLICT',
      message: 'Two tools would be called "x": one of "b" and one of "a". Nothing was enabled; rename one of them.',
    });
    expect(await enable('c')).toMatchObject({ success: true });
    expect(await enable('b')).toMatchObject({
      code: 'E_POLICY_MAX_ACTIVE',
      message: 'The toolset "b" would be one too many: at most 2 may be enabled at a time. Disable one first: a, c.',
    });
    expect(onLimitExceeded).toHaveBeenCalledExactlyOnceWith(['b'], ['a', 'c']);
    await client.json('disable_toolset', { name: 'a' });
    expect(await enable('b')).toMatchObject({ success: true, tools: ['x'] });
    expect(await client.names()).toEqual([...META, 'x', 'y']);
    await waitFor(() => client.changes() === 4);
  });
});

describe('wrong options', () => {
  it.each([
    [{ catalog: null }, '"catalog" must be a map of toolsets'],
    [{ catalog: { _meta: set() } }, 'has a reserved key'],
    [{ catalog: { 'a b': set() } }, 'a key has at most 64 letters'],
    [{ catalog: { a: { name: 'x' } } }, 'needs a "name" and a "description"'],
    [{ catalog: { a: { name: 'x', description: 'y', modules: [1] } } }, '"modules" must be a list'],
    [{ exposurePolicy: { maxActiveToolsets: 1.5 } }, 'maxActiveToolsets must be a whole number'],
    [{ exposurePolicy: { allowlist: 'a' } }, 'allowlist must be a list'],
    [{ startup: { mode: 'ALL' } }, 'startup.mode must be'],
    [{ startup: { toolsets: ['nope'] } }, 'names no existing toolset. Existing ones: a.'],
    [{ sessionContext: { merge: 'odd' } }, 'sessionContext.merge'],
    [{ createServer: 1 }, '"createServer" must be a function'],
    [{ settings: { servers: [] } }, '"settings.servers" cannot be used here'],
    [{ http: { customEndpoints: [{ method: 'GET', path: '/tools', handler() {} }] } }, 'the path is reserved'],
  ])('%j: %s', async (given, message) => {
    const failed = await createMcpServer({ catalog: { a: set() }, ...given } as never).catch((error: unknown) => error);
    expect(failed).toBeInstanceOf(ToolingError);
    expect((failed as ToolingError).reason).toBe('E_VALIDATION');
    expect((failed as ToolingError).message).toContain(message);
  });

  it('cause a warning if they are ignored', async () => {
    const warned = vi.spyOn(process, 'emitWarning').mockImplementation(() => {});
    atEnd(() => warned.mockRestore());
    const server = await createMcpServer({ catalog: { a: set() }, startup: { mode: 'DYNAMIC', toolsets: ['a'] } });
    await server.close();
    expect(warned.mock.calls[0]![0]).toContain('startup.toolsets is ignored');
  });
});

describe('tools from anywhere', () => {
  const folder = tempFolder();
  const stopped: unknown[] = [];
  const options = {
    catalog: {
      own: {
        name: 'Own',
        description: 'Functions',
        tools: [
          { name: 'shape4', description: 'x', inputSchema: { a: z.string(), b: z.number().optional() }, handler: say },
          {
            name: 'shape3',
            description: 'x',
            inputSchema: { a: z3.string().min(2), b: z3.number().default(4) },
            handler: say,
          },
          { name: 'object3', description: 'x', inputSchema: z3.object({ kind: z3.enum(['p', 'q']) }), handler: say },
          {
            name: 'slow',
            description: 'x',
            inputSchema: { type: 'object' },
            timeoutMs: 60,
            async execute(_: unknown, { signal }: { signal: AbortSignal }) {
              await new Promise((resolve) => signal.addEventListener('abort', resolve));
              stopped.push(signal.reason.name);
            },
          },
          {
            name: 'waits',
            description: 'x',
            inputSchema: {},
            execute: (_: unknown, { signal, progress, log }: never) => hold(signal, progress, log),
          },
          { name: 'fails', description: 'x', inputSchema: {}, handler: () => Promise.reject(new Error('broken')) },
          { name: 'typed', description: 'x', outputSchema: z.object({ n: z.number() }), handler: () => ({ n: 1 }) },
        ],
      },
      server: { name: 'Server', description: 'Another server', modules: ['server'] },
      folder: { name: 'Folder', description: 'Tool files', modules: ['folder'] },
      dead: { name: 'Dead', description: 'Does not start', modules: ['dead'] },
    },
    moduleLoaders: {
      server: () => fromServer({ ...serverEntry('basic') }),
      folder: async () => [fromFolder(folder), tool('beside')],
      dead: () => fromServer({ command: process.execPath, args: ['-e', 'process.exit(3)'] }),
    },
    settings: { data_dir: tempFolder() },
  };

  function say(args: object) {
    return JSON.stringify(args);
  }

  function hold(
    signal: AbortSignal,
    progress: (n: number, of: number) => void,
    log: (level: string, data: unknown) => void,
  ) {
    progress(1, 2);
    log('warning', 'at it');
    return new Promise((resolve) => signal.addEventListener('abort', () => resolve(stopped.push('cancelled'))));
  }

  let url: string;
  beforeAll(async () => {
    writeFiles(folder, {
      'hello.ts': `export const hello = { description: 'x', inputSchema: { type: 'object' }, handler: () => 'from a file' };`,
    });
    ({ url } = await startServer(options as never));
  });

  it('accepts shapes and schemas of zod 3 and 4, and validates with them', async () => {
    const client = await connect(ERAS[0]!, url, withId('schemas'));
    await client.json('enable_toolset', { name: 'own' });
    expect(await client.json('own.shape4', { a: 'x', stray: 1 })).toEqual({ a: 'x' });
    expect(await client.json('own.shape3', { a: 'xy' })).toEqual({ a: 'xy', b: 4 });
    expect(textOf(await client.call('own.shape3', { a: 'x' }))).toContain('The arguments do not fit: a: ');
    expect(textOf(await client.call('own.object3', { kind: 'r' }))).toContain('The arguments do not fit: kind: ');
    expect((await client.call('own.typed')).structuredContent).toEqual({ n: 1 });
    expect(await client.call('own.fails')).toMatchObject({ isError: true });
    expect(textOf(await client.call('own.fails'))).toContain('broken');
  });

  it('ends calls that time out or are cancelled, and relays progress and log messages', async () => {
    const { connectHttp } = await import('../support/connection.ts');
    const { client, notifications } = await connectHttp(url, withId('calls'));
    await client.callTool({ name: 'enable_toolset', arguments: { name: 'own' } });
    const slow = (await client.callTool({ name: 'own.slow', arguments: {} })) as never;
    expect(textOf(slow)).toContain('did not finish within 60 ms');
    expect(stopped).toEqual(['TimeoutError']);
    const abort = new AbortController();
    const steps: unknown[] = [];
    const waiting = client.callTool({ name: 'own.waits', arguments: {} }, undefined, {
      signal: abort.signal,
      onprogress: (step) => steps.push(step),
    });
    await waitFor(() => steps.length === 1);
    expect(steps).toEqual([{ progress: 1, total: 2 }]);
    await waitFor(() => notifications.some(({ method }) => method === 'notifications/message'));
    abort.abort();
    await expect(waiting).rejects.toThrow();
    await waitFor(() => stopped.includes('cancelled'));
  });

  it('serves another server and a folder of tools as toolsets', async () => {
    const client = await connect(ERAS[1]!, url, withId('sources'));
    await client.names();
    const { tools } = await client.json('enable_toolset', { name: 'server' });
    expect(tools).toContain('server.echo');
    expect(await client.text('server.echo', { text: 'hi' })).toContain('hi');
    expect(await client.json('enable_toolset', { name: 'folder' })).toMatchObject({
      tools: ['folder.beside', 'folder.hello'],
    });
    expect(await client.text('folder.hello')).toBe('from a file');
    const dead = JSON.parse(textOf(await client.call('enable_toolset', { name: 'dead' })));
    expect(dead).toMatchObject({ success: false, code: 'E_INTERNAL' });
    expect(dead.message).toContain('its server "dead" is not available');
    await client.json('disable_toolset', { name: 'server' });
    expect(await client.names()).toEqual([...META, 'folder.beside', 'folder.hello']);
  });
});
