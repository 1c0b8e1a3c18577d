/**
 * `http.trust_agent_header`. Off: the header is ignored. On: it names agents without their own credential, and never
 * grants admin.
 */
import { describe, expect, it } from 'vitest';
import { runCli, startCli } from '../support/cli.ts';
import { type HttpGateway, startHttp } from '../support/gateway.ts';
import { waitFor } from '../support/processes.ts';
import { initialize, PING, postLines, startSession } from '../support/raw-http.ts';
import { logged, replaceFile } from '../support/running-gateway.ts';
import { server, serversToml } from '../support/server.ts';
import { tempFolder, writeFiles } from '../support/temp.ts';

const TRUST = '[http]\ntrust_agent_header = true\n';
const servers = serversToml({ up: server('basic') });
const TOKEN = 'the-token-of-everybody';
const bearer = (token = TOKEN) => ({ authorization: `Bearer ${token}` });
const named = (name: string) => ({ 'x-agent-id': name });

/** The agent of a call according to the log. */
async function agentOf(gateway: HttpGateway, headers: Record<string, string>): Promise<string> {
  const session = await startSession(gateway, { headers });
  const before = gateway.stderr().length;
  await session.ask('tools/call', { name: 'up_count', arguments: {} });
  return waitFor(() => /for \\"(.*?)\\"/.exec(gateway.stderr().slice(before))?.[1]);
}

const start = (config: string, env: Record<string, string> = {}) =>
  startHttp({ config: `controls = []\n${config}\n${servers}`, env, args: ['--log-level', 'debug'] });

describe('without trust_agent_header', () => {
  it('the header is ignored, with or without a token', async () => {
    const open = await start('');
    expect(await agentOf(open, named('ci'))).toBe('anonymous');
    const closed = await start('', { BEARER_TOKEN: TOKEN });
    expect(await agentOf(closed, { ...bearer(), ...named('ci') })).toBe('default');
    expect((await closed.post(initialize(), named('default'))).status).toBe(401);
  });
});

describe('with trust_agent_header and no credential', () => {
  it('the header names the agent, and a session belongs to its agent', async () => {
    const gateway = await start(TRUST);
    expect(await agentOf(gateway, named('ci'))).toBe('ci');
    expect(await agentOf(gateway, {})).toBe('anonymous');
    const session = await startSession(gateway, { headers: named('ci') });
    expect((await session.post(PING)).status).toBe(200);
    expect((await session.post(PING, named('reviewer'))).status).toBe(404);
    expect((await gateway.post(PING, { 'mcp-session-id': session.id })).status).toBe(404);
  });

  it.each([
    ['empty', ['X-Agent-Id:']],
    ['a path', ['X-Agent-Id: ../ci']],
    ['two words', ['X-Agent-Id: a b']],
    ['overlong', [`X-Agent-Id: ${'a'.repeat(65)}`]],
    ['there twice', ['X-Agent-Id: ci', 'X-Agent-Id: ci']],
    ['with another letter', ['X-Agent-Id: cié']],
  ])('a header that is %s is refused', async (_, lines) => {
    const gateway = await start(TRUST);
    const reply = await postLines(gateway.origin, ['Host: 127.0.0.1', ...lines], initialize());
    expect([reply.status, reply.body]).toEqual([400, expect.stringContaining('X-Agent-Id')]);
  });

  it('does not listen beyond loopback unless the names of the gateway are listed', async () => {
    const { code, stderr } = await runCli(['serve', '--port', '0', '--host', '0.0.0.0'], { config: TRUST });
    expect([code, stderr]).toEqual([2, expect.stringContaining('http.allowed_hosts')]);
  });

  it('accepts only listed names, so that a page cannot reach it under its own', async () => {
    const config = `${TRUST}allowed_hosts = ["tools.internal"]\n`;
    const child = startCli(['serve', '--port', '0', '--host', '0.0.0.0'], { config });
    const port = await waitFor(() => /0\.0\.0\.0:(\d+)/.exec(child.stdout())?.[1]);
    const statusOf = async (host: string) =>
      (await postLines(`http://127.0.0.1:${port}`, [`Host: ${host}`, 'X-Agent-Id: admin'], initialize())).status;
    expect(await statusOf('evil.example')).toBe(403);
    expect(await statusOf('tools.internal')).toBe(200);
    expect(child.stdout()).toContain('everyone who can reach this address may connect');
    expect(child.stdout()).not.toContain('this machine may connect');
  });

  it('listens on any address, and prints a warning', async () => {
    const config = `${TRUST}allowed_hosts = ["tools.internal"]\n`;
    const child = startCli(['serve', '--port', '0', '--host', '0.0.0.0', '--log-level', 'silent'], { config });
    await waitFor(() => child.stdout().includes('http://0.0.0.0:'));
    expect(child.stderr()).toMatch(/warning: http\.trust_agent_header is on .* can use every tool, as any agent/);
    const { code, stdout } = await runCli(['doctor'], { config: TRUST });
    expect([code, stdout]).toEqual([1, expect.stringContaining('http.trust_agent_header')]);
  });
});

it('every origin is allowed only together with a credential', async () => {
  const config = '[http]\nallowed_origins = ["*"]\n';
  const { code, stderr } = await runCli(['serve', '--port', '0'], { config });
  expect([code, stderr]).toEqual([2, expect.stringContaining('http.allowed_origins')]);
  const closed = await startHttp({ config, env: { BEARER_TOKEN: TOKEN } });
  expect((await closed.post(initialize(), { ...bearer(), origin: 'https://a.example' })).status).toBe(200);
});

it('an edit that allows every origin without a credential lets no page in', async () => {
  const cwd = tempFolder({ 'tools.toml': '[http]\nallowed_origins = ["https://good.example"]\n' });
  const gateway = await startHttp({ cwd, args: ['--log-level', 'info'] });
  const from = async (origin: string) => (await gateway.post(initialize(), { origin })).status;
  expect([await from('https://good.example'), await from('https://evil.example')]).toEqual([200, 403]);
  replaceFile(cwd, '[http]\nallowed_origins = ["*"]\n');
  await logged(gateway, 'configuration: ');
  expect([await from('https://evil.example'), await from('null')]).toEqual([403, 403]);
});

it('agents by header are refused when trust_agent_header is switched off, and accepted when it is on again', async () => {
  const cwd = tempFolder({ 'tools.toml': `${TRUST}allowed_hosts = ["tools.internal"]\n` });
  const child = startCli(['serve', '--port', '0', '--host', '0.0.0.0'], { cwd });
  const port = await waitFor(() => /0\.0\.0\.0:(\d+)/.exec(child.stdout())?.[1]);
  const statusOf = async () =>
    (await postLines(`http://127.0.0.1:${port}`, ['Host: 127.0.0.1', 'X-Agent-Id: ci'], initialize())).status;
  expect(await statusOf()).toBe(200);
  writeFiles(cwd, { 'tools.toml': '' });
  await waitFor(async () => (await statusOf()) === 401);
  writeFiles(cwd, { 'tools.toml': `${TRUST}allowed_hosts = ["tools.internal"]\n` });
  await waitFor(async () => (await statusOf()) === 200);
});

describe('with trust_agent_header and credentials', () => {
  const config = `${TRUST}admins = ["default", "ops"]\n[agents.ops]\ntoken = "the-token-of-ops-0"\n[agents.ci]\ntoken = "the-token-of-ci-00"\n`;

  it('a credential is still required', async () => {
    const gateway = await start(config, { BEARER_TOKEN: TOKEN });
    expect((await gateway.post(initialize(), named('ci'))).status).toBe(401);
    expect((await gateway.post(initialize(), { ...named('ci'), ...bearer('wrong') })).status).toBe(401);
  });

  it('the header names only clients that use BEARER_TOKEN', async () => {
    const gateway = await start(config, { BEARER_TOKEN: TOKEN });
    expect(await agentOf(gateway, { ...bearer(), ...named('reviewer') })).toBe('reviewer');
    expect(await agentOf(gateway, bearer())).toBe('default');
    expect(await agentOf(gateway, { ...bearer('the-token-of-ci-00'), ...named('reviewer') })).toBe('ci');
  });

  it('a client that only names an agent cannot use a session that the agent opened by its token', async () => {
    const gateway = await start(config, { BEARER_TOKEN: TOKEN });
    const session = await startSession(gateway, { headers: bearer('the-token-of-ci-00') });
    expect((await session.post(PING, { ...bearer(), ...named('ci') })).status).toBe(404);
  });

  it('the header never grants admin', async () => {
    const gateway = await start(config, { BEARER_TOKEN: TOKEN });
    const metrics = async (headers: Record<string, string>) =>
      (await fetch(`${gateway.origin}/metrics`, { headers })).status;
    expect(await metrics(bearer())).toBe(200);
    expect(await metrics({ ...bearer(), ...named('default') })).toBe(200);
    expect(await metrics({ ...bearer(), ...named('ops') })).toBe(403);
    expect(await metrics({ ...bearer(), ...named('ci') })).toBe(403);
    expect(await metrics({ ...bearer('the-token-of-ci-00'), ...named('ops') })).toBe(403);
    expect(await metrics(bearer('the-token-of-ops-0'))).toBe(200);
  });
});
