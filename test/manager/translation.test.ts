/** The seed's ten steps from a repository to tools that work, and its flow of secrets, through a real client. */
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { serveRegistry } from '../../src/manager/installer/local-registry.ts';
import { atEnd } from '../support/cleanup.ts';
import { runCli } from '../support/cli.ts';
import { type ManagedDock, startManaged } from '../support/manager.ts';
import { isMissingPython } from '../support/needs.ts';
import { tempFolder } from '../support/temp.ts';
import { onePart } from '../support/wide.ts';

const SERVER = `import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { z } from 'zod';

const server = new McpServer({ name: 'issues', version: '1.0.0' });
const token = process.env.ISSUES_TOKEN;

server.registerTool(
  'list_issues',
  { description: 'List issues of a repository.', inputSchema: { owner: z.string(), state: z.string().optional() } },
  async ({ owner, state }) => ({
    content: [{ type: 'text', text: await (await fetch(\`https://api.github.com/\${owner}?state=\${state}\`, { headers: { token } })).text() }],
  }),
);
`;

const TARGETS = {
  python: {
    filename: 'issues.py',
    code: `import os
from fastmcp.tools import tool


@tool
def list_issues(owner: str, state: str = "open") -> dict:
    """List issues of a repository.

    Args:
        owner: Whose issues.
        state: Which ones.
    """
    return {"owner": owner, "state": state, "has_token": len(os.environ["ISSUES_TOKEN"]) > 0}
`,
    failing: (code: string) => code.replace('"ISSUES_TOKEN"', '"NOT_THERE"'),
    error: { error: "KeyError: 'NOT_THERE'", traceback: expect.stringMatching(/^Traceback[\s\S]*issues\.py/) },
  },
  typescript: {
    filename: 'issues.ts',
    code: `import { z } from 'zod';

export const list_issues = {
  description: 'List issues of a repository.',
  inputSchema: z.object({ owner: z.string().describe('Whose issues.'), state: z.string().default('open') }),
  execute: ({ owner, state }: { owner: string; state: string }) => ({
    owner,
    state,
    has_token: process.env.ISSUES_TOKEN!.length > 0,
  }),
};
`,
    failing: (code: string) => code.replace('.ISSUES_TOKEN', '.NOT_THERE'),
    error: { error: expect.stringMatching(/^TypeError: /), traceback: expect.stringMatching(/issues\.ts:9/) },
  },
};

/** A repository on this machine, as others clone it. */
function repository(): string {
  const folder = tempFolder({
    'package.json': JSON.stringify({
      name: 'issues',
      dependencies: { '@modelcontextprotocol/sdk': '^1.20.0', zod: '^4' },
    }),
    'src/index.ts': SERVER,
  });
  const git = (...args: string[]) =>
    execFileSync('git', ['-c', 'user.name=a', '-c', 'user.email=a@example.com', ...args], { cwd: folder });
  git('init', '-q', '-b', 'main');
  git('add', '.');
  git('commit', '-q', '-m', 'first');
  return `file://${folder}`;
}

async function translate(dock: ManagedDock, target: keyof typeof TARGETS): Promise<void> {
  const { filename, code, failing, error } = TARGETS[target];
  const { call, fails } = dock;
  const repo_url = repository();
  const namespace = `issues-${target}`;
  expect((await fails('read_repo_file', { repo_url, path: 'src/index.ts' })).message).toContain('analyze_repo');
  // 1 and 2
  expect(await call('analyze_repo', { repo_url })).toMatchObject({
    repo_url,
    language: 'typescript',
    tools_found: [expect.objectContaining({ name: 'list_issues', file: 'src/index.ts' })],
    apis_called: ['api.github.com'],
    secrets_needed: ['ISSUES_TOKEN'],
  });
  expect(await call('read_repo_file', { repo_url, path: 'src/index.ts' })).toEqual({
    path: 'src/index.ts',
    content: SERVER,
  });
  for (const path of ['../../etc/passwd', '/etc/passwd', '.git/config'])
    expect((await fails('read_repo_file', { repo_url, path })).message).toContain('has no file');
  // 4 to 8
  await call('create_namespace', { name: namespace });
  await call('configure_namespace', { namespace, description: 'Issues', secrets: ['ISSUES_TOKEN'] });
  expect(await call('list_requirements', { namespace })).toEqual({ namespace, packages: [] });
  expect(await call('generate_tool', { namespace, filename, code: failing(code) })).toEqual({
    written: true,
    filename,
    tools_found: ['list_issues'],
  });
  expect(await call('install_requirements', { namespace })).toEqual({ installed: true, namespace, packages: [] });
  expect(await call('reload_core')).toMatchObject({ reloaded: true, namespaces: expect.arrayContaining([namespace]) });
  // 10: the secret, whose value only the terminal sees
  expect(await call('check_secrets', { namespace })).toEqual({
    namespace,
    satisfied: [],
    missing: ['ISSUES_TOKEN'],
    placeholders: [],
  });
  const { instructions } = (await call('prepare_secret', { key: 'ISSUES_TOKEN', namespace })) as {
    instructions: string;
  };
  expect(await call('check_secrets', { namespace })).toMatchObject({ missing: [], placeholders: ['ISSUES_TOKEN'] });
  expect(await call('list_namespaces')).toContainEqual(
    expect.objectContaining({ name: namespace, tool_count: 1, secrets_status: 'placeholders', state: 'locked' }),
  );
  const words = instructions.replace(/^Run: (?:docker exec -it \S+ )?toolgate /, '').split(' ');
  const set = await runCli([...words, '--stdin'], { cwd: dock.cwd, env: dock.env, input: 'value-of-the-token\n' });
  expect([set.code, set.stdout]).toEqual([0, expect.stringContaining('Set ISSUES_TOKEN')]);
  expect(await call('reload_core')).toMatchObject({ reloaded: true, workers_restarted: [namespace] });
  expect(await call('check_secrets', { namespace })).toMatchObject({ satisfied: ['ISSUES_TOKEN'] });
  // 9
  const test = () => call('test_tool', { namespace, tool_name: 'list_issues', input: { owner: 'ada' } });
  expect(await test()).toEqual({ success: false, ...error });
  await call('write_tool', { namespace, filename, code });
  expect(await test()).toEqual({ success: true, result: { owner: 'ada', state: 'open', has_token: true } });
  expect(await call('reload_core')).toMatchObject({ reloaded: true, workers_restarted: [namespace] });
  expect(await call('list_tools', { namespace })).toEqual([
    { name: 'list_issues', description: 'List issues of a repository.', filename },
  ]);
  // And a client of the core can use it.
  const { client } = await dock.core.connect({ headers: { authorization: `Bearer ${dock.env.BEARER_TOKEN}` } });
  const { structuredContent } = await client.callTool({
    name: `${namespace}_list_issues`,
    arguments: { owner: 'ada', state: 'closed' },
  });
  expect(structuredContent).toEqual({ owner: 'ada', state: 'closed', has_token: true });
  expect(await call('remove_secret', { key: 'ISSUES_TOKEN', namespace })).toMatchObject({ removed: true });
  expect(await call('check_secrets', { namespace })).toMatchObject({ satisfied: [], missing: ['ISSUES_TOKEN'] });
}

const config = 'controls = []\nfolders.watch = false\nrepositories.from = "local"\n';

const targets = Object.keys(TARGETS) as (keyof typeof TARGETS)[];
describe.each(onePart(targets.length, targets))('to %s', (target) => {
  it.skipIf(target === 'python' && isMissingPython('v1'))(
    'translates a repository',
    async () => {
      await translate(await startManaged({ config, python: target === 'python' }), target);
    },
    240_000,
  );
});

it('finds servers in a registry, writes them to the configuration, or reads their source', async () => {
  const folder = tempFolder();
  const entry = {
    name: 'io.github.acme/issues',
    description: 'Issues of Acme',
    version: '1.2.3',
    repository: { url: repository(), source: 'git' },
    packages: [
      {
        registryType: 'npm',
        identifier: '@acme/issues-mcp',
        version: '1.2.3',
        transport: { type: 'stdio' },
        environmentVariables: [{ name: 'ACME_TOKEN', description: 'The token', isRequired: true, isSecret: true }],
      },
    ],
  };
  writeFileSync(join(folder, 'server.json'), JSON.stringify(entry));
  const local = await serveRegistry(folder, { host: '127.0.0.1', port: 0, problem() {} });
  atEnd(() => local.close());
  const dock = await startManaged({ config, env: { MCP_REGISTRY_URL: local.url } });
  expect(await dock.call('search_registry', { query: 'issues' })).toEqual([
    expect.objectContaining({ name: entry.name, package: '@acme/issues-mcp', package_type: 'npm' }),
  ]);
  const wanted = { package: '@acme/issues-mcp', namespace: 'acme' };
  const { language } = (await dock.call('install_from_registry', { ...wanted, mode: 'translate' })) as {
    language: string;
  };
  expect(language).toBe('typescript');
  expect(await dock.call('install_from_repo', { repo_url: entry.repository.url, namespace: 'acme' })).toMatchObject({
    language,
  });
  expect(await dock.call('install_from_registry', wanted)).toMatchObject({
    installed: true,
    namespace: 'acme',
    secrets_needed: ['ACME_TOKEN'],
  });
  const written = readFileSync(join(dock.cwd, 'tools.toml'), 'utf8');
  expect(written).toContain('@acme/issues-mcp@1.2.3');
  expect(await dock.call('list_secrets')).toContainEqual({ key: 'ACME_TOKEN', scope: 'acme', status: 'placeholder' });
  expect((await dock.fails('install_from_registry', { ...wanted, namespace: '../x' })).message).toContain('cannot be');
  expect((await dock.fails('install_from_registry', { ...wanted, package: 'no/such' })).message).toContain(
    'no single server',
  );
  expect(await dock.fails('search_registry', { query: '' })).toHaveProperty('code', 'usage');
});

it('makes tools of an OpenAPI document, from public addresses only unless the configuration says otherwise', async () => {
  const asked: string[] = [];
  const api = createServer((request, response) => {
    asked.push(request.url!);
    response.setHeader('content-type', 'application/json');
    response.end(request.url === '/openapi.json' ? JSON.stringify(document()) : '{"name":"Rex"}');
  });
  api.listen(0, '127.0.0.1');
  await once(api, 'listening');
  atEnd(() => void api.close());
  const origin = `http://127.0.0.1:${(api.address() as AddressInfo).port}`;
  const document = () => ({
    openapi: '3.1.0',
    info: { title: 'Pets', version: '1' },
    servers: [{ url: origin }],
    paths: {
      '/pets/{id}': {
        get: {
          operationId: 'get_pet',
          summary: 'One pet',
          parameters: [{ name: 'id', in: 'path', required: true, schema: { type: 'string' } }],
          responses: { 200: { description: 'The pet' } },
        },
      },
    },
  });
  const wanted = { document: `${origin}/openapi.json`, namespace: 'pets' };
  const dock = await startManaged({ config });
  expect(await dock.call('install_from_openapi', wanted)).toMatchObject({ created: true, tools_found: ['get_pet'] });
  await dock.call('reload_core');
  expect(
    JSON.stringify(await dock.call('test_tool', { namespace: 'pets', tool_name: 'get_pet', input: { id: '7' } })),
  ).toContain('Rex');
  expect(asked).toContain('/pets/7');
  expect((await dock.fails('install_from_openapi', wanted)).message).toContain('pets');
  expect((await dock.fails('install_from_openapi', { ...wanted, document: '/etc/passwd' })).message).toContain(
    'address',
  );
  expect((await dock.fails('install_from_openapi', { ...wanted, namespace: '../x' })).code).toBe('usage');
  const closed = await startManaged();
  expect((await closed.fails('install_from_openapi', wanted)).message).toContain('https');
});

it('has the clones in repos/ of the data folder', async () => {
  const dock = await startManaged({ config });
  await dock.call('analyze_repo', { repo_url: repository() });
  expect(readdirSync(join(dock.cwd, '.toolgate/repos')).filter((name) => !name.startsWith('.'))).toHaveLength(1);
  for (const repo_url of ['ext::sh -c id', '--upload-pack=id', 'ftp://example.com/x', '/etc', ''])
    expect(await dock.fails('analyze_repo', { repo_url })).toHaveProperty('message');
});
