/** A person logs in to a server that asks for it: the command, the running gateway, and what is kept. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { type AuthorizationServer, startProvider } from '../support/authorization-server.ts';
import { filesIn } from '../support/canary.ts';
import { runCli } from '../support/cli.ts';
import { type StdioGateway, startStdio } from '../support/gateway.ts';
import { type GuardedServer, startGuarded } from '../support/guarded-server.ts';
import { waitFor } from '../support/processes.ts';
import { KEY, logIn } from './login.ts';

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
const call = async (name: string) => {
  const { content } = await gateway.client.callTool({ name, arguments: {} });
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
    expect(await call('remote_token')).toBe('you sent Bearer [redacted]');
    const written = [...filesIn(gateway.cwd), ['the log', gateway.stderr()] as const];
    for (const [name, text] of written) expect(text, name).not.toMatch(/eyJ[\w-]{20,}\./);
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

  it('needs a key for what it keeps', async () => {
    const { stderr } = await runCli(['login', 'remote'], { cwd: gateway.cwd });
    expect(stderr).toContain('There is no key for the secrets.');
  });
});
