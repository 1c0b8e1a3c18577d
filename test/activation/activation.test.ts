/** What is active at startup, and how toolman_activate changes it. */
import { describe, expect, it } from 'vitest';
import {
  activate,
  activated,
  call,
  callText,
  catalogLines,
  doorsOf,
  enter,
  isPipe,
  ownError,
  promptNames,
  resourceUris,
  type ToolResult,
  templateUris,
  toolNames,
  useGateway,
} from '../support/doors.ts';
import { server, serversToml } from '../support/server.ts';

const doors = doorsOf('activation');

const git = server(
  'basic',
  '--name',
  'git',
  '--tools',
  'status,stash,commit,push',
  '--resources',
  'log://1,log://2',
  '--templates',
  'log://{id}',
  '--prompts',
  'review',
);
const fs = server('basic', '--name', 'fs', '--tools', 'read,write', '--resources', 'file:a', '--prompts', 'explain');
const servers = serversToml({ git, fs });
const tools = ['git_status', 'git_stash', 'git_commit', 'git_push', 'fs_read', 'fs_write'];
const resources = ['git_log://1', 'git_log://2', 'fs_file:a'];

/** The four argument lists, with the given ones filled in. */
const lists = (given: object) => ({ tools_on: [], tools_off: [], resources_on: [], resources_off: [], ...given });

describe.each(doors)('active_toolsets over %s', (door) => {
  it.each([
    { globs: ['*'], tools, resources, templates: ['git_log://{id}'] },
    { globs: [], tools: [], resources: [], templates: [] },
    { globs: ['git*'], tools: tools.slice(0, 4), resources: resources.slice(0, 2), templates: ['git_log://{id}'] },
    { globs: ['*_st*', 'fs_read'], tools: ['git_status', 'git_stash', 'fs_read'], resources: [], templates: [] },
    { globs: ['git_log://?'], tools: [], resources: resources.slice(0, 2), templates: [] },
    { globs: ['*{*', 'FS_READ', 'git', 'status'], tools: [], resources: [], templates: ['git_log://{id}'] },
    { globs: ['git_[ps]*', 'fs_{read,write}'], tools: [], resources: [], templates: [] },
  ])('$globs match exposed names, separately for tools and resources', async ({ globs, ...expected }) => {
    const { client } = await enter(door, { config: `active_toolsets = ${JSON.stringify(globs)}\n${servers}` });
    expect({
      tools: await toolNames(client),
      resources: await resourceUris(client),
      templates: await templateUris(client),
    }).toEqual(expected);
    expect(await promptNames(client)).toEqual(['git_review', 'fs_explain']);
  });
});

describe.each(doors)('toolman_activate over %s', (door) => {
  const arrive = useGateway(door, () => ({ config: `active_toolsets = ["git_st*", "fs_file:*"]\n${servers}` }));

  it('is the gateway’s only own tool and requires four lists of strings', async () => {
    const { client } = await enter(door, { config: servers });
    const { tools: listed } = await client.listTools();
    expect(listed.map(({ name }) => name)).toEqual(['toolman_activate']);
    const { inputSchema } = listed[0]!;
    const names = ['tools_on', 'tools_off', 'resources_on', 'resources_off'];
    expect(inputSchema).toMatchObject({ type: 'object', required: names, additionalProperties: false });
    expect(Object.keys(inputSchema.properties!)).toEqual([...names, 'show', 'page']);
    for (const name of names) {
      expect(inputSchema.properties![name]).toMatchObject({ type: 'array', items: { type: 'string' } });
    }
  });

  it('switches the named items, leaves the others unchanged and confirms briefly', async () => {
    const { client } = await arrive();
    const text = await activated(client, {
      tools_on: ['git_push', 'fs_read'],
      tools_off: ['git_stash'],
      resources_on: ['git_log://2', 'git_log://{id}'],
      resources_off: ['fs_file:a'],
    });
    expect(text).toBe('Activated 4, deactivated 2 items.');
    expect(await toolNames(client)).toEqual(['git_status', 'git_push', 'fs_read']);
    expect(await resourceUris(client)).toEqual(['git_log://2']);
    expect(await templateUris(client)).toEqual(['git_log://{id}']);
    expect(await activated(client, { resources_on: ['git_log://1'] })).toBe('Activated 1 item.');
    expect(await activated(client, { tools_off: ['fs_read'] })).toBe('Deactivated 1 item.');
    expect(await toolNames(client)).toEqual(['git_status', 'git_push']);
    expect(await resourceUris(client)).toEqual(['git_log://1', 'git_log://2']);
    expect(await promptNames(client)).toEqual(['git_review', 'fs_explain']);
  });

  it('accepts patterns for whole servers in all four lists', async () => {
    const { client } = await arrive();
    await activated(client, {
      tools_on: ['fs_*'],
      tools_off: ['git_*'],
      resources_on: ['git_*'],
      resources_off: ['fs_?ile:*'],
    });
    expect(await toolNames(client)).toEqual(['fs_read', 'fs_write']);
    expect(await resourceUris(client)).toEqual(['git_log://1', 'git_log://2']);
    expect(await templateUris(client)).toEqual(['git_log://{id}']);
    await activated(client, { tools_on: ['*'], resources_off: ['*'] });
    // What was there before comes first.
    expect(await toolNames(client)).toEqual([...new Set(['fs_read', 'fs_write', ...tools])]);
    expect(await resourceUris(client)).toEqual([]);
  });

  it('asks for at least one name when all four lists are empty', async () => {
    const { client } = await arrive();
    const { code, message } = ownError(await activate(client, {}));
    expect(code).toBe('arguments_invalid');
    expect(message).toContain('at least one');
  });

  it('applies nothing if one name is unknown, and lists each unknown name with suggestions', async () => {
    const { client } = await arrive();
    const before = await client.listTools();
    const result = await activate(client, {
      tools_on: ['fs_read', 'git_comit', 'fs_file:a'],
      tools_off: ['git_status', 'nothing_like_it'],
      resources_on: ['git_log://3', 'git_log://1'],
      resources_off: ['git_push', 'file:a'],
    });
    const { code, message } = ownError(result);
    expect(code).toBe('item_unknown');
    expect(message).toContain('Nothing was changed');
    expect(message).toContain('git_comit in tools_on (did you mean git_commit');
    expect(message).toContain('fs_file:a in tools_on');
    expect(message).toMatch(/nothing_like_it in tools_off[;.]/);
    expect(message).toMatch(/git_log:\/\/3 in resources_on \(did you mean git_log:\/\/1, git_log:\/\/2/);
    expect(message).toContain('git_push in resources_off');
    expect(message).toContain('file:a in resources_off (did you mean fs_file:a');
    expect(message).not.toContain('fs_read');
    expect(await client.listTools()).toEqual(before);
    expect(await resourceUris(client)).toEqual(['fs_file:a']);
  });

  it('applies nothing if a pattern matches nothing', async () => {
    const { client } = await arrive();
    const { message } = ownError(await activate(client, { tools_on: ['fs_*', 'hub_*'] }));
    expect(message).toContain('hub_* in tools_on');
    expect(await toolNames(client)).toEqual(['git_status', 'git_stash']);
  });

  it('rejects a prompt, a bare name and its own name', async () => {
    const { client } = await arrive();
    for (const name of ['git_review', 'status', 'toolman_activate', '', 'GIT_PUSH']) {
      expect(ownError(await activate(client, { tools_on: [name] })).code, name).toBe('item_unknown');
    }
  });

  it('applies nothing if a name is in both the on and the off list', async () => {
    const { client } = await arrive();
    for (const given of [
      { tools_on: ['fs_read', 'git_push'], tools_off: ['git_push'] },
      { tools_on: ['git_push', 'fs_read'], tools_off: ['git_*'] },
      { tools_on: ['fs_read'], resources_on: ['git_log://1'], resources_off: ['git_log://1'] },
    ]) {
      const { code, message } = ownError(await activate(client, given));
      expect(code).toBe('arguments_invalid');
      expect(message).toMatch(/Nothing was changed.*(git_push|git_log:\/\/1)/);
      expect(await toolNames(client)).toEqual(['git_status', 'git_stash']);
    }
  });

  it('accepts a name repeated within a list and repeated across calls', async () => {
    const { client } = await arrive();
    for (const answer of ['Activated 1 item.', '1 item was already active.'])
      expect(await activated(client, { tools_on: ['fs_read', 'fs_read', 'fs_r*'] })).toBe(answer);
    expect(await toolNames(client)).toEqual(['git_status', 'git_stash', 'fs_read']);
  });

  it('rejects malformed arguments and applies nothing', async () => {
    const { client } = await arrive();
    for (const args of [
      undefined,
      { tools_on: ['fs_read'], tools_off: [], resources_on: [] },
      lists({ tools_on: 'fs_read' }),
      lists({ tools_on: ['fs_read'], tools_off: null }),
      lists({ tools_on: ['fs_read', 1] }),
      lists({ tools_on: ['fs_read'], prompts_on: ['git_review'] }),
    ]) {
      const result = await client.callTool({ name: 'toolman_activate', ...(args && { arguments: args }) });
      expect(ownError(result as unknown as ToolResult).code).toBe('arguments_invalid');
    }
    expect(await toolNames(client)).toEqual(['git_status', 'git_stash']);
  });

  it('takes effect for calls and reads from the next request on', async () => {
    const { client } = await arrive();
    expect(ownError(await call(client, 'fs_read')).code).toBe('item_inactive');
    // Sent together: the second request is read before the first one is answered.
    const [, result] = await Promise.all([activated(client, { tools_on: ['fs_read'] }), call(client, 'fs_read')]);
    if (isPipe(door)) expect(result.isError).toBeFalsy();
    expect(JSON.parse(await callText(client, 'fs_read'))).toMatchObject({ server: 'fs', tool: 'read' });
    await activated(client, { tools_off: ['fs_read'] });
    expect(ownError(await call(client, 'fs_read')).code).toBe('item_inactive');
  });

  it('keeps the catalog in its description up to date', async () => {
    const { client } = await arrive();
    const described = (name: string) => `${name} - Tool ${name.replace(/^[a-z]+_/, '')}`;
    const mark = (active: string[]) => tools.map((name) => (active.includes(name) ? '*' : '') + described(name));
    expect((await catalogLines(client)).tools).toEqual(mark(['git_status', 'git_stash']));
    await activated(client, { tools_on: ['fs_*'], tools_off: ['git_stash'], resources_on: ['git_log://{id}'] });
    expect(await catalogLines(client)).toEqual({
      tools: mark(['git_status', 'fs_read', 'fs_write']),
      resources: [
        'git_log://1 - Resource log://1',
        'git_log://2 - Resource log://2',
        '*fs_file:a - Resource file:a',
        '*git_log://{id} - Template log://{id}',
      ],
    });
  });
});
