/** The manager's doors: who gets in, which rules hold, what is recorded, and how it reaches the core. */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Agent, request } from 'undici';
import { expect, it } from 'vitest';
import { makeAuthority, serverPair } from '../support/certificates.ts';
import { untilPrinted } from '../support/child.ts';
import { atEnd } from '../support/cleanup.ts';
import { runCli, startCli } from '../support/cli.ts';
import { connectHttp } from '../support/connection.ts';
import { startHttp } from '../support/gateway.ts';
import { startManaged, TOKEN } from '../support/manager.ts';
import { connectModernHttp } from '../support/modern.ts';
import { isMissing } from '../support/needs.ts';
import { freePort } from '../support/ports.ts';
import { waitFor } from '../support/processes.ts';
import { tempFolder } from '../support/temp.ts';

const ts = (name: string, answer = 'one') =>
  `export const ${name} = { description: 'Tool ${name}.', inputSchema: { type: 'object' }, execute: () => '${answer}' };\n`;
const authorization = `Bearer ${TOKEN}`;

it('does not start without a credential, not even on loopback', async () => {
  const { code, stderr } = await runCli(['manager', '--port', '0'], { config: '' });
  expect([code, stderr]).toEqual([2, expect.stringContaining('does not listen without a credential')]);
});

it('answers clients of both eras and of HTTP+SSE, with the token only', async () => {
  const { url, connection } = await startManaged();
  expect(connection.client.getServerVersion()?.name).toBe('toolgate-manager');
  const modern = await connectModernHttp(url, { authorization });
  expect((await modern.client.listTools()).tools.map(({ name }) => name)).toContain('write_tool');
  const at = (path: string, headers: Record<string, string> = {}) => fetch(new URL(path, url), { headers });
  expect((await at('/health')).status).toBe(200);
  expect((await at('/mcp', { accept: 'text/event-stream' })).status).toBe(401);
  expect((await at('/sse', { accept: 'text/event-stream' })).status).toBe(401);
  const sse = await at('/sse', { accept: 'text/event-stream', authorization });
  expect(sse.headers.get('content-type')).toContain('text/event-stream');
  await sse.body!.cancel();
  expect(
    (await at('/mcp', { accept: 'text/event-stream', authorization, origin: 'https://evil.example' })).status,
  ).toBe(403);
  // It is not a core: nothing can be reloaded here.
  const reload = { method: 'POST', headers: { authorization, 'x-manager-token': 'of-the-manager' } };
  expect((await fetch(new URL('/reload', url), reload)).status).toBe(404);
});

it('follows the policy for the server _system, also if it is edited, and records every act', async () => {
  const agents = '[agents.reader]\ntoken = "token-of-the-reader"\n[agents.writer]\ntoken = "token-of-the-writer"\n';
  const policy = (reader: string) => `controls = []
${agents}
[agent_policies.reader]
allowed_servers = ["_system"]
[agent_policies.reader.tool_overrides]
_system = [${reader}]
[agent_policies.writer]
allowed_servers = ["_system", "web"]
[agent_policies.writer.tool_overrides]
_system = ["*"]
web = ["get"]
`;
  const files = { 'web/get.ts': ts('get') + ts('drop') };
  const dock = await startManaged({ config: policy('"list_*"'), files, token: 'token-of-the-reader' });
  const names = async () => (await dock.connection.client.listTools()).tools.map(({ name }) => name);
  expect(await names()).toEqual([
    'list_namespaces',
    'list_tools',
    'list_tool_versions',
    'list_requirements',
    'list_secrets',
  ]);
  const { isError, content } = await dock.connection.client
    .callTool({ name: 'delete_namespace', arguments: { name: 'web' } })
    .catch((error: Error) => ({ isError: true, content: error.message }));
  expect([isError, JSON.stringify(content)]).toEqual([true, expect.stringContaining('delete_namespace')]);
  writeFileSync(join(dock.cwd, 'tools.toml'), policy('"health"'));
  await waitFor(async () => (await names()).join() === 'health' || null);

  // A test runs under the policy for the core.
  const writer = await connectHttp(dock.url, { authorization: 'Bearer token-of-the-writer' });
  const test = async (tool: string) => {
    const called = await writer.client.callTool({
      name: 'test_tool',
      arguments: { namespace: 'web', tool_name: tool, input: {} },
    });
    return JSON.parse((called.content as [{ text: string }])[0].text) as unknown;
  };
  expect(await test('get')).toEqual({ success: true, result: 'one' });
  expect(await test('drop')).toMatchObject({
    success: false,
    error: expect.stringContaining('There is no tool "drop"'),
  });

  const logs = join(dock.cwd, '.toolgate/logs');
  const lines = () =>
    readdirSync(logs)
      .flatMap((file) => readFileSync(join(logs, file), 'utf8').split('\n'))
      .filter((line) => line.includes('_system'));
  await waitFor(() => lines().some((line) => line.includes('test_tool') && line.includes('writer')) || null);
});

it('asks a person for what security.confirm names', async () => {
  const config = 'controls = []\n[[security.confirm]]\ntools = ["_system.delete_namespace"]\n';
  const dock = await startManaged({ config, files: { 'web/get.ts': ts('get') } });
  const deleting = dock.call('delete_namespace', { name: 'web' }).catch((error: Error) => error);
  const approvals = (args: string[]) => runCli(['approvals', ...args], { cwd: dock.cwd, env: dock.env });
  const shown = await waitFor(async () => {
    const { stdout } = await approvals(['list', '--json']);
    const [first] = JSON.parse(stdout) as { id: string }[];
    return first ?? null;
  });
  expect(readdirSync(dock.tools)).toEqual(['web']);
  await approvals(['approve', shown.id, '--seen']);
  expect(await deleting).toEqual({ deleted: true, name: 'web' });
});

it('watches the folders and tells a core that does not watch them itself', async () => {
  const core = await startManaged({ files: { 'web/get.ts': ts('get') } });
  // A second manager, with its watch on. That of the core is off.
  const env = { ...core.env, CORE_URL: core.core.origin, ENABLE_FS_WATCHER: 'true', FS_WATCHER_DEBOUNCE_MS: '50' };
  const watching = startCli(['manager'], { cwd: core.cwd, env: { ...env, MANAGER_PORT: String(await freePort()) } });
  await untilPrinted(watching, /listening on/);
  writeFileSync(join(core.tools, 'web/more.ts'), ts('more'));
  const names = async () => {
    const answer = await fetch(`${core.core.origin}/ns/web/tools`, { headers: { authorization } });
    return ((await answer.json()) as { name: string }[]).map(({ name }) => name);
  };
  await waitFor(async () => (await names()).includes('more') || null, 30_000);
});

it('says what is wrong if the core is away or has another token', async () => {
  const dock = await startManaged({ files: { 'web/get.ts': ts('get') } });
  const at = async (more: Record<string, string>) => {
    const manager = startCli(['manager', '--port', '0'], {
      cwd: dock.cwd,
      env: { ...dock.env, CORE_URL: dock.core.origin, ...more },
    });
    const [, url] = await untilPrinted(manager, /listening on (http\S+)/);
    const { client } = await connectHttp(url!, { authorization });
    return async (name: string) => {
      const called = await client.callTool({ name, arguments: {} });
      return (called.content as [{ text: string }])[0].text;
    };
  };
  const away = await at({ CORE_URL: `http://127.0.0.1:${await freePort()}` });
  expect(await away('reload_core')).toContain('cannot be reached (ECONNREFUSED)');
  expect(JSON.parse(await away('health'))).toMatchObject({ core_reachable: false, problem: expect.any(String) });
  expect(JSON.parse(await away('list_namespaces'))).toEqual([
    expect.objectContaining({ name: 'web', tool_count: 1, state: 'unknown' }),
  ]);
  const other = await at({ MANAGER_INTERNAL_TOKEN: 'another' });
  expect(await other('reload_core')).toContain('MANAGER_INTERNAL_TOKEN');
});

it('has its address and its core from the configuration, unless variables say otherwise', async () => {
  const port = await freePort();
  const cwd = tempFolder({ 'tools.toml': `[manager]\nport = ${port}\ncore_url = "http://127.0.0.1:1/"\n` });
  const manager = startCli(['manager'], { cwd, env: { BEARER_TOKEN: TOKEN } });
  await untilPrinted(manager, new RegExp(`listening on http://127.0.0.1:${port}/mcp`));
  const { client } = await connectHttp(`http://127.0.0.1:${port}/mcp`, { authorization });
  const { content } = await client.callTool({ name: 'server_config', arguments: {} });
  expect(JSON.parse((content as [{ text: string }])[0].text)).toMatchObject({
    manager_port: port,
    core_url: 'http://127.0.0.1:1',
  });
  const wrong = await runCli(['manager'], { cwd, env: { BEARER_TOKEN: TOKEN, MANAGER_PORT: 'x' } });
  expect([wrong.code, wrong.stderr]).toEqual([2, expect.stringContaining('MANAGER_PORT')]);
});

it.skipIf(isMissing('openssl'))('has TLS like its core, and checks the certificate of the core', async () => {
  const authority = makeAuthority();
  const { cert, key } = serverPair(authority);
  const tls = `[http.tls]\ncert = ${JSON.stringify(cert)}\nkey = ${JSON.stringify(key)}\n`;
  const cwd = tempFolder({ 'tools.toml': `controls = []\n${tls}`, '.toolgate/tools/web/get.ts': ts('get') });
  const env = { BEARER_TOKEN: TOKEN, MANAGER_INTERNAL_TOKEN: 'of-the-manager' };
  const core = await startHttp({ cwd, env, ready: false });
  const health = async (more: Record<string, string>) => {
    const manager = startCli(['manager', '--port', '0'], { cwd, env: { ...env, CORE_URL: core.origin, ...more } });
    const [, url] = await untilPrinted(manager, /listening on (https:\S+)\/mcp/);
    const dispatcher = new Agent({ connect: { ca: readFileSync(authority.cert) } });
    atEnd(() => dispatcher.close());
    const answer = await request(`${url}/tools/health`, {
      method: 'POST',
      headers: { authorization, 'content-type': 'application/json' },
      body: '{}',
      dispatcher,
    });
    return answer.body.json();
  };
  expect(await health({ CORE_CA: authority.cert })).toMatchObject({ core_reachable: true });
  // Nobody here knows the authority, but the certificate is that of the same configuration.
  expect(await health({})).toMatchObject({ core_reachable: true });
  expect(await health({ CORE_CA: makeAuthority().cert })).toMatchObject({ core_reachable: false });
  const wrong = await runCli(['manager'], { cwd, env: { ...env, CORE_CA: 'missing.pem' } });
  expect([wrong.code, wrong.stderr]).toEqual([expect.any(Number), expect.stringContaining('manager.core_ca')]);
  expect(wrong.code).not.toBe(0);
});

it.skipIf(isMissing('openssl'))('is waited for by its configuration, with TLS too', async () => {
  const authority = makeAuthority();
  const { cert, key } = serverPair(authority);
  const [corePort, port] = [await freePort(), await freePort()];
  const tls = (own: { cert: string; key: string }) =>
    `[http.tls]\ncert = ${JSON.stringify(own.cert)}\nkey = ${JSON.stringify(own.key)}\n`;
  const cwd = tempFolder({ 'tools.toml': `controls = []\n${tls({ cert, key })}` });
  const env = { BEARER_TOKEN: TOKEN, CORE_PORT: String(corePort), MANAGER_PORT: String(port) };
  const wait = (args: string[] = [], at = cwd) => runCli(['wait', ...args, '--timeout', '10s'], { cwd: at, env });
  expect((await runCli(['wait', '--timeout', '1s'], { cwd, env })).code).toBe(1);
  const core = startCli(['serve', '--no-manager'], { cwd, env });
  await untilPrinted(core, /listening on https/);
  const manager = startCli(['manager'], { cwd, env });
  await untilPrinted(manager, /listening on https/);
  expect(await wait()).toMatchObject({ code: 0, stderr: `https://127.0.0.1:${corePort} is ready.\n` });
  expect(await wait(['--manager'])).toMatchObject({ code: 0, stderr: `https://127.0.0.1:${port} is ready.\n` });
  // Another server at that port is not taken for it.
  const other = tempFolder({ 'tools.toml': tls(serverPair(makeAuthority())) });
  const refused = await runCli(['wait', '--timeout', '1s'], { cwd: other, env });
  expect([refused.code, refused.stderr]).toEqual([
    1,
    expect.stringContaining('neither that of http.tls.cert nor valid'),
  ]);
  const mixed = await wait(['--manager', 'http://127.0.0.1:1']);
  expect([mixed.code, mixed.stderr]).toEqual([2, expect.stringContaining('leave the address out')]);
});
