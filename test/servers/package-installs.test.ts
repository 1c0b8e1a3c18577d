/** Installs by `npx` that take long, are left behind, or change what is started. */
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import type { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { expect, it } from 'vitest';
import { shim } from '../support/commands.ts';
import { startHttp, startStdio } from '../support/gateway.ts';
import { type Registry, startRegistry } from '../support/npm-registry.ts';
import { alive, descendants, running, waitFor } from '../support/processes.ts';
import { callText, logged, logOf, toml } from '../support/running-gateway.ts';
import { tempFolder, writeFiles } from '../support/temp.ts';

const wait = { start_wait: '60s' };

async function nameOf(client: Client, namespace: string, env: readonly string[] = []) {
  return JSON.parse(await callText(client, `${namespace}_whoami`, { env })) as {
    name: string;
    env: Record<string, string | null>;
  };
}

/** What a gateway of its own starts for this command, with the default settings. */
async function nameFrom(command: string, cwd: string, env: Record<string, string>, more: object = {}): Promise<string> {
  const gateway = await startStdio({ cwd, env, config: toml([{ namespace: 'x', command, ...more }], wait) });
  const { name } = await nameOf(gateway.client, 'x');
  await gateway.stop();
  return name;
}

function recordsIn(env: Record<string, string>): string[] {
  const folder = join(env.HOME!, '.cache/toolgate/packages');
  return existsSync(folder) ? readdirSync(folder).map((name) => join(folder, name)) : [];
}

it('does not end an install at start_timeout, and says meanwhile what it waits for', async () => {
  const registry = await startRegistry({ name: 'slow', version: '1.0.0', bins: ['slow'] });
  const release = registry.hold();
  const gateway = await startStdio({
    args: ['--log-level', 'info'],
    env: registry.env(),
    config: toml([{ namespace: 'slow', command: 'npx -y slow', start_timeout: '2s' }], { start_wait: '10ms' }),
  });
  await waitFor(() => registry.requests.includes('slow/-/1.0.0.tgz'));
  await logged(gateway, 'starting: waiting for npx to find slow');
  const { client, stderr } = gateway;
  const isInstalling = /slow is still starting \(\d+ s; being installed: slow\)/;
  await waitFor(async () =>
    isInstalling.test(JSON.stringify(await client.callTool({ name: 'slow_whoami', arguments: {} }))),
  );
  // Longer than start_timeout.
  await new Promise((resolve) => setTimeout(resolve, 2_500));
  expect(stderr()).not.toContain('did not start');
  release();
  await logged(gateway, 'up: slow');
  expect((await nameOf(client, 'slow')).name).toBe('slow 1.0.0');
  expect(registry.requests.filter((path) => path.endsWith('.tgz'))).toHaveLength(1);
});

it.each(['stdio', 'serve'] as const)(
  'logs one line when a download begins and one when it ends, with the usual log level of toolgate %s',
  async (command) => {
    const go = join(tempFolder(), 'go');
    const install = `until [ -e "${go}" ]; do sleep 0.1; done`;
    const registry = await startRegistry({ name: 'slow', version: '1.0.0', bins: ['slow'], scripts: { install } });
    const options = {
      env: { ...registry.env(), npm_config_dangerously_allow_all_scripts: 'true' },
      config: toml([{ namespace: 'slow', command: 'npx -y slow' }], { start_wait: '10ms' }),
    };
    const gateway = await (command === 'stdio' ? startStdio(options) : startHttp({ ...options, ready: false }));
    const installing = 'starting: installing slow with npx: 1 package downloaded';
    await logged(gateway, installing, 30_000);
    writeFileSync(go, '');
    await logged(gateway, 'starting: its package is installed', 30_000);
    const about = logOf(gateway).filter(({ source }) => source === 'slow');
    expect(about.map(({ level, message }) => [level, message.replace(/ \(\d+ s\)$/, '')])).toEqual([
      ['info', installing],
      ['info', 'starting: its package is installed'],
    ]);
  },
);

it.each(['SIGTERM', 'SIGKILL'] as const)(
  'an install survives %s of the gateway, and the next gateway uses it',
  async (signal) => {
    const registry = await startRegistry({ name: 'slow', version: '1.0.0', bins: ['slow'] });
    const env = registry.env();
    const cwd = tempFolder();
    const release = registry.hold();
    const config = toml([{ namespace: 'slow', command: 'npx -y slow@1.0.0' }], wait);
    const first = await startHttp({ cwd, env, config, process: true, ready: false });
    await waitFor(() => registry.requests.includes('slow/-/1.0.0.tgz'));
    first.signal(signal);
    await first.exited;
    const installs = () => running(`npm exec slow@1.0.0`);
    expect(installs()).toHaveLength(1);
    // The next gateway waits for the install that goes on.
    const second = await startStdio({ cwd, env, config });
    release();
    expect((await nameOf(second.client, 'slow')).name).toBe('slow 1.0.0');
    await waitFor(() => installs().length === 0);
    expect(registry.requests.filter((path) => path.endsWith('.tgz'))).toHaveLength(1);
    await second.stop();
  },
);

it('starts what npx would start: the newest version, a local program first, the program that an option names', async () => {
  const registry = await startRegistry({ name: '@acme/tool', version: '1.0.0', bins: ['tool', 'extra'] });
  const env = registry.env();
  const cwd = tempFolder();
  expect(await nameFrom('npx -y @acme/tool', cwd, env)).toBe('tool 1.0.0');
  expect(await nameFrom('npx -y -p @acme/tool@1.0.0 extra', cwd, env)).toBe('extra 1.0.0');
  registry.publish({ name: '@acme/tool', version: '1.1.0', bins: ['tool', 'extra'] });
  // The same process asks again only after some minutes, and this is another project.
  const elsewhere = tempFolder();
  expect(await nameFrom('npx -y @acme/tool', elsewhere, env)).toBe('tool 1.1.0');
  expect(await nameFrom('npx -y @acme/tool@1.0.0', elsewhere, env)).toBe('tool 1.0.0');
  // A program of the project has precedence, as with npx.
  const project = tempFolder({ 'package.json': '{}' });
  const local = (name: string) =>
    `exec "${process.execPath}" "${new URL('../fixtures/basic.mjs', import.meta.url).pathname}" --name ${name} "$@"`;
  shim(join(project, 'node_modules/.bin'), 'tool', local('local'));
  expect(await nameFrom('npx tool', project, env)).toBe('local');
  const inside = join(project, 'deep/er');
  mkdirSync(inside, { recursive: true });
  expect(await nameFrom('npx tool', inside, env)).toBe('local');
});

/** How often npm has been started: each one writes a log. */
function npmRuns(env: Record<string, string>): number {
  const logs = join(env.npm_config_cache!, '_logs');
  return existsSync(logs) ? readdirSync(logs).length : 0;
}

/** Starts gateways one after another, and says for each what was started, whether npx ran, and what the registry was asked. */
function starter(registry: Registry, cwd: string, command: string) {
  const env: Record<string, string> = { ...registry.env(), npm_config_logs_max: '1000' };
  const start = async () => {
    registry.requests.length = 0;
    const before = npmRuns(env);
    // Further starts in one process do not ask for some minutes, so each is a process.
    const gateway = await startStdio({ cwd, env, config: toml([{ namespace: 'x', command }], wait), process: true });
    const { name } = await nameOf(gateway.client, 'x');
    await gateway.stop();
    return { name, npx: npmRuns(env) > before, requests: [...registry.requests] };
  };
  return { env, start };
}

it('asks npm again when something has changed that its answer depends on', async () => {
  const registry = await startRegistry({ name: 'tool', version: '1.0.0', bins: ['tool'] });
  const cwd = tempFolder();
  const { env, start } = starter(registry, cwd, 'npx -y tool@1.0.0');
  const known = { name: 'tool 1.0.0', npx: false, requests: [] };
  expect(await start()).toMatchObject({ npx: true });
  expect(await start()).toEqual(known);
  const [record] = recordsIn(env);
  expect(statSync(record!).mode & 0o077).toBe(0);
  writeFiles(cwd, { '.npmrc': 'fund=false\n' });
  expect(await start()).toMatchObject({ npx: true });
  expect(await start()).toEqual(known);
  // A day has passed: only the registry is asked, and then not for another day.
  const old = Date.now() / 1000 - 25 * 60 * 60;
  utimesSync(record!, old, old);
  expect(await start()).toEqual({ ...known, requests: ['tool'] });
  expect(await start()).toEqual(known);
  // The package is gone, and is installed again.
  rmSync(join(env.npm_config_cache!, '_npx'), { recursive: true });
  expect(await start()).toMatchObject({ name: 'tool 1.0.0', npx: true });
});

it.each([
  ['', {}],
  [', also if npm does not write down where packages are from', { npm_config_omit_lockfile_registry_resolved: 'true' }],
])(
  'asks the registry at every start what a package without an exact version is, in one process for all servers%s',
  async (_, settings) => {
    const names = ['one', 'two', '@acme/three'];
    const registry = await startRegistry(
      ...names.map((name) => ({ name, version: '1.0.0', bins: [name.replace(/.*\//, '')] })),
    );
    const env: Record<string, string> = { ...registry.env(), npm_config_logs_max: '1000', ...settings };
    const cwd = tempFolder();
    const commands = ['npx -y one', 'npx two@latest', 'npx -y -p @acme/three@^1.0.0 three'];
    const config = toml(
      // A variable of one server only makes no difference to npm.
      commands.map((command, at) => ({ namespace: `s${at}`, command, env: { OWN: String(at) } })),
      wait,
    );
    const start = async () => {
      registry.requests.length = 0;
      const gateway = await startStdio({ cwd, env, config, process: true });
      const started = await Promise.all(commands.map((_, at) => nameOf(gateway.client, `s${at}`, ['OWN'])));
      const lookups = descendants(gateway.pid).filter((pid) => running('npm-lookup.mjs').includes(pid));
      return { gateway, started, lookups };
    };
    const first = await start();
    await first.gateway.stop();
    const runs = npmRuns(env);
    const second = await start();
    const shown = ({ started }: typeof first) => started.map(({ name, env: { OWN } }) => [name, OWN]);
    expect(shown(first)).toEqual([
      ['one 1.0.0', '0'],
      ['two 1.0.0', '1'],
      ['three 1.0.0', '2'],
    ]);
    expect(shown(second)).toEqual(shown(first));
    expect(npmRuns(env)).toBe(runs);
    expect([...registry.requests].sort()).toEqual([...names].sort());
    expect(second.lookups.length).toBeLessThanOrEqual(1);
    // It ends with the gateway.
    second.gateway.signal('SIGKILL');
    await second.gateway.exited;
    await waitFor(() => second.lookups.every((pid) => !alive(pid)));
  },
);

it('starts what npx would start now if the registry, the project or the cache has changed', async () => {
  const registry = await startRegistry({ name: 'tool', version: '1.0.0', bins: ['tool'] });
  const cwd = tempFolder({ 'package.json': '{}' });
  const { env, start } = starter(registry, cwd, 'npx -y tool');
  const folder = () => {
    const npx = join(env.npm_config_cache!, '_npx');
    return join(npx, readdirSync(npx)[0]!, 'node_modules');
  };
  const isKnown = async (name: string) => expect(await start()).toEqual({ name, npx: false, requests: ['tool'] });
  expect(await start()).toMatchObject({ name: 'tool 1.0.0', npx: true });
  await isKnown('tool 1.0.0');

  registry.publish({ name: 'tool', version: '1.1.0', bins: ['tool'] });
  expect(await start()).toMatchObject({ name: 'tool 1.1.0', npx: true });
  await isKnown('tool 1.1.0');

  // npm writes this file last. Without it, or with half of it, the folder is not what it was.
  writeFileSync(join(folder(), '.package-lock.json'), '{');
  expect(await start()).toMatchObject({ name: 'tool 1.1.0', npx: true });
  rmSync(join(env.npm_config_cache!, '_npx'), { recursive: true });
  expect(await start()).toMatchObject({ name: 'tool 1.1.0', npx: true });
  await isKnown('tool 1.1.0');

  // Somebody else may write the record, or it was cut.
  const [record] = recordsIn(env);
  chmodSync(record!, 0o666);
  expect(await start()).toMatchObject({ name: 'tool 1.1.0', npx: true });
  writeFileSync(record!, readFileSync(record!, 'utf8').slice(0, 100));
  expect(await start()).toMatchObject({ name: 'tool 1.1.0', npx: true });
  await isKnown('tool 1.1.0');

  // A program of the project has precedence.
  const basic = new URL('../fixtures/basic.mjs', import.meta.url).pathname;
  shim(join(cwd, 'node_modules/.bin'), 'tool', `exec "${process.execPath}" "${basic}" --name local "$@"`);
  expect(await start()).toMatchObject({ name: 'local', npx: true });
  rmSync(join(cwd, 'node_modules'), { recursive: true });
  expect(await start()).toMatchObject({ name: 'tool 1.1.0' });
});

it('lets npx say what is wrong if the registry no longer has a package', async () => {
  const registry = await startRegistry({ name: 'tool', version: '1.0.0', bins: ['tool'] });
  const { env, start } = starter(registry, tempFolder(), 'npx -y tool');
  expect(await start()).toMatchObject({ npx: true });
  registry.withdraw('tool');
  const gateway = await startStdio({ env, config: toml([{ namespace: 'x', command: 'npx -y tool' }], wait) });
  await logged(gateway, 'npx could not install tool: the registry does not have it');
});

it('gives no secret of the server to an install, and starts the command as written if npm needs one', async () => {
  // A script of a package may use npx itself.
  const script = `npx -c 'env > $HOME/seen'`;
  const registry = await startRegistry({
    name: 'tool',
    version: '1.0.0',
    bins: ['tool'],
    scripts: { postinstall: script },
  });
  const env: Record<string, string> = { ...registry.env(), npm_config_dangerously_allow_all_scripts: 'true' };
  const cwd = tempFolder();
  const entry = {
    namespace: 'x',
    command: 'npx -y tool@1.0.0',
    env: { API_KEY: 'planted-secret', PUPPETEER_SKIP_DOWNLOAD: '1', DATABASE: 'postgres://u:planted-secret@h/d' },
  };
  const gateway = await startStdio({ cwd, env, config: toml([entry], wait) });
  const { name, env: seen } = await nameOf(gateway.client, 'x', ['API_KEY', 'npm_config_script_shell']);
  expect(name).toBe('tool 1.0.0');
  expect(seen).toEqual({ API_KEY: 'planted-secret', npm_config_script_shell: null });
  const given = readFileSync(join(env.HOME!, 'seen'), 'utf8');
  expect(given).not.toContain('planted-secret');
  expect(given).not.toContain('TOOLGATE_REPORT');
  expect(given).toContain('PUPPETEER_SKIP_DOWNLOAD=1');
  expect(
    recordsIn(env)
      .map((file) => readFileSync(file, 'utf8'))
      .join(),
  ).not.toContain('planted-secret');
  await gateway.stop();

  // Settings of npm that need a variable which only the server has: the install cannot know it.
  const strict = tempFolder({ '.npmrc': `registry=\${REGISTRY_KEY}\n` });
  const { npm_config_registry: address, ...others } = env;
  const written = { ...entry, command: 'npx -y tool', env: { REGISTRY_KEY: address } };
  const fallback = await startStdio({ cwd: strict, env: others, config: toml([written], wait) });
  expect((await nameOf(fallback.client, 'x')).name).toBe('tool 1.0.0');
});

it('starts a command as written if npm has a shell of the user, or is not npm', async () => {
  const registry: Registry = await startRegistry({ name: 'tool', version: '1.0.0', bins: ['tool'] });
  const env = registry.env();
  const cwd = tempFolder({ '.npmrc': 'script-shell=/bin/bash\n' });
  const gateway = await startStdio({
    cwd,
    env,
    config: toml([{ namespace: 'x', command: 'npx -y tool@1.0.0' }], wait),
  });
  const { env: seen } = await nameOf(gateway.client, 'x', ['npm_config_script_shell']);
  expect(seen).toEqual({ npm_config_script_shell: '/bin/bash' });
  expect(recordsIn(env)).toEqual([]);
  const bin = tempFolder();
  shim(
    bin,
    'npx',
    `exec "${process.execPath}" "${new URL('../fixtures/basic.mjs', import.meta.url).pathname}" --name "$*"`,
  );
  const other = { ...env, PATH: `${bin}:${env.PATH}` };
  expect(await nameFrom('npx -y tool@1.0.0', tempFolder(), other)).toBe('-y tool@1.0.0');
});
