/** The variables of .env.example: each has its documented effect, and the file is valid unchanged. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { loadConfig } from '../../src/index.ts';
import { root } from '../docs/page.ts';
import { initialize } from '../http/raw.ts';
import { startHttp } from '../support/gateway.ts';
import { connectModernHttp } from '../support/modern.ts';
import { server, serversToml } from '../support/server.ts';
import { tempFolder } from '../support/temp.ts';
import { runCli } from './run.ts';

const lines = readFileSync(join(root, '.env.example'), 'utf8').matchAll(/^(?:# )?([A-Z_]+)=(.*)$/gm);
const example = Object.fromEntries([...lines].map(([, name, value]) => [name!, value!]));

it('.env.example is valid unchanged, and every variable in it is documented', async () => {
  const { SECRETS_KEY_FILE: _, ...env } = example;
  const config = await loadConfig({ cwd: tempFolder({ 'tools.toml': '' }), env });
  expect(config).toMatchObject({
    dataDir: '/data',
    http: { port: 8000, sse: true, sessionTtl: 86_400_000, allowedOrigins: [] },
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

it('MCP_SUPPORTED_VERSIONS and CORS_ORIGINS limit the protocol revisions and origins of clients', async () => {
  const gateway = await startHttp({
    config: serversToml({ a: server('basic') }),
    env: { MCP_SUPPORTED_VERSIONS: '2025-06-18, 2025-03-26', CORS_ORIGINS: '*' },
  });
  const agreed = async (wanted: string) => {
    const response = await gateway.post(initialize(wanted), {
      origin: 'https://anywhere.example',
    });
    expect(response.headers.get('access-control-allow-origin')).toBe('https://anywhere.example');
    return ((await response.json()) as { result: { protocolVersion: string } }).result.protocolVersion;
  };
  expect(await agreed('2025-03-26')).toBe('2025-03-26');
  expect(await agreed('2025-11-25')).toBe('2025-06-18');
  expect((await gateway.post(initialize(), { 'mcp-protocol-version': '2025-11-25' })).status).toBe(400);
  await expect(connectModernHttp(gateway.url)).rejects.toThrow();
  const modern = await startHttp({ config: '', env: { MCP_SUPPORTED_VERSIONS: '2026-07-28' } });
  const refused = await modern.post(initialize());
  expect(await refused.json()).toMatchObject({ error: { message: expect.stringContaining('has no sessions') } });
  await connectModernHttp(modern.url);
});
