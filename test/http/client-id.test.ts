/** `http.require_client_id`: clients have to say who they are, with a stable id. */
import { describe, expect, it } from 'vitest';
import { connectHttp } from '../support/connection.ts';
import { startHttp } from '../support/gateway.ts';
import { connectModernHttp } from '../support/modern.ts';
import { server } from '../support/server.ts';

const toml = (more: string) =>
  `controls = []\n[http]\n${more}\n[[servers]]\nnamespace = "b"\ncommand = ${JSON.stringify(server('basic'))}\n`;
const REQUIRED = { 'tools.toml': toml('require_client_id = true') };

describe('with http.require_client_id', () => {
  it('/mcp answers 400 with clear words without the header, for every method and at /sse', async () => {
    const { origin } = await startHttp({ files: REQUIRED });
    for (const [method, path] of [
      ['POST', '/mcp'],
      ['GET', '/mcp'],
      ['DELETE', '/mcp'],
      ['GET', '/sse'],
      ['POST', '/ns/b/mcp'],
    ] as const) {
      const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };
      const reply = await fetch(origin + path, { method, headers, ...(method === 'POST' && { body: '{}' }) });
      expect([method, path, reply.status]).toEqual([method, path, 400]);
      expect(await reply.text()).toContain('Missing mcp-client-id: send a stable id of the client in that header.');
    }
    const spaced = await fetch(`${origin}/mcp`, { method: 'POST', headers: { 'mcp-client-id': 'a b' }, body: '{}' });
    expect([spaced.status, await spaced.text()]).toEqual([400, expect.stringContaining('without spaces')]);
    expect((await fetch(`${origin}/health`)).status).toBe(200);
  });

  it('clients of both eras that send it are served', async () => {
    const { url } = await startHttp({ files: REQUIRED });
    const headers = { 'mcp-client-id': 'me' };
    expect((await (await connectHttp(url, headers)).client.listTools()).tools.length).toBeGreaterThan(0);
    expect((await (await connectModernHttp(url, headers)).client.listTools()).tools.length).toBeGreaterThan(0);
    await expect(connectHttp(url)).rejects.toThrow('Missing mcp-client-id');
  });
});

it('without it, no client needs the header', async () => {
  const { url } = await startHttp({ files: { 'tools.toml': toml('') } });
  expect((await (await connectHttp(url)).client.listTools()).tools.length).toBeGreaterThan(0);
});
