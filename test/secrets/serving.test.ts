/**
 * Secrets in a running gateway: which process gets which secret, which waits for one, and which are restarted when one
 * changes.
 */
import { chmodSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { beforeAll, describe, expect, it } from 'vitest';
import { openSecretStore, type SecretStore } from '../../src/store/secrets.ts';
import { type HttpGateway, startHttp } from '../support/gateway.ts';
import { KEY, vaultWith } from '../support/killing.ts';
import { descendants, running, waitFor } from '../support/processes.ts';
import { server, startHttpServer } from '../support/server.ts';
import { useProcesses } from '../support/switch.ts';
import { tempFolder } from '../support/temp.ts';
import { some } from '../support/wide.ts';

useProcesses();

const NEXT_KEY = 'the key that comes after it';
const mark = `secrets-${process.pid}`;
const named = (name: string) => `${mark}-${name}`;

const tools = (more = '') => `export const ask = {
  description: 'Asks',
  inputSchema: { type: 'object', properties: { name: { type: 'string' } } },
  execute(input: { name: string }) { ${more} return \`\${input.name} is \${process.env[input.name]}\`; },
};
`;

let gateway: HttpGateway;
let store: SecretStore;
let client: Awaited<ReturnType<HttpGateway['connect']>>['client'];
let remote: Awaited<ReturnType<typeof startHttpServer>>;

beforeAll(async () => {
  remote = await startHttpServer('--name', 'remote');
  const entry = (name: string, rest: string) => `[[servers]]\nnamespace = "${name}"\n${rest}\n`;
  const cwd = tempFolder({
    key: KEY,
    'tools.toml': [
      'controls = []\n[folders]\nisolation = "off"',
      '[secrets]\nkey_file = "key"',
      '[audit]\nenabled = true',
      entry(
        'a',
        `command = ${JSON.stringify(server('basic', '--name', named('a')))}\nenv = { A = "x\${secret:A_KEY}" }`,
      ),
      entry('b', `command = ${JSON.stringify(server('basic', '--name', named('b')))}`),
      entry('line', `command = ${JSON.stringify(`LINE=\${secret:A_KEY} ${server('basic', '--name', named('line'))}`)}`),
      entry('web', `url = "${remote.url}?k=\${secret:WEB}"\nheaders = { Authorization = "Bearer \${secret:WEB}" }`),
    ].join('\n'),
    '.toolgate/tools/ts/ask.ts': tools(
      "if (input.name === 'FAIL') throw new Error(`failed with ${process.env.TS_KEY}`);",
    ),
    '.toolgate/tools/ts/tooldock.yaml': 'secrets: [TS_KEY]\nenv: { COLOUR: blue, HEAD: "token ${secret:TS_KEY}" }\n',
    '.toolgate/tools/free/ask.ts': tools(),
  });
  chmodSync(join(cwd, 'key'), 0o600);
  store = openSecretStore(join(cwd, '.toolgate'), vaultWith(KEY), 1_000);
  gateway = await startHttp({ cwd, args: ['--log-level', 'info'], env: { SECRETS_KEY: '', BEARER_TOKEN: '' } });
  ({ client } = await gateway.connect());
});

const pidsOf = (name: string) =>
  name === 'ts' || name === 'free'
    ? descendants(gateway.pid).filter((pid) => commandOf(pid).includes(`--namespace ${name} `))
    : running(named(name)).filter((pid) => !commandOf(pid).startsWith('/bin/sh'));
/** The pid of the only process. Undefined during a replacement, when there are two. */
const pidOf = (name: string) => {
  const [pid, ...others] = pidsOf(name);
  return others.length === 0 ? pid : undefined;
};
const commandOf = (pid: number) => read(`/proc/${pid}/cmdline`).replaceAll('\0', ' ');
const environmentOf = (pid: number | undefined) =>
  Object.fromEntries(
    read(`/proc/${pid}/environ`)
      .split('\0')
      .map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)]),
  );
function read(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}
const names = async () => (await client.listTools()).tools.map(({ name }) => name);
const has = (name: string) => waitFor(async () => (await names()).includes(name));
/** Waits until the variable of the process has this value. */
const gets = (name: string, variable: string, value: string | undefined) =>
  waitFor(() => {
    const pid = pidOf(name);
    return pid !== undefined && environmentOf(pid)[variable] === value;
  }, 15_000);

describe('a server whose secret is not set', () => {
  it('is locked until the named secret is set, while the other servers are up', async () => {
    await has('b_echo');
    await has('free_ask');
    expect((await names()).filter((name) => /^(a|line|web|ts)_/.test(name))).toEqual([]);
    const log = gateway.stderr();
    expect(log).toContain('locked: waits for the secret A_KEY: toolgate secrets set A_KEY');
    expect(log).toContain('locked: waits for the secret TS_KEY: toolgate secrets set TS_KEY');
    const metrics = await (await fetch(`${gateway.origin}/metrics`)).text();
    expect(metrics).toMatch(/toolgate_server_state\{server="a",state="locked"\} 1/);
    expect((await fetch(`${gateway.origin}/ready`)).status).toBe(200);
  });

  it('is started as soon as the secret is set, without restarting the others', async () => {
    const others = [pidOf('b'), pidOf('free')];
    await store.set('A_KEY', 'a', 'value-of-a; $(id)');
    await has('a_echo');
    expect(environmentOf(pidOf('a')).A).toBe('xvalue-of-a; $(id)');
    expect((await names()).some((name) => name.startsWith('line_'))).toBe(false);
    expect([pidOf('b'), pidOf('free')]).toEqual(others);
    // A global secret is passed to folders of tools too.
    await store.set('A_KEY', null, 'value for all');
    await has('line_echo');
    expect(environmentOf(pidOf('line')).LINE).toBe('value for all');
    expect(environmentOf(pidOf('a')).A).toBe('xvalue-of-a; $(id)');
    await gets('free', 'A_KEY', 'value for all');
    expect(pidOf('b')).toBe(others[0]);
  });

  it('may be an HTTP server', async () => {
    await store.set('WEB', 'web', 'web+value');
    await has('web_echo');
    await client.callTool({ name: 'web_echo', arguments: {} });
    const { requests } = await remote.log();
    expect(requests.every(({ headers }) => headers.authorization === 'Bearer web+value')).toBe(true);
    expect(gateway.stderr()).not.toContain('web+value');
  });
});

describe('a folder of tools', () => {
  it('gets its defaults, overridden by global secrets, overridden by its own secrets', async () => {
    await store.set('TS_KEY', null, 'first value');
    await has('ts_ask');
    await gets('ts', 'HEAD', 'token first value');
    expect(environmentOf(pidOf('ts'))).toMatchObject({ TS_KEY: 'first value', COLOUR: 'blue', A_KEY: 'value for all' });
    await store.set('COLOUR', null, 'green for all');
    await gets('ts', 'COLOUR', 'green for all');
    await store.set('COLOUR', 'ts', 'red for it');
    await gets('ts', 'COLOUR', 'red for it');
    await gets('free', 'COLOUR', 'green for all');
    await store.remove('COLOUR', 'ts');
    await gets('ts', 'COLOUR', 'green for all');
    await store.remove('COLOUR', null);
    await gets('ts', 'COLOUR', 'blue');
    await gets('free', 'COLOUR', undefined);
  });

  it('loses no call while its secret changes, and no other process is restarted', async () => {
    const others = () => [pidOf('a'), pidOf('b'), pidOf('line'), pidOf('free')];
    const before = others();
    const failed: unknown[] = [];
    let calls = 0;
    let isOver = false;
    const load = Promise.all(
      [1, 2, 3].map(async () => {
        while (!isOver) {
          const result = await client.callTool({ name: 'ts_ask', arguments: { name: 'COLOUR' } });
          calls++;
          if (result.isError === true || !JSON.stringify(result).includes('blue')) failed.push(result);
          await sleep(20);
        }
      }),
    );
    for (const value of some(['second value', 'third value', 'fourth value'], ['second value'])) {
      await store.set('TS_KEY', 'ts', value);
      await gets('ts', 'TS_KEY', value);
    }
    isOver = true;
    await load;
    expect(failed).toEqual([]);
    expect(calls).toBeGreaterThan(3);
    expect(others()).toEqual(before);
  });

  it('has its secrets redacted in its results', async () => {
    const answer = async (name: string) =>
      JSON.stringify(await client.callTool({ name: 'ts_ask', arguments: { name } }));
    expect(await answer('COLOUR')).toContain('COLOUR is blue');
    expect(await answer('TS_KEY')).toContain('TS_KEY is [redacted]');
    expect(await answer('HEAD')).toContain('HEAD is token [redacted]');
  });

  it('stops when a secret that it needs is removed', async () => {
    await store.remove('TS_KEY', 'ts');
    await gets('ts', 'TS_KEY', 'first value');
    await store.remove('TS_KEY', null);
    await waitFor(async () => !(await names()).includes('ts_ask'));
    await waitFor(() => pidsOf('ts').length === 0);
    await store.set('TS_KEY', null, 'first value');
    await has('ts_ask');
    for (const name of ['ts', 'free']) await gets(name, 'TS_KEY', 'first value');
  });
});

describe('the secrets file', () => {
  const pids = () => ['a', 'b', 'line', 'free', 'ts'].map(pidOf);

  it('if damaged, leaves the current secrets in use', async () => {
    const before = pids();
    const whole = readFileSync(store.file);
    writeFileSync(store.file, whole.subarray(10));
    await waitFor(() => gateway.stderr().includes('cannot be opened: it is not a complete JSON object'));
    writeFileSync(store.file, whole);
    expect(gateway.stderr()).toContain('What is in force stays.');
    expect(pids()).toEqual(before);
  });

  it('can be re-encrypted with a new key without restarting any process', async () => {
    const before = pids();
    await store.rotate(NEXT_KEY);
    await waitFor(() => gateway.stderr().includes('written with another key'));
    const key = join(gateway.cwd, 'key');
    writeFileSync(`${key}.new`, NEXT_KEY, { mode: 0o600 });
    renameSync(`${key}.new`, key);
    const next = openSecretStore(join(gateway.cwd, '.toolgate'), vaultWith(NEXT_KEY), 1_000);
    await next.set('A_KEY', 'a', 'after the change');
    await gets('a', 'A', 'xafter the change');
    expect(pids().slice(1)).toEqual(before.slice(1));
  });
});

describe('redact_results = false', () => {
  it('returns results unredacted, but still redacts errors', async () => {
    const file = join(gateway.cwd, 'tools.toml');
    writeFileSync(file, readFileSync(file, 'utf8').replace('[secrets]', '[secrets]\nredact_results = false'));
    const ask = async (name: string) => JSON.stringify(await client.callTool({ name: 'ts_ask', arguments: { name } }));
    await waitFor(async () => (await ask('TS_KEY')).includes('TS_KEY is first value'));
    expect(await ask('FAIL')).toContain('failed with [redacted]');
    expect(gateway.stderr()).not.toContain('first value');
  });
});

describe('the encryption key of the secrets', () => {
  it('is not passed to any child process', () => {
    const below = descendants(gateway.pid);
    expect(below.length).toBeGreaterThan(4);
    for (const pid of below) {
      const all = read(`/proc/${pid}/environ`);
      expect(all).not.toContain('SECRETS_KEY');
      expect(all).not.toContain(KEY);
      expect(all).not.toContain(NEXT_KEY);
    }
  });
});
