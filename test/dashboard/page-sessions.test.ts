/** Getting into the dashboard: links that work once, cookies of this site only, changes from its own page only. */
import { readFileSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { join } from 'node:path';
import { beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import { schemasText } from '../../scripts/api-schemas.mjs';
import { createPageSessions } from '../../src/dashboard/page-sessions.ts';
import type { Config } from '../../src/index.ts';
import { openAdminStore } from '../../src/store/agents.ts';
import { runCli } from '../support/cli.ts';
import { type HttpGateway, startHttp } from '../support/gateway.ts';
import { callsInFlight } from '../support/in-flight.ts';
import { server, serversToml } from '../support/server.ts';
import { tempFolder } from '../support/temp.ts';

const KEY = 'the-key-of-the-operator';
const TOKEN = 'the-token-of-an-agent-0123456789';
const env = { TOOLGATE_OPERATOR_KEY: KEY };
let gateway: HttpGateway;

beforeAll(async () => {
  gateway = await startHttp({
    config: `controls = []\n[agents.ci]\ntoken = "${TOKEN}"\n${serversToml({ a: server('basic') })}`,
    env,
  });
}, 60_000);

const at = (path: string, init: RequestInit = {}) => fetch(`${gateway.origin}${path}`, { redirect: 'manual', ...init });

async function newLink(): Promise<string> {
  const response = await at('/admin/links', {
    method: 'POST',
    headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' },
    body: '{}',
  });
  return ((await response.json()) as { url: string }).url;
}

async function enter(): Promise<string> {
  const response = await fetch(await newLink());
  return response.headers.get('set-cookie')!.split(';')[0]!;
}

describe('a link', () => {
  it('lets one browser in, once, with a cookie that scripts and other sites cannot use', async () => {
    const url = await newLink();
    expect(url.startsWith(`${gateway.origin}/admin/enter/`)).toBe(true);
    const first = await fetch(url);
    expect(first.status).toBe(200);
    expect(first.headers.get('set-cookie')).toMatch(
      /^toolgate_\w+=[\w-]{43}; Path=\/; HttpOnly; SameSite=Strict; Max-Age=\d+$/,
    );
    expect(first.headers.get('content-security-policy')).toContain("default-src 'none'");
    expect(first.headers.get('referrer-policy')).toBe('no-referrer');
    const second = await fetch(url);
    expect(second.status).toBe(401);
    expect(second.headers.get('set-cookie')).toBe(null);
    expect((await at('/admin/enter/of-my-own')).status).toBe(401);
  });

  it('is not used up by a browser that only looks ahead', async () => {
    const url = await newLink();
    expect((await fetch(url, { headers: { 'sec-purpose': 'prefetch' } })).status).toBe(403);
    expect((await fetch(url, { method: 'HEAD' })).status).toBe(405);
    expect((await fetch(url)).status).toBe(200);
  });

  it('is made for the operator key only', async () => {
    const ask = (authorization: string) =>
      at('/admin/links', {
        method: 'POST',
        headers: { authorization, 'content-type': 'application/json' },
        body: '{}',
      });
    expect((await ask(`Bearer ${TOKEN}`)).status).toBe(403);
    const cookie = await enter();
    const withCookie = await at('/admin/links', {
      method: 'POST',
      headers: { cookie, 'x-toolgate-page': '1', 'content-type': 'application/json' },
      body: '{}',
    });
    expect(withCookie.status).toBe(401);
  });

  it('is printed by toolgate dashboard', async () => {
    const { stdout, code } = await runCli(['dashboard'], { cwd: gateway.cwd, env });
    expect(code).toBe(0);
    expect((await fetch(stdout.trim())).status).toBe(200);
    const json = await runCli(['dashboard', '--json', '--url', gateway.origin], { cwd: gateway.cwd, env });
    expect(JSON.parse(json.stdout)).toMatchObject({
      url: expect.stringContaining('/admin/enter/'),
      expires: expect.any(String),
    });
  });
});

describe('a session', () => {
  it('reads with its cookie, and changes only with the header of its page', async () => {
    const cookie = await enter();
    expect((await at('/admin/session', { headers: { cookie } })).status).toBe(200);
    expect((await at('/admin/approvals', { headers: { cookie } })).status).toBe(200);
    const change = (headers: Record<string, string>) =>
      at('/admin/reload', {
        method: 'POST',
        headers: { cookie, 'content-type': 'application/json', ...headers },
        body: '{}',
      });
    expect((await change({})).status).toBe(403);
    expect((await change({ 'x-toolgate-page': '1', origin: 'https://evil.example' })).status).toBe(403);
    expect((await change({ 'x-toolgate-page': '1', origin: 'http://127.0.0.1:1' })).status).toBe(403);
    expect((await change({ 'x-toolgate-page': '1', 'sec-fetch-site': 'same-site' })).status).toBe(403);
    expect(
      (await change({ 'x-toolgate-page': '1', origin: gateway.origin, 'sec-fetch-site': 'same-origin' })).status,
    ).toBe(200);
    expect((await at('/admin/session', { headers: { cookie, 'sec-fetch-site': 'cross-site' } })).status).toBe(403);
  });

  it('shows the page, and without one says how to get in', async () => {
    const cookie = await enter();
    const html = { accept: 'text/html' };
    const page = await at('/', { headers: { cookie, ...html } });
    expect(page.headers.get('content-security-policy')).toContain("script-src 'self'");
    expect(page.headers.get('content-security-policy')).not.toContain('unsafe');
    for (const [name, value] of [
      ['x-content-type-options', 'nosniff'],
      ['referrer-policy', 'no-referrer'],
      ['x-frame-options', 'DENY'],
      ['cache-control', 'no-store'],
    ] as const)
      expect(page.headers.get(name)).toBe(value);
    const text = await page.text();
    const [, file] = /src="\.\/(admin\/page\/[\w.-]+\.js)"/.exec(text) ?? [];
    const script = await at(`/${file}`, { headers: { 'accept-encoding': 'br' } });
    expect(script.headers.get('content-encoding')).toBe('br');
    expect(script.headers.get('cache-control')).toContain('immutable');
    expect((await at('/admin/page/..%2f..%2fpackage.json')).status).toBe(404);
    const plain = await (await at('/', { headers: html })).text();
    expect(plain).toContain('toolgate dashboard');
    expect(plain).not.toContain('<script');
    expect(await (await at('/', { headers: { cookie: 'toolgate_0=x', ...html } })).text()).toContain(
      'toolgate dashboard',
    );
  });

  it('ends with a log-out', async () => {
    const cookie = await enter();
    const out = await at('/admin/session', { method: 'DELETE', headers: { cookie, 'x-toolgate-page': '1' } });
    expect(out.status).toBe(204);
    expect(out.headers.get('set-cookie')).toContain('Max-Age=0');
    expect((await at('/admin/session', { headers: { cookie } })).status).toBe(401);
  });

  it('is opened with the key in the form of the plain page, never with the token of an agent', async () => {
    const form = (key: string) => at('/admin/session', { method: 'POST', body: new URLSearchParams({ key }) });
    const entered = await form(KEY);
    expect(entered.status).toBe(200);
    const cookie = entered.headers.get('set-cookie')!.split(';')[0]!;
    expect((await at('/admin/session', { headers: { cookie } })).status).toBe(200);
    expect((await form(TOKEN)).status).toBe(401);
    expect((await form('')).status).toBe(400);
    const foreign = await at('/admin/session', {
      method: 'POST',
      body: new URLSearchParams({ key: KEY }),
      headers: { origin: 'https://evil.example' },
    });
    expect(foreign.status).toBe(403);
  });
});

it('an admin token lets its holder in, and its sessions end with it', async () => {
  const { stdout } = await runCli(['dashboard', 'add', 'ann'], { cwd: gateway.cwd, env });
  const token = stdout.trim();
  const who = async (headers: Record<string, string>) => (await at('/admin/session', { headers })).status;
  expect(await who({ authorization: `Bearer ${token}` })).toBe(200);
  // It is no agent.
  expect((await at('/tools', { headers: { authorization: `Bearer ${token}` } })).status).toBe(401);
  const entered = await at('/admin/session', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ key: token }),
  });
  expect(entered.status).toBe(204);
  const cookie = entered.headers.get('set-cookie')!.split(';')[0]!;
  expect(await who({ cookie })).toBe(200);
  const listed = await runCli(['dashboard', 'tokens', '--json'], { cwd: gateway.cwd, env });
  expect(JSON.parse(listed.stdout)).toMatchObject([{ name: 'ann' }]);
  expect(listed.stdout).not.toContain(token);
  await runCli(['dashboard', 'revoke', 'ann'], { cwd: gateway.cwd, env });
  expect(await who({ cookie })).toBe(401);
  expect(await who({ authorization: `Bearer ${token}` })).toBe(401);
});

it('what was opened with a token or a key in a header lasts as long as that is valid', async () => {
  const dataDir = tempFolder();
  const given = { TOOLGATE_OPERATOR_KEY: KEY };
  const config = { dataDir, file: null, http: { publicUrl: null } } as unknown as Config;
  const sessions = createPageSessions(() => config, given, null);
  const store = openAdminStore(dataDir);
  const { token } = await store.add('ann', '', null);
  const ann = (await sessions.tokenHolder({ headers: { authorization: `Bearer ${token}` } } as never))!;
  const operator = await sessions.keyHolder();
  expect([ann.who, operator.who]).toEqual(['ann', 'operator']);
  expect([await sessions.isValid(ann), await sessions.isValid(operator)]).toEqual([true, true]);
  await store.revoke('ann');
  given.TOOLGATE_OPERATOR_KEY = 'another-key-of-the-operator';
  expect([await sessions.isValid(ann), await sessions.isValid(operator)]).toEqual([false, false]);
});

it('a session that nobody uses for two hours is over, and one that is used after twelve', async () => {
  const hours = (count: number) => vi.setSystemTime(Date.now() + count * 3_600_000 + 1);
  const config = { dataDir: tempFolder(), file: null, http: { publicUrl: null } } as unknown as Config;
  const sessions = createPageSessions(() => config, { TOOLGATE_OPERATOR_KEY: KEY }, null);
  const asked = (cookie = '') => ({ socket: { remoteAddress: '127.0.0.1' }, headers: { cookie } }) as never;
  const open = async () => (await sessions.enterWith(KEY, asked())).cookie.split(';')[0]!;
  const isOver = async (cookie: string) => (await sessions.find(asked(cookie)).catch(() => null)) === null;
  onTestFinished(() => void vi.useRealTimers());
  vi.useFakeTimers({ toFake: ['Date'] });
  const [used, unused] = [await open(), await open()];
  for (let i = 0; i < 11; i++) {
    hours(1);
    expect(await isOver(used)).toBe(false);
  }
  expect(await isOver(unused)).toBe(true);
  hours(1);
  expect(await isOver(used)).toBe(true);
});

it('a session ends with its token, even if a later token has the same name', async () => {
  const dataDir = tempFolder();
  const config = { dataDir, file: null, http: { publicUrl: null } } as unknown as Config;
  const sessions = createPageSessions(() => config, { TOOLGATE_OPERATOR_KEY: KEY }, null);
  const store = openAdminStore(dataDir);
  const asked = (cookie = '') => ({ socket: { remoteAddress: '127.0.0.1' }, headers: { cookie } }) as never;
  const openWith = async (token: string) => (await sessions.enterWith(token, asked())).cookie.split(';')[0]!;
  const isOver = async (cookie: string) => (await sessions.find(asked(cookie)).catch(() => null)) === null;
  for (const name of ['ann', 'eve']) {
    const stolen = (await store.add(name, '', null)).token;
    const thief = await openWith(stolen);
    const second = await openWith(stolen);
    expect([await isOver(thief), await isOver(second)]).toEqual([false, false]);
    const { token } = await store.rotate(name, 0, null);
    const own = await openWith(token);
    expect([await isOver(thief), await isOver(own)]).toEqual([true, false]);
    // Nobody has looked at it in between.
    await store.revoke(name);
    await store.add(name, '', null);
    expect([await isOver(second), await isOver(own)]).toEqual([true, true]);
  }
});

it('a file of tokens or a key that cannot be read ends what was opened, and not the gateway', async () => {
  const dataDir = tempFolder();
  const given = { TOOLGATE_OPERATOR_KEY: KEY };
  const config = { dataDir, file: null, http: { publicUrl: null } } as unknown as Config;
  const sessions = createPageSessions(() => config, given, null);
  const { token } = await openAdminStore(dataDir).add('ann', '', null);
  const asked = (headers: Record<string, string>) => ({ socket: {}, headers }) as never;
  const { cookie } = await sessions.enterWith(token, asked({}));
  const kept = (await sessions.find(asked({ cookie: cookie.split(';')[0]! })))!;
  const holder = (await sessions.tokenHolder(asked({ authorization: `Bearer ${token}` })))!;
  const operator = await sessions.keyHolder();
  writeFileSync(join(dataDir, 'admins.json'), '{"agents": [');
  expect([await sessions.isValid(kept), await sessions.isValid(holder)]).toEqual([false, false]);
  given.TOOLGATE_OPERATOR_KEY = 'short';
  expect(await sessions.isValid(operator)).toBe(false);
});

it('somebody who enters wrong keys keeps out only themselves', async () => {
  const enterFrom = (localAddress: string, key: string) =>
    new Promise<number>((resolve) => {
      const headers = { 'content-type': 'application/json' };
      const asked = request(
        `${gateway.origin}/admin/session`,
        { method: 'POST', localAddress, headers },
        (response) => {
          response.resume();
          resolve(response.statusCode!);
        },
      );
      asked.end(JSON.stringify({ key }));
    });
  for (let i = 0; i < 20; i++) expect(await enterFrom('127.0.0.2', 'wrong')).toBe(401);
  expect(await enterFrom('127.0.0.2', KEY)).toBe(429);
  expect(await enterFrom('127.0.0.1', KEY)).toBe(204);
});

it('wrong keys that come at the same time are counted, too', async () => {
  const config = { dataDir: tempFolder(), file: null, http: { publicUrl: null } } as unknown as Config;
  const sessions = createPageSessions(() => config, env, null);
  const from = (remoteAddress: string) => ({ socket: { remoteAddress }, headers: {} }) as never;
  const codeOf = (key: string) =>
    sessions.enterWith(key, from('10.0.0.1')).then(
      ({ who }) => who,
      ({ code }) => code,
    );
  const together = await Promise.all(Array.from({ length: 200 }, (_, i) => codeOf(`wrong ${i}`)));
  expect(together.filter((code) => code === 'unauthorized')).toHaveLength(20);
  expect(together.filter((code) => code === 'rate_limited')).toHaveLength(180);
  expect(await codeOf(KEY)).toBe('rate_limited');
  expect((await sessions.enterWith(KEY, from('10.0.0.2'))).who).toBe('operator');
});

it('right keys use up no tries', async () => {
  const config = { dataDir: tempFolder(), file: null, http: { publicUrl: null } } as unknown as Config;
  const sessions = createPageSessions(() => config, env, null);
  const request = { socket: { remoteAddress: '10.0.0.1' }, headers: {} } as never;
  for (let i = 0; i < 50; i++) expect((await sessions.enterWith(KEY, request)).who).toBe('operator');
});

it('no admin is called operator: the audit could not tell them apart', async () => {
  const dataDir = tempFolder();
  const store = openAdminStore(dataDir);
  await expect(store.add('operator', '', null)).rejects.toThrow('Choose another name');
  const { token } = await store.add('eve', '', null);
  // Somebody has written the file by hand.
  const file = join(dataDir, 'admins.json');
  writeFileSync(file, readFileSync(file, 'utf8').replace('"eve"', '"operator"'));
  const config = { dataDir, file: null, http: { publicUrl: null } } as unknown as Config;
  const sessions = createPageSessions(() => config, env, null);
  const request = { socket: {}, headers: { authorization: `Bearer ${token}` } } as never;
  expect(await sessions.tokenHolder(request)).toBe(null);
  await expect(sessions.enterWith(token, request)).rejects.toThrow('neither');
});

it('the streams of an admin whose token was revoked end, with the calls that they began', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  try {
    const own = await startHttp({ config: `controls = []\n${serversToml({ slow: server('hang') })}`, env });
    const admins = openAdminStore(join(own.cwd, '.toolgate'));
    const { token } = await admins.add('ann', '', null);
    const open = (path: string, init: RequestInit = {}) => {
      const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
      return fetch(`${own.origin}/admin/${path}`, { ...init, headers });
    };
    const call = { kind: 'tool', name: 'slow_hang', arguments: {}, agent: null };
    const streams = await Promise.all([open('events'), open('tries', { method: 'POST', body: JSON.stringify(call) })]);
    expect(streams.map(({ status }) => status)).toEqual([200, 200]);
    await callsInFlight(own, 1);
    await admins.revoke('ann');
    // Where the gateway is a process of its own, this takes fifteen seconds.
    vi.advanceTimersByTime(15_000);
    const [events, tries] = await Promise.all(streams.map((stream) => stream.text()));
    expect(events).toContain('event: bye');
    expect(tries).toContain('The session is over.');
    await callsInFlight(own, 0);
  } finally {
    vi.useRealTimers();
  }
});

it('a key is not taken from what a page of another site can send without asking', async () => {
  const enterAs = (type: string) =>
    at('/admin/session', { method: 'POST', headers: { 'content-type': type }, body: JSON.stringify({ key: KEY }) });
  expect((await enterAs('text/plain')).status).toBe(415);
  expect((await enterAs('application/json')).status).toBe(204);
});

it('http.dashboard = false switches everything off', async () => {
  const off = await startHttp({ config: 'controls = []\n[http]\ndashboard = false\n', env });
  const get = (path: string) =>
    fetch(`${off.origin}${path}`, { headers: { authorization: `Bearer ${KEY}`, accept: 'text/html' } });
  expect((await get('/admin/overview')).status).toBe(404);
  expect((await get('/admin/enter/x')).status).toBe(404);
  expect((await get('/admin/status')).status).toBe(200);
  expect(await (await get('/')).text()).not.toContain('toolgate dashboard');
  const { code, stderr } = await runCli(['dashboard'], { cwd: off.cwd, env });
  expect(code).not.toBe(0);
  expect(stderr).toContain('no dashboard');
});

it('a list shows the beginning of a very long description, the item all of it', async () => {
  const long = 'x'.repeat(100_000);
  const tools = Array.from({ length: 10 }, (_, i) => ({
    name: `t${i}`,
    title: long,
    description: long,
    inputSchema: { type: 'object' },
  }));
  const cwd = tempFolder({ 'offer.json': JSON.stringify(tools) });
  const hostile = server('basic', '--raw-tools', `${cwd}/offer.json`);
  const wordy = await startHttp({ cwd, config: `controls = []\n${serversToml({ w: hostile })}`, env });
  const get = async (path: string) =>
    (await fetch(`${wordy.origin}/admin/${path}`, { headers: { authorization: `Bearer ${KEY}` } })).text();
  const list = await get('catalog?kind=tool&limit=500');
  expect(JSON.parse(list)).toMatchObject({ total: 10 });
  expect(list.length).toBeLessThan(60_000);
  expect(await get('catalog/tool/w_t0')).toContain(long);
});

it('the schemas of the document are those of the types', () => {
  const read = (name: string) => readFileSync(new URL(`../../src/dashboard/${name}`, import.meta.url), 'utf8');
  const inFile = /JSON\.parse\(\s*('.*'),\s*\);/s.exec(read('api-schemas.ts'))![1];
  expect(schemasText(read('api-types.ts'))).toContain(inFile!);
});
