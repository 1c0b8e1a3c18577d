/** Sessions with a task: named in the URL, in a header, or when the gateway is started. */
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js';
import { beforeAll, describe, expect, it } from 'vitest';
import { atEnd } from '../support/cleanup.ts';
import { clientOf } from '../support/client.ts';
import { connectHttp } from '../support/connection.ts';
import { startStdio } from '../support/gateway.ts';
import { connectModernHttp } from '../support/modern.ts';
import { type Opened, open } from '../support/open-gateway.ts';
import { waitFor } from '../support/processes.ts';
import { initialize } from '../support/raw-http.ts';
import { server, serversToml } from '../support/server.ts';
import { writeFiles } from '../support/temp.ts';
import { BASE, exposed, PROFILES, servers, TOOLS } from './servers.ts';

let gateway: Opened;
beforeAll(async () => {
  gateway = await open(servers(), {
    controls: ['activate'],
    agent_policies: {
      '*': { tool_overrides: { '*': ['*'] } },
      reader: { tool_overrides: { '*': ['read_*', 'get_*', 'git_log', 'git_reset'] } },
    },
    http: { trust_agent_header: true },
  });
});

interface Lists {
  listTools(): Promise<{ readonly tools: readonly { readonly name: string }[] }>;
}

async function toolsOf(client: Lists): Promise<string[]> {
  return (await client.listTools()).tools.map(({ name }) => name).sort();
}

function at(task: object | string): string {
  const text = typeof task === 'string' ? task : JSON.stringify(task);
  return `${gateway.url}?task=${encodeURIComponent(text)}`;
}

async function seenBy(task: object | string): Promise<string[]> {
  return toolsOf((await connectHttp(at(task))).client);
}

describe('the built-in rules give a task the tools of its profile', () => {
  it.each(Object.entries(PROFILES))('%s', async (type, tools) => {
    expect(await seenBy({ type })).toEqual(exposed(tools));
    expect(await seenBy({ profile: type, service: 'any' })).toEqual(exposed(tools));
  });

  it('a task without a profile: reading code, the list of tasks, files', async () => {
    expect(await seenBy({ service: 'billing' })).toEqual(exposed(BASE));
  });

  it('an API service: branches, pull requests, folders; testing it adds the status of tasks', async () => {
    const api = {
      github: [...BASE.github, 'create_pull_request', 'create_branch'],
      taskmaster: BASE.taskmaster,
      filesystem: [...BASE.filesystem, 'list_directory', 'create_directory'],
    };
    expect(await seenBy({ service: 'user-api' })).toEqual(exposed(api));
    expect(await seenBy({ service: 'user-api', description: 'Write tests for the login' })).toEqual(
      exposed({ ...api, taskmaster: [...BASE.taskmaster, 'update_task_status'] }),
    );
    expect(await seenBy({ type: 'api' })).toEqual(exposed(api));
  });

  it.each([
    ['frontend', { type: 'ui' }, { github: ['create_pull_request'], filesystem: ['list_directory'] }],
    ['testing', { type: 'testing' }, { taskmaster: ['update_task_status'] }],
    ['testing', 'Add a test', { taskmaster: ['update_task_status'] }],
    ['deployment', 'Deploy it to staging', { github: ['run_workflow'] }],
    ['documentation', 'Update the docs', { filesystem: ['list_directory', 'search_files'] }],
  ])('%s %j', async (_, task, more) => {
    expect(await seenBy(task)).toEqual([...exposed(BASE), ...exposed(more)].sort());
  });
});

describe('a session with a task', () => {
  const RESEARCH = exposed(PROFILES.research!);

  it('can name it in a header, in both eras and over HTTP+SSE', async () => {
    const headers = { 'x-task': '{"type":"research"}' };
    expect(await toolsOf((await connectHttp(gateway.url, headers)).client)).toEqual(RESEARCH);
    expect(await toolsOf((await connectModernHttp(gateway.url, headers)).client)).toEqual(RESEARCH);
    expect(await toolsOf((await connectModernHttp(at({ type: 'research' }), {})).client)).toEqual(RESEARCH);
    const client = new Client({ name: 'old', version: '1' });
    atEnd(() => client.close());
    await client.connect(
      new SSEClientTransport(new URL(`${gateway.origin}/sse?task=%7B%22type%22%3A%22research%22%7D`)),
    );
    expect(await toolsOf(client)).toEqual(RESEARCH);
  });

  it('can describe it in any language, as UTF-8 in a header', async () => {
    const text = Buffer.from('Prüfen: qa für das Menü').toString('latin1');
    const names = await toolsOf((await connectHttp(gateway.url, { 'x-task': text })).client);
    expect(names).toContain('taskmaster_update_task_status');
  });

  it('can call what it sees at once, and nothing else, whatever it switches on', async () => {
    const { client } = await connectHttp(at({ type: 'research' }));
    const result = await client.callTool({ name: 'memory_search_memories', arguments: { query: 'x' } });
    expect(JSON.stringify(result)).toContain('search_memories');
    for (const name of ['memory_delete_memories', 'git_git_log', 'toolman_activate']) {
      const refused = await client.callTool({ name, arguments: {} });
      expect(refused).toMatchObject({ isError: true, content: [{ text: expect.stringContaining('item_unknown') }] });
    }
  });

  it('sees resources and prompts only of the servers that it needs', async () => {
    const { client } = await connectHttp(at({ type: 'development' }));
    expect((await client.listResources()).resources.map(({ uri }) => uri)).toEqual(['git_git://state']);
    expect((await client.listPrompts()).prompts.map(({ name }) => name)).toEqual(['git_git_help']);
    await expect(client.readResource({ uri: 'taskmaster_taskmaster://state' })).rejects.toThrow(/taskmaster/);
  });

  it('never sees more than its agent may use', async () => {
    const { client } = await connectHttp(at({ type: 'development' }), { 'x-agent-id': 'reader' });
    expect(await toolsOf(client)).toEqual(
      exposed({ filesystem: ['read_file'], github: ['get_file', 'get_file_contents'], git: ['git_log', 'read_file'] }),
    );
    const refused = await client.callTool({ name: 'filesystem_write_file', arguments: {} });
    expect(refused).toMatchObject({ isError: true });
  });

  it('does not affect other sessions', async () => {
    const { client } = await connectHttp(gateway.url);
    expect(await toolsOf(client)).toEqual(['toolman_activate']);
  });

  it.each([
    ['', 'says nothing'],
    ['{"type":', 'begins with a brace but is not valid JSON'],
    ['{"typ":"api"}', 'has an unknown key "typ". Did you mean "type"?'],
    ['{"type":7}', 'has a "type" that is not a text'],
    ['{"profile":"reserch"}', 'There is no task profile "reserch". Did you mean "research"?'],
  ])('refuses %s with a reason', async (task, why) => {
    const response = await fetch(at(task), {
      method: 'POST',
      body: initialize(),
      headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
    });
    expect(response.status).toBe(400);
    expect(((await response.json()) as { error: { message: string } }).error.message).toContain(why);
  });

  it('refuses two tasks in one request', async () => {
    const headers = { 'content-type': 'application/json', accept: 'application/json', 'x-task': 'one' };
    const response = await fetch(at('two'), { method: 'POST', body: initialize(), headers });
    expect(response.status).toBe(400);
  });
});

it('forgets the oldest of many tasks to save memory, and serves them again as before', async () => {
  for (let i = 0; i < 300; i++) gateway.gateway.join(clientOf('x', { task: task(`${i}`) })).view();
  expect(await seenBy({ type: 'research' })).toEqual(exposed(PROFILES.research!));
});

function task(description: string) {
  return { service: '', type: '', description, profile: '' };
}

it('toolgate --task FILE: applies to all clients, with the rules of a rule file', async () => {
  const git = server('basic', '--name', 'git', '--tools', TOOLS.git!.join(','));
  const { client, cwd } = await startStdio({
    config: `task_rule_files = ["rules.yaml"]\n${serversToml({ git })}`,
    files: {
      'rules.yaml': rules('[git_log]'),
      'task.md': '# Look\n\nWhat happened in the past?\n',
    },
    args: ['--task', 'task.md'],
  });
  expect(await toolsOf(client)).toEqual(['git_git_log']);
  writeFiles(cwd, { 'rules.yaml': rules('[git_log, git_diff]') });
  await waitFor(async () => (await toolsOf(client)).length === 2);
});

const rules = (tools: string) => `task_rules:\n  - name: history\n    keywords: [past]\n    tools: { git: ${tools} }\n`;
