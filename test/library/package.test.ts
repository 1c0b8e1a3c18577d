/**
 * The package as npm would publish it, installed into an empty project: its files, its types for TypeScript, and that it runs
 * with only its own dependencies on every supported version of Node.
 */
import { execFile } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, readFileSync, renameSync, symlinkSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, it } from 'vitest';
import { childEnv, startChild } from '../support/child.ts';
import { connectHttp } from '../support/connection.ts';
import { root } from '../support/docs-page.ts';
import { isMissingNode, NODE_22, NODE_24 } from '../support/needs.ts';
import { waitFor } from '../support/processes.ts';
import { fixture, server, serversToml } from '../support/server.ts';
import { tempFolder, writeFiles } from '../support/temp.ts';
import { packageVersion } from '../support/version.ts';
import { isWide, some } from '../support/wide.ts';

const run = promisify(execFile);
const newest: [string, string] = ['24', NODE_24];
const newer: readonly [string, string][] = some([['22', NODE_22], newest], [newest]);
const nodes: readonly [string, string][] = [['that runs the tests', process.execPath], ...newer];

interface Manifest {
  readonly bin: { readonly toolgate: string };
  readonly dependencies: Record<string, string>;
  readonly optionalDependencies: Record<string, string>;
}

function itOnEach(versions: typeof nodes, name: string, test: (node: string) => Promise<void>): void {
  for (const [version, node] of versions) it.skipIf(isMissingNode(node))(`${name} ${version}`, () => test(node));
}

/** A typical program in TypeScript. */
const program = `
import { configFromValue, createGateway, createMcpServer, defineTool, GatewayError, openLocalDoor, VERSION } from 'toolgate';
import type { CallResult, McpServerHandle, Middleware, Toolset, ToolCallResult } from 'toolgate';

export const greet = defineTool({
  name: 'greet',
  description: 'Greets.',
  inputSchema: { type: 'object', properties: { name: { type: 'string' } } },
  execute: ({ name }, { signal }) => \`Hello, \${String(name)}\${signal.aborted ? '?' : '!'}\`,
});
export const toolset: Toolset = { name: 'mine', description: '', tools: [], toolNotes: [] };

const counting: Middleware = async (call, next): Promise<CallResult> => {
  seen.push(call.name);
  return next();
};
const seen: string[] = [];
const gateway = createGateway(
  configFromValue(
    { servers: { basic: { command: process.execPath, args: [process.argv[2]] } } },
    { cwd: process.cwd(), env: process.env },
  ),
);
gateway.use(counting);
await gateway.tried();
const door = openLocalDoor(gateway, 'all');
const result: Buffer = await door.callTool('basic_echo', { text: 'hi' });
const code: string = await door.callTool('nothing', {}).then(
  () => '',
  (error: unknown) => (error instanceof GatewayError ? error.code : ''),
);
door.close();
const { content }: ToolCallResult = await gateway.call('basic_echo', { text: 'hi' });
await gateway.close();

const own: McpServerHandle<null> = await createMcpServer({
  catalog: { talk: { name: 'Talk', description: 'Talks.', tools: [greet] } },
  startup: { toolsets: 'ALL' },
  http: { port: 0 },
});
await own.start();
const { tools } = await own.status();
const health = await fetch(new URL('healthz', own.url ?? ''));
await own.close();
const isError: boolean = JSON.parse(result.toString()).isError === true;
console.log(JSON.stringify({ VERSION, seen, code, isError, parts: content.length, tools, health: health.status }));
`;

const options = {
  strict: true,
  skipLibCheck: false,
  target: 'es2022',
  exactOptionalPropertyTypes: true,
  types: ['node'],
};
const configs = {
  nodenext: { ...options, module: 'nodenext', moduleResolution: 'nodenext', outDir: '.' },
  bundler: { ...options, module: 'esnext', moduleResolution: 'bundler', noEmit: true },
};

describe('the package in another project', () => {
  const folder = tempFolder({
    'package.json': '{ "private": true, "type": "module" }',
    'program.ts': program,
    'tools.toml': serversToml({ basic: server('basic') }),
    'gateway.yaml': 'servers: {}\n',
    'gateway.json': '{ "servers": { "gone": { "url": "http://127.0.0.1:9/mcp" } } }',
  });
  const env = childEnv({ HOME: folder });
  const bin = join(folder, 'node_modules/.bin/toolgate');
  let files: string[] = [];

  /** The errors of the compiler for a project. */
  async function complaints(project: string): Promise<string> {
    const tsc = join(root, 'node_modules/typescript/bin/tsc');
    const done = run(process.execPath, [tsc, '--singleThreaded', '-p', project], { cwd: folder, env });
    return (await done.catch((error: { stdout: string }) => error)).stdout;
  }

  /** As npm does it, but with the dependencies that are installed here, and only with those that the package names. */
  async function install(tarball: string): Promise<void> {
    const modules = join(folder, 'node_modules');
    mkdirSync(join(modules, '.bin'), { recursive: true });
    await run('tar', ['-xzf', tarball], { cwd: folder });
    renameSync(join(folder, 'package'), join(modules, 'toolgate'));
    const manifest = JSON.parse(readFileSync(join(modules, 'toolgate/package.json'), 'utf8')) as Manifest;
    for (const name of Object.keys({ ...manifest.dependencies, ...manifest.optionalDependencies })) {
      mkdirSync(dirname(join(modules, name)), { recursive: true });
      symlinkSync(join(root, 'node_modules', name), join(modules, name));
    }
    symlinkSync(join('../toolgate', manifest.bin.toolgate), bin);
    chmodSync(bin, 0o755);
  }

  beforeAll(async () => {
    // With the cache and the registry of the user's own npm.
    const npm = (...args: string[]) =>
      run('npm', [...args, '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'], {
        cwd: folder,
        env: { ...process.env, npm_config_update_notifier: 'false' },
      });
    const { stdout } = await npm('pack', root, '--json');
    const [packed] = JSON.parse(stdout) as { filename: string; files: { path: string }[] }[];
    files = packed!.files.map((file) => file.path);
    if (isWide) await npm('install', '--prefer-offline', `./${packed!.filename}`);
    else await install(packed!.filename);
    // Every TypeScript program for Node has these.
    mkdirSync(join(folder, 'node_modules/@types'), { recursive: true });
    for (const name of ['@types/node', 'undici-types'])
      symlinkSync(join(root, 'node_modules', name), join(folder, 'node_modules', name));
  }, 120_000);

  it('contains what it needs and nothing else', () => {
    const wanted = [
      'bin/toolgate.mjs',
      'dist/cli/main.js',
      'dist/index.js',
      'dist/index.d.ts',
      'dist/docs.html',
      'python/start.py',
      'docs/troubleshooting.md',
      'dist/toolgate.1',
    ];
    expect(files).toEqual(expect.arrayContaining([...wanted, 'README.md', 'CHANGELOG.md', 'LICENSE']));
    const known =
      /^(bin|dist)\/|^docs\/[\w-]+\.md$|^python\/.*\.py$|^rules\/.*\.toml$|^(package\.json|README\.md|CHANGELOG\.md|LICENSE)$/;
    expect(files.filter((path) => !known.test(path))).toEqual([]);
    expect(files.filter((path) => path.includes('.test.'))).toEqual([]);
    const types = files.filter((path) => path.endsWith('.d.ts') && !path.startsWith('dist/editor/zod/'));
    expect(types.sort()).toEqual(['dist/editor/toolgate.d.ts', 'dist/index.d.ts']);
    expect(existsSync(join(folder, 'node_modules/zod'))).toBe(false);
  });

  // The first one also writes program.js, which runs below.
  it.each(some(Object.entries(configs), Object.entries(configs).slice(0, 1)))(
    'has types without errors, with module resolution %s',
    async (name, given) => {
      writeFiles(folder, { [`${name}.json`]: JSON.stringify({ compilerOptions: given, files: ['program.ts'] }) });
      expect(await complaints(`${name}.json`)).toBe('');
    },
  );

  // In a normal run public-types.test.ts and examples.ts are compiled with the source, and api.test.ts compares the declarations.
  if (isWide)
    it('has the same types as the source', async () => {
      // In a subfolder with the packages that those programs use, which the project itself must not find.
      const names = ['public-types.test.ts', 'examples.ts'];
      for (const name of names) {
        const text = readFileSync(join(root, 'test/library', name), 'utf8');
        writeFiles(folder, { [`all/${name}`]: text.replaceAll('../../src/index.ts', 'toolgate') });
      }
      mkdirSync(join(folder, 'all/node_modules'));
      for (const name of ['@modelcontextprotocol', 'vitest', 'zod'])
        symlinkSync(join(root, 'node_modules', name), join(folder, 'all/node_modules', name));
      // Errors in the types of those packages do not matter here.
      const given = { ...configs.nodenext, skipLibCheck: true, exactOptionalPropertyTypes: false, noEmit: true };
      writeFiles(folder, { 'all/all.json': JSON.stringify({ compilerOptions: given, files: names }) });
      expect(await complaints('all/all.json')).toBe('');
    });

  // The newest Node serves a client below.
  itOnEach(some(nodes, nodes.slice(0, 1)), 'runs as a library on Node', async (node) => {
    const { stdout } = await run(node, ['program.js', fixture('basic')], { cwd: folder, env });
    expect(JSON.parse(stdout)).toEqual({
      VERSION: packageVersion,
      seen: ['basic_echo', 'basic_echo'],
      code: 'item_unknown',
      isError: false,
      parts: 1,
      tools: ['talk.greet'],
      health: 200,
    });
  });

  itOnEach(some(nodes, nodes.slice(0, 1)), 'runs as a command on Node', async (node) => {
    expect((await run(node, [bin, '--version'], { cwd: folder, env })).stdout).toBe(`${packageVersion}\n`);
  });

  it('runs as `toolgate` with configurations in every language, so that every dependency is loaded', async () => {
    const toolgate = async (...args: string[]) => (await run(bin, args, { cwd: folder, env })).stdout;
    expect(await toolgate('doctor')).toContain('basic: up');
    expect(await toolgate('list', 'servers', '--config', 'gateway.yaml')).toContain('No servers');
    expect(await toolgate('list', 'servers', '--config', 'gateway.json')).toContain('refused the connection');
  });

  it.runIf(isWide)(
    'is installed for all projects with its manual page, and runs with npx in an empty folder',
    async () => {
      const [prefix, empty] = [tempFolder(), tempFolder()];
      const npmEnv = { ...process.env, HOME: tempFolder(), npm_config_cache: tempFolder(), npm_config_prefix: prefix };
      const options = { cwd: empty, env: npmEnv };
      const quiet = ['--no-audit', '--no-fund', '--loglevel=error'];
      const tarball = join(folder, `toolgate-${packageVersion}.tgz`);
      await run('npm', ['install', '-g', ...quiet, tarball], options);
      const { stdout } = await run(join(prefix, 'bin/toolgate'), ['--version'], options);
      expect(stdout).toBe(`${packageVersion}\n`);
      expect(existsSync(join(prefix, 'share/man/man1/toolgate.1'))).toBe(true);
      const topics = await run(join(prefix, 'bin/toolgate'), ['help', 'topics'], options);
      expect(topics.stdout).toMatch(/^ {2}install +Install, upgrade, uninstall$/m);
      writeFiles(empty, { 'tools.toml': serversToml({ basic: server('basic') }) });
      const listed = await run(
        'npx',
        ['--yes', ...quiet, `--package=${tarball}`, 'toolgate', 'list', '--trust'],
        options,
      );
      expect(listed.stdout).toContain('basic_echo');
    },
    300_000,
  );

  itOnEach(newer, 'serves a client from Node', async (node) => {
    const child = startChild(node, [bin, 'serve', '--port', '0'], { cwd: folder, env });
    const url = await waitFor(() => /http:\/\/127\.0\.0\.1:\d+\/mcp/.exec(child.stdout())?.[0]);
    const { client } = await connectHttp(url);
    const all = { tools_on: ['*'], tools_off: [], resources_on: [], resources_off: [] };
    await client.callTool({ name: 'toolman_activate', arguments: all });
    const { content } = await client.callTool({ name: 'basic_echo', arguments: { text: 'hi' } });
    expect(JSON.stringify(content)).toContain('hi');
    expect((await child.stop()).code).toBe(0);
  });
});
