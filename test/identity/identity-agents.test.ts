/** Agents with their own tokens: how they are created, rotated and revoked, and how a running gateway reacts. */
import { readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { sha256 } from '../../src/base/hash.ts';
import { runCli, startCli } from '../support/cli.ts';
import { type HttpGateway, startHttp } from '../support/gateway.ts';
import { arrived } from '../support/in-flight.ts';
import { connectModernHttp, enveloped, mirrored } from '../support/modern.ts';
import { waitFor } from '../support/processes.ts';
import { initialize, openSocket, PING, readReply, startSession } from '../support/raw-http.ts';
import { server, serversToml } from '../support/server.ts';
import { tempFolder } from '../support/temp.ts';

const config = `controls = []\n${serversToml({ up: server('basic'), slow: server('asking') })}`;
const bearer = (token: string) => ({ authorization: `Bearer ${token}` });
const fileIn = (cwd: string) => join(cwd, '.toolgate', 'agents.json');

function folder(text = config): string {
  return tempFolder({ 'tools.toml': text });
}

async function add(cwd: string, name: string, ...options: string[]): Promise<string> {
  const { code, stdout, stderr } = await runCli(['agents', 'add', name, ...options], { cwd });
  expect(code, stderr).toBe(0);
  return stdout.trim();
}

const letIn = async (gateway: HttpGateway, token: string) => {
  const { status } = await gateway.post(initialize(), bearer(token));
  return status;
};

describe('toolgate agents', () => {
  it('prints a new token once and stores only its hash', async () => {
    const cwd = folder();
    const { stdout, stderr } = await runCli(['agents', 'add', 'ci', '--description', 'builds'], { cwd });
    expect(stdout).toMatch(/^tg_[\w-]{43}\n$/);
    expect(stderr).not.toContain(stdout.trim());
    const text = readFileSync(fileIn(cwd), 'utf8');
    expect(text).not.toContain(stdout.trim());
    expect(text).toContain(sha256(stdout.trim()));
    expect(statSync(fileIn(cwd)).mode & 0o777).toBe(0o600);
  });

  it('prints JSON with name, token and expiry', async () => {
    const { stdout } = await runCli(['agents', 'add', 'ci', '--expires', '30d', '--json'], { config });
    const { name, token, expires } = JSON.parse(stdout) as { name: string; token: string; expires: string };
    expect([name, token]).toEqual(['ci', expect.stringMatching(/^tg_/)]);
    expect(Math.round((Date.parse(expires) - Date.now()) / 86_400_000)).toBe(30);
  });

  it('lists agents of the file and the configuration without tokens or hashes', async () => {
    const cwd = folder(`${config}\n[agents.pipeline]\ntoken = "0123456789abcdef"\ndescription = "nightly"\n`);
    const token = await add(cwd, 'default', '--expires', '4w');
    const [shown, json, same] = await Promise.all([
      runCli(['agents'], { cwd }),
      runCli(['list', 'agents', '--json'], { cwd }),
      runCli(['list', 'agents'], { cwd }),
    ]);
    expect(same.stdout).toBe(shown.stdout);
    expect(shown.stdout).toMatch(/^default +1 token +until \d{4}-\d\d-\d\d \d\d:\d\d UTC +admin +agents$/m);
    expect(shown.stdout).toMatch(/^pipeline +1 token +configuration +nightly$/m);
    expect(JSON.parse(json.stdout)).toMatchObject([
      { name: 'default', from: ['agents'], admin: true },
      { name: 'pipeline', from: ['configuration'], admin: false, tokens: [{ created: null, expires: null }] },
    ]);
    for (const { stdout } of [shown, json])
      for (const secret of [token, sha256(token), '0123456789abcdef', sha256('0123456789abcdef')])
        expect(stdout).not.toContain(secret);
  });

  it.each([
    [['agents', 'add'], 'needs one name'],
    [['agents', 'add', '../x'], 'is not a valid name for an agent'],
    [['agents', 'add', 'a b'], 'is not a valid name for an agent'],
    [['agents', 'add', 'a', 'b'], 'needs one name'],
    [['agents', 'add', 'ci', '--expires', 'soon'], '--expires is a time such as'],
    [['agents', 'add', 'ci', '--expires', '0d'], '--expires is a time such as'],
    [['agents', 'rotate', 'ci'], 'no agent "ci"'],
    [['agents', 'revoke', 'ci'], 'no agent "ci"'],
    [['agents', 'remove', 'ci'], 'Choose from list, add, rotate, revoke'],
  ])('refuses %j', async (args, why) => {
    const { code, stdout, stderr } = await runCli(args, { config });
    expect([code, stdout]).toEqual([2, '']);
    expect(stderr).toContain(why);
  });

  it('refuses a name that already exists', async () => {
    const cwd = folder();
    await add(cwd, 'ci');
    const { code, stderr } = await runCli(['agents', 'add', 'ci'], { cwd });
    expect([code, stderr]).toEqual([2, expect.stringContaining('toolgate agents rotate ci')]);
  });

  it('loses no agent when many are added at the same time', async () => {
    const cwd = folder();
    const names = Array.from({ length: 8 }, (_, i) => `agent-${i}`);
    await Promise.all(names.map((name) => add(cwd, name)));
    const { stdout } = await runCli(['agents', 'list', '--json'], { cwd });
    expect((JSON.parse(stdout) as { name: string }[]).map(({ name }) => name)).toEqual(names);
  });

  it.each(['{"agents":', '[]', '{"agents":[{"name":"ci","tokens":[{"sha256":"x","expires":null}]}]}'])(
    'reports a damaged file and never overwrites it: %s',
    async (text) => {
      const cwd = folder();
      await add(cwd, 'ci');
      writeFileSync(fileIn(cwd), text);
      for (const args of [
        ['agents', 'add', 'new'],
        ['agents', 'revoke', 'ci'],
        ['serve', '--port', '0'],
        ['list', 'agents'],
      ]) {
        const { code, stderr } = await runCli(args, { cwd });
        expect([code, stderr]).toEqual([2, expect.stringContaining('is not a list of agents')]);
      }
      expect((await runCli(['doctor'], { cwd })).stdout).toContain('is not a list of agents');
      expect(readFileSync(fileIn(cwd), 'utf8')).toBe(text);
    },
  );
});

describe('a running gateway with agents', () => {
  it('accepts agents by their tokens, and new ones at once', async () => {
    const cwd = folder();
    const first = await add(cwd, 'first');
    const gateway = await startHttp({ cwd });
    expect(await letIn(gateway, first)).toBe(200);
    const second = await add(cwd, 'second');
    await waitFor(async () => (await letIn(gateway, second)) === 200);
  });

  it('requires a token from its first agent on, and still does after its last was removed', async () => {
    const cwd = folder();
    const gateway = await startHttp({ cwd });
    const session = await startSession(gateway);
    const token = await add(cwd, 'first');
    await waitFor(async () => (await gateway.post(initialize())).status === 401);
    expect((await session.post(PING)).status).toBe(401);
    expect(await letIn(gateway, token)).toBe(200);
    rmSync(fileIn(cwd));
    await waitFor(async () => (await letIn(gateway, token)) === 401);
    expect((await gateway.post(initialize())).status).toBe(401);
  });

  it('ends the sessions and streams of a revoked agent, and no others', async () => {
    const cwd = folder();
    const [gone, kept] = [await add(cwd, 'gone'), await add(cwd, 'kept')];
    const gateway = await startHttp({ cwd, args: ['--log-level', 'info'] });
    const ended: string[] = [];
    const watch = async (name: string, response: Response) => {
      for await (const _ of response.body ?? []);
      ended.push(name);
    };
    for (const [name, token] of Object.entries({ gone, kept })) {
      const session = await startSession(gateway, { headers: bearer(token) });
      const stream = await fetch(gateway.url, { headers: { ...session.headers, accept: 'text/event-stream' } });
      const sse = await fetch(`${gateway.origin}/sse`, { headers: bearer(token) });
      watch(`${name} stream`, stream).catch(() => {});
      watch(`${name} sse`, sse).catch(() => {});
      const { subscription } = await connectModernHttp(gateway.url, bearer(token));
      subscription.closed?.then(() => ended.push(`${name} subscription`)).catch(() => {});
    }
    expect((await runCli(['agents', 'revoke', 'gone'], { cwd })).code).toBe(0);
    await waitFor(() => ['gone stream', 'gone sse', 'gone subscription'].every((one) => ended.includes(one)));
    expect(await letIn(gateway, gone)).toBe(401);
    expect(await letIn(gateway, kept)).toBe(200);
    expect(ended.filter((name) => name.startsWith('kept'))).toEqual([]);
    await waitFor(() => gateway.stderr().includes('agent_revoked gone'));
  });

  it('ends a running call of a revoked agent', async () => {
    const log = join(tempFolder(), 'log');
    const cwd = folder(`controls = []\n${serversToml({ slow: server('asking', '--log', log) })}`);
    const token = await add(cwd, 'gone');
    const gateway = await startHttp({ cwd });
    const call = { name: 'slow_wait', arguments: { ms: 20_000 } };
    const modern = (await connectModernHttp(gateway.url, bearer(token))).client.callTool(call);
    const legacy = (await gateway.connect({ headers: bearer(token) })).client.callTool(call);
    for (const calling of [modern, legacy]) calling.catch(() => {});
    await arrived(log, '"wait"', 2);
    await runCli(['agents', 'revoke', 'gone'], { cwd });
    await expect(modern).rejects.toThrow('The credential was revoked');
    await expect(legacy).rejects.toThrow('The credential was revoked');
  });

  it('does not execute a request that arrives slowly if its agent is revoked meanwhile', async () => {
    const cwd = folder();
    const [gone, kept] = [await add(cwd, 'gone'), await add(cwd, 'kept')];
    const gateway = await startHttp({ cwd });
    const params = enveloped('{"name":"up_count","arguments":{}}');
    const body = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":${params}}`;
    const lines = {
      host: '127.0.0.1',
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'content-length': String(body.length),
      connection: 'close',
      ...mirrored('tools/call', params),
      ...bearer(gone),
    };
    const socket = openSocket(gateway.origin);
    const head = Object.entries(lines).map(([name, value]) => `${name}: ${value}\r\n`);
    socket.write(`POST /mcp HTTP/1.1\r\n${head.join('')}\r\n${body.slice(0, 20)}`);
    await runCli(['agents', 'revoke', 'gone'], { cwd });
    await waitFor(async () => (await letIn(gateway, gone)) === 401);
    socket.write(body.slice(20));
    const reply = await readReply(socket);
    expect([reply.status, reply.headers.get('www-authenticate')]).toEqual([401, 'Bearer realm="toolgate"']);
    const session = await startSession(gateway, { headers: bearer(kept) });
    expect(JSON.stringify(await session.ask('tools/call', { name: 'up_count', arguments: {} }))).toContain(
      '"text":"1"',
    );
  });

  it('logs changes to agents and refused clients, without tokens or hashes', async () => {
    const cwd = folder();
    const first = await add(cwd, 'first');
    const gateway = await startHttp({ cwd });
    const second = await add(cwd, 'second');
    await waitFor(async () => (await letIn(gateway, second)) === 200);
    await runCli(['agents', 'revoke', 'first'], { cwd });
    await waitFor(async () => (await letIn(gateway, first)) === 401);
    await gateway.stop();
    const { stdout } = await runCli(['audit', 'query', '--limit', '0', '--json'], { cwd });
    for (const word of ['agent_added', 'agent_revoked', 'The token is unknown']) expect(stdout).toContain(word);
    for (const secret of [first, second, sha256(first), sha256(second)]) expect(stdout).not.toContain(secret);
  });

  it('accepts the old token during the grace period', async () => {
    const cwd = folder();
    const old = await add(cwd, 'ci');
    const gateway = await startHttp({ cwd });
    const session = await startSession(gateway, { headers: bearer(old) });
    const { stdout } = await runCli(['agents', 'rotate', 'ci', '--grace', '2s'], { cwd });
    const next = stdout.trim();
    await waitFor(async () => (await letIn(gateway, next)) === 200);
    expect(await letIn(gateway, old)).toBe(200);
    // The session belongs to the agent, whichever of its tokens is used.
    expect((await session.post(PING, bearer(next))).status).toBe(200);
    await waitFor(async () => (await letIn(gateway, old)) === 401);
    expect((await session.post(PING, bearer(next))).status).toBe(200);
  });

  it('refuses the old token at once without a grace period', async () => {
    const cwd = folder();
    const old = await add(cwd, 'ci');
    const gateway = await startHttp({ cwd });
    const { stdout } = await runCli(['agents', 'rotate', 'ci'], { cwd });
    await waitFor(async () => (await letIn(gateway, old)) === 401);
    expect(await letIn(gateway, stdout.trim())).toBe(200);
  });

  it('reports that a token has expired', async () => {
    const cwd = folder();
    const token = await add(cwd, 'ci', '--expires', '1s');
    const gateway = await startHttp({ cwd });
    const reply = await waitFor(async () => {
      const response = await gateway.post(initialize(), bearer(token));
      return response.status === 401 && response;
    });
    expect(reply.headers.get('www-authenticate')).toBe(
      'Bearer realm="toolgate", error="invalid_token", error_description="The token has expired"',
    );
    expect((await runCli(['doctor'], { cwd })).stdout).toContain('toolgate agents rotate ci');
  });

  it('keeps the known agents if the file is damaged', async () => {
    const cwd = folder();
    const token = await add(cwd, 'ci');
    const gateway = await startHttp({ cwd });
    writeFileSync(fileIn(cwd), 'oops');
    await waitFor(() => gateway.stderr().includes('is not a list of agents'));
    expect(await letIn(gateway, token)).toBe(200);
    expect((await gateway.post(initialize())).status).toBe(401);
  });

  it('accepts tokens of its configuration, also new ones, and hides their variables from servers', async () => {
    const agents = (hash: string) =>
      `${config}\n[agents.one]\ntoken = "\${ONE_TOKEN}"\n[agents.two]\ntoken_sha256 = ["${hash}"]\n`;
    const env = { ONE_TOKEN: 'the-token-of-agent-one' };
    const cwd = folder();
    const gateway = await startHttp({ cwd, config: agents(sha256('the-token-of-agent-two')), env });
    expect(await letIn(gateway, 'the-token-of-agent-one')).toBe(200);
    expect(await letIn(gateway, 'the-token-of-agent-two')).toBe(200);
    const session = await startSession(gateway, { headers: bearer('the-token-of-agent-one') });
    const asked = await session.ask('tools/call', { name: 'up_whoami', arguments: { env: ['ONE_TOKEN', 'PATH'] } });
    expect(JSON.stringify(asked)).toContain('\\"ONE_TOKEN\\":null');
    writeFileSync(join(cwd, 'tools.toml'), agents(sha256('another-token-of-agent-two')));
    await waitFor(async () => (await letIn(gateway, 'the-token-of-agent-two')) === 401);
    expect(await letIn(gateway, 'another-token-of-agent-two')).toBe(200);
    expect((await session.post(PING)).status).toBe(200);
  });

  it.each([
    ['token = "short"', 'is shorter than 16 characters'],
    ['token_sha256 = "abc"', 'is not a SHA-256 hash'],
    ['token = "${NOT_SET_ANYWHERE}"', 'NOT_SET_ANYWHERE is not set'],
    ['tokens = "x"', 'Did you mean "token"'],
  ])('does not start with an agent that has %s', async (line, why) => {
    const { code, stderr } = await runCli(['serve', '--port', '0'], { config: `[agents.ci]\n${line}\n` });
    expect([code, stderr]).toEqual([2, expect.stringContaining(why)]);
  });

  it('listens beyond loopback if an agent has a token', async () => {
    const cwd = folder();
    await add(cwd, 'ci');
    const child = startCli(['serve', '--port', '0', '--host', '0.0.0.0'], { cwd });
    await waitFor(() => child.stdout().includes('http://0.0.0.0:'));
    expect(child.stdout()).toContain('Bearer ${TOOLGATE_TOKEN}');
  });
});
