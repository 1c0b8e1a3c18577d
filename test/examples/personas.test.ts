/** examples/personas, the file unchanged, with the eight public servers it names. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { parse } from 'smol-toml';
import { beforeAll, describe, expect, it } from 'vitest';
import { loadConfig, openAgentStore, openSecretStore } from '../../src/index.ts';
import { commandFolder } from '../support/commands.ts';
import { bin, type HttpGateway, startHttp } from '../support/gateway.ts';
import { waitFor } from '../support/processes.ts';
import { noPython } from '../support/python.ts';
import { gitRepository } from '../support/repository.ts';
import { tempFolder } from '../support/temp.ts';
import { type Run, runTool } from '../support/tools.ts';

type Lists = Record<string, string[]>;
interface Example {
  readonly servers: Record<string, { readonly tools?: Record<string, unknown> }>;
  readonly exposed_tools: Lists;
  readonly agent_policies: Record<string, { readonly allowed_servers: string[]; readonly tool_overrides?: Lists }>;
  readonly task_profiles: Record<string, { readonly tools: Lists }>;
  readonly task_rules: readonly { readonly name: string; readonly tools?: Lists }[];
  readonly security: { readonly dangerous_tools: Lists };
}

const file = fileURLToPath(new URL('../../examples/personas/toolgate.toml', import.meta.url));
const example = parse(readFileSync(file, 'utf8')) as unknown as Example;
const OPERATOR = 'the-key-of-the-operator';
const EIGHT = ['filesystem', 'github', 'git', 'brave-search', 'memory', 'puppeteer', 'postgresql', 'sqlite'];
const personas = ['developer', 'researcher', 'analyst', 'automation', 'read-only'] as const;

const workspace = gitRepository({ 'notes.txt': 'Water the plants.\n', '.env': 'A=1\n' });
const kept = tempFolder();
const data = tempFolder();
const env = {
  PATH: `${commandFolder()}:${process.env.PATH}`,
  WORKSPACE: workspace,
  MEMORY_FILE: join(kept, 'memory.jsonl'),
  SQLITE_FILE: join(kept, 'analysis.db'),
  // Nothing listens there: the server lists its tools without its database.
  DATABASE_URL: 'postgresql://reader@127.0.0.1:1/app',
  DATA_DIR: data,
  SECRETS_KEY_FILE: join(kept, 'toolgate.key'),
  TOOLGATE_OPERATOR_KEY: OPERATOR,
};

interface Finding {
  readonly level: string;
  readonly about: string;
  readonly message: string;
}

let gateway: HttpGateway;
let diagnosis: Run;
const tokens = new Map<string, string>();
const clients = new Map<string, Client>();
/** What each persona sees, sorted, and what an agent without a persona sees. */
const seen = new Map<string, string[]>();

/** Connects a client of the agent, with a task if one is given. */
async function connect(agent: string, task?: object): Promise<Client> {
  const path = task === undefined ? '/mcp' : `/mcp?task=${encodeURIComponent(JSON.stringify(task))}`;
  return (await gateway.connect({ path, headers: { authorization: `Bearer ${tokens.get(agent)}` } })).client;
}

const namesOf = async (client: Client) => (await client.listTools()).tools.map(({ name }) => name).sort();
const exposed = (lists: Lists) =>
  Object.entries(lists)
    .flatMap(([server, names]) => names.map((name) => `${server}_${name}`))
    .sort();
const textOf = (result: unknown) => (result as { content: { text: string }[] }).content[0]!.text;
const call = async (agent: string, name: string, args: Record<string, unknown> = {}) =>
  textOf(await clients.get(agent)!.callTool({ name, arguments: args }));

describe.skipIf(noPython !== undefined)('the personas example', () => {
  beforeAll(async () => {
    writeFileSync(env.SECRETS_KEY_FILE, 'a-key-for-nothing-but-this-test', { mode: 0o600 });
    const { vault, dataDir } = await loadConfig({ path: file, cwd: workspace, env });
    const scope = null;
    // Few key derivation rounds, because these secrets are fake.
    await openSecretStore(dataDir, vault, 1000).change([
      { name: 'GITHUB_TOKEN', scope, value: 'ghp_of_nobody' },
      { name: 'BRAVE_API_KEY', scope, value: 'brave-of-nobody' },
      { name: 'PGPASSWORD', scope, value: 'password-of-nobody' },
    ]);
    const agents = [...personas, 'visitor'];
    for (const name of agents) tokens.set(name, (await openAgentStore(dataDir).add(name, '', null)).token);
    diagnosis = await runTool(process.execPath, [bin, 'doctor', '--json', '--config', file], { env, timeout: 50_000 });
    // Doctor has already listed the servers that start lazily, so the gateway leaves them asleep until they are called.
    gateway = await startHttp({ args: ['--config', file], env });
    for (const name of agents) {
      clients.set(name, await connect(name));
      seen.set(name, await namesOf(clients.get(name)!));
    }
  }, 90_000);

  it('has all eight servers up, and doctor reports no problem with a rule', () => {
    const { findings } = JSON.parse(diagnosis.stdout) as { findings: Finding[] };
    // Only the database is missing. This server looks in it for tables to list as resources.
    const expected = {
      about: 'postgresql',
      message: expect.stringMatching(/^resources\/list failed: connect ECONNREFUSED/),
    };
    expect(findings.filter(({ level }) => level !== 'ok')).toMatchObject([expected]);
    const up = findings.filter(({ message }) => /^up, \d+ tools?\b/.test(message)).map(({ about }) => about);
    expect(up.sort()).toEqual([...EIGHT].sort());
  });

  it('names more than fifty tools, and all of them exist', () => {
    const real = new Set([...seen.values()].flat());
    expect(real.size).toBeGreaterThanOrEqual(50);
    const { exposed_tools, agent_policies, task_profiles, task_rules, security, servers } = example;
    const written: Lists[] = [
      exposed_tools,
      ...Object.values(agent_policies).map(({ tool_overrides = {} }) => tool_overrides),
      ...Object.values(task_profiles).map(({ tools }) => tools),
      ...task_rules.map(({ tools = {} }) => tools),
      security.dangerous_tools,
      Object.fromEntries(Object.entries(servers).map(([key, { tools = {} }]) => [key, Object.keys(tools)])),
    ];
    const names = written.flatMap(exposed).filter((name) => !name.includes('*'));
    expect(names.filter((name) => !real.has(name))).toEqual([]);
    expect(new Set(written.slice(0, 6).flatMap(exposed)).size).toBeGreaterThanOrEqual(50);
  });

  it.each([
    ['developer', { filesystem: 14, github: 25, git: 12 }],
    ['researcher', { filesystem: 5, github: 4, 'brave-search': 2, memory: 9 }],
    ['analyst', { filesystem: 5, postgresql: 1, sqlite: 6 }],
    ['automation', { filesystem: 5, github: 4, puppeteer: 7 }],
    ['read-only', { filesystem: 10, github: 14, git: 7, memory: 3, sqlite: 3 }],
  ] as const)('shows a %s its own tools only', (persona, counts) => {
    const { allowed_servers, tool_overrides = {} } = example.agent_policies[persona]!;
    const lists = allowed_servers.map((server) => [server, tool_overrides[server] ?? example.exposed_tools[server]!]);
    expect(seen.get(persona)).toEqual(exposed(Object.fromEntries(lists) as Lists));
    const found = EIGHT.map((server) => [
      server,
      seen.get(persona)!.filter((name) => name.startsWith(`${server}_`)).length,
    ]);
    expect(Object.fromEntries(found.filter(([, count]) => count !== 0))).toEqual(counts);
  });

  it('shows an agent without a persona the exposed tools, and answers calls to other tools as unknown', async () => {
    expect(seen.get('visitor')).toEqual(exposed(example.exposed_tools));
    expect(await call('visitor', 'filesystem_write_file', { path: 'x', content: 'y' })).toContain('item_unknown');
    expect(await call('read-only', 'git_git_commit', { message: 'x' })).toContain('item_unknown');
  });

  it.each([
    [
      'developer',
      { type: 'code-development' },
      {
        filesystem: ['read_file', 'write_file', 'list_directory', 'create_directory'],
        github: ['get_file_contents', 'create_pull_request', 'create_issue'],
        git: ['git_log', 'git_diff', 'git_show'],
      },
    ],
    [
      'researcher',
      { type: 'research' },
      {
        filesystem: ['read_file', 'search_files'],
        'brave-search': ['brave_web_search'],
        memory: ['create_entities', 'search_nodes'],
      },
    ],
    [
      'analyst',
      { type: 'data-analysis' },
      {
        filesystem: ['read_file', 'list_directory'],
        postgresql: ['query'],
        sqlite: ['read_query', 'list_tables', 'describe_table'],
      },
    ],
    [
      'automation',
      { type: 'automation' },
      {
        filesystem: ['read_file', 'write_file'],
        puppeteer: ['puppeteer_screenshot', 'puppeteer_navigate'],
        github: ['get_file_contents', 'create_issue'],
      },
    ],
    [
      'developer',
      { service: 'user-api', description: 'Write tests for the login, then deploy' },
      {
        filesystem: ['read_file', 'write_file', 'edit_file', 'list_directory', 'create_directory'],
        github: [
          ...['get_file_contents', 'create_pull_request', 'create_issue', 'create_branch', 'push_files'],
          ...['get_pull_request_status', 'list_commits', 'merge_pull_request'],
        ],
        git: ['git_log', 'git_diff', 'git_show', 'git_status', 'git_diff_unstaged', 'git_branch'],
      },
    ],
    [
      'developer',
      { service: 'shop-frontend', description: 'Research colours' },
      {
        // Web search and memory are for researchers.
        filesystem: ['read_file', 'write_file', 'edit_file', 'list_directory', 'search_files'],
        github: ['create_pull_request', 'get_pull_request', 'list_pull_requests'],
      },
    ],
    [
      'read-only',
      { type: 'api' },
      {
        filesystem: ['read_file', 'list_directory'],
        github: ['get_file_contents'],
        git: ['git_log', 'git_diff', 'git_show', 'git_status'],
      },
    ],
  ])('gives a %s with the task %j the additional tools it needs', async (agent, task, lists) => {
    const names = await namesOf(await connect(agent, task));
    expect(names).toEqual(exposed(lists as Lists));
    expect(names.filter((name) => !seen.get(agent)!.includes(name))).toEqual([]);
  });

  const admin = (path = '', decision?: string) =>
    fetch(`${gateway.origin}/admin/approvals${path}`, {
      headers: { authorization: `Bearer ${OPERATOR}`, 'content-type': 'application/json' },
      ...(decision !== undefined && { method: 'POST', body: JSON.stringify({ decision }) }),
    });
  const waiting = () =>
    waitFor(async () => {
      const { approvals } = (await (await admin()).json()) as {
        approvals: { id: string; tool: string; agent: string }[];
      };
      return approvals[0];
    });

  it('runs a dangerous call only after a person has approved it', async () => {
    const sql = { query: 'CREATE TABLE plants (name TEXT)' };
    const calling = call('analyst', 'sqlite_create_table', sql);
    const { id, tool, agent } = await waiting();
    expect([tool, agent]).toEqual(['sqlite_create_table', 'analyst']);
    expect(await call('analyst', 'sqlite_read_query', { query: 'SELECT name FROM sqlite_master' })).toBe('[]');
    expect((await admin(`/${id}`, 'approve')).status).toBe(200);
    expect(await calling).toContain('success');
    expect(await call('analyst', 'sqlite_read_query', { query: 'SELECT name FROM sqlite_master' })).toContain('plants');
  });

  it.each([
    ['git_git_reset', { repo_path: workspace }],
    ['github_push_files', { owner: 'a', repo: 'b', branch: 'main', files: [], message: 'x' }],
    ['filesystem_read_text_file', { path: join(workspace, '.env') }],
    ['filesystem_read_multiple_files', { paths: [join(workspace, 'notes.txt'), join(workspace, '.env')] }],
  ])('asks for approval before %s, and the approval may be denied', async (name, args) => {
    const calling = call('developer', name, args);
    const { id } = await waiting();
    await admin(`/${id}`, 'deny');
    expect(await calling).toContain('not_approved');
  });

  it('runs a harmless call immediately', async () => {
    expect(await call('developer', 'git_git_log', { repo_path: workspace })).toContain('The first one');
    expect(await call('read-only', 'filesystem_read_text_file', { path: join(workspace, 'notes.txt') })).toContain(
      'plants',
    );
    expect(await call('automation', 'puppeteer_puppeteer_navigate', { url: 'file:///etc/passwd' })).toContain(
      'https://*',
    );
  });
});
