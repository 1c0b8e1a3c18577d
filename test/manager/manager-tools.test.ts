/** Each tool of the manager through a real client: its result, its errors, and hostile input. */
import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { type ManagedDock, startManaged } from '../support/manager.ts';
import { tempFolder } from '../support/temp.ts';

const ts = (name: string, body = 'a', before = '') =>
  `${before}export const ${name} = { description: 'Tool ${name}.', inputSchema: { type: 'object', properties: { a: {} } }, execute: ({ a }: any) => ${body} };\n`;

let dock: ManagedDock;
beforeAll(async () => {
  dock = await startManaged({
    files: { 'web/get.ts': ts('get', '({ got: a })'), 'web/tooldock.yaml': 'description: Web\n' },
  });
});

const call: ManagedDock['call'] = (name, args) => dock.call(name, args);
const fails: ManagedDock['fails'] = (name, args) => dock.fails(name, args);

it('lists the tools of the seed, each with a title, a description, a strict schema and annotations', async () => {
  const { tools } = await dock.connection.client.listTools();
  const names = tools.map(({ name }) => name);
  expect(names).toEqual([
    ...['list_namespaces', 'create_namespace', 'delete_namespace', 'configure_namespace', 'reload_core'],
    ...['list_tools', 'get_tool_source', 'write_tool', 'delete_tool', 'list_tool_versions', 'restore_tool'],
    ...['generate_tool', 'install_requirements', 'add_requirement', 'list_requirements', 'install_pip_packages'],
    ...['prepare_secret', 'list_secrets', 'remove_secret', 'check_secrets'],
    ...['analyze_repo', 'read_repo_file', 'search_registry', 'install_from_registry', 'install_from_repo'],
    ...['install_from_openapi', 'test_tool', 'health', 'server_config'],
  ]);
  for (const { name, title, description, inputSchema, annotations } of tools) {
    expect(title, name).toBeTruthy();
    expect(description, name).toMatch(/Returns/);
    expect(inputSchema, name).toMatchObject({ type: 'object', additionalProperties: false });
    expect(annotations, name).toHaveProperty('readOnlyHint');
  }
  const destructive = tools.filter(({ annotations }) => annotations?.destructiveHint === true);
  expect(destructive.map(({ name }) => name)).toEqual([
    'delete_namespace',
    'delete_tool',
    'remove_secret',
    'test_tool',
  ]);
  expect(dock.connection.client.getInstructions()).toContain('list_namespaces');
});

it.each([
  ['http://127.0.0.1:9/openapi.json', 'not an https address'],
  ['https://127.0.0.1:9/openapi.json', 'Set repositories.from = "private"'],
  ['/etc/passwd', 'address'],
])('reads no OpenAPI document from %s, because only public addresses are allowed', async (document, words) => {
  const { message } = await fails('install_from_openapi', { document, namespace: 'pets' });
  expect(message).toContain(words);
});

describe('namespaces', () => {
  it('are listed with tools, secrets and state', async () => {
    expect(await call('list_namespaces')).toContainEqual({
      name: 'web',
      tool_count: 1,
      has_requirements: false,
      secrets_status: 'no_secrets_needed',
      state: 'up',
      files: ['get.ts'],
      description: 'Web',
    });
  });

  it('are created, described, loaded and deleted', async () => {
    expect(await call('create_namespace', { name: 'my-tools' })).toEqual({
      created: true,
      path: join(dock.tools, 'my-tools'),
    });
    const configured = { description: 'Mine', secrets: ['MY_KEY'], env: { URL: 'https://example.com' } };
    expect(await call('configure_namespace', { namespace: 'my-tools', ...configured })).toMatchObject({
      configured: true,
      namespace: 'my-tools',
      ...configured,
    });
    expect(await call('write_tool', { namespace: 'my-tools', filename: 'one.ts', code: ts('one') })).toEqual({
      written: true,
      filename: 'one.ts',
      tools_found: ['one'],
    });
    expect(await call('list_namespaces')).toContainEqual(
      expect.objectContaining({ name: 'my-tools', tool_count: 1, secrets_status: 'missing', state: 'not_loaded' }),
    );
    expect(await call('reload_core')).toMatchObject({
      reloaded: true,
      namespaces: ['my-tools', 'web'],
      problems: [{ source: 'my-tools', message: expect.stringContaining('waits for the secret MY_KEY') }],
    });
    // It waits for a secret, and can still be listed.
    expect(await call('list_namespaces')).toContainEqual(
      expect.objectContaining({ name: 'my-tools', tool_count: 1, state: 'locked', files: ['one.ts'] }),
    );
    expect(await call('list_tools', { namespace: 'my-tools' })).toEqual([
      { name: 'one', description: 'Tool one.', filename: 'one.ts' },
    ]);
    expect(await call('delete_namespace', { name: 'my-tools' })).toEqual({ deleted: true, name: 'my-tools' });
    expect(existsSync(join(dock.tools, 'my-tools'))).toBe(false);
    expect(await call('reload_core')).toMatchObject({ reloaded: true, namespaces: ['web'] });
  });

  it('are not created twice, or with a name that is not valid', async () => {
    expect(await fails('create_namespace', { name: 'web' })).toEqual({
      success: false,
      result: null,
      code: 'usage',
      message: expect.stringContaining(join(dock.tools, 'web')),
    });
    for (const name of ['Web', 'a.b', 'a b', '../x', '_system', '', 'a/b', '$(id)', 'a'.repeat(100)])
      expect((await fails('create_namespace', { name })).message).toContain('cannot be a namespace');
  });

  it('are not deleted if they do not exist or lie elsewhere', async () => {
    expect((await fails('delete_namespace', { name: 'nope' })).message).toContain('There is no namespace');
    for (const name of ['_system', '../web', '.', ''])
      expect((await fails('delete_namespace', { name })).message).toContain('cannot be a namespace');
    const outside = tempFolder({ 'keep.ts': ts('keep') });
    symlinkSync(outside, join(dock.tools, 'linked'));
    expect((await fails('delete_namespace', { name: 'linked' })).message).toContain('There is no namespace');
    expect(existsSync(join(outside, 'keep.ts'))).toBe(true);
  });

  it('say what is wrong with a description', async () => {
    const wrong = { namespace: 'web', env: { SECRETS_KEY: 'x' } };
    expect((await fails('configure_namespace', wrong)).message).toContain('which is for Toolgate');
    expect(readFileSync(join(dock.tools, 'web/tooldock.yaml'), 'utf8')).toBe('description: Web\n');
  });
});

describe('tool files', () => {
  it('are read, replaced, deleted and restored', async () => {
    await call('create_namespace', { name: 'files' });
    const at = { namespace: 'files', filename: 'a.ts' };
    await call('write_tool', { ...at, code: ts('first') });
    expect(await call('generate_tool', { ...at, code: ts('second') })).toMatchObject({ tools_found: ['second'] });
    expect(await call('get_tool_source', at)).toEqual({ filename: 'a.ts', source: ts('second') });
    const [version] = (await call('list_tool_versions', at)) as { version: string }[];
    expect(await call('restore_tool', { ...at, version: version!.version })).toMatchObject({ restored: true });
    expect(await call('get_tool_source', at)).toMatchObject({ source: ts('first') });
    expect(await call('delete_tool', at)).toEqual({ deleted: true, filename: 'a.ts' });
    expect((await fails('get_tool_source', at)).message).toContain('There is no file a.ts');
    expect((await fails('delete_tool', at)).message).toContain('There is no file a.ts');
    expect(await call('restore_tool', at)).toMatchObject({ restored: true, filename: 'a.ts' });
    expect((await fails('restore_tool', { ...at, filename: 'b.ts' })).message).toContain('no earlier version');
  });

  it('are not written with a mistake, which is named with its line', async () => {
    const at = { namespace: 'web', filename: 'bad.ts' };
    expect(await call('write_tool', { ...at, code: 'export const = 1;' })).toEqual({
      written: false,
      error: expect.stringMatching(/^Line 1: SyntaxError/),
      details: expect.stringMatching(/^bad\.ts:1: /),
    });
    expect(await call('write_tool', { ...at, code: 'export const x = 1;' })).toMatchObject({
      written: false,
      error: 'No exported tool found',
    });
    expect(existsSync(join(dock.tools, 'web/bad.ts'))).toBe(false);
  });

  it('cannot be outside of a namespace', async () => {
    for (const filename of ['../evil.ts', '/tmp/evil.ts', 'a/../../evil.ts', '.evil.ts', 'evil.sh', 'a\0.ts'])
      for (const name of ['write_tool', 'get_tool_source', 'delete_tool', 'restore_tool', 'list_tool_versions'])
        expect(
          (await fails(name, { namespace: 'web', filename, ...(name === 'write_tool' && { code: ts('x') }) })).message,
        ).toContain('cannot be a tool file');
    for (const namespace of ['..', '../..', '/etc', 'nope'])
      for (const name of ['list_tools', 'list_requirements', 'check_secrets', 'install_requirements'])
        expect((await fails(name, { namespace })).message).toContain('There is no namespace');
  });

  it('too large to be code are refused', async () => {
    const code = `// ${'x'.repeat(1024 * 1024)}\n${ts('big')}`;
    expect(await call('write_tool', { namespace: 'web', filename: 'big.ts', code })).toMatchObject({
      written: false,
      error: 'The code is too large',
    });
    mkdirSync(join(dock.tools, 'large'));
    writeFileSync(join(dock.tools, 'large/big.ts'), code);
    expect((await fails('get_tool_source', { namespace: 'large', filename: 'big.ts' })).message).toContain('more than');
    expect(await call('list_tools', { namespace: 'large' })).toEqual([]);
  });
});

describe('test_tool', () => {
  it('runs a tool as it is now, without the core', async () => {
    await call('create_namespace', { name: 'tested' });
    const write = (code: string) => call('write_tool', { namespace: 'tested', filename: 't.ts', code });
    const test = (tool: string, input: object = {}) =>
      call('test_tool', { namespace: 'tested', tool_name: tool, input });
    await write(ts('twice', '({ twice: a * 2 })'));
    expect(await test('twice', { a: 4 })).toEqual({ success: true, result: { twice: 8 } });
    await write(ts('twice', "(() => { throw new RangeError('too much'); })()"));
    expect(await test('twice', { a: 4 })).toEqual({
      success: false,
      error: 'RangeError: too much',
      traceback: expect.stringMatching(/RangeError: too much\n\s+at .*t\.ts:1/),
    });
    expect(await test('thrice')).toMatchObject({
      success: false,
      error: expect.stringContaining('Did you mean "twice"'),
    });
    await write(`import 'no-such-package';\n${ts('twice')}`);
    expect(await test('twice')).toMatchObject({
      success: false,
      traceback: expect.stringContaining('no-such-package'),
    });
    expect((await fails('test_tool', { namespace: 'nope', tool_name: 'x', input: {} })).message).toContain(
      'There is no namespace',
    );
  });

  it('passes secrets to the tool, and removes them from what it answers', async () => {
    await call('create_namespace', { name: 'secretive' });
    await call('configure_namespace', { namespace: 'secretive', secrets: ['HIDDEN_KEY'] });
    const code = ts('tell', "(() => { throw new Error('key ' + process.env.HIDDEN_KEY); })()");
    await call('write_tool', { namespace: 'secretive', filename: 't.ts', code });
    const test = () => call('test_tool', { namespace: 'secretive', tool_name: 'tell', input: {} });
    expect(await test()).toMatchObject({
      success: false,
      error: expect.stringContaining('waits for the secret HIDDEN_KEY'),
    });
    const { openSecretStore } = await import('../../src/store/secrets.ts');
    const vault = { key: () => dock.env.SECRETS_KEY!, keyFile: null, allowInsecure: false, redactResults: true };
    await openSecretStore(join(dock.cwd, '.toolgate'), vault).set('HIDDEN_KEY', null, 'canary-value-4711');
    const outcome = (await test()) as { error: string; traceback: string };
    expect(outcome.error).toMatch(/^key /);
    expect(JSON.stringify(outcome)).not.toContain('canary-value-4711');
  });
});

describe('secrets', () => {
  it('never take a value, and do not repeat one that is passed', async () => {
    for (const name of ['prepare_secret', 'remove_secret', 'list_secrets', 'check_secrets']) {
      const { code, message } = await fails(name, { key: 'A_KEY', namespace: 'web', value: 'canary-of-a-model' });
      expect([code, message]).toEqual(['invalid_arguments', expect.stringContaining('value')]);
      expect(message).not.toContain('canary-of-a-model');
    }
    expect(existsSync(join(dock.cwd, '.toolgate/secrets.meta.yaml'))).toBe(true);
    expect(readFileSync(join(dock.cwd, '.toolgate/secrets.meta.yaml'), 'utf8')).not.toContain('A_KEY');
  });

  it('are prepared, listed and removed by name', async () => {
    expect(await call('prepare_secret', { key: 'A_TOKEN' })).toEqual({
      key: 'A_TOKEN',
      scope: 'global',
      meta_file: join(dock.cwd, '.toolgate/secrets.meta.yaml'),
      instructions: expect.stringMatching(
        /^Run: (?:docker exec -it \S+ )?toolgate secrets set --key A_TOKEN --scope global/,
      ),
    });
    expect(await call('prepare_secret', { key: 'A_TOKEN', namespace: 'web' })).toMatchObject({ scope: 'web' });
    expect(await call('list_secrets', { namespace: 'web' })).toEqual([
      { key: 'A_TOKEN', scope: 'web', status: 'placeholder' },
    ]);
    expect(await call('list_secrets', { namespace: null })).toContainEqual({
      key: 'A_TOKEN',
      scope: 'global',
      status: 'placeholder',
    });
    expect(await call('remove_secret', { key: 'A_TOKEN', namespace: 'web' })).toEqual({
      removed: true,
      key: 'A_TOKEN',
      scope: 'web',
    });
    expect((await fails('remove_secret', { key: 'A_TOKEN', namespace: 'web' })).message).toContain(
      'There is no secret',
    );
    await call('remove_secret', { key: 'A_TOKEN' });
    for (const key of ['a b', '$(id)', '', '../x', 'SECRETS_KEY'])
      expect(await fails('prepare_secret', { key })).toHaveProperty('code', 'usage');
    expect((await fails('prepare_secret', { key: 'OK', namespace: 'nope' })).message).toContain(
      'There is no namespace',
    );
  });
});

describe('packages', () => {
  it('are listed, and refused if they are not of a registry', async () => {
    expect(await call('list_requirements', { namespace: 'web' })).toEqual({ namespace: 'web', packages: [] });
    expect(await call('install_requirements', { namespace: 'web' })).toEqual({
      installed: true,
      namespace: 'web',
      packages: [],
    });
    for (const wanted of ['--index-url=http://evil', '../x', 'a; rm -rf /', 'https://example.com/x.tgz'])
      expect((await fails('add_requirement', { namespace: 'web', package: wanted })).message).toContain(
        'not a package',
      );
    expect((await fails('install_pip_packages', { packages: ['-e .'] })).message).toContain('not a package');
    expect((await fails('add_requirement', { namespace: 'nope', package: 'zod' })).message).toContain('no namespace');
  });
});

it('tells how manager and core are, and nothing secret', async () => {
  expect(await call('health')).toMatchObject({
    manager_uptime: expect.stringMatching(/^\d+[smhd]/),
    core_reachable: true,
    namespaces_loaded: expect.any(Number),
    total_tools: expect.any(Number),
  });
  const config = (await call('server_config')) as Record<string, unknown>;
  expect(config).toMatchObject({
    core_port: Number(new URL(dock.core.origin).port),
    manager_port: Number(new URL(dock.url).port),
    data_dir: join(dock.cwd, '.toolgate'),
    log_level: 'warn',
    cors_origins: '',
    mcp_session_ttl_hours: 24,
  });
  for (const secret of [dock.env.BEARER_TOKEN!, dock.env.SECRETS_KEY!, dock.env.MANAGER_INTERNAL_TOKEN!])
    expect(JSON.stringify(config)).not.toContain(secret);
});

it('reports what it waits for while the core reloads', async () => {
  const slow = 'await new Promise((resolve) => setTimeout(resolve, 3_000));\n';
  writeFileSync(join(dock.tools, 'web/slow.ts'), ts('slow', 'a', slow));
  const messages: string[] = [];
  await dock.connection.client.callTool({ name: 'reload_core', arguments: {} }, undefined, {
    timeout: 60_000,
    onprogress: ({ message }) => messages.push(message ?? ''),
  });
  expect(messages[0]).toBe('The core reads its folders.');
  expect(messages.length).toBeGreaterThan(1);
});
