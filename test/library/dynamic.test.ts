/** Toolsets that each client switches on and off for itself. */
import { beforeAll, describe, expect, it } from 'vitest';
import * as z from 'zod';
import { defineTool, type McpServerHandle, type McpToolDefinition } from '../../src/index.ts';
import { waitFor } from '../support/processes.ts';
import { connect, ERAS, META, startServer, textOf, withId } from './support.ts';

const find: McpToolDefinition = {
  name: 'find',
  description: 'Finds a thing',
  inputSchema: { type: 'object', properties: { what: { type: 'string' } }, required: ['what'] },
  annotations: { readOnlyHint: true, title: 'Find' },
  handler: async ({ what }: { what: string }) => ({ content: [{ type: 'text', text: `found ${what}` }] }),
};

const add = defineTool({
  name: 'add',
  description: 'Adds two numbers',
  inputSchema: z.object({ a: z.number(), b: z.number().default(1) }),
  execute: ({ a, b }, { clientId }) => ({ sum: a + b, for: clientId }),
});

let loads = 0;
let failing = true;

const options = {
  catalog: {
    search: { name: 'Search', description: 'Finds things', tools: [find], decisionCriteria: 'to find' },
    math: { name: 'Math', description: 'Sums', modules: ['math'] },
    flaky: { name: 'Flaky', description: 'Fails at first', tools: [find], modules: ['math', 'broken'] },
    closed: { name: 'Closed', description: 'Not for anybody', tools: [find] },
  },
  moduleLoaders: {
    math: async () => {
      loads++;
      return [add];
    },
    broken: () => {
      if (failing) throw new Error('no connection');
      return [];
    },
  },
  exposurePolicy: { denylist: ['closed'] },
  serverInfo: { name: 'dynamic', version: '3.2.1', instructions: 'Enable a toolset first.' },
};

describe.each(ERAS)('with a client of SDK %s', (era) => {
  let server: McpServerHandle & { url: string };
  beforeAll(async () => {
    loads = 0;
    failing = true;
    server = await startServer(options);
  });
  let last = 0;
  const client = (id = `client-${++last}`) => connect(era, server.url, withId(id));

  it('has only meta-tools at first, and introduces itself', async () => {
    const one = await client();
    expect(await one.names()).toEqual(META);
    expect(one.server()).toMatchObject({ name: 'dynamic', version: '3.2.1' });
    expect(await one.json('list_tools')).toEqual({ tools: [], toolsetToTools: {} });
    const { toolsets } = await one.json('list_toolsets');
    expect((toolsets as { key: string }[]).map(({ key }) => key)).toEqual(['search', 'math', 'flaky']);
    expect((toolsets as unknown[])[0]).toEqual({
      key: 'search',
      active: false,
      definition: { name: 'Search', description: 'Finds things', modules: [], decisionCriteria: 'to find' },
      tools: ['search.find'],
    });
  });

  it('enables a toolset for one client only, and notifies it once', async () => {
    const [one, other] = [await client(), await client()];
    await Promise.all([one.names(), other.names()]);
    expect(await one.json('enable_toolset', { name: 'search' })).toEqual({
      success: true,
      message: 'Enabled the toolset "search": 1 tool.',
      tools: ['search.find'],
    });
    await waitFor(() => one.changes() === 1);
    expect(await one.names()).toEqual([...META, 'search.find']);
    expect(await one.text('search.find', { what: 'it' })).toBe('found it');
    expect(await one.json('list_tools')).toEqual({
      tools: ['search.find'],
      toolsetToTools: { search: ['search.find'] },
    });
    expect(await one.json('describe_toolset', { name: 'search' })).toMatchObject({ active: true });
    expect(await other.names()).toEqual(META);
    expect(textOf(await other.call('search.find', { what: 'x' }).catch((error: Error) => said(error)))).toContain(
      'If it belongs to the toolset \\"search\\", call enable_toolset first.',
    );
    expect([one.changes(), other.changes()]).toEqual([1, 0]);
  });

  it('removes the tools of a disabled toolset, and enables it again', async () => {
    const one = await client();
    await one.names();
    for (const turn of [1, 2]) {
      await one.json('enable_toolset', { name: 'math' });
      expect(await one.names()).toEqual([...META, 'math.add']);
      expect(JSON.parse(await one.text('math.add', { a: 2 }))).toMatchObject({ sum: 3 });
      expect(await one.json('disable_toolset', { name: 'math' })).toEqual({
        success: true,
        message: 'Disabled the toolset "math": its tools are removed.',
      });
      expect(await one.names()).toEqual(META);
      expect(textOf(await one.call('math.add', { a: 2 }).catch((error: Error) => said(error)))).toContain('math.add');
      await waitFor(() => one.changes() === 2 * turn);
    }
    expect(await one.json('disable_toolset', { name: 'math' })).toMatchObject({ success: true });
    expect(one.changes()).toBe(4);
    // Loaded once for all clients.
    expect(loads).toBeLessThanOrEqual(2);
  });

  it('recognizes a client that reconnects', async () => {
    const one = await client('stable');
    await one.json('enable_toolset', { name: 'search' });
    await one.close();
    const back = await client('stable');
    expect(await back.names()).toEqual([...META, 'search.find']);
    // Two connections at a time are one client.
    const second = await client('stable');
    await back.json('enable_toolset', { name: 'math' });
    expect(await second.names()).toEqual([...META, 'search.find', 'math.add']);
    expect(JSON.parse(await second.text('math.add', { a: 1, b: 1 }))).toEqual({ sum: 2, for: 'stable' });
  });

  it('names a loader that fails, enables nothing, and tries again next time', async () => {
    const one = await client();
    await one.names();
    failing = true;
    const failed = await one.call('enable_toolset', { name: 'flaky' });
    expect(failed.isError).toBe(true);
    expect(JSON.parse(textOf(failed))).toEqual({
      success: false,
      code: 'E_INTERNAL',
      message: 'The toolset "flaky" could not be loaded: its loader "broken" failed: no connection. Try again later.',
    });
    expect(await one.names()).toEqual(META);
    failing = false;
    expect(await one.json('enable_toolset', { name: 'flaky' })).toMatchObject({
      success: true,
      tools: ['flaky.find', 'flaky.add'],
    });
    await waitFor(() => one.changes() === 1);
  });

  it('says what is wrong with bad input', async () => {
    const one = await client();
    const failure = async (name: string, args: Record<string, unknown>) => {
      const result = await one.call(name, args);
      expect(result.isError).toBe(true);
      return JSON.parse(textOf(result)) as Record<string, unknown>;
    };
    expect(await failure('enable_toolset', { name: 'serch' })).toEqual({
      success: false,
      code: 'E_VALIDATION',
      message: 'There is no toolset "serch". Did you mean "search"?',
    });
    expect(await failure('enable_toolset', {})).toMatchObject({ message: expect.stringContaining('"name" must be') });
    expect(await failure('enable_toolset', { name: 'closed' })).toMatchObject({
      code: 'E_VALIDATION',
      message: 'There is no toolset "closed".',
    });
    expect(await failure('disable_toolset', { name: 7 })).toMatchObject({ success: false });
    expect(await failure('describe_toolset', { name: 'nope' })).toMatchObject({
      error: expect.stringContaining('There is no toolset "nope".'),
    });
    expect(await failure('list_tools', { extra: 1 })).toMatchObject({ success: false });
    await one.json('enable_toolset', { name: 'math' });
    const wrong = await one.call('math.add', { a: 'x' });
    expect(wrong.isError).toBe(true);
    expect(textOf(wrong)).toContain('The arguments do not fit: a: ');
  });
});

/** The text of an error, as if a tool had returned it. */
function said({ message }: Error) {
  return { content: [{ type: 'text' as const, text: message }] };
}
