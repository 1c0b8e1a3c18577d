/** Flat names and names of limited length, as clients of both eras see them. */
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { runDoctorIn } from '../support/doctor.ts';
import { callText, doorsOf, enter, promptNames, resourceUris, templateUris, useGateway } from '../support/doors.ts';
import { waitFor } from '../support/processes.ts';
import { server, serverEntry, serversToml } from '../support/server.ts';
import { tempFolder } from '../support/temp.ts';

const doors = doorsOf('flat');

const flat = 'names = "flat"\ncontrols = []\n';
const hashed = (name: string) => expect.stringMatching(new RegExp(`^${name}_[0-9a-f]{8}$`));

interface Listing {
  listTools(): Promise<{ tools: { name: string }[] }>;
}

async function toolNames(client: Listing): Promise<string[]> {
  return (await client.listTools()).tools.map(({ name }) => name);
}

type Reaching = Parameters<typeof callText>[0];

/** The tool and server that each listed name resolves to. */
async function reached(client: Reaching): Promise<string[]> {
  const lines = [];
  for (const name of await toolNames(client)) {
    const { server, tool } = JSON.parse(await callText(client, name)) as { server: string; tool: string };
    lines.push(`${name}: ${tool} of ${server}`);
  }
  return lines;
}

describe.each(doors)('flat names over %s', (door) => {
  const arrive = useGateway(door, () => ({
    config:
      flat +
      serversToml({
        context7: server('basic', '--name', '7', '--tools', 'resolve-library-id'),
        'task-master': server('basic', '--name', 'tm', '--tools', 'get_tasks,日本', '--prompts', 'sum.up'),
        git: server('basic', '--name', 'git', '--tools', 'status,tool.with.multiple.dots'),
        'my-files': server(
          'basic',
          '--name',
          'files',
          '--tools',
          'a/b',
          '--resources',
          'n-o://x.y',
          '--templates',
          'n-o://{id}',
        ),
      }),
  }));

  it('contain only letters, digits and underscores, and resolve to the original tool', async () => {
    const { client } = await arrive();
    expect(await reached(client)).toEqual([
      'context7_resolve_library_id: resolve-library-id of 7',
      'task_master_get_tasks: get_tasks of tm',
      'task_master___: 日本 of tm',
      'git_status: status of git',
      'git_tool_with_multiple_dots: tool.with.multiple.dots of git',
      'my_files_a_b: a/b of files',
    ]);
    expect(await promptNames(client)).toEqual(['task_master_sum_up']);
    const prompt = await client.getPrompt({ name: 'task_master_sum_up' });
    expect(JSON.stringify(prompt)).toContain('sum.up from tm');
  });

  it('do not apply to URIs', async () => {
    const { client } = await arrive();
    expect(await resourceUris(client)).toEqual(['my-files_n-o://x.y']);
    expect(await templateUris(client)).toEqual(['my-files_n-o://{id}']);
    for (const uri of ['my-files_n-o://x.y', 'my-files_n-o://7', 'n-o://7']) {
      const own = uri.replace('my-files_', '');
      expect((await client.readResource({ uri })).contents).toMatchObject([{ uri: own, text: `${own} from files` }]);
    }
  });
});

describe.each(doors)('colliding flat names over %s', (door) => {
  const config =
    'names = "flat"\nactive_toolsets = ["*"]\n' +
    serversToml({
      'a-b': server('basic', '--name', '1', '--tools', 'c,d.e,d-e', '--prompts', 'p'),
      'a.b': server('basic', '--name', '2', '--tools', 'c,f', '--prompts', 'p'),
      toolman: server('basic', '--name', '3', '--tools', 'activate'),
    });

  it('are made unique by a hash, are all listed and callable, and are reported', async () => {
    const { client, cwd } = await enter(door, { config });
    const [control, ...names] = await toolNames(client);
    expect(control).toBe('toolman_activate');
    expect(names).toEqual([
      'a_b_c',
      'a_b_d_e',
      hashed('a_b_d_e'),
      'a_b_c_54712fb6',
      'a_b_f',
      hashed('toolman_activate'),
    ]);
    const answers = await Promise.all(names.map(async (name) => JSON.parse(await callText(client, name)) as object));
    expect(answers).toMatchObject([
      { server: '1', tool: 'c' },
      { server: '1', tool: 'd.e' },
      { server: '1', tool: 'd-e' },
      { server: '2', tool: 'c' },
      { server: '2', tool: 'f' },
      { server: '3', tool: 'activate' },
    ]);
    const prompts = await promptNames(client);
    expect(prompts).toEqual(['a_b_p', hashed('a_b_p')]);
    expect(JSON.stringify(await client.getPrompt({ name: prompts[1]! }))).toContain('p from 2');
    const { wrong } = await runDoctorIn(cwd);
    const first = 'server "a-b", which is listed first, has that name; give one of them another namespace';
    expect(wrong.map(({ about, message }) => `${about}: ${message}`)).toEqual([
      `a-b: tool "d-e" is exposed as "${names[2]}", not "a_b_d_e": the server has that name for "d.e"`,
      `a.b: tool "c" is exposed as "a_b_c_54712fb6", not "a_b_c": ${first}`,
      `a.b: prompt "p" is exposed as "${prompts[1]}", not "a_b_p": ${first}`,
      `toolman: tool "activate" is exposed as "${names[5]}", not "toolman_activate": the name belongs to Toolgate itself; give the server another namespace`,
    ]);
  });

  it('keep their hash while the first server is down and after a gateway restart', async () => {
    const cwd = tempFolder({ up: '' });
    const first = `[ -e up ] && exec ${server('crash', '--name', '1')}`;
    const both = flat + serversToml({ 'a-b': first, 'a.b': server('basic', '--tools', 'ok') });
    const { client } = await enter(door, { cwd, config: both });
    const second = (await toolNames(client)).at(-1)!;
    expect(await toolNames(client)).toEqual(['a_b_ok', 'a_b_crash', 'a_b_half', hashed('a_b_ok')]);
    rmSync(join(cwd, 'up'));
    await client.callTool({ name: 'a_b_crash', arguments: {} });
    await waitFor(async () => (await toolNames(client)).length === 1);
    expect(await toolNames(client)).toEqual([second]);
    const missing = (await client.callTool({ name: 'a_b_ok', arguments: {} })) as { isError?: boolean };
    expect(missing.isError).toBe(true);
    await client.close();
    writeFileSync(join(cwd, 'up'), '');
    const again = await enter(door, { cwd });
    expect((await toolNames(again.client)).at(-1)).toBe(second);
  });
});

describe.each(doors)('names of limited length over %s', (door) => {
  const long = (end: string) => `${'long-name-'.repeat(8)}${end}`;
  const offer = ['--tools', `${long('one')},${long('two')},short`, '--resources', `r://${long('x')}`];
  const servers = serversToml({ 'my.server': server('basic', '--name', 'up', ...offer, '--prompts', long('p')) });

  it.each([
    ['flat', 'my_server_long_name_', /^[A-Za-z0-9_]+$/],
    ['join', 'my.server_long-name-', /^[A-Za-z0-9_.-]+$/],
  ])('are shortened to the limit, stay unique and resolve to their tools (%s)', async (names, start, form) => {
    const config = `names = "${names}"\nname_limit = 64\ncontrols = []\n${servers}`;
    const { client } = await enter(door, { config });
    const listed = await toolNames(client);
    expect(new Set(listed).size).toBe(3);
    for (const name of [...listed.slice(0, 2), ...(await promptNames(client))]) {
      expect(name).toHaveLength(64);
      expect(name).toMatch(form);
      expect(name.startsWith(start)).toBe(true);
    }
    expect(listed[2]).toBe(names === 'flat' ? 'my_server_short' : 'my.server_short');
    expect((await reached(client)).map((line) => line.split(': ')[1])).toEqual([
      `${long('one')} of up`,
      `${long('two')} of up`,
      'short of up',
    ]);
    const [prompt] = await promptNames(client);
    expect(JSON.stringify(await client.getPrompt({ name: prompt! }))).toContain(`${long('p')} from up`);
    expect(await resourceUris(client)).toEqual([`my.server_r://${long('x')}`]);
  });
});

describe.each(doors)('.mcp.json over %s', (door) => {
  const mcpServers = {
    'task-master': serverEntry('basic', '--name', 'tm', '--tools', 'get.tasks'),
    'my server': serverEntry('basic', '--name', 'my', '--tools', 'x'),
  };

  it('uses flat names unless it sets another style', async () => {
    const names = async (settings: object) => {
      const files = { '.mcp.json': JSON.stringify({ mcpServers, controls: [], ...settings }) };
      return toolNames((await enter(door, { files })).client);
    };
    expect(await names({})).toEqual(['task_master_get_tasks', 'my_server_x']);
    expect(await names({ names: 'join' })).toEqual(['task-master_get.tasks', 'my_server_x']);
    expect(await names({ name_limit: 16 })).toEqual([hashed('task_ma'), 'my_server_x']);
  });
});

describe.each(doors)('an edited configuration over %s', (door) => {
  it('changes names without restarting the server, and notifies the client', async () => {
    const servers = serversToml({ 'a-b': server('basic', '--tools', 'whoami') });
    const guest = await enter(door, { config: `controls = []\n${servers}` });
    const pid = async (name: string) => (JSON.parse(await callText(guest.client, name)) as { pid: number }).pid;
    expect(await toolNames(guest.client)).toEqual(['a-b_whoami']);
    const before = await pid('a-b_whoami');
    writeFileSync(join(guest.cwd, 'tools.toml'), flat + servers);
    await waitFor(() => guest.changes('tools') > 0);
    expect(await toolNames(guest.client)).toEqual(['a_b_whoami']);
    expect(await pid('a_b_whoami')).toBe(before);
  });
});

describe.each(doors)('instructions over %s', (door) => {
  it('mention the names that are exposed', async () => {
    const config = flat + serversToml({ 'a-b': server('basic', '--tools', 'x', '--instructions', 'Be kind.') });
    const { client } = await enter(door, { config });
    await toolNames(client);
    const { getInstructions } = client as unknown as { getInstructions(): string | undefined };
    expect(getInstructions.call(client)).toContain('# Server "a-b" (its names begin with "a_b_")');
  });
});
