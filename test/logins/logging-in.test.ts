/** A person logs in to a server that asks for it: the command, the running gateway, and what is kept. */
import { existsSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { LoggingMessageNotificationSchema } from '@modelcontextprotocol/sdk/types.js';
import { beforeAll, describe, expect, it } from 'vitest';
import { type AuthorizationServer, startProvider } from '../support/authorization-server.ts';
import { filesIn } from '../support/canary.ts';
import { runCli } from '../support/cli.ts';
import { type StdioGateway, startStdio } from '../support/gateway.ts';
import { type GuardedServer, startGuarded } from '../support/guarded-server.ts';
import { waitFor } from '../support/processes.ts';
import { tempFolder } from '../support/temp.ts';
import { KEY, logIn } from './login.ts';

/** A JWT, as the provider issues them. */
const TOKEN = /eyJ[\w-]{20,}\./;
let provider: AuthorizationServer;
let guarded: GuardedServer;
let gateway: StdioGateway;

beforeAll(async () => {
  provider = await startProvider();
  guarded = await startGuarded(provider.issuer);
  const config = `controls = []\nshared = false\n[servers.remote]\nurl = "${guarded.url}"\n`;
  gateway = await startStdio({ config, env: KEY, args: ['--log-level', 'debug'] });
});

const toolNames = async () => (await gateway.client.listTools()).tools.map(({ name }) => name);
const call = async (name: string, args: object = {}) => {
  const { content } = await gateway.client.callTool({ name, arguments: { ...args } });
  return (content as { text: string }[])[0]!.text;
};
const run = (...args: string[]) => runCli(args, { cwd: gateway.cwd, env: KEY });

describe('a server that asks who its callers are', () => {
  it('is not served before somebody logs in, and says so with the command', async () => {
    expect(await toolNames()).toEqual([]);
    expect(await call('remote_whoami')).toContain('waits for a login: toolgate login remote');
    const { stdout } = await run('list', 'servers');
    expect(stdout).toMatch(/remote +http +locked .*waits for a login: toolgate login remote/);
    expect((await run('doctor')).stdout).toContain('locked: waits for a login: toolgate login remote');
  });

  it('is served at once after toolgate login, and calls are made as that person', async () => {
    const { code, text, page } = await logIn(gateway.cwd, 'alice');
    expect(code, text).toBe(0);
    expect(text).toContain('remote: logged in as alice, renewed by itself.');
    expect(page).toContain('Toolgate can use remote now.');
    await waitFor(async () => (await toolNames()).length > 0);
    expect(await call('remote_whoami')).toBe('done');
    expect(guarded.callers).toEqual(['alice']);
    const shown = JSON.parse((await run('list', 'servers', '--json')).stdout)[0];
    expect(shown).toMatchObject({ state: 'up', login: { who: 'alice', issuer: provider.issuer, renews: true } });
    expect((await run('doctor')).stdout).toContain('logged in as alice, renewed by itself');
  });

  it('does not show the token to the model, in the log or in a file', async () => {
    const { client } = gateway;
    const logged: string[] = [];
    client.setNotificationHandler(LoggingMessageNotificationSchema, ({ params }) => {
      logged.push(JSON.stringify(params.data));
    });
    await client.setLoggingLevel('debug');
    expect(await call('remote_token')).toBe('you sent Bearer [redacted]');
    expect(await call('remote_token', { as: 'log' })).toBe('logged');
    await waitFor(() => logged.some((text) => text.includes('you sent Bearer [redacted]')));
    for (const as of ['error', 'failure']) {
      const answer = await client.callTool({ name: 'remote_token', arguments: { as } }).catch((error) => error);
      const text = `${JSON.stringify(answer)} ${answer.message} ${JSON.stringify(answer.data)}`;
      expect(text, as).not.toMatch(TOKEN);
      if (as === 'error') expect(text).toContain('you sent Bearer [redacted]');
    }
    expect(logged.join()).not.toMatch(TOKEN);
    const written = [...filesIn(gateway.cwd), ['the log', gateway.stderr()] as const];
    for (const [name, text] of written) expect(text, name).not.toMatch(TOKEN);
    expect(readFileSync(join(gateway.cwd, '.toolgate', 'secrets.enc'), 'utf8')).toContain('"cipher":"fernet"');
  });

  it('is asked with a new token when the old one is no longer accepted', async () => {
    const before = provider.renewals;
    guarded.expireAll();
    expect(await call('remote_whoami')).toBe('done');
    expect(provider.renewals).toBe(before + 1);
  });

  it('renews the token once for 200 calls at the same time, and none of them fails', async () => {
    const before = provider.renewals;
    guarded.expireAll();
    const answers = await Promise.all(Array.from({ length: 200 }, () => call('remote_whoami')));
    expect(new Set(answers)).toEqual(new Set(['done']));
    expect(provider.renewals).toBe(before + 1);
  });

  it('renews the token once when it ends while 200 calls are at the server, and none of them fails', async () => {
    const { renewals } = provider;
    const { refusals } = guarded;
    const { arrived, release } = guarded.hold(200);
    const answers = Promise.all(Array.from({ length: 200 }, () => call('remote_whoami')));
    await arrived;
    guarded.expireAll();
    release();
    expect(new Set(await answers)).toEqual(new Set(['done']));
    expect(guarded.refusals - refusals).toBe(200);
    expect(provider.renewals).toBe(renewals + 1);
  });

  it('asks for more rights when a call needs them, and for the old ones with them', async () => {
    expect(await call('remote_more')).toContain(
      'needs a login with more rights for this (tools:more). Run toolgate login remote, then try again.',
    );
    const { code, text } = await logIn(gateway.cwd, 'alice');
    expect(code, text).toBe(0);
    await waitFor(async () => (await call('remote_more')) === 'done');
    const [{ login }] = JSON.parse((await run('list', 'servers', '--json')).stdout);
    expect(login.scopes).toEqual(expect.arrayContaining(['tools:use', 'tools:more', 'offline_access']));
  });

  it('waits for a login again after toolgate logout, and its tools stay listed', async () => {
    expect((await run('logout', 'remote')).stdout).toMatch(/^Logged out of remote\./);
    await waitFor(async () => (await call('remote_whoami')).includes('toolgate login remote'));
    expect(await toolNames()).toContain('remote_whoami');
    expect((await run('logout', 'remote')).stdout).toBe('Nobody is logged in to "remote".\n');
  });
});

describe('toolgate login', () => {
  it('names the servers that there are', async () => {
    const { code, stderr } = await run('login', 'remot');
    expect(code).toBe(2);
    expect(stderr).toContain('There is no server "remot". Did you mean "remote"?');
  });

  it('cannot read what is kept without its key', async () => {
    const { stderr } = await runCli(['login', 'remote'], { cwd: gateway.cwd });
    expect(stderr).toContain('There is no key for the secrets.');
  });

  it('makes a key if there is none, and a running gateway uses it', async () => {
    const HOME = tempFolder();
    const config = `controls = []\nshared = false\n\n# One server\n[servers.remote]\nurl = "${guarded.url}"\n`;
    const fresh = await startStdio({ config, env: { HOME } });
    const { code, text } = await logIn(fresh.cwd, 'alice', ['remote'], { HOME });
    expect(code, text).toBe(0);
    const key = join(HOME, '.config', 'toolgate', 'secrets.key');
    expect(text).toContain(`The secrets are encrypted with a new key: ${key}. Keep a copy elsewhere`);
    expect(statSync(key).mode & 0o777).toBe(0o600);
    const written = readFileSync(join(fresh.cwd, 'tools.toml'), 'utf8');
    expect(written).toContain('key_file = "${HOME}/.config/toolgate/secrets.key"');
    expect(written).toContain('# One server');
    await waitFor(async () => (await fresh.client.listTools()).tools.length > 0);
    // The next one has the key, and changes nothing.
    const again = await logIn(fresh.cwd, 'alice', ['remote'], { HOME });
    expect(again.text).not.toContain('key');
    expect(readFileSync(join(fresh.cwd, 'tools.toml'), 'utf8')).toBe(written);
  });

  it('makes no key and changes nothing if there is nobody to log in as', async () => {
    const HOME = tempFolder();
    const config = `[servers.remote]\nurl = "http://127.0.0.1:9/mcp"\n`;
    const cwd = tempFolder({ 'tools.toml': config });
    expect((await runCli(['login'], { cwd, env: { HOME } })).stdout).toContain('No server asks for a login');
    expect((await runCli(['login', 'remote'], { cwd, env: { HOME } })).code).not.toBe(0);
    expect(readFileSync(join(cwd, 'tools.toml'), 'utf8')).toBe(config);
    expect(existsSync(join(HOME, '.config'))).toBe(false);
  });
});
