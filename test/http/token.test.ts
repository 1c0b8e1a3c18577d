/** With BEARER_TOKEN the HTTP door accepts only that token, and the token never leaks to servers or the log. */
import { beforeAll, describe, expect, it } from 'vitest';
import { runCli, startCli } from '../support/cli.ts';
import { type HttpGateway, startHttp } from '../support/gateway.ts';
import { waitFor } from '../support/processes.ts';
import { initialize, openSocket, PING, postLines, readReply, startSession } from '../support/raw-http.ts';
import { server, serversToml } from '../support/server.ts';

const TOKEN = 'correct-horse-battery-staple-7731';
const config = `controls = []\n${serversToml({ up: server('basic'), broken: 'false' })}`;

describe('a gateway with BEARER_TOKEN', () => {
  let gateway: HttpGateway;
  beforeAll(async () => {
    gateway = await startHttp({ config, env: { BEARER_TOKEN: TOKEN }, args: ['--log-level', 'debug'] });
  });

  it.each([
    ['absent', []],
    ['empty', ['Authorization:']],
    ['only a scheme', ['Authorization: Bearer']],
    ['wrong', ['Authorization: Bearer wrong']],
    ['wrong and as long', [`Authorization: Bearer ${'x'.repeat(TOKEN.length)}`]],
    ['the beginning of the right one', [`Authorization: Bearer ${TOKEN.slice(0, -1)}`]],
    ['the right one with more behind it', [`Authorization: Bearer ${TOKEN}x`]],
    ['overlong', [`Authorization: Bearer ${TOKEN.repeat(300)}`]],
    ['without a scheme', [`Authorization: ${TOKEN}`]],
    ['under another scheme', [`Authorization: Basic ${TOKEN}`]],
    ['in another case', [`Authorization: Bearer ${TOKEN.toUpperCase()}`]],
    ['twice, the right one first', [`Authorization: Bearer ${TOKEN}`, 'Authorization: Bearer wrong']],
    ['twice, the right one last', ['Authorization: Bearer wrong', `Authorization: Bearer ${TOKEN}`]],
  ] as const)('answers 401 to a token that is %s', async (_, lines) => {
    const reply = await postLines(gateway.origin, ['Host: 127.0.0.1', ...lines], initialize());
    expect(reply.status).toBe(401);
    expect(reply.headers.get('www-authenticate')).toMatch(/^Bearer\b/);
    expect(JSON.parse(reply.body)).toMatchObject({ id: null, error: { data: { code: 'unauthorized' } } });
    expect(reply.body).not.toContain(TOKEN);
  });

  it('does not accept the token in the URL', async () => {
    const named = await gateway.post(initialize(), {}, `/mcp?token=${TOKEN}`);
    expect(named.status).toBe(401);
    const asked = { authorization: `Bearer ${TOKEN}` };
    const replies = await Promise.all(
      [{}, asked].map((headers) => gateway.post(initialize(), headers, '/mcp?access_token=x')),
    );
    expect(replies.map(({ status }) => status)).toEqual([400, 400]);
  });

  it('requires it for every method and path except the health probes and the welcome', async () => {
    const ask = async (method: string, path: string) =>
      (await fetch(gateway.origin + path, { method, headers: { accept: '*/*' } })).status;
    expect(await Promise.all(['GET', 'DELETE', 'PUT', 'OPTIONS'].map((verb) => ask(verb, '/mcp')))).toEqual([
      401, 401, 401, 401,
    ]);
    expect(await Promise.all(['/admin', '/nothing'].map((path) => ask('GET', path)))).toEqual([401, 401]);
    expect(await Promise.all(['/', '/health', '/healthz', '/ready'].map((path) => ask('GET', path)))).toEqual([
      200, 200, 200, 200,
    ]);
  });

  it('refuses a request without the token before it reads the body', async () => {
    const socket = openSocket(gateway.origin);
    const lines = ['POST /mcp HTTP/1.1', 'Host: 127.0.0.1', 'Content-Type: application/json', 'Content-Length: 999'];
    socket.write(`${lines.join('\r\n')}\r\nConnection: close\r\n\r\n`);
    expect((await readReply(socket)).status).toBe(401);
  });

  it('accepts any characters that the operator chose for the token', async () => {
    const odd = 'pass phrase, with "signs" & {more}!';
    const own = await startHttp({ config: '', env: { BEARER_TOKEN: odd } });
    expect((await own.post(initialize(), { authorization: `Bearer ${odd}` })).status).toBe(200);
  });

  it.each(['Bearer', 'bearer', 'BEARER'])('accepts the right token after the scheme %s', async (scheme) => {
    const session = await startSession(gateway, { headers: { authorization: `${scheme} ${TOKEN}` } });
    expect((await session.post(PING)).status).toBe(200);
  });

  it('refuses a valid session id without the token', async () => {
    const session = await startSession(gateway, { headers: { authorization: `Bearer ${TOKEN}` } });
    expect((await gateway.post(PING, { 'mcp-session-id': session.id })).status).toBe(401);
  });

  it('does not pass the token on to servers', async () => {
    const session = await startSession(gateway, { headers: { authorization: `Bearer ${TOKEN}` } });
    const asked = await session.ask('tools/call', { name: 'up_whoami', arguments: { env: ['BEARER_TOKEN'] } });
    expect(JSON.stringify(asked)).toContain('\\"BEARER_TOKEN\\":null');
  });

  it('keeps the token out of stdout, errors and the log at every level', async () => {
    const session = await startSession(gateway, { headers: { authorization: `Bearer ${TOKEN}` } });
    const replies = await Promise.all([
      session.post('{"broken'),
      session.ask('tools/call', { name: TOKEN.slice(0, 5) }),
      session.ask('no/such/method'),
      gateway.post('{}', { authorization: `Bearer ${TOKEN}x` }),
    ]);
    const bodies = await Promise.all(
      replies.map((reply) => (reply instanceof Response ? reply.text() : JSON.stringify(reply))),
    );
    expect(bodies.join()).not.toContain(TOKEN);
    expect(gateway.stderr()).toContain('"level":"debug"');
    expect(gateway.stdout() + gateway.stderr()).not.toContain(TOKEN);
    expect(gateway.stdout()).toContain('$BEARER_TOKEN');
  });
});

describe('a gateway that listens beyond loopback', () => {
  it.each([
    ['0.0.0.0 on the command line', ['--host', '0.0.0.0'], ''],
    [':: on the command line', ['--host', '::'], ''],
    ['an address in the configuration', [], '[http]\nhost = "0.0.0.0"\n'],
  ])('refuses to listen without a token: %s', async (_, args, toml) => {
    const { code, stdout, stderr } = await runCli(['serve', '--port', '0', ...args], { config: toml });
    expect(code).toBe(2);
    expect(stdout).toBe('');
    expect(stderr).toContain('Set BEARER_TOKEN, or listen on 127.0.0.1');
  });

  it('treats an empty BEARER_TOKEN as no token', async () => {
    const run = await runCli(['serve', '--port', '0', '--host', '0.0.0.0'], { config: '', env: { BEARER_TOKEN: '' } });
    expect(run.code).toBe(2);
  });

  it('starts with a token, and accepts any Host name from a client that sends it', async () => {
    const child = startCli(['serve', '--port', '0', '--host', '0.0.0.0'], { config: '', env: { BEARER_TOKEN: TOKEN } });
    const port = await waitFor(() => /http:\/\/0\.0\.0\.0:(\d+)/.exec(child.stdout())?.[1]);
    const origin = `http://127.0.0.1:${port}`;
    expect((await postLines(origin, ['Host: build.internal:8808'])).status).toBe(401);
    const authorized = ['Host: build.internal:8808', `Authorization: Bearer ${TOKEN}`];
    expect((await postLines(origin, authorized, initialize())).status).toBe(200);
    expect((await postLines(origin, [...authorized, 'Origin: http://evil.example'], initialize())).status).toBe(403);
  });

  it('logs on loopback that everyone may connect', async () => {
    const gateway = await startHttp({ config: '' });
    expect(gateway.stdout()).toContain('No BEARER_TOKEN is set');
  });
});
