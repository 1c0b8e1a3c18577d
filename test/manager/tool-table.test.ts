/**
 * One table over all tools of the manager, through a real client: what each answers when it succeeds, each error that it
 * documents, and what hostile values do in each of its parameters. Real installations are in packages.test.ts.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { serveRegistry } from '../../src/manager/installer/local-registry.ts';
import { servePackages, tarball } from '../support/archives.ts';
import { atEnd } from '../support/cleanup.ts';
import { type ManagedDock, startManaged } from '../support/manager.ts';
import { gitRepository } from '../support/repository.ts';
import { tempFolder } from '../support/temp.ts';

const ts = (name: string, body = "'one'") =>
  `export const ${name} = { description: 'Tool ${name}.', inputSchema: { type: 'object' }, execute: () => ${body} };\n`;
const BIG = 'x'.repeat(1024 * 1024 + 1);

const ENTRY = {
  name: 'io.github.acme/weather',
  description: 'The weather',
  version: '1.2.0',
  packages: [
    {
      registryType: 'npm',
      identifier: 'weather-mcp',
      version: '1.2.0',
      packageArguments: [{ type: 'positional', valueHint: 'city', isRequired: true, description: 'Where' }],
      environmentVariables: [{ name: 'WEATHER_KEY', isSecret: true, isRequired: true }],
    },
  ],
};
const REMOTE = { name: 'com.example/remote', version: '1.0.0', remotes: [{ type: 'sse', url: 'https://1.1.1.1/sse' }] };

/** What the rows refer to. */
interface Place {
  readonly repo: string;
  readonly api: string;
  readonly outside: string;
}

type Args = Record<string, unknown>;
type Row = readonly [tool: string, what: string, args: (at: Place) => Args, expected: object];

/** An answer that is an error, with its code and a part of its message. */
const error = (code: string, message: string) => ({ isError: true, code, message });
/** An answer that is a result. */
const result = (value: unknown) => ({ isError: false, value });

const at = { namespace: 'web', filename: 'get.ts' };
const unknown = error('usage', 'There is no namespace "nope"');

/** In this order: later rows use what earlier ones wrote. */
const ROWS: readonly Row[] = [
  [
    'list_namespaces',
    'succeeds',
    () => ({}),
    result(expect.arrayContaining([expect.objectContaining({ name: 'web', tool_count: 1 })])),
  ],
  [
    'create_namespace',
    'succeeds',
    () => ({ name: 'fresh' }),
    result({ created: true, path: expect.stringMatching(/tools\/fresh$/) }),
  ],
  ['create_namespace', 'exists', () => ({ name: 'web' }), error('usage', 'tools/web')],
  ['create_namespace', 'invalid name', () => ({ name: 'Web.1' }), error('usage', 'cannot be a namespace')],
  ['create_namespace', 'reserved name', () => ({ name: '_system' }), error('usage', 'cannot be a namespace')],
  ['create_namespace', 'a link in its place', () => ({ name: 'linked' }), error('usage', 'tools/linked')],
  [
    'configure_namespace',
    'succeeds',
    () => ({ namespace: 'fresh', description: 'New', secrets: ['A_KEY'], env: { URL: 'https://example.com' } }),
    result(expect.objectContaining({ configured: true, namespace: 'fresh', secrets: ['A_KEY'] })),
  ],
  ['configure_namespace', 'unknown namespace', () => ({ namespace: 'nope' }), unknown],
  [
    'configure_namespace',
    'a secret that is no name',
    () => ({ namespace: 'fresh', secrets: ['a b'] }),
    error('usage', 'Nothing was written'),
  ],
  [
    'configure_namespace',
    'a variable of Toolgate',
    () => ({ namespace: 'fresh', env: { SECRETS_KEY: 'x' } }),
    error('usage', 'Nothing was written'),
  ],
  [
    'configure_namespace',
    'huge text',
    () => ({ namespace: 'fresh', description: BIG }),
    error('invalid_arguments', 'description'),
  ],
  [
    'configure_namespace',
    'own files of the user',
    () => ({ namespace: 'mine', description: 'x' }),
    error('usage', 'yourself'),
  ],
  [
    'list_tools',
    'succeeds',
    () => ({ namespace: 'web' }),
    result([{ name: 'get', description: 'Tool get.', filename: 'get.ts' }]),
  ],
  ['list_tools', 'unknown namespace', () => ({ namespace: 'nope' }), unknown],
  [
    'list_tools',
    'huge file',
    () => ({ namespace: 'large' }),
    result([{ name: 'big', description: 'Tool big.', filename: 'big.ts' }]),
  ],
  ['get_tool_source', 'succeeds', () => at, result({ filename: 'get.ts', source: ts('get') })],
  ['get_tool_source', 'unknown namespace', () => ({ ...at, namespace: 'nope' }), unknown],
  ['get_tool_source', 'unknown file', () => ({ ...at, filename: 'got.ts' }), error('usage', 'There is no file got.ts')],
  ['get_tool_source', 'link', () => ({ ...at, filename: 'link.ts' }), error('usage', 'is a link')],
  ['get_tool_source', 'huge file', () => ({ namespace: 'large', filename: 'big.ts' }), error('usage', 'more than')],
  ...(['write_tool', 'generate_tool'] as const).flatMap((name): Row[] => [
    [
      name,
      'succeeds',
      () => ({ namespace: 'fresh', filename: `${name}.ts`, code: ts(name) }),
      result({ written: true, filename: `${name}.ts`, tools_found: [name] }),
    ],
    [
      name,
      'syntax',
      () => ({ ...at, code: 'export const = 1;' }),
      result({
        written: false,
        error: expect.stringContaining('Line 1'),
        details: expect.stringContaining('get.ts:1'),
      }),
    ],
    [
      name,
      'no tool',
      () => ({ ...at, code: 'export const x = 1;' }),
      result(expect.objectContaining({ written: false, error: 'No exported tool found' })),
    ],
    [
      name,
      'no description',
      () => ({ ...at, code: ts('get').replace('Tool get.', '') }),
      result(expect.objectContaining({ written: false })),
    ],
    [
      name,
      'huge file',
      () => ({ ...at, code: BIG }),
      result(expect.objectContaining({ written: false, error: 'The code is too large' })),
    ],
    [name, 'unknown namespace', () => ({ ...at, namespace: 'nope', code: ts('x') }), unknown],
    [name, 'link', () => ({ ...at, filename: 'link.ts', code: ts('x') }), error('usage', 'is a link')],
    [
      name,
      'own files of the user',
      () => ({ namespace: 'mine', filename: 'a.ts', code: ts('x') }),
      error('usage', 'yourself'),
    ],
  ]),
  ['list_tool_versions', 'none', () => at, result([])],
  ['list_tool_versions', 'unknown namespace', () => ({ ...at, namespace: 'nope' }), unknown],
  ['restore_tool', 'none', () => at, error('usage', 'no earlier version')],
  ['restore_tool', 'unknown namespace', () => ({ ...at, namespace: 'nope' }), unknown],
  ['delete_tool', 'unknown namespace', () => ({ ...at, namespace: 'nope' }), unknown],
  ['delete_tool', 'unknown file', () => ({ ...at, filename: 'got.ts' }), error('usage', 'There is no file got.ts')],
  ['delete_tool', 'link', () => ({ ...at, filename: 'link.ts' }), error('usage', 'is a link')],
  ['delete_tool', 'own files of the user', () => ({ namespace: 'mine', filename: 'a.ts' }), error('usage', 'yourself')],
  [
    'delete_tool',
    'succeeds',
    () => ({ namespace: 'fresh', filename: 'generate_tool.ts' }),
    result({ deleted: true, filename: 'generate_tool.ts' }),
  ],
  [
    'list_tool_versions',
    'succeeds',
    () => ({ namespace: 'fresh', filename: 'generate_tool.ts' }),
    result([{ version: expect.any(String), filename: 'generate_tool.ts' }]),
  ],
  [
    'restore_tool',
    'unknown version',
    () => ({ namespace: 'fresh', filename: 'generate_tool.ts', version: '../../x' }),
    error('usage', 'no such version'),
  ],
  [
    'restore_tool',
    'succeeds',
    () => ({ namespace: 'fresh', filename: 'generate_tool.ts' }),
    result(expect.objectContaining({ restored: true })),
  ],
  [
    'list_requirements',
    'succeeds',
    () => ({ namespace: 'packed' }),
    result({ namespace: 'packed', packages: ['tiny@1.0.0'] }),
  ],
  ['list_requirements', 'unknown namespace', () => ({ namespace: 'nope' }), unknown],
  [
    'install_requirements',
    'succeeds',
    () => ({ namespace: 'web' }),
    result({ installed: true, namespace: 'web', packages: [] }),
  ],
  ['install_requirements', 'unknown namespace', () => ({ namespace: 'nope' }), unknown],
  [
    'install_requirements',
    'fails',
    () => ({ namespace: 'broken' }),
    result(expect.objectContaining({ installed: false, error: expect.any(String), details: expect.any(String) })),
  ],
  ['add_requirement', 'unknown namespace', () => ({ namespace: 'nope', package: 'zod' }), unknown],
  [
    'add_requirement',
    'no package',
    () => ({ namespace: 'web', package: '--registry=http://evil.example' }),
    error('usage', 'is not a package'),
  ],
  [
    'add_requirement',
    'own files of the user',
    () => ({ namespace: 'mine', package: 'zod' }),
    error('usage', 'yourself'),
  ],
  [
    'add_requirement',
    'unknown language',
    () => ({ namespace: 'web', package: 'zod', language: 'ruby' }),
    error('invalid_arguments', 'language'),
  ],
  ['install_pip_packages', 'no package', () => ({ packages: ['-r /etc/passwd'] }), error('usage', 'is not a package')],
  ['install_pip_packages', 'nothing', () => ({ packages: [] }), error('invalid_arguments', 'packages')],
  [
    'install_pip_packages',
    'too many',
    () => ({ packages: Array.from({ length: 51 }, () => 'httpx') }),
    error('invalid_arguments', 'packages'),
  ],
  [
    'prepare_secret',
    'succeeds',
    () => ({ key: 'A_KEY' }),
    result(
      expect.objectContaining({
        key: 'A_KEY',
        scope: 'global',
        instructions: expect.stringContaining('toolgate secrets set --key A_KEY --scope global'),
      }),
    ),
  ],
  ['prepare_secret', 'no name', () => ({ key: 'a b' }), error('usage', 'named like an environment variable')],
  ['prepare_secret', 'a variable of Toolgate', () => ({ key: 'SECRETS_KEY' }), error('usage', 'SECRETS_KEY')],
  ['prepare_secret', 'unknown namespace', () => ({ key: 'OK', namespace: 'nope' }), unknown],
  [
    'list_secrets',
    'succeeds',
    () => ({}),
    result(expect.arrayContaining([{ key: 'A_KEY', scope: 'global', status: 'placeholder' }])),
  ],
  ['list_secrets', 'unknown namespace', () => ({ namespace: 'nope' }), unknown],
  [
    'check_secrets',
    'succeeds',
    () => ({ namespace: 'fresh' }),
    result({ namespace: 'fresh', satisfied: [], missing: [], placeholders: ['A_KEY'] }),
  ],
  ['check_secrets', 'unknown namespace', () => ({ namespace: 'nope' }), unknown],
  ['remove_secret', 'unknown secret', () => ({ key: 'B_KEY' }), error('usage', 'There is no secret B_KEY')],
  ['remove_secret', 'succeeds', () => ({ key: 'A_KEY' }), result({ removed: true, key: 'A_KEY', scope: 'global' })],
  [
    'read_repo_file',
    'not analyzed',
    ({ repo }) => ({ repo_url: repo, path: 'src/a.ts' }),
    error('usage', 'Call analyze_repo first'),
  ],
  [
    'analyze_repo',
    'succeeds',
    ({ repo }) => ({ repo_url: repo }),
    result(
      expect.objectContaining({
        language: 'typescript',
        tools_found: [expect.objectContaining({ name: 'list_issues' })],
      }),
    ),
  ],
  [
    'analyze_repo',
    'a package',
    () => ({ repo_url: 'npm:weather-mcp' }),
    result(expect.objectContaining({ tools_found: [expect.objectContaining({ name: 'forecast' })] })),
  ],
  ['analyze_repo', 'no address', () => ({ repo_url: 'git@github.com:a/b' }), error('usage', 'cannot be cloned')],
  ['analyze_repo', 'not there', ({ outside }) => ({ repo_url: outside }), error('usage', 'could not be cloned')],
  ['analyze_repo', 'no package', () => ({ repo_url: 'npm:no-such-package' }), error('usage', 'does not have it')],
  [
    'read_repo_file',
    'succeeds',
    ({ repo }) => ({ repo_url: repo, path: 'src/a.ts' }),
    result({ path: 'src/a.ts', content: expect.stringContaining('list_issues') }),
  ],
  [
    'read_repo_file',
    'unknown file',
    ({ repo }) => ({ repo_url: repo, path: 'src/b.ts' }),
    error('usage', 'has no file'),
  ],
  ['read_repo_file', 'link', ({ repo }) => ({ repo_url: repo, path: 'link' }), error('usage', 'has no file')],
  ['read_repo_file', 'huge file', ({ repo }) => ({ repo_url: repo, path: 'big.txt' }), error('usage', '1 MiB')],
  ['read_repo_file', 'no text', ({ repo }) => ({ repo_url: repo, path: 'b.bin' }), error('usage', 'is not a text')],
  [
    'search_registry',
    'succeeds',
    () => ({ query: 'weather' }),
    result([expect.objectContaining({ name: ENTRY.name, package: 'weather-mcp', package_type: 'npm' })]),
  ],
  ['search_registry', 'nothing to search for', () => ({ query: ' ' }), error('usage', 'Say what to search for')],
  [
    'install_from_registry',
    'unknown',
    () => ({ package: 'io.github.acme/none', namespace: 'weather' }),
    error('usage', 'has no single server'),
  ],
  [
    'install_from_registry',
    'something is missing',
    () => ({ package: ENTRY.name, namespace: 'weather' }),
    result({
      installed: false,
      error: expect.stringContaining('needs city'),
      inputs: [{ name: 'city', description: 'Where' }],
    }),
  ],
  [
    'install_from_registry',
    'value of a secret',
    () => ({ package: ENTRY.name, namespace: 'weather', inputs: { city: 'Oslo', WEATHER_KEY: 'canary-4711' } }),
    error('usage', 'is a secret'),
  ],
  [
    'install_from_registry',
    'unknown input',
    () => ({ package: ENTRY.name, namespace: 'weather', inputs: { city: 'Oslo', town: 'x' } }),
    error('usage', 'has no input "town"'),
  ],
  [
    'install_from_registry',
    'other kind',
    () => ({ package: ENTRY.name, namespace: 'weather', kind: 'oci' }),
    error('usage', 'cannot be installed as oci'),
  ],
  [
    'install_from_registry',
    'unknown mode',
    () => ({ package: ENTRY.name, namespace: 'weather', mode: 'run' }),
    error('invalid_arguments', 'mode'),
  ],
  [
    'install_from_registry',
    'invalid namespace',
    () => ({ package: ENTRY.name, namespace: '../x' }),
    error('usage', 'cannot be a namespace'),
  ],
  [
    'install_from_registry',
    'translates its package',
    () => ({ package: ENTRY.name, namespace: 'weather', mode: 'translate' }),
    result(
      expect.objectContaining({
        repo_url: 'npm:weather-mcp@1.2.0',
        tools_found: [expect.objectContaining({ name: 'forecast' })],
      }),
    ),
  ],
  [
    'install_from_registry',
    'nothing to translate',
    () => ({ package: REMOTE.name, namespace: 'remote', mode: 'translate' }),
    error('usage', 'no source to translate'),
  ],
  [
    'install_from_registry',
    'no such package to translate',
    () => ({ package: ENTRY.name, namespace: 'weather', mode: 'translate', kind: 'pypi' }),
    error('usage', 'has no pypi package'),
  ],
  [
    'install_from_registry',
    'succeeds',
    () => ({ package: ENTRY.name, namespace: 'weather', inputs: { city: 'Oslo; touch ran' } }),
    result(expect.objectContaining({ installed: true, namespace: 'weather', secrets_needed: ['WEATHER_KEY'] })),
  ],
  [
    'install_from_registry',
    'exists',
    () => ({ package: ENTRY.name, namespace: 'weather', inputs: { city: 'Oslo' } }),
    error('usage', 'already'),
  ],
  [
    'install_from_repo',
    'succeeds',
    ({ repo }) => ({ repo_url: repo, namespace: 'issues' }),
    result(expect.objectContaining({ tools_found: [expect.objectContaining({ name: 'list_issues' })] })),
  ],
  [
    'install_from_repo',
    'invalid namespace',
    ({ repo }) => ({ repo_url: repo, namespace: 'A B' }),
    error('usage', 'cannot be a namespace'),
  ],
  [
    'install_from_repo',
    'no address',
    () => ({ repo_url: 'ext::sh', namespace: 'issues' }),
    error('usage', 'cannot be cloned'),
  ],
  [
    'install_from_openapi',
    'succeeds',
    ({ api }) => ({ document: `${api}/openapi.json`, namespace: 'pets' }),
    result(expect.objectContaining({ created: true, namespace: 'pets', tools_found: ['list_pets'] })),
  ],
  [
    'install_from_openapi',
    'exists',
    ({ api }) => ({ document: `${api}/openapi.json`, namespace: 'pets' }),
    error('usage', 'tools/pets'),
  ],
  [
    'install_from_openapi',
    'no document',
    ({ api }) => ({ document: `${api}/nothing`, namespace: 'other' }),
    error('usage', '404'),
  ],
  [
    'install_from_openapi',
    'a file of this machine',
    () => ({ document: '/etc/passwd', namespace: 'other' }),
    error('usage', 'is not an address'),
  ],
  [
    'install_from_openapi',
    'invalid namespace',
    ({ api }) => ({ document: `${api}/openapi.json`, namespace: '../x' }),
    error('usage', 'cannot be a namespace'),
  ],
  [
    'test_tool',
    'succeeds',
    () => ({ namespace: 'web', tool_name: 'get', input: {} }),
    result({ success: true, result: 'one' }),
  ],
  [
    'test_tool',
    'fails',
    () => ({ namespace: 'throws', tool_name: 'fail', input: {} }),
    result({ success: false, error: 'TypeError: as told', traceback: expect.stringContaining('fail.ts:1') }),
  ],
  [
    'test_tool',
    'unknown tool',
    () => ({ namespace: 'web', tool_name: 'got', input: {} }),
    result(expect.objectContaining({ success: false, error: expect.stringContaining('Did you mean "get"') })),
  ],
  ['test_tool', 'unknown namespace', () => ({ namespace: 'nope', tool_name: 'x', input: {} }), unknown],
  [
    'test_tool',
    'no object',
    () => ({ namespace: 'web', tool_name: 'get', input: [] }),
    error('invalid_arguments', 'input'),
  ],
  ['health', 'succeeds', () => ({}), result(expect.objectContaining({ core_reachable: true }))],
  ['server_config', 'succeeds', () => ({}), result(expect.objectContaining({ manager_port: expect.any(Number) }))],
  ['delete_namespace', 'unknown namespace', () => ({ name: 'nope' }), error('usage', 'There is no namespace')],
  ['delete_namespace', 'reserved name', () => ({ name: '_system' }), error('usage', 'cannot be a namespace')],
  ['delete_namespace', 'link', () => ({ name: 'linked' }), error('usage', 'There is no namespace')],
  ['delete_namespace', 'own files of the user', () => ({ name: 'mine' }), error('usage', 'yourself')],
  ['delete_namespace', 'succeeds', () => ({ name: 'fresh' }), result({ deleted: true, name: 'fresh' })],
  [
    'reload_core',
    'succeeds',
    () => ({}),
    result(expect.objectContaining({ reloaded: true, namespaces: expect.arrayContaining(['web']) })),
  ],
];

/** Their success is a real installation: packages.test.ts. */
const INSTALLING = ['add_requirement', 'install_pip_packages'];
/** Parameters in which every text is fine, because it is only searched for or shown. */
const FREE = [
  'configure_namespace.description',
  'configure_namespace.version',
  'configure_namespace.author',
  'search_registry.query',
];

let dock: ManagedDock;
let place: Place;

beforeAll(async () => {
  const outside = tempFolder({ 'keep.ts': ts('keep') });
  const own = tempFolder({ 'a.ts': ts('a') });
  const registry = await serveRegistry(
    tempFolder({ 'a/server.json': JSON.stringify(ENTRY), 'b/server.json': JSON.stringify(REMOTE) }),
    { host: '127.0.0.1', port: 0, problem: () => {} },
  );
  atEnd(() => registry.close());
  const weather = tarball({
    path: 'package/index.js',
    text: "server.registerTool('forecast', { description: 'F' }, run);",
  });
  const packages = await servePackages({ 'weather-mcp@1.2.0': weather });
  const repo = gitRepository({
    'src/a.ts': "server.registerTool('list_issues', { description: 'List' }, run);\n",
    'big.txt': BIG,
    'b.bin': new Uint8Array([0, 1, 2]),
  });
  dock = await startManaged({
    config: `controls = []\nfolders.watch = false\nrepositories.from = "local"\n[servers.mine]\nfolder = ${JSON.stringify(own)}\n`,
    env: { ...packages.env, npm_config_fetch_retries: '0', MCP_REGISTRY_URL: registry.url },
    files: {
      'web/get.ts': ts('get'),
      'large/big.ts': `// ${BIG}\n${ts('big')}`,
      'throws/fail.ts': ts('fail', "(() => { throw new TypeError('as told'); })()"),
      'packed/get.ts': ts('get'),
      'packed/package.json': '{"dependencies": {"tiny": "1.0.0"}}',
      'broken/get.ts': ts('get'),
      'broken/package.json': '{"dependencies": {"no-such-package": "1.0.0"}}',
    },
  });
  symlinkSync(outside, join(dock.tools, 'linked'));
  symlinkSync(join(outside, 'keep.ts'), join(dock.tools, 'web/link.ts'));
  mkdirSync(join(repo, '.git/info'), { recursive: true });
  const api = createServer((request, response) => {
    if (request.url !== '/openapi.json') return void response.writeHead(404).end();
    response.end(
      JSON.stringify({
        openapi: '3.1.0',
        info: { title: 'Pets', version: '1' },
        servers: [{ url: 'https://pets.example' }],
        paths: { '/pets': { get: { operationId: 'list_pets', summary: 'List' } } },
      }),
    );
  });
  await new Promise<void>((resolve) => api.listen(0, '127.0.0.1', resolve));
  atEnd(() => {
    api.closeAllConnections();
    api.close();
  });
  place = { repo, api: `http://127.0.0.1:${(api.address() as { port: number }).port}`, outside };
}, 120_000);

async function ask(name: string, args: Args): Promise<{ isError: boolean; text: string; value: Args }> {
  const { content, isError } = await dock.connection.client.callTool({ name, arguments: args }, undefined, {
    timeout: 120_000,
  });
  const [{ text }] = content as [{ text: string }];
  return { isError: isError === true, text, value: JSON.parse(text) as Args };
}

it.each(ROWS)('%s: %s', async (name, _, args, expected) => {
  const { isError, value, text } = await ask(name, args(place));
  const seen = isError ? { isError, code: value.code, message: value.message } : { isError, value };
  expect(seen, text.slice(0, 500)).toEqual(
    isError && 'message' in expected
      ? { ...expected, message: expect.stringContaining(String(expected.message)) }
      : expected,
  );
  // Nothing that was passed runs, and no secret is repeated.
  expect(text).not.toContain('canary-4711');
  expect(existsSync(join(dock.cwd, 'ran'))).toBe(false);
});

const HOSTILE = [
  '../../etc/passwd',
  '/etc/passwd',
  '$(touch ran)',
  '`touch ran`',
  'a; touch ran',
  '--help',
  'a\nb',
  'a\0b',
  '__proto__',
  'x'.repeat(300_000),
];

describe('hostile values', () => {
  it('do nothing in any parameter of any tool', async () => {
    const { tools } = await dock.connection.client.listTools();
    const before = readdirSync(dock.tools).sort();
    const valid = new Map(
      ROWS.toReversed()
        .filter(([, what]) => what === 'succeeds')
        .map(([name, , args]) => [name, args]),
    );
    const wrong: string[] = [];
    for (const { name, inputSchema } of tools) {
      const properties = (inputSchema.properties ?? {}) as Record<
        string,
        { type?: string; enum?: unknown; anyOf?: { type?: string }[] }
      >;
      for (const [parameter, { type, enum: choices, anyOf }] of Object.entries(properties)) {
        const takesText = type === 'string' || anyOf?.some((one) => one.type === 'string') === true;
        if (!takesText || choices !== undefined || FREE.includes(`${name}.${parameter}`)) continue;
        for (const hostile of HOSTILE) {
          const args = { ...valid.get(name)?.(place), [parameter]: hostile };
          const { isError, value, text } = await ask(name, args);
          const isRefused = isError || [value.written, value.installed, value.added, value.success].includes(false);
          if (!isRefused || text.length > 5_000 || value.code === 'internal_error')
            wrong.push(`${name}.${parameter} = ${JSON.stringify(hostile.slice(0, 40))}: ${text.slice(0, 200)}`);
        }
      }
    }
    expect(wrong).toEqual([]);
    expect(readdirSync(dock.tools).sort()).toEqual(before);
    expect(readdirSync(place.outside)).toEqual(['keep.ts']);
    expect(readFileSync(join(place.outside, 'keep.ts'), 'utf8')).toBe(ts('keep'));
    for (const folder of [dock.cwd, dock.tools, place.repo, process.cwd()])
      expect(readdirSync(folder)).not.toContain('ran');
    expect(await ask('health', {})).toMatchObject({ value: { core_reachable: true } });
  }, 120_000);

  it('are refused and not repeated in parameters that a tool does not have', async () => {
    const { tools } = await dock.connection.client.listTools();
    for (const { name } of tools) {
      const { isError, value, text } = await ask(name, { value: 'canary-4711' });
      expect([name, isError, value.code]).toEqual([name, true, 'invalid_arguments']);
      expect(text).not.toContain('canary-4711');
    }
  });
});

it('has rows for the success and the errors of every tool', async () => {
  const { tools } = await dock.connection.client.listTools();
  const whats = (name: string) => ROWS.filter(([tool]) => tool === name).map(([, what]) => what);
  const names = tools.map(({ name }) => name);
  expect(names.filter((name) => !whats(name).includes('succeeds'))).toEqual(
    INSTALLING.toSorted((a, b) => names.indexOf(a) - names.indexOf(b)),
  );
  // Those without parameters fail only with the core: manager-door.test.ts.
  const taking = tools.filter(({ inputSchema }) => Object.keys(inputSchema.properties ?? {}).length > 0);
  expect(taking.filter(({ name }) => whats(name).filter((what) => what !== 'succeeds').length === 0)).toEqual([]);
  const inNamespaces = tools.filter(({ inputSchema }) => (inputSchema.required ?? []).includes('namespace'));
  const making = ['install_from_registry', 'install_from_repo', 'install_from_openapi'];
  const lacking = inNamespaces.filter(
    ({ name }) => !whats(name).includes(making.includes(name) ? 'invalid namespace' : 'unknown namespace'),
  );
  expect(lacking.map(({ name }) => name)).toEqual([]);
});
