/** The layout of the data folder: each folder and file in it has its purpose, wherever DATA_DIR or data_dir puts it. */
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { withLock } from '../../src/base/lock.ts';
import { readLines } from '../support/audit-records.ts';
import { within } from '../support/child.ts';
import { runCli, startCli } from '../support/cli.ts';
import { tsTool } from '../support/dock.ts';
import { type HttpGateway, startHttp } from '../support/gateway.ts';
import { KEY } from '../support/killing.ts';
import { waitFor } from '../support/processes.ts';
import { server } from '../support/server.ts';
import { tempFolder, writeFiles } from '../support/temp.ts';

const CONFIG = `controls: []
audit: { enabled: true }
servers:
  up: { command: ${JSON.stringify(server('basic'))} }
`;

describe('the data folder', () => {
  let gateway: HttpGateway;
  let data: string;
  let client: Awaited<ReturnType<HttpGateway['connect']>>['client'];
  const env = { DATA_DIR: 'volume', SECRETS_KEY: KEY };
  beforeAll(async () => {
    const cwd = tempFolder({
      'volume/config.yaml': CONFIG,
      'volume/tools/greet/hello.ts': tsTool('hello', 'return `a name of ${process.env.WHOM?.length} letters`;'),
      'volume/tools/greet/tooldock.yaml': 'secrets: [WHOM]\n',
    });
    data = join(cwd, 'volume');
    gateway = await startHttp({ cwd, env });
    ({ client } = await gateway.connect());
    expect(await secretSet('Ada Lovelace').exited).toMatchObject({ code: 0 });
    await waitFor(async () => (await names()).includes('greet_hello'));
  });

  const names = async () => (await client.listTools()).tools.map(({ name }) => name);
  const secretSet = (value: string) => {
    const child = startCli(['secrets', 'set', 'WHOM', '--stdin'], { cwd: gateway.cwd, env });
    child.stdin.end(value);
    return child;
  };

  it('config.yaml is the configuration if the working directory has none', async () => {
    expect(await names()).toContain('up_echo');
  });

  it('secrets.enc has the encrypted values, and secrets.meta.yaml only their names', async () => {
    expect(readFileSync(join(data, 'secrets.enc'), 'latin1')).not.toContain('Lovelace');
    const meta = readFileSync(join(data, 'secrets.meta.yaml'), 'utf8');
    expect(meta).toContain('WHOM');
    expect(meta).not.toContain('Lovelace');
    // The worker that declares the secret gets it.
    expect(JSON.stringify(await client.callTool({ name: 'greet_hello', arguments: {} }))).toContain('of 12 letters');
  });

  it('secrets.lock lets one process at a time write secrets, and is removed afterwards', async () => {
    let second: ReturnType<typeof secretSet> | undefined;
    await withLock(join(data, 'secrets'), async () => {
      expect(existsSync(join(data, 'secrets.lock'))).toBe(true);
      second = secretSet('Ada Lovelace');
      expect(await within(1_500, second.exited)).toBeUndefined();
    });
    expect(await second!.exited).toMatchObject({ code: 0 });
    expect(existsSync(join(data, 'secrets.lock'))).toBe(false);
  });

  it('tools/ has a folder for each namespace, and a new one is served', async () => {
    writeFiles(data, { 'tools/more/bye.ts': tsTool('bye', 'return "Bye";') });
    await waitFor(async () => (await names()).includes('more_bye'));
  });

  it('venvs/ has what each namespace runs in', async () => {
    expect(readdirSync(join(data, 'venvs'))).toContain('greet.node');
  });

  it('workers/ has a socket for each running worker, and none after the end of the gateway', async () => {
    const own = await startHttp({
      cwd: tempFolder({ 'volume/tools/greet/hi.ts': tsTool('hi', 'return "Hi";') }),
      env,
      config: '',
    });
    const folder = join(own.cwd, 'volume/workers/greet');
    const sockets = () =>
      existsSync(folder) ? readdirSync(folder).filter((name) => statSync(join(folder, name)).isSocket()) : [];
    await waitFor(() => sockets().length === 1);
    expect(statSync(folder).mode & 0o077).toBe(0);
    await own.stop();
    expect(sockets()).toEqual([]);
  });

  it('logs/ has a file for each day with a line for each call', async () => {
    await client.callTool({ name: 'up_echo', arguments: {} });
    const logs = join(data, 'logs');
    const [line] = await waitFor(() => {
      const found = readLines(logs).filter(({ kind, tool }) => kind === 'call' && tool === 'echo');
      return found.length > 0 && found;
    });
    expect(line).toMatchObject({ server: 'up', status: 'ok' });
    expect(readdirSync(logs)).toContain(`${String(line!.time).slice(0, 10)}.jsonl`);
  });

  it('offers/ has what servers offered last', async () => {
    const folder = join(data, 'offers');
    const texts = () => readdirSync(folder).map((name) => readFileSync(join(folder, name), 'utf8'));
    await waitFor(() => existsSync(folder) && texts().some((text) => text.includes('echo')));
  });
});

describe('without a configuration file', () => {
  const files = { 'tools/greet/hello.ts': tsTool('hello', 'return "hello";') };

  it.each([
    ['DATA_DIR', { DATA_DIR: 'volume' }, 'volume'],
    ['.toolgate in the working directory', {}, '.toolgate'],
  ])('the folders of tools in %s are served and shown', async (_, env, folder) => {
    const cwd = tempFolder();
    writeFiles(join(cwd, folder), files);
    const gateway = await startHttp({ cwd, env });
    const { client } = await gateway.connect();
    const names = async () => (await client.listTools()).tools.map(({ name }) => name);
    await waitFor(async () => (await names()).join() === 'greet_hello');
    // A file that comes later is read.
    writeFiles(join(cwd, folder), {
      'config.yaml': `servers:\n  up: { command: ${JSON.stringify(server('basic'))} }\n`,
    });
    await waitFor(async () => (await names()).includes('up_echo'));
    expect(await names()).toContain('greet_hello');
  });

  it('an empty data folder is served too, and doctor says that there is no file', async () => {
    const cwd = tempFolder();
    const gateway = await startHttp({ cwd, env: { DATA_DIR: 'volume' } });
    const { client } = await gateway.connect();
    expect((await client.listTools()).tools).toEqual([]);
    const { stdout } = await runCli(['doctor'], { cwd, env: { DATA_DIR: 'volume' } });
    expect(stdout).toMatch(/configuration: none; .*volume.*config\.yaml/);
  });
});

it.each([
  ['.toolgate next to the configuration', {}, '', '.toolgate'],
  ['the data_dir of the configuration', {}, 'data_dir = "kept"\n', 'kept'],
  ['DATA_DIR before data_dir', { DATA_DIR: 'volume' }, 'data_dir = "kept"\n', 'volume'],
])('the data folder is %s', async (_, env, config, folder) => {
  const cwd = tempFolder();
  const made = await runCli(['namespaces', 'create', 'mine', '--language', 'typescript'], { cwd, config, env });
  expect(made.code, made.stderr).toBe(0);
  expect(readdirSync(cwd).sort()).toEqual([folder, 'tools.toml'].sort());
  expect(readdirSync(join(cwd, folder, 'tools'))).toEqual(['mine']);
});
