/** The control `search`: find tools by words, read their definitions, activate and call them. */
import type { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { beforeAll, describe, expect, it } from 'vitest';
import type { Gateway } from '../../src/index.ts';
import { auditOf, isCall, readLines } from '../support/audit-records.ts';
import { ownError, type ToolResult } from '../support/doors.ts';
import { connectAs, connectNamed } from '../support/named-client.ts';
import { basic, open } from '../support/open-gateway.ts';
import { waitFor } from '../support/processes.ts';
import { tempFolder, writeFiles } from '../support/temp.ts';

const object = (properties: object, ...required: string[]) => ({ type: 'object', properties, required });
const text = { type: 'string' };
const GIT = [
  {
    name: 'create_issue',
    description: 'Opens an issue in a repository',
    inputSchema: object({ title: text, body: text }, 'title'),
  },
  { name: 'list_issues', description: 'Lists issues of a repository', inputSchema: object({}) },
  { name: 'count', description: 'Counts its calls', inputSchema: object({}) },
  {
    name: 'echo',
    description: 'Echoes a branch',
    inputSchema: object({ branch: text, squash: { type: 'boolean' } }, 'branch'),
  },
];
const MAIL = [
  { name: 'send', description: 'Sends an email', inputSchema: object({ to: text }, 'to') },
  { name: 'read_inbox', description: 'Reads new messages', inputSchema: object({}) },
];

const POLICY = {
  agent_policies: {
    default: { tool_overrides: { '*': ['*'] } },
    reader: { allowed_servers: ['git'], tool_overrides: { git: ['list_issues', 'count'] } },
    limited: { tool_overrides: { '*': ['*'] }, tool_limits: { 'git.count': { calls_per_day: 1 } } },
    blind: { tool_overrides: { '*': ['*'] }, denied_tools: { toolgate: ['search_tools'] } },
  },
};

let gateway: Gateway;
let cwd: string;
let client: Client;

beforeAll(async () => {
  cwd = tempFolder();
  writeFiles(cwd, { 'git.json': JSON.stringify(GIT), 'mail.json': JSON.stringify(MAIL) });
  const opened = await open(
    {
      git: basic('--name', 'git', '--raw-tools', `${cwd}/git.json`, '--prompts', 'review'),
      mail: basic('--name', 'mail', '--raw-tools', `${cwd}/mail.json`, '--resources', 'mail://inbox'),
    },
    {
      controls: ['search'],
      active_toolsets: ['git_echo', 'mail_mail:*'],
      ...POLICY,
      data_dir: `${cwd}/.toolgate`,
      audit: { enabled: true },
    },
  );
  gateway = opened.gateway;
  client = await connectAs(gateway, 'some client');
});

const run = async (name: string, args: object, by = client) =>
  (await by.callTool({ name, arguments: args as Record<string, unknown> })) as unknown as ToolResult;
const textOf = ({ content, isError }: ToolResult) => {
  expect(isError, content[0]?.text).toBeFalsy();
  return content[0]!.text;
};
const search = async (queries: unknown, more: object = {}, by = client) =>
  textOf(await run('search_tools', { queries, ...more }, by));
const names = async (of: Client) => (await of.listTools()).tools.map(({ name }) => name);

describe('the list', () => {
  it('has three tools of its own and what is pinned, and costs about 300 tokens', async () => {
    const { tools } = await client.listTools();
    expect(tools.map(({ name }) => name)).toEqual(['search_tools', 'describe_tools', 'call_tool', 'git_echo']);
    expect(JSON.stringify(tools.slice(0, 3)).length / 4).toBeLessThan(420);
    expect(tools[0]!.description).toContain('Servers (number of tools): git (4), mail (2)');
  });

  it('is explained in the instructions', () => {
    expect(client.getInstructions()).toContain('Toolgate offers 6 tools of 2 servers');
  });
});

describe('search_tools', () => {
  it('returns signatures with what must be given, for each query', async () => {
    const found = await search(['open an issue', 'send email'], { limit: 1 });
    expect(found).toContain('# open an issue\ngit_create_issue(title: string, …) - Opens an issue in a repository');
    expect(found).toContain('# send email\nmail_send(to: string) - Sends an email');
    expect(found).toContain('Call a tool with call_tool');
  });

  it('says how many more match and where, and names what an earlier query has found only once', async () => {
    const found = await search(['issue', 'repository issue'], { limit: 1 });
    expect(found.match(/git_\w+\(/g)).toHaveLength(1);
    expect(found).toContain('(see above)');
    expect(found).toMatch(/… 1 more like these on git \(1\)/);
  });

  it('finds prompts and resources', async () => {
    expect(await search('review')).toContain('prompt git_review');
    expect(await search('inbox', { server: 'mail' })).toContain('resource mail_mail://inbox');
  });

  it('looks on one server, and says which there are', async () => {
    expect(await search('messages issue', { server: 'm*' })).not.toContain('git_');
    const { message } = ownError(await run('search_tools', { queries: ['x'], server: 'gitt' }));
    expect(message).toBe('No server "gitt" offers anything now. Did you mean "git"?');
  });

  it('has a hint if nothing matches', async () => {
    expect(await search('crete_isue')).toContain('git_create_issue');
    expect(await search('zzzzzz')).toContain('Try other words, or what one of these servers has: git, mail.');
    expect(await search('qqqq xxxx')).toContain('Nothing matches.');
  });

  it.each([
    [{}, '"queries" must be a list of 1 to 10 elements'],
    [{ queries: [] }, '"queries" must be a list'],
    [{ queries: [''] }, '"query" must be a string'],
    [{ queries: ['x'], limit: 0 }, '"limit" must be a whole number'],
    [{ queries: ['x'], words: 1 }, 'Unknown argument words'],
  ])('refuses %j', async (args, message) => {
    const { code, message: said } = ownError(await run('search_tools', args));
    expect(code).toBe('arguments_invalid');
    expect(said).toContain(message);
  });
});

describe('describe_tools', () => {
  it('returns whole definitions, by any name of a tool', async () => {
    const lines = textOf(await run('describe_tools', { names: ['git_create_issue', 'mail.send'] })).split('\n');
    expect(lines.map((line) => JSON.parse(line))).toEqual([
      { ...GIT[0], name: 'git_create_issue' },
      { ...MAIL[0], name: 'mail_send' },
    ]);
  });

  it('names what is unknown, with suggestions, and does nothing', async () => {
    const { message } = ownError(await run('describe_tools', { names: ['git_count', 'git_cont'], activate: true }));
    expect(message).toBe('Nothing was described. Unknown names: git_cont (did you mean git_count?).');
    expect(await names(client)).toHaveLength(4);
  });
});

describe('found tools', () => {
  it('are activated in one batch that only adds to the end of the list', async () => {
    const { client: own, changes } = await connectNamed(gateway, 'claude-code');
    const listed = async () => JSON.stringify((await own.listTools()).tools).slice(0, -1);
    const before = await listed();
    const told = changes('tools');
    const answer = search(['issues', 'read or send'], { limit: 2, activate: true }, own);
    await waitFor(() => changes('tools') > told);
    const after = await listed();
    expect(await answer).toMatch(/Activated 4 items\./);
    expect(after.startsWith(before)).toBe(true);
    expect(await names(own)).toHaveLength(8);
    expect(changes('tools')).toBe(told + 1);
    const again = await search('issues', { limit: 2, activate: true }, own);
    expect(again).toContain('All of them were active already.');
    expect(changes('tools')).toBe(told + 1);
  });

  it('can be activated by name', async () => {
    const own = await connectAs(gateway, 'codex-mcp-client');
    expect(textOf(await run('describe_tools', { names: ['git_count'], activate: true }, own))).toBe(
      'git_count() - Counts its calls\n\nActivated 1 item. If your list of tools does not show them, use call_tool.',
    );
    expect(await names(own)).toContain('git_count');
    expect(await names(own)).not.toContain('toolman_call');
  });
});

describe('call_tool', () => {
  it('calls a tool that is not in the list, and is recorded as that tool', async () => {
    const before = readLines(auditOf(cwd)).length;
    expect(textOf(await run('call_tool', { name: 'git_count' }))).toMatch(/^\d+$/);
    await waitFor(() =>
      readLines(auditOf(cwd))
        .slice(before)
        .some((line) => isCall(line) && line.through === 'call_tool'),
    );
    const line = readLines(auditOf(cwd)).findLast((one) => isCall(one) && one.through === 'call_tool');
    expect(line).toMatchObject({ server: 'git', name: 'git_count', status: 'ok' });
  });

  it('is limited as that tool', async () => {
    const limited = await connectAs(gateway, 'any', { agent: 'limited' });
    textOf(await run('call_tool', { name: 'git_count' }, limited));
    expect(ownError(await run('call_tool', { name: 'git_count' }, limited)).code).toBe('rate_limited');
  });

  it('answers with the schema if the arguments do not fit', async () => {
    const { message } = ownError(await run('call_tool', { name: 'git_create_issue', arguments: { body: 'x' } }));
    expect(message).toContain('"title" must be given. Its input schema: {"type":"object"');
    expect(ownError(await run('call_tool', { name: 'git_count', describe: true })).message).toBe(
      'call_tool does not take "describe": put what the tool takes into "arguments".',
    );
  });

  it('says how to go on if an inactive tool is called directly', async () => {
    const { code, message } = ownError(await run('git_count', {}));
    expect(code).toBe('item_inactive');
    expect(message).toContain(
      'Call it through call_tool, or activate it: call describe_tools with "git_count" in names',
    );
  });
});

describe('a policy', () => {
  it('hides what it closes: from results, counts, servers, hints and errors', async () => {
    const reader = await connectAs(gateway, 'any', { agent: 'reader' });
    const { tools } = await reader.listTools();
    expect(tools[0]!.description).toContain('git (2)');
    expect(JSON.stringify(tools)).not.toContain('mail');
    const found = await search(['issue', 'send email', 'echo'], { limit: 20 }, reader);
    expect(found).toContain('git_list_issues');
    expect(found).not.toMatch(/mail_|create_issue|git_echo|more like these/);
    const hidden = ownError(await run('describe_tools', { names: ['mail_send'] }, reader)).message;
    const absent = ownError(await run('describe_tools', { names: ['nail_send'] }, reader)).message;
    expect(hidden).toBe(absent.replaceAll('nail', 'mail'));
    const called = ownError(await run('call_tool', { name: 'git_create_issue' }, reader));
    const unknown = ownError(await run('call_tool', { name: 'git_creaty_issue' }, reader));
    expect([called.code, called.message.replaceAll('create_', 'creaty_')]).toEqual([unknown.code, unknown.message]);
  });

  it('may close the control itself', async () => {
    const blind = await connectAs(gateway, 'any', { agent: 'blind' });
    expect(await names(blind)).toEqual(['describe_tools', 'call_tool', 'git_echo']);
    expect(ownError(await run('search_tools', { queries: ['x'] }, blind)).code).toBe('item_unknown');
    expect(ownError(await run('call_tool', { name: 'git_count' }, blind)).code).toBe('item_inactive');
    textOf(await run('call_tool', { name: 'git_echo', arguments: { branch: 'x' } }, blind));
  });
});
