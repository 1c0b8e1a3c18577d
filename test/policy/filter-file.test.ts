/** A policy file in JSON, with servers, exposed tools and agent policies, served over HTTP to agents with their own tokens. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { readForeign } from '../../src/config/foreign.ts';
import { runCli } from '../support/cli.ts';
import { type HttpGateway, startHttp } from '../support/gateway.ts';
import { connectModernHttp } from '../support/modern.ts';
import { waitFor } from '../support/processes.ts';
import { serverEntry } from '../support/server.ts';
import { tempFolder } from '../support/temp.ts';

/** Servers with more tools than anybody is to see. */
const OFFERS = {
  github: 'create_repository,get_file_contents,create_pull_request,create_issue,create_branch,delete_file',
  taskmaster: 'get_tasks,add_task,update_task_status,remove_task',
  filesystem: 'read_file,write_file,list_directory,create_directory,move_file',
  git: 'git_log,git_diff',
};

const POLICY = {
  servers: {
    ...Object.fromEntries(
      Object.entries(OFFERS).map(([name, tools]) => [
        name,
        {
          ...serverEntry('basic', '--name', name, '--tools', tools),
          description: `The tools of ${name}`,
          enabled: true,
        },
      ]),
    ),
    puppeteer: { ...serverEntry('basic', '--tools', 'navigate'), description: 'Switched off', enabled: false },
  },
  exposed_tools: {
    github: ['create_pull_request', 'get_file_contents'],
    taskmaster: ['get_tasks', 'add_task', 'update_task_status'],
    filesystem: ['read_file', 'write_file'],
    puppeteer: ['navigate'],
  },
  agent_policies: {
    'claude-code': {
      allowed_servers: ['github', 'taskmaster', 'filesystem'],
      tool_overrides: {
        github: ['create_pull_request', 'get_file_contents'],
        taskmaster: ['get_tasks', 'add_task'],
        filesystem: ['read_file', 'write_file'],
      },
    },
    'claude-developer': {
      allowed_servers: ['filesystem', 'github', 'git'],
      tool_overrides: { filesystem: ['read_file', 'write_file', 'list_directory'] },
    },
  },
  default_policy: { allow_unknown_tools: false },
};

/** What each agent sees. Overrides come before exposed tools, and those before the default policy. */
const SEEN: Record<string, string[]> = {
  'claude-code': [
    ...['github_get_file_contents', 'github_create_pull_request'],
    ...['taskmaster_get_tasks', 'taskmaster_add_task'],
    ...['filesystem_read_file', 'filesystem_write_file'],
  ],
  'claude-developer': [
    ...['github_get_file_contents', 'github_create_pull_request'],
    ...['filesystem_read_file', 'filesystem_write_file', 'filesystem_list_directory'],
  ],
  'an-agent-without-a-policy': [
    ...['github_get_file_contents', 'github_create_pull_request'],
    ...['taskmaster_get_tasks', 'taskmaster_add_task', 'taskmaster_update_task_status'],
    ...['filesystem_read_file', 'filesystem_write_file'],
  ],
};

interface AnyClient {
  listTools(): Promise<{ tools: { name: string }[] }>;
  callTool(params: { name: string; arguments: Record<string, unknown> }): Promise<unknown>;
}

let gateway: HttpGateway;
const tokens = new Map<string, string>();
beforeAll(async () => {
  const cwd = tempFolder({ 'filter.json': JSON.stringify(POLICY) });
  for (const agent of Object.keys(SEEN)) {
    const { code, stdout, stderr } = await runCli(['agents', 'add', agent, '--config', 'filter.json'], { cwd });
    expect([code, stderr.includes(stdout.trim())]).toEqual([0, false]);
    tokens.set(agent, stdout.trim());
  }
  gateway = await startHttp({ cwd, args: ['--config', 'filter.json'] });
});

/** SDK clients of both eras, with the token of an agent. */
async function clientsOf(agent: string): Promise<AnyClient[]> {
  const headers = { authorization: `Bearer ${tokens.get(agent)}` };
  const legacy = await gateway.connect({ headers });
  const modern = await connectModernHttp(gateway.url, headers);
  return [legacy.client, modern.client] as unknown as AnyClient[];
}

const namesFor = async (client: AnyClient) => (await client.listTools()).tools.map(({ name }) => name);

describe.each(Object.entries(SEEN))('the agent %s of a policy file', (agent, seen) => {
  it('sees exactly the tools that the file gives it', async () => {
    for (const client of await clientsOf(agent)) expect(await namesFor(client)).toEqual(seen);
  });

  it('can call each of them by every form of its name, and nothing else', async () => {
    const servers = Object.entries(OFFERS).flatMap(([server, tools]) =>
      tools.split(',').map((tool) => ({ server, tool, isAllowed: seen.includes(`${server}_${tool}`) })),
    );
    for (const client of await clientsOf(agent)) {
      for (const { server, tool, isAllowed } of servers) {
        for (const name of [`${server}_${tool}`, `${server}:${tool}`, tool]) {
          const result = await client.callTool({ name, arguments: {} }).catch((error: Error) => error.message);
          const text = JSON.stringify(result);
          if (isAllowed) expect(text, name).toContain(`\\"server\\":\\"${server}\\",\\"tool\\":\\"${tool}\\"`);
          else expect(text, name).toContain('item_unknown');
        }
      }
    }
  });
});

it('a request without a token is refused while the file has agents', async () => {
  expect((await fetch(`${gateway.origin}/tools`)).status).toBe(401);
});

it('an edit of the default policy in the file changes what connected agents see', async () => {
  const [client] = await clientsOf('claude-developer');
  expect(await namesFor(client!)).toEqual(SEEN['claude-developer']);
  const edited = { ...POLICY, default_policy: { allow_unknown_tools: true } };
  writeFileSync(join(gateway.cwd, 'filter.json'), JSON.stringify(edited));
  await waitFor(async () => (await namesFor(client!)).includes('git_git_log'));
  expect(await namesFor(client!)).toEqual([...SEEN['claude-developer']!, 'git_git_log', 'git_git_diff']);
});

describe('keys of other programs in a policy file', () => {
  const served = (more: object) =>
    runCli(['list', 'tools', '--config', 'filter.json'], {
      cwd: tempFolder({ 'filter.json': JSON.stringify({ ...POLICY, ...more }, null, 2) }),
    });

  it.each([
    ['security_settings', { security_settings: { dangerous_tools: ['write_file'], require_confirmation: true } }],
    ['task_based_tool_selection', { task_based_tool_selection: { enabled: true } }],
    [
      'default_policy.require_explicit_approval',
      { default_policy: { allow_unknown_tools: false, require_explicit_approval: true } },
    ],
    ['default_policy.max_tools_per_agent', { default_policy: { allow_unknown_tools: false, max_tools_per_agent: 20 } }],
  ])('%s is an error, because it restricts something', async (place, more) => {
    const { code, stderr } = await served(more);
    expect([code, stderr]).toEqual([2, expect.stringMatching(`filter.json:\\d+: ${place}: is not known here`)]);
  });

  it('are ignored with a notice if they restrict nothing', () => {
    const root = { ...POLICY, performance_settings: { cache: true } };
    const { notices, issues } = readForeign(root, 'filter.json');
    expect([notices, issues]).toEqual([['filter.json: ignored "performance_settings".'], []]);
  });
});
