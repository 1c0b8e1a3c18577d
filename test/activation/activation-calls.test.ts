/** Tool calls and prompts: how they are routed, what is returned, and which error a call gets that cannot be made. */
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import {
  activated,
  call,
  callText,
  doorsOf,
  enter,
  ownError,
  promptNames,
  received,
  refusal,
  type ToolResult,
  toolNames,
  useGateway,
} from '../support/doors.ts';
import { waitFor } from '../support/processes.ts';
import { server, serversToml } from '../support/server.ts';
import { tempFolder } from '../support/temp.ts';
import { asGiven, codeAt, headerMissing } from './eras.ts';

const doors = doorsOf('activation-calls');

const failing = fileURLToPath(new URL('./failing.mjs', import.meta.url));
const all = 'active_toolsets = ["*"]\n';

/** A result that parsing and re-serializing would change in every possible way. */
const wild =
  '{ "content":[{"type":"text","text":"caf\\u00e9 \\/ 😀"},{"type":"hologram","n":9007199254740993}],"x":[1.0,1e400,-0],"é":{"a":1,"a":2},"isError":false}';

describe.each(doors)('an active tool over %s', (door) => {
  it('is listed with its full definition, only the name changed', async () => {
    const definition = (name: string) =>
      `{ "annotations":{"readOnlyHint":true},"name":"${name}","title":"T","inputSchema":{"type":"object","properties":{"name":{"type":"string","default":"n"}},"$defs":{"x":{"maximum":1e400}}},"outputSchema":{"type":"object"},"_meta":{"z":[1.0,9007199254740993]},"icons":[{"src":"a:b"}],"\\u00e9":"\\/"}`;
    const cwd = tempFolder({ 'tools.json': `[${definition('one')} , ${definition('tw\\u006f')}]` });
    const config = all + serversToml({ a: server('basic', '--raw-tools', join(cwd, 'tools.json')) });
    const { raw } = await enter(door, { cwd, config });
    const { result } = await raw('tools/list', '{}');
    expect(result).toContain(`},${definition('a_one')},${definition('a_two')}]}`);
  });

  it('is called by its server’s own name for it, with the arguments unchanged', async () => {
    const cwd = tempFolder();
    const log = join(cwd, 'log');
    const config = all + serversToml({ a: server('basic', '--tools', 'echo,echo_日本', '--log', log) });
    const { client, raw } = await enter(door, { cwd, config });
    const args = { name: 'a_echo', uri: 'a_x', _meta: { a: 1 }, list: [1, null, '😀'] };
    expect(JSON.parse(await callText(client, 'a_echo', args))).toEqual(args);
    await callText(client, 'a_echo_日本');
    await raw('tools/call', '{"arguments":{"n":9007199254740993,"f":1.0,"s":"\\u00e9"},"name":"a_e\\u0063ho"}');
    expect(received(log, 'tools/call').map(({ params }) => params?.name)).toEqual(['echo', 'echo_日本', 'echo']);
    expect(received(log, 'tools/call')[0]?.params?.arguments).toEqual(args);
  });

  it('returns its result byte for byte', async () => {
    const { raw } = await enter(door, { config: all + serversToml({ a: server('basic') }) });
    const params = JSON.stringify({ name: 'a_raw', arguments: { json: wild } });
    expect(await raw('tools/call', params)).toEqual(asGiven(door, 'tools/call', { result: wild }));
  });
});

describe.each(doors)('a tool that cannot be called over %s', (door) => {
  const arrive = useGateway(door, () => {
    const git = server('basic', '--name', 'git', '--tools', 'status,commit');
    return {
      config: `active_toolsets = ["git_status"]\n${serversToml({ git, fs: server('basic', '--tools', 'read_file') })}`,
    };
  });

  it('inactive: the error says how to activate it, and doing so works', async () => {
    const { client } = await arrive();
    const { code, message } = ownError(await call(client, 'git_commit', { message: 'x' }));
    expect(code).toBe('item_inactive');
    expect(message).toBe(
      'The tool "git_commit" is not active. Activate it first: call toolman_activate with "git_commit" in tools_on.',
    );
    await activated(client, { tools_on: ['git_commit'] });
    expect(JSON.parse(await callText(client, 'git_commit', { message: 'x' }))).toMatchObject({ tool: 'commit' });
  });

  it('unknown: the error suggests similar names', async () => {
    const { client } = await arrive();
    const similar = {
      git_staus: '"git_status"',
      git_comit: '"git_commit"',
      read_fil: '"fs_read_file"',
      Git_Status: '"git_status"',
      toolman_active: '"toolman_activate"',
      weather: 'List the tools',
      '': 'List the tools',
      toString: 'List the tools',
    };
    for (const [name, hint] of Object.entries(similar)) {
      const { code, message } = ownError(await call(client, name));
      expect(code).toBe('item_unknown');
      expect(message).toContain(`There is no tool "${name}".`);
      expect(message).toContain(hint);
    }
  });

  it('missing name: the error has the form that the protocol era prescribes', async () => {
    const { raw } = await arrive();
    for (const params of ['{}', '{"name":7}', '{"arguments":{}}']) {
      const { result = '', error = '' } = await raw('tools/call', params);
      // If a header must repeat the name, the missing header is reported first.
      if (door === 'modern http') expect(JSON.parse(error)).toMatchObject(headerMissing);
      else if (door === 'modern stdio') expect(JSON.parse(error)).toMatchObject({ code: -32602 });
      else expect(ownError(JSON.parse(result) as ToolResult).code).toBe('params_invalid');
    }
  });

  it('server down: the error has the same form and says so', async () => {
    const config = all + serversToml({ a: server('crash'), b: server('basic', '--tools', 'x') });
    const { client } = await enter(door, { config });
    const { code, message } = ownError(await call(client, 'a_crash'));
    expect(code).toBe('source_broken');
    expect(message).toContain('Server "a" exited with code 1');
    expect(await callText(client, 'b_x')).toContain('"tool":"x"');
    await waitFor(async () => (await toolNames(client)).includes('a_ok'));
  });
});

describe.each(doors)('an error from a server over %s', (door) => {
  const arrive = useGateway(door, () => ({
    config: all + serversToml({ f: `${process.execPath} ${failing}`, b: server('basic', '--prompts', 'p') }),
  }));
  const error =
    '{"code":-32042,"message":"not \\u00e9 you","data":{"retry":1.0,"big":9007199254740993,"list":[null]},"extra":true}';

  it('passes through a call unchanged: code, message and data', async () => {
    const { client, raw } = await arrive();
    const params = JSON.stringify({ name: 'f_fail', arguments: { error } });
    expect(await raw('tools/call', params)).toEqual(asGiven(door, 'tools/call', { error }));
    expect(await refusal(client.callTool({ name: 'f_fail', arguments: { error } }))).toMatchObject({
      code: codeAt(door, -32042),
      data: { retry: 1, list: [null] },
    });
  });

  it('passes through a read and a prompt unchanged', async () => {
    const { raw } = await arrive();
    const uri = JSON.stringify({ uri: `f_fail:${encodeURIComponent(error)}` });
    expect(await raw('resources/read', uri)).toEqual(asGiven(door, 'resources/read', { error }));
    const prompt = JSON.stringify({ name: 'f_fail', arguments: { error } });
    expect(await raw('prompts/get', prompt)).toEqual(asGiven(door, 'prompts/get', { error }));
  });

  it('passes through unchanged even if Toolgate uses the same code itself', async () => {
    const { raw } = await arrive();
    for (const code of [-32002, -32602, -32603, 0, 1]) {
      const own = `{"code":${code},"message":"mine"}`;
      const params = JSON.stringify({ name: 'f_fail', arguments: { error: own } });
      expect(await raw('tools/call', params)).toEqual(asGiven(door, 'tools/call', { error: own }));
    }
  });

  it('in a result stays a result, unchanged', async () => {
    const { client } = await arrive();
    expect(await call(client, 'f_refuse', { text: 'no such repository' })).toEqual({
      content: [{ type: 'text', text: 'no such repository' }],
      isError: true,
      structuredContent: { text: 'no such repository' },
      _meta: { kept: true },
    });
  });

  it('is distinguishable from Toolgate’s own error, which carries an object in data', async () => {
    const { client } = await arrive();
    const body = { success: false, result: null, message: expect.any(String) };
    expect(await refusal(client.getPrompt({ name: 'b_q' }))).toMatchObject({
      code: -32602,
      message: expect.stringContaining('There is no prompt "b_q". Did you mean "b_p"?'),
      data: { ...body, code: 'item_unknown' },
    });
    expect(await refusal(client.readResource({ uri: 'nowhere://x' }))).toMatchObject({
      code: codeAt(door, -32002),
      data: { ...body, code: 'resource_unknown' },
    });
    expect(await refusal(client.listTools({ cursor: 'no' }))).toMatchObject({
      code: -32602,
      data: { ...body, code: 'params_invalid' },
    });
  });
});

describe.each(doors)('prompts over %s', (door) => {
  it('are always listed, and are requested by their server’s own name for them', async () => {
    const cwd = tempFolder();
    const log = join(cwd, 'log');
    const config = serversToml({
      a: server('basic', '--name', 'A', '--prompts', 'sum,list', '--log', log),
      '': server('basic', '--name', 'B', '--prompts', 'sum'),
      none: server('basic', '--tools', 'x'),
    });
    const { client } = await enter(door, { cwd, config });
    const { prompts } = await client.listPrompts();
    expect(prompts[0]).toEqual({
      name: 'a_sum',
      description: 'Prompt sum',
      arguments: [{ name: 'topic', required: false }],
    });
    expect(await promptNames(client)).toEqual(['a_sum', 'a_list', 'sum']);
    const text = async (name: string) => {
      const { messages } = await client.getPrompt({ name, arguments: { topic: 'a_sum' } });
      return (messages[0]!.content as { text: string }).text;
    };
    expect(await text('a_sum')).toBe('sum from A {"topic":"a_sum"}');
    expect(await text('sum')).toBe('sum from B {"topic":"a_sum"}');
    expect(received(log, 'prompts/get')).toMatchObject([{ params: { name: 'sum', arguments: { topic: 'a_sum' } } }]);
    await activated(client, { tools_on: ['none_x'] });
    expect(await promptNames(client)).toEqual(['a_sum', 'a_list', 'sum']);
  });
});
