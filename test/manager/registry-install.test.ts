/** Servers of a registry become servers of the configuration: what is written, what is asked for, what is refused. */
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { addServers, type WrittenServer } from '../../src/config/edit-servers.ts';
import { loadConfig } from '../../src/config/load.ts';
import {
  type InstallRequest,
  installFromRegistry,
  installFromRepo,
  searchRegistry,
} from '../../src/manager/installer/install.ts';
import { serveRegistry } from '../../src/manager/installer/local-registry.ts';
import { serverJsonSchema } from '../../src/manager/installer/server-json.ts';
import { toServer } from '../../src/manager/installer/to-server.ts';
import { openSecretStore } from '../../src/store/secrets.ts';
import { atEnd } from '../support/cleanup.ts';
import { runCli } from '../support/cli.ts';
import { startHttp } from '../support/gateway.ts';
import { startRegistry } from '../support/npm-registry.ts';
import { waitFor } from '../support/processes.ts';
import { gitRepository } from '../support/repository.ts';
import { type Files, tempFolder } from '../support/temp.ts';

const WORK = { env: process.env, signal: null, progress: () => {} };

async function localRegistry(...servers: object[]): Promise<string> {
  const folder = tempFolder(Object.fromEntries(servers.map((one, i) => [`${i}/server.json`, JSON.stringify(one)])));
  const registry = await serveRegistry(folder, { host: '127.0.0.1', port: 0, problem: () => {} });
  atEnd(() => registry.close());
  return registry.url;
}

/** A configuration file in a new folder that uses the registry. */
async function configure(url: string, files: Files = { 'tools.toml': '' }, more: Record<string, string> = {}) {
  const cwd = tempFolder(files);
  const env = { MCP_REGISTRY_URL: url, ALLOW_INSECURE_SECRETS: '1', ...more };
  return { cwd, config: await loadConfig({ cwd, env }) };
}

function request(name: string, more: Partial<InstallRequest> = {}): InstallRequest {
  return { package: name, namespace: 'mine', mode: 'attach', inputs: {}, kind: null, version: null, ...more };
}

const npm = {
  name: 'io.github.acme/weather',
  description: 'The weather',
  version: '1.2.0',
  repository: { url: 'https://github.com/acme/weather', source: 'github' },
  packages: [
    {
      registryType: 'npm',
      identifier: '@acme/weather-mcp',
      version: '1.2.0',
      transport: { type: 'stdio' },
      packageArguments: [
        { type: 'positional', valueHint: 'city', isRequired: true, description: 'Where' },
        { type: 'named', name: '--unit', default: 'metric', choices: ['metric', 'imperial'] },
        { type: 'named', name: '--verbose', format: 'boolean', value: 'true' },
        { type: 'named', name: '--skip' },
      ],
      environmentVariables: [
        { name: 'WEATHER_API_KEY', isSecret: true, isRequired: true },
        { name: 'OPTIONAL_TOKEN', isSecret: true },
        { name: 'REGION', default: 'eu' },
      ],
    },
  ],
};
const pypi = {
  name: 'io.github.acme/trek',
  version: '1.1.0',
  packages: [
    {
      registryType: 'pypi',
      identifier: 'trekking-mcp',
      version: '1.1.0',
      runtimeHint: 'uvx',
      transport: { type: 'stdio' },
    },
  ],
};
const oci = {
  name: 'io.github.github/github-mcp-server',
  version: '0.30.0',
  packages: [
    {
      registryType: 'oci',
      identifier: 'ghcr.io/github/github-mcp-server:0.30.0',
      transport: { type: 'stdio' },
      runtimeArguments: [
        { type: 'positional', value: 'run' },
        { type: 'named', name: '-i', value: 'true' },
        { type: 'named', name: '--rm', value: 'true' },
        {
          type: 'named',
          name: '-e',
          value: 'GITHUB_PERSONAL_ACCESS_TOKEN={token}',
          variables: { token: { isSecret: true, isRequired: true } },
        },
        { type: 'positional', value: 'ghcr.io/github/github-mcp-server:0.30.0' },
      ],
    },
  ],
};
const remote = {
  name: 'com.example/remote',
  version: '1.0.0',
  remotes: [
    { type: 'sse', url: 'https://1.1.1.1/sse' },
    {
      type: 'streamable-http',
      url: 'https://1.1.1.1/{tenant}/mcp',
      variables: { tenant: { isRequired: true, description: 'Your tenant' } },
      headers: [
        { name: 'Authorization', value: 'Bearer {key}', variables: { key: { isSecret: true, isRequired: true } } },
      ],
    },
  ],
};

const convert = (entry: object, inputs: Record<string, string> = {}) =>
  toServer(serverJsonSchema.parse(entry), { namespace: 'mine', kind: null, inputs, allowPrivate: false });

describe('an entry becomes a server', () => {
  it('npm: by npx, with its version, arguments and secrets', async () => {
    const { server, secrets, missing } = await convert(npm, { city: 'Oslo; rm -rf /' });
    expect(server).toEqual({
      namespace: 'mine',
      description: 'The weather',
      command: 'npx',
      args: ['-y', '@acme/weather-mcp@1.2.0', 'Oslo; rm -rf /', '--unit=metric', '--verbose'],
      env: { WEATHER_API_KEY: '${secret:WEATHER_API_KEY}', REGION: 'eu' },
    });
    expect({ secrets, missing }).toEqual({ secrets: ['WEATHER_API_KEY'], missing: [] });
  });

  it('PyPI: by uvx', async () => {
    expect((await convert(pypi)).server).toEqual({ namespace: 'mine', command: 'uvx', args: ['trekking-mcp==1.1.0'] });
  });

  it('OCI: by docker, with secrets in the environment and not among the arguments', async () => {
    expect((await convert(oci)).server).toEqual({
      namespace: 'mine',
      command: 'docker',
      args: ['run', '-i', '--rm', '-e', 'GITHUB_PERSONAL_ACCESS_TOKEN', 'ghcr.io/github/github-mcp-server:0.30.0'],
      env: { GITHUB_PERSONAL_ACCESS_TOKEN: '${secret:MINE_TOKEN}' },
    });
  });

  it('remote: by its address, over Streamable HTTP if it has that', async () => {
    expect((await convert(remote)).missing).toEqual([{ name: 'tenant', description: 'Your tenant' }]);
    expect((await convert(remote, { tenant: 'acme' })).server).toEqual({
      namespace: 'mine',
      url: 'https://1.1.1.1/acme/mcp',
      transport: 'http',
      headers: { Authorization: 'Bearer ${secret:MINE_KEY}' },
    });
  });
});

describe('an entry is refused', () => {
  const pack = (more: object) => ({
    name: 'a/b',
    description: '',
    version: '1.0.0',
    packages: [{ registryType: 'npm', identifier: 'x', ...more }],
  });
  it.each([
    ['a package that is a path', pack({ identifier: '../evil' }), 'not valid'],
    ['a package that is an address', pack({ identifier: 'git+https://evil.example/x' }), 'not valid'],
    ['a package that is an option', pack({ identifier: '--registry=https://evil.example' }), 'not valid'],
    ['a range of versions', pack({ version: '^1.0.0' }), 'is not one version'],
    ['another registry', pack({ registryBaseUrl: 'https://evil.example' }), 'in another registry'],
    [
      'an option of npx',
      pack({ runtimeArguments: [{ type: 'named', name: '--package', value: 'evil' }] }),
      'the option "--package"',
    ],
    [
      'a variable of this machine',
      pack({ environmentVariables: [{ name: 'A', value: '${AWS_SECRET_ACCESS_KEY}' }] }),
      'a value with "${"',
    ],
    [
      'a variable that is no name',
      pack({ environmentVariables: [{ name: 'A B', value: 'x' }] }),
      'not the name of a variable',
    ],
    [
      'an option of docker',
      pack({ registryType: 'oci', runtimeArguments: [{ type: 'named', name: '--privileged' }] }),
      'the option "--privileged"',
    ],
    [
      'a fixed mount',
      pack({ registryType: 'oci', runtimeArguments: [{ type: 'named', name: '-v', value: '/:/host' }] }),
      'the option "-v"',
    ],
    ['a bundle', pack({ registryType: 'mcpb' }), 'it offers mcpb'],
    [
      'a private address',
      { name: 'a/b', description: '', version: '1', remotes: [{ type: 'sse', url: 'https://169.254.169.254/x' }] },
      'private address',
    ],
    [
      'plain http',
      { name: 'a/b', description: '', version: '1', remotes: [{ type: 'sse', url: 'http://1.1.1.1/x' }] },
      'not at an https address',
    ],
  ])('%s', async (_, entry, why) => {
    await expect(convert(entry)).rejects.toThrow(why);
  });

  it('if somebody passes the value of a secret, or something that it does not ask for', async () => {
    await expect(convert(npm, { city: 'Oslo', WEATHER_API_KEY: 'geheim' })).rejects.toThrow(
      '"WEATHER_API_KEY" is a secret',
    );
    await expect(convert(npm, { city: 'Oslo', unknown: 'x' })).rejects.toThrow('has no input "unknown"');
    await expect(convert(npm, { city: 'Oslo', unit: 'x' })).rejects.toThrow('"unit" is one of metric, imperial');
    await expect(convert(npm, { city: '${HOME}' })).rejects.toThrow('a value with "${"');
  });
});

describe('a file', () => {
  const server = { namespace: 'mine', command: 'npx', args: ['-y', 'x@1.0.0', 'a "b"'], env: { 'A-B': '${secret:A}' } };
  const addServer = (file: string, one: WrittenServer) =>
    addServers({ file, isNamed: true, others: [] }, [one], { cwd: dirname(file), env: {} });
  const written = async (name: string, text: string) => {
    const file = join(tempFolder({ [name]: text }), name);
    await addServer(file, server);
    return readFileSync(file, 'utf8');
  };
  it.each([
    ['tools.toml', '# mine\n[[servers]]\nnamespace = "a" # why\ncommand = "a"\n\n[http]\nport = 1'],
    ['tools.toml', '# mine\n[servers.a]\ncommand = "a"\n'],
    ['tools.toml', ''],
    ['toolgate.yaml', '# mine\nservers:\n  - namespace: a # why\n    command: a\nhttp:\n  port: 1\n'],
    ['toolgate.yaml', '# mine\nservers:\n  a: { command: a }\n'],
    ['config.yaml', '# mine\nhttp: { port: 1 }\n'],
    ['config.yaml', '# mine\n'],
    ['toolgate.json', '{\n  // mine\n  "servers": [{ "namespace": "a", "command": "a" }]\n}\n'],
    ['toolgate.json', '{}'],
    ['.mcp.json', '{ "mcpServers": { "a": { "command": "a" } } }'],
  ])('%s keeps everything that it says: %j', async (name, text) => {
    const after = await written(name, text);
    for (const comment of text.matchAll(/(?:#|\/\/) \w+/g)) expect(after).toContain(comment[0]);
    const folder = tempFolder({ [name]: after });
    const { servers } = await loadConfig({ cwd: folder, env: {}, path: join(folder, name) });
    expect(servers.map(({ namespace }) => namespace)).toEqual(
      text.includes('a') && text.includes('command') ? ['a', 'mine'] : ['mine'],
    );
    expect(servers.at(-1)!.launch).toMatchObject({ file: 'npx', args: ['-y', 'x@1.0.0', 'a "b"'] });
    await expect(addServer(join(folder, name), server)).rejects.toThrow('has a server "mine" already');
  });

  it('that has its servers on one line gets one more there', async () => {
    const file = join(tempFolder({ 'tools.toml': 'servers = [{ command = "a" }] # mine\n' }), 'tools.toml');
    await addServer(file, { namespace: 'b', command: 'b', args: [] });
    expect(readFileSync(file, 'utf8')).toBe(
      'servers = [{ command = "a" }, { namespace = "b", command = "b", args = [] }] # mine\n',
    );
  });
});

describe('install_from_registry', () => {
  it('finds, asks for what is missing, writes the server, and prepares its secrets', async () => {
    const { config, cwd } = await configure(await localRegistry(npm, { ...npm, version: '1.10.0' }, pypi));
    expect(await searchRegistry('weather', config, WORK)).toEqual([
      {
        name: 'io.github.acme/weather',
        description: 'The weather',
        version: '1.10.0',
        package: '@acme/weather-mcp',
        package_type: 'npm',
        source_url: 'https://github.com/acme/weather',
      },
    ]);
    expect(await searchRegistry('nothing', config, WORK)).toEqual([]);
    expect(await installFromRegistry(request('io.github.acme/weather'), config, WORK)).toEqual({
      installed: false,
      error: '"io.github.acme/weather" needs city. Ask the user, and call again with "inputs".',
      inputs: [{ name: 'city', description: 'Where' }],
    });
    expect(readFileSync(join(cwd, 'tools.toml'), 'utf8')).toBe('');
    // By the name of its package too.
    const byPackage = request('@acme/weather-mcp', { inputs: { city: 'Oslo' }, version: '1.2.0' });
    expect(await installFromRegistry(byPackage, config, WORK)).toMatchObject({
      installed: true,
      version: '1.2.0',
      kind: 'npm',
      file: join(cwd, 'tools.toml'),
      secrets_needed: ['WEATHER_API_KEY'],
    });
    expect(await openSecretStore(config.dataDir, config.vault).list()).toMatchObject([
      { name: 'WEATHER_API_KEY', scope: 'mine', status: 'placeholder' },
    ]);
    await expect(installFromRegistry(byPackage, config, WORK)).rejects.toThrow('has a server "mine" already');
    await expect(installFromRegistry(request('io.github.acme/nothing'), config, WORK)).rejects.toThrow(
      'has no single server',
    );
    await expect(installFromRegistry(request('x', { namespace: '../x' }), config, WORK)).rejects.toThrow(
      'cannot be a namespace',
    );
  });

  it('writes to config.yaml of a volume that has no configuration', async () => {
    const url = await localRegistry(pypi);
    const dataDir = tempFolder();
    const config = await loadConfig({ cwd: tempFolder(), env: { DATA_DIR: dataDir, MCP_REGISTRY_URL: url } });
    await installFromRegistry(request('io.github.acme/trek'), config, WORK);
    expect(readFileSync(join(dataDir, 'config.yaml'), 'utf8')).toContain('command: uvx');
  });

  it('starts a translation: the source of the entry is analyzed', async () => {
    const origin = gitRepository({
      'src/time/server.py': '@mcp.tool\ndef now(): ...',
      'other.py': '@mcp.tool\ndef other(): ...',
    });
    const entry = { ...pypi, repository: { url: origin, source: 'git', subfolder: 'src/time' } };
    const { config } = await configure(await localRegistry(entry, npm), {
      'tools.toml': '[repositories]\nfrom = "local"\n',
    });
    const analysis = await installFromRegistry(request(pypi.name, { mode: 'translate' }), config, WORK);
    expect(analysis).toMatchObject({ language: 'python', tools_found: [{ name: 'now' }] });
    expect(await installFromRepo(origin, 'mine', config, WORK)).toMatchObject({
      tools_found: [{ name: 'other' }, { name: 'now' }],
    });
  });

  it('says what is wrong with a registry that is away, slow, too large, or none', async () => {
    const answer = { current: '[]' };
    const odd = createServer((_, response) => {
      if (answer.current === 'redirect') response.writeHead(302, { location: 'http://127.0.0.1:1/' }).end();
      else if (answer.current !== 'silent') response.end(answer.current);
    });
    await new Promise<void>((resolve) => odd.listen(0, '127.0.0.1', resolve));
    atEnd(() => {
      odd.closeAllConnections();
      odd.close();
    });
    const url = `http://127.0.0.1:${(odd.address() as { port: number }).port}`;
    const { config } = await configure(url, { 'tools.toml': '[registry]\ntimeout = "1s"\n' });
    const search = () => searchRegistry('x', config, WORK);
    await expect(search()).rejects.toThrow('did not answer like an MCP registry');
    answer.current = '<html>';
    await expect(search()).rejects.toThrow('did not answer like an MCP registry');
    answer.current = JSON.stringify('x'.repeat(5_000_000));
    await expect(search()).rejects.toThrow('more than 4 MiB');
    answer.current = 'redirect';
    await expect(search()).rejects.toThrow('cannot be reached');
    answer.current = 'silent';
    await expect(search()).rejects.toThrow('no answer within 1 s');
    answer.current = JSON.stringify({ servers: [{ server: { name: 1 } }, { server: npm, _meta: {} }] });
    expect(await search()).toHaveLength(1);
  });
});

it('toolgate registry: a server that is installed is served by a running gateway at once', async () => {
  const packages = await startRegistry({ name: 'weather-mcp', version: '1.2.0', bins: ['weather-mcp'] });
  const entry = {
    ...npm,
    packages: [
      {
        registryType: 'npm',
        identifier: 'weather-mcp',
        version: '1.2.0',
        environmentVariables: [{ name: 'CITY', isRequired: true }],
      },
    ],
  };
  const env = { ...packages.env(), MCP_REGISTRY_URL: await localRegistry(entry) };
  const gateway = await startHttp({ config: 'controls = []\n', env });
  const run = (...args: string[]) => runCli(['registry', ...args], { cwd: gateway.cwd, env });
  expect((await run('search', 'weather')).stdout).toContain('io.github.acme/weather');
  const refused = await run('install', 'io.github.acme/weather');
  expect([refused.code, refused.stdout]).toEqual([1, expect.stringContaining('--input CITY=…')]);
  const { stdout } = await run('install', 'io.github.acme/weather', '--input', 'CITY=Oslo');
  expect(stdout).toContain('Added "weather" to');
  const { client } = await gateway.connect();
  const names = async () => (await client.listTools()).tools.map(({ name }) => name);
  await waitFor(async () => (await names()).some((name) => name.startsWith('weather_')));
});
