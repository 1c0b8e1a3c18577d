/** Categories of tools in policies and toolsets, with public servers behind the gateway. */
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { beforeAll, describe, expect, it } from 'vitest';
import { configFromValue, explainName, type Gateway, openLocalDoor } from '../../src/index.ts';
import { runCli } from '../support/cli.ts';
import { connectHttp } from '../support/connection.ts';
import { open } from '../support/open-gateway.ts';
import { server, serversToml } from '../support/server.ts';
import { tempFolder } from '../support/temp.ts';

const program = (name: string) =>
  fileURLToPath(new URL(`../../node_modules/@modelcontextprotocol/${name}/dist/index.js`, import.meta.url));

const SERVERS = {
  files: { command: process.execPath, args: [program('server-filesystem'), '.'] },
  memory: {
    command: process.execPath,
    args: [program('server-memory')],
    env: { MEMORY_FILE_PATH: join(tempFolder(), 'memory.jsonl') },
  },
};

let gateway: Gateway;
let url: string;
beforeAll(async () => {
  ({ gateway, url } = await open(SERVERS, {
    http: { trust_agent_header: true },
    toolsets: { look: { tools: ['category:files/read'] } },
    agent_policies: {
      reader: { tool_overrides: { '*': ['category:read'] } },
      careful: { tool_overrides: { '*': ['*'] }, denied_tools: { '*': ['category:destructive'] } },
      clerk: {
        tool_overrides: { '*': ['*'] },
        conditions: [{ tools: ['category:memory/destructive'], arguments: { entityNames: 'draft-*' } }],
      },
    },
  }));
});

function toolsOf(agent: string): string[] {
  return [...openLocalDoor(gateway, 'own', agent).caller.view().entries.tool.keys()];
}

describe('policies with categories', () => {
  it('let an agent use the read tools of every server', () => {
    expect(toolsOf('reader')).toEqual([
      'files_read_file',
      'files_read_text_file',
      'files_read_media_file',
      'files_read_multiple_files',
      'files_list_directory',
      'files_list_directory_with_sizes',
      'files_directory_tree',
      'files_search_files',
      'files_get_file_info',
      'files_list_allowed_directories',
      'memory_read_graph',
      'memory_search_nodes',
      'memory_open_nodes',
    ]);
  });

  it('deny destructive tools, and name the category in the reason', () => {
    const tools = toolsOf('careful');
    expect(tools).toContain('memory_create_entities');
    for (const name of ['files_write_file', 'memory_delete_entities']) expect(tools).not.toContain(name);
    const [decision] = explainName(gateway.catalog, gateway.config.policy, 'careful', 'files_write_file', new Date());
    expect(decision?.findings.at(-1)).toEqual({
      rule: 'agent_policies.careful.denied_tools.files',
      verdict: 'deny',
      text: 'lists "write_file" by "category:destructive"',
    });
  });

  it('apply argument conditions to destructive tools', async () => {
    const { client } = await connectHttp(url, { 'x-agent-id': 'clerk' });
    const remove = (names: string[]) =>
      client.callTool({ name: 'memory_delete_entities', arguments: { entityNames: names } });
    expect(await remove(['other'])).toMatchObject({ isError: true });
    expect(await remove(['draft-1'])).not.toMatchObject({ isError: true });
    expect(await client.callTool({ name: 'memory_read_graph', arguments: {} })).not.toMatchObject({ isError: true });
  });
});

it('a toolset can contain all tools of a category', async () => {
  const { client } = await connectHttp(`${url}?toolset=look`, { 'x-agent-id': 'careful' });
  const names = (await client.listTools()).tools.map(({ name }) => name);
  expect(names).toContain('files_read_text_file');
  expect(names.every((name) => name.startsWith('files_') && !name.includes('write'))).toBe(true);
});

it('an unknown category is an error, because it would deny nothing', () => {
  const load = (value: object) => () => configFromValue(value, { cwd: tempFolder(), env: {} });
  expect(load({ denied_tools: { '*': ['category:destructiv'] } })).toThrow(
    /denied_tools\["\*"\]\[0\]: there is no category "destructiv". Did you mean "destructive"\?/,
  );
  expect(load({ default_policy: { tool_limits: { 'category:write': { rate: '1/s' } } } })).toThrow(
    /limits go by names and patterns, not categories/,
  );
  expect(load({ toolsets: { a: { tools: ['category:reed'] } } })).toThrow(/there is no category "reed"/);
});

it('list --json and explain show the category', async () => {
  const config = `controls = []\nactive_toolsets = ["category:read"]\n${serversToml({ notes: server('basic', '--tools', 'get_note,delete_note,frob') })}`;
  const cwd = tempFolder({ 'tools.toml': config });
  const { stdout } = await runCli(['list', 'tools', '--json'], { cwd });
  const tools = JSON.parse(stdout) as { name: string; active: boolean; category: object }[];
  expect(tools.map(({ name, active, category }) => [name, active, category])).toEqual([
    ['notes_get_note', true, { effect: 'read', by: 'name', domain: 'documents' }],
    ['notes_delete_note', false, { effect: 'destructive', by: 'name', domain: 'documents' }],
    ['notes_frob', false, { effect: 'write', by: 'nothing', domain: 'documents' }],
  ]);
  const explained = await runCli(['explain', 'notes_frob', '--agent', 'a'], { cwd });
  expect(explained.stdout).toContain('Category: documents/write, because nothing says what it does.');
});
