/** `GET /`: what a person or a program sees that opens the address of the gateway. */
import { createHash } from 'node:crypto';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { beforeAll, describe, expect, it } from 'vitest';
import { configFromValue, createHttpDoor, openGateway, VERSION } from '../../src/index.ts';
import { atEnd } from '../support/cleanup.ts';
import { type HttpGateway, startHttp } from '../support/gateway.ts';
import { exchange } from '../support/raw-http.ts';
import { server, serversToml } from '../support/server.ts';
import { tempFolder } from '../support/temp.ts';

const BROWSER = 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8';

describe('the address of a gateway', () => {
  let open: HttpGateway;
  let closed: HttpGateway;
  beforeAll(async () => {
    const config = serversToml({ hidden: server('basic', '--tools', 'unnamed') });
    [open, closed] = await Promise.all([
      startHttp({ config }),
      startHttp({
        config: `${config}[http]\npublic_url = "https://t.example.com/a&b/mcp"`,
        env: { BEARER_TOKEN: 'of-a-client' },
      }),
    ]);
  });
  const get = (gateway: HttpGateway, accept: string) => fetch(`${gateway.origin}/`, { headers: { accept } });

  it('is a page for a browser, with the address to connect to', async () => {
    const response = await get(open, BROWSER);
    const text = await response.text();
    expect([response.status, response.headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8']);
    expect(text).toContain(`Toolgate <small>${VERSION}</small>`);
    expect(text).toContain(`<pre>claude mcp add --transport http toolgate ${open.url}</pre>`);
    for (const [, path] of text.matchAll(/href="([^"]*)"/g))
      expect((await fetch(open.origin + path!)).status).toBe(200);
    expect(text).not.toMatch(/src=|<script|Authorization/);
  });

  it('may load nothing, must be asked for again, and is sent in one form per reader', async () => {
    const { headers } = await get(open, BROWSER);
    const policy = headers.get('content-security-policy')!;
    const style = /<style>(.*)<\/style>/s.exec(await (await get(open, BROWSER)).text())![1]!;
    expect(policy).toBe(
      `default-src 'none'; style-src 'sha256-${createHash('sha256').update(style).digest('base64')}'; ` +
        "base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    );
    expect(headers.get('vary')).toBe('accept, cookie');
    expect(headers.get('cache-control')).toBe('no-cache');
    expect(headers.get('x-content-type-options')).toBe('nosniff');
  });

  it('is text or JSON for programs', async () => {
    const text = await get(open, '*/*');
    expect(text.headers.get('content-type')).toBe('text/plain; charset=utf-8');
    expect(await text.text()).toContain(`Toolgate ${VERSION}\nOne gateway`);
    expect(await (await get(open, 'application/json')).json()).toEqual({
      name: 'toolgate',
      version: VERSION,
      mcp: open.url,
      needsToken: false,
      docs: '/docs',
      health: '/health',
    });
    const head = await fetch(`${open.origin}/`, { method: 'HEAD' });
    expect([head.status, await head.text(), Number(head.headers.get('content-length')) > 100]).toEqual([200, '', true]);
  });

  it('needs no token, says that clients do, and names neither servers nor tools', async () => {
    for (const accept of [BROWSER, '*/*', 'application/json']) {
      const response = await get(closed, accept);
      const text = await response.text();
      expect(response.status).toBe(200);
      expect(text).toMatch(
        accept === BROWSER ? /https:\/\/t\.example\.com\/a&#38;b\/mcp/ : /t\.example\.com\/a&b\/mcp/,
      );
      expect(text).toMatch(accept === 'application/json' ? /"needsToken":true/ : /Authorization: Bearer \$TOKEN/);
      expect(text).not.toMatch(/hidden|unnamed|of-a-client/);
    }
  });

  it('is guarded like every other path', async () => {
    const asked = async (...lines: string[]) =>
      (await exchange(open.origin, ['GET / HTTP/1.1', ...lines, 'Connection: close', '', ''].join('\r\n'))).status;
    expect(await asked('Host: evil.example')).toBe(403);
    expect(await asked(`Host: ${new URL(open.origin).host}`, 'Origin: https://evil.example')).toBe(403);
    expect((await fetch(`${open.origin}/?access_token=x`)).status).toBe(400);
    expect((await fetch(`${open.origin}/`, { method: 'PUT' })).status).toBe(405);
  });

  it('tells a client where MCP is', async () => {
    for (const response of [await open.post('{}', {}, '/'), await get(open, 'text/event-stream')]) {
      expect(response.status).toBe(404);
      expect(await response.text()).toContain('MCP is at /mcp');
    }
  });
});

it('belongs to the program that a gateway is part of, unless the door has a path of its own', async () => {
  const gateway = await openGateway(configFromValue({}, { cwd: tempFolder(), env: {} }));
  atEnd(() => gateway.close());
  const door = await createHttpDoor(gateway);
  const below = await createHttpDoor(gateway, { basePath: '/gateway' });
  atEnd(async () => void (await Promise.all([door.close(), below.close()])));
  expect([door.serves('/'), door.serves('/mcp'), below.serves('/'), below.serves('/gateway')]).toEqual([
    false,
    true,
    false,
    true,
  ]);
  const program = createServer(below.handle);
  await new Promise<void>((resolve) => program.listen(0, '127.0.0.1', resolve));
  atEnd(() => program.close());
  const origin = `http://127.0.0.1:${(program.address() as AddressInfo).port}`;
  const text = await (await fetch(`${origin}/gateway`)).text();
  expect(text).toContain(`MCP is at ${origin}/gateway/mcp`);
  expect(text).toContain('Health: /gateway/health');
});
