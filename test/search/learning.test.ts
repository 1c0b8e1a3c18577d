/** Examples help the search: those of the configuration, and those that an agent learns by calling what it found. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import type { Client } from '@modelcontextprotocol/sdk/client/index.js';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { openExamples } from '../../src/store/examples.ts';
import { ownError, type ToolResult } from '../support/doors.ts';
import { connectAs } from '../support/named-client.ts';
import { basic, open } from '../support/open-gateway.ts';
import { waitFor } from '../support/processes.ts';
import { tempFolder, writeFiles } from '../support/temp.ts';
import { runs } from '../support/wide.ts';

const TOOLS = [
  { name: 'count', description: 'Returns how often it was called', inputSchema: { type: 'object' } },
  { name: 'whoami', description: 'Returns who it is', inputSchema: { type: 'object' } },
  { name: 'broken', description: 'Fails, how often it is called', inputSchema: { type: 'object' } },
];
const POLICY = {
  agent_policies: {
    default: { tool_overrides: { '*': ['*'] } },
    other: { tool_overrides: { '*': ['*'] } },
    narrow: { allowed_servers: ['a'], tool_overrides: { a: ['whoami'] } },
  },
};

async function openWith(search: object, dataDir = `${tempFolder()}/data`, more: object = {}) {
  const cwd = tempFolder();
  writeFiles(cwd, { 'tools.json': JSON.stringify(TOOLS) });
  const { gateway } = await open(
    { a: basic('--name', 'a', '--raw-tools', `${cwd}/tools.json`) },
    { controls: ['search'], data_dir: dataDir, search, ...POLICY, ...more },
  );
  return { gateway, file: `${dataDir}/search-examples.json` };
}

const run = async (by: Client, name: string, args: object) =>
  (await by.callTool({ name, arguments: args as Record<string, unknown> })) as unknown as ToolResult;
const search = async (by: Client, query: string) =>
  (await run(by, 'search_tools', { queries: [query], limit: 3 })).content[0]!.text;
const learned = (file: string) => (existsSync(file) ? readFileSync(file, 'utf8') : '');

describe('examples of the configuration', () => {
  it('find their tool, by either of its names', async () => {
    const { gateway } = await openWith({
      examples: { 'a.count': ['tally the visitors'], a_whoami: ['reveal your badge'] },
    });
    const client = await connectAs(gateway, 'any');
    expect(await search(client, 'tally visitors')).toMatch(/^a_count/);
    expect(await search(client, 'badge')).toMatch(/^a_whoami/);
  });
});

describe('learning', () => {
  it('makes a query an example when a tool that it found is called with success, for the next start too', async () => {
    const dataDir = `${tempFolder()}/data`;
    const { gateway, file } = await openWith({}, dataDir);
    const client = await connectAs(gateway, 'any');
    expect(await search(client, 'tally often')).toContain('a_count');
    expect(await search(client, 'tally')).toContain('Nothing matches');
    await run(client, 'call_tool', { name: 'a_count' });
    await waitFor(() => learned(file).includes('tally often'));
    expect(JSON.parse(learned(file))).toEqual([
      { agent: 'default', view: expect.any(String), tools: { 'a.count': ['tally often'] } },
    ]);
    expect(await search(client, 'tally')).toMatch(/^a_count/);
    await gateway.close();
    const again = await openWith({}, dataDir);
    expect(await search(await connectAs(again.gateway, 'any'), 'tally')).toMatch(/^a_count/);
  });

  it('learns nothing from a failure, from tools that were not found, and if it is off', async () => {
    const { gateway, file } = await openWith({});
    const client = await connectAs(gateway, 'any');
    await search(client, 'often called');
    await run(client, 'call_tool', { name: 'a_broken' }).catch(() => undefined);
    await run(client, 'call_tool', { name: 'a_whoami' });
    expect(gateway.examples.all()).toEqual([]);
    const off = await openWith({ learn: false });
    const other = await connectAs(off.gateway, 'any');
    await search(other, 'often called');
    await run(other, 'call_tool', { name: 'a_count' });
    expect(off.gateway.examples.all()).toEqual([]);
    expect(existsSync(file) || existsSync(off.file)).toBe(false);
  });

  it('is for the agent alone, and only while the same is open to it', async () => {
    const { gateway } = await openWith({});
    const client = await connectAs(gateway, 'any');
    await search(client, 'tally often');
    await run(client, 'call_tool', { name: 'a_count' });
    await search(client, 'moniker whoami');
    await run(client, 'call_tool', { name: 'a_whoami' });
    expect(await search(client, 'moniker')).toMatch(/^a_whoami/);
    for (const agent of ['other', 'narrow']) {
      const stranger = await connectAs(gateway, 'any', { agent });
      expect(await search(stranger, 'moniker')).toContain('Nothing matches');
      expect(await search(stranger, 'tally')).toContain('Nothing matches');
    }
    expect(gateway.examples.all().map(({ agent }) => agent)).toEqual(['default']);
  });

  it('keeps no secrets', async () => {
    const { gateway } = await openWith({}, undefined, { agents: { default: { token: 'hunter2-hunter2-hunter2' } } });
    const client = await connectAs(gateway, 'any');
    await search(client, 'how often hunter2-hunter2-hunter2');
    await run(client, 'call_tool', { name: 'a_count' });
    const [one] = gateway.examples.all();
    expect(JSON.stringify(one)).toContain('how often');
    expect(JSON.stringify(one)).not.toContain('hunter2-hunter2');
  });

  it('does not let a model describe what it may not use', async () => {
    const { gateway } = await openWith({ examples: { 'a.count': ['tally'] } });
    const narrow = await connectAs(gateway, 'any', { agent: 'narrow' });
    expect(await search(narrow, 'tally')).toContain('Nothing matches');
    expect(ownError(await run(narrow, 'describe_tools', { names: ['a_count'] })).code).toBe('item_unknown');
  });
});

describe('the store of examples', () => {
  it('is bounded, keeps the newest, and answers the same after it is read again', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(
          fc.tuple(fc.integer({ min: 0, max: 60 }), fc.integer({ min: 0, max: 3 }), fc.string({ maxLength: 300 })),
          {
            maxLength: 200,
          },
        ),
        async (lessons) => {
          const folder = tempFolder();
          const store = openExamples(folder, (error) => {
            throw error;
          });
          for (const [agent, tool, query] of lessons)
            store.learn({ agent: `a${agent}`, view: '' }, `s.t${tool}`, query);
          expect(store.all().length).toBeLessThanOrEqual(50);
          for (const { tools } of store.all())
            for (const queries of Object.values(tools)) {
              expect(queries.length).toBeLessThanOrEqual(20);
              expect(queries.every((query) => query !== '' && query.length <= 200)).toBe(true);
            }
          await store.close();
          const again = openExamples(folder, () => undefined);
          expect(again.all()).toEqual(store.all());
        },
      ),
      { numRuns: runs(30) },
    );
  });

  it('reports a file that it does not understand, and learns on', async () => {
    const folder = tempFolder();
    writeFileSync(`${folder}/search-examples.json`, '{"not": "a list"}');
    const failures: unknown[] = [];
    const store = openExamples(folder, (error) => failures.push(error));
    expect(store.of({ agent: 'a', view: '' }).size).toBe(0);
    expect(String(failures[0])).toContain('is not a list of learned examples');
    store.learn({ agent: 'a', view: '' }, 's.t', 'a query');
    expect(store.of({ agent: 'a', view: '' }).get('s.t')).toEqual(['a query']);
    store.forget();
    expect(store.all()).toEqual([]);
    await store.close();
  });
});
