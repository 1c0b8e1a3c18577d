/** The variables of .env.example: each has its documented effect, and the file is valid unchanged. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { beforeAll, describe, expect, it } from 'vitest';
import { loadConfig } from '../../src/index.ts';
import { atEnd } from '../support/cleanup.ts';
import { type Run, runCli, startCli } from '../support/cli.ts';
import { tsTool } from '../support/dock.ts';
import { root } from '../support/docs-page.ts';
import { type HttpGateway, startHttp } from '../support/gateway.ts';
import { connectModernHttp } from '../support/modern.ts';
import { waitFor } from '../support/processes.ts';
import { initialize, PING, startSession } from '../support/raw-http.ts';
import { server, serversToml } from '../support/server.ts';
import { tempFolder, writeFiles } from '../support/temp.ts';

const lines = readFileSync(join(root, '.env.example'), 'utf8').matchAll(/^(?:# )?([A-Z_]+)=(.*)$/gm);
const example = Object.fromEntries([...lines].map(([, name, value]) => [name!, value!]));

it('.env.example is valid unchanged, and every variable in it is documented', async () => {
  const { SECRETS_KEY_FILE: _, ...env } = example;
  const config = await loadConfig({ cwd: tempFolder({ 'tools.toml': '' }), env });
  expect(config).toMatchObject({
    dataDir: '/data',
    http: { port: 8808, sse: true, sessionTtl: 86_400_000, allowedOrigins: [] },
    audit: { retention: 30 },
    folders: { watch: true, debounce: 300, timeout: 60_000, concurrency: 64 },
    revisions: ['2026-07-28', '2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05'],
  });
  const pages = ['configuration', 'secrets']
    .map((name) => readFileSync(join(root, `docs/${name}.md`), 'utf8'))
    .join('');
  for (const name of Object.keys(example)) expect(pages).toContain(`\`${name}\``);
});

it('an invalid environment variable is named in the error', async () => {
  const env = { CORE_PORT: '70000', MCP_SUPPORTED_VERSIONS: '2020-01-01', MCP_SESSION_TTL_HOURS: 'long' };
  const loading = loadConfig({ cwd: tempFolder({ 'tools.toml': '' }), env });
  await expect(loading).rejects.toThrow(
    /CORE_PORT is not a port.*MCP_SESSION_TTL_HOURS is not.*MCP_SUPPORTED_VERSIONS is not/s,
  );
  const { code, stderr } = await runCli(['list', 'servers'], { config: '', env: { LOG_LEVEL: 'loud' } });
  expect([code, stderr]).toEqual([2, expect.stringContaining('debug, info, warn, error, silent, not "loud"')]);
});

/** Sets a secret on the command line, with these variables. */
async function setSecret(cwd: string, env: Record<string, string>): Promise<Run> {
  const child = startCli(['secrets', 'set', 'A_SECRET', '--stdin'], { cwd, env });
  child.stdin.end('a value');
  const { code } = await child.exited;
  return { code, stdout: child.stdout(), stderr: child.stderr() };
}

describe('environment variables', () => {
  const bearer = { authorization: 'Bearer of-the-client' };
  const key = 'a key that is only for tests';
  const TOOLS =
    'let running = 0;\n' +
    tsTool('long', 'await new Promise((resolve) => setTimeout(resolve, 60_000)); return "late";') +
    tsTool(
      'together',
      'running++; await new Promise((r) => setTimeout(r, 100)); const seen = running; running--; return String(seen);',
    );
  const env = {
    BEARER_TOKEN: 'of-the-client',
    MANAGER_INTERNAL_TOKEN: 'of-the-manager',
    INTERNAL_ALLOWED_CIDRS: '127.0.0.0/8',
    DATA_DIR: 'volume',
    LOG_LEVEL: 'debug',
    LOG_RETENTION_DAYS: '1',
    CORS_ORIGINS: 'https://app.example',
    MCP_SESSION_TTL_HOURS: '0.0003',
    MCP_SUPPORTED_VERSIONS: '2025-06-18,2025-03-26',
    ENABLE_LEGACY_MCP: 'false',
    ENABLE_FS_WATCHER: 'false',
    TOOL_CALL_TIMEOUT_SECONDS: '0.5',
    NAMESPACE_MAX_CONCURRENCY: '1',
  };
  /** A gateway with all variables that need one. */
  let gateway: HttpGateway;
  beforeAll(async () => {
    const cwd = tempFolder({ 'volume/tools/slow/slow.ts': TOOLS, 'volume/logs/2020-01-01.jsonl': '' });
    gateway = await startHttp({ config: `audit.enabled = true\n${serversToml({ up: server('basic') })}`, cwd, env });
    await waitFor(async () => (await tools()).includes('slow_together'));
  });

  const tools = async () => {
    const response = await fetch(`${gateway.origin}/tools`, { headers: bearer });
    return ((await response.json()) as { tools: { name: string }[] }).tools.map(({ name }) => name);
  };
  const call = (tool: string) => fetch(`${gateway.origin}/tools/${tool}`, { method: 'POST', headers: bearer });
  const reload = (headers: Record<string, string>) =>
    fetch(`${gateway.origin}/reload`, { method: 'POST', headers: { ...bearer, ...headers } });

  /** What each variable does. */
  const effects: Record<string, () => Promise<void>> = {
    async BEARER_TOKEN() {
      expect((await fetch(`${gateway.origin}/tools`)).status).toBe(401);
      expect((await fetch(`${gateway.origin}/tools`, { headers: bearer })).status).toBe(200);
    },
    async MANAGER_INTERNAL_TOKEN() {
      expect((await reload({ 'x-manager-token': 'another' })).status).toBe(403);
      expect((await reload({ 'x-manager-token': 'of-the-manager' })).status).toBe(200);
    },
    async INTERNAL_ALLOWED_CIDRS() {
      const away = await startHttp({ config: '', env: { ...env, INTERNAL_ALLOWED_CIDRS: '10.0.0.0/8' } });
      const headers = { ...bearer, 'x-manager-token': 'of-the-manager' };
      expect((await fetch(`${away.origin}/reload`, { method: 'POST', headers })).status).toBe(403);
    },
    async CORE_PORT() {
      const taken = createServer();
      await new Promise<void>((resolve) => taken.listen(0, '127.0.0.1', resolve));
      atEnd(() => taken.close());
      const { port } = taken.address() as AddressInfo;
      const { code, stderr } = await runCli(['serve'], { config: '', env: { CORE_PORT: String(port) } });
      expect([code, stderr]).toEqual([2, expect.stringMatching(new RegExp(`${port}\\b.*is in use`))]);
    },
    async DATA_DIR() {
      expect(existsSync(join(gateway.cwd, 'volume/venvs/slow.node'))).toBe(true);
      expect(existsSync(join(gateway.cwd, '.toolgate'))).toBe(false);
    },
    async SECRETS_KEY() {
      const cwd = tempFolder({ 'tools.toml': '' });
      expect((await setSecret(cwd, {})).code).toBe(2);
      expect((await setSecret(cwd, { SECRETS_KEY: key })).code).toBe(0);
      expect((await setSecret(cwd, { SECRETS_KEY: `not ${key}` })).code).toBe(2);
    },
    async SECRETS_KEY_FILE() {
      const cwd = tempFolder({ 'tools.toml': '' });
      writeFileSync(join(cwd, 'key'), key, { mode: 0o600 });
      expect((await setSecret(cwd, { SECRETS_KEY_FILE: 'key' })).code).toBe(0);
      expect((await setSecret(cwd, { SECRETS_KEY: key })).code).toBe(0);
    },
    async ALLOW_INSECURE_SECRETS() {
      const cwd = tempFolder({ 'tools.toml': '' });
      expect((await setSecret(cwd, { ALLOW_INSECURE_SECRETS: '0' })).code).toBe(2);
      expect(await setSecret(cwd, { ALLOW_INSECURE_SECRETS: '1' })).toMatchObject({
        code: 0,
        stderr: expect.stringContaining('ALLOW_INSECURE_SECRETS is set'),
      });
    },
    async LOG_LEVEL() {
      await call('up_echo');
      await waitFor(() => gateway.stderr().includes('"level":"debug"'));
      const quiet = await runCli(['list'], {
        config: serversToml({ bad: server('crash', '--crash-on-start') }),
        env: { LOG_LEVEL: 'error' },
      });
      expect(quiet.stderr).not.toContain('"level":"warn"');
    },
    async LOG_RETENTION_DAYS() {
      await call('up_echo');
      await waitFor(() => !existsSync(join(gateway.cwd, 'volume/logs/2020-01-01.jsonl')));
    },
    async CORS_ORIGINS() {
      const from = async (origin: string) => {
        const { status, headers } = await fetch(`${gateway.origin}/tools`, { headers: { ...bearer, origin } });
        return [status, headers.get('access-control-allow-origin')];
      };
      expect(await from('https://app.example')).toEqual([200, 'https://app.example']);
      expect(await from('https://other.example')).toEqual([403, null]);
      const open = await startHttp({ config: '', env: { CORS_ORIGINS: '*', BEARER_TOKEN: 'for-every-page' } });
      const token = { authorization: 'Bearer for-every-page' };
      const reply = await open.post(initialize(), { ...token, origin: 'https://anywhere.example' });
      expect(reply.headers.get('access-control-allow-origin')).toBe('https://anywhere.example');
    },
    async MCP_SESSION_TTL_HOURS() {
      const session = await startSession(gateway, { headers: bearer, revision: '2025-06-18' });
      expect((await session.post(PING)).status).toBe(200);
      // 0.0003 hours are 1.08 seconds.
      await sleep(1_300);
      expect((await session.post(PING)).status).toBe(404);
    },
    async MCP_SUPPORTED_VERSIONS() {
      const agreed = async (wanted: string) => {
        const response = await gateway.post(initialize(wanted), bearer);
        return ((await response.json()) as { result: { protocolVersion: string } }).result.protocolVersion;
      };
      expect(await agreed('2025-03-26')).toBe('2025-03-26');
      expect(await agreed('2025-11-25')).toBe('2025-06-18');
      const headers = { ...bearer, 'mcp-protocol-version': '2025-11-25' };
      expect((await gateway.post(initialize(), headers)).status).toBe(400);
      await expect(connectModernHttp(gateway.url, bearer)).rejects.toThrow();
      const modern = await startHttp({ config: '', env: { MCP_SUPPORTED_VERSIONS: '2026-07-28' } });
      const refused = await modern.post(initialize());
      expect(await refused.json()).toMatchObject({ error: { data: { code: 'version_unsupported' } } });
      await connectModernHttp(modern.url);
    },
    async ENABLE_LEGACY_MCP() {
      expect((await fetch(`${gateway.origin}/sse`, { headers: bearer })).status).toBe(404);
    },
    async ENABLE_FS_WATCHER() {
      writeFiles(gateway.cwd, { 'volume/tools/later/later.ts': tsTool('later', 'return "x";') });
      await sleep(1_000);
      expect(await tools()).not.toContain('later_later');
      await reload({ 'x-manager-token': 'of-the-manager' });
      await waitFor(async () => (await tools()).includes('later_later'));
    },
    async FS_WATCHER_DEBOUNCE_MS() {
      const cwd = tempFolder({ '.toolgate/tools/a/a.ts': tsTool('first', 'return "x";') });
      const patient = await startHttp({ config: 'controls = []', cwd, env: { FS_WATCHER_DEBOUNCE_MS: '2500' } });
      const { client } = await patient.connect();
      const has = async (name: string) => (await client.listTools()).tools.some((tool) => tool.name === name);
      await waitFor(() => has('a_first'));
      writeFiles(cwd, { '.toolgate/tools/a/a.ts': tsTool('second', 'return "x";') });
      const edited = performance.now();
      await waitFor(() => has('a_second'));
      expect(performance.now() - edited).toBeGreaterThan(2_300);
    },
    async TOOL_CALL_TIMEOUT_SECONDS() {
      expect((await call('slow_long')).status).toBe(504);
    },
    async NAMESPACE_MAX_CONCURRENCY() {
      const texts = await Promise.all([1, 2, 3].map(async () => (await call('slow_together')).text()));
      expect(texts).toEqual(['1', '1', '1']);
    },
  };

  it('have a test for each one in .env.example', () => {
    expect(Object.keys(effects)).toEqual(Object.keys(example));
  });

  it.each(Object.keys(effects))('%s has its documented effect', async (name) => {
    await effects[name]!();
  });
});
