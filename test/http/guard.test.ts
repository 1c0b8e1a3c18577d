/**
 * Which hosts and origins are accepted. A page in a browser can reach loopback under a host name of its choice (DNS
 * rebinding).
 */
import { beforeAll, describe, expect, it } from 'vitest';
import { type HttpGateway, startHttp } from '../support/gateway.ts';
import { exchange, postLines, startSession } from '../support/raw-http.ts';

/** 400 means the request passed the guard: it only lacks a session. PORT stands for the port of the gateway. */
type Row = readonly [status: 400 | 403, what: string, lines: readonly string[]];

const strict: readonly Row[] = [
  [400, 'its address and port', ['Host: 127.0.0.1:PORT']],
  [400, 'its address without a port', ['Host: 127.0.0.1']],
  [400, 'localhost', ['Host: localhost:PORT']],
  [400, 'localhost in capitals', ['Host: LOCALHOST:PORT']],
  [400, 'localhost with a final dot', ['Host: localhost.:PORT']],
  [400, 'IPv6 loopback', ['Host: [::1]:PORT']],
  [400, 'IPv6 loopback without a port', ['Host: [::1]']],
  [400, 'another loopback address', ['Host: 127.0.0.2:PORT']],
  [400, 'IPv4 loopback inside of IPv6', ['Host: [::ffff:127.0.0.1]:PORT']],
  [400, 'another port, as behind a tunnel', ['Host: localhost:9']],
  [400, 'its own origin', ['Host: 127.0.0.1:PORT', 'Origin: http://127.0.0.1:PORT']],
  [400, 'its own origin by name', ['Host: localhost:PORT', 'Origin: http://localhost:PORT']],
  [400, 'its own origin over IPv6', ['Host: [::1]:PORT', 'Origin: http://[::1]:PORT']],
  [400, 'its own origin behind TLS', ['Host: localhost', 'Origin: https://localhost']],
  [403, 'a foreign host', ['Host: evil.example']],
  [403, 'a foreign host with the right port', ['Host: evil.example:PORT']],
  [403, 'a host that begins like ours', ['Host: localhost.evil.example']],
  [403, 'a host that ends like ours', ['Host: evil-localhost']],
  [403, 'an address that begins like ours', ['Host: 127.0.0.1.evil.example']],
  [403, 'a name that begins like a loopback address', ['Host: 127.evil.example']],
  [403, 'user information before the host', ['Host: evil.example@127.0.0.1:PORT']],
  [403, 'user information that looks like the host', ['Host: 127.0.0.1:PORT@evil.example']],
  [403, 'an empty host', ['Host:']],
  [403, 'a port that is none', ['Host: 127.0.0.1:x']],
  [403, 'an empty port', ['Host: 127.0.0.1:']],
  [403, 'two ports', ['Host: 127.0.0.1:1:2']],
  [403, 'IPv6 loopback without brackets', ['Host: ::1']],
  [403, 'another IPv6 address', ['Host: [::2]:PORT']],
  [403, 'loopback written as a number', ['Host: 2130706433:PORT']],
  [403, 'the unspecified address', ['Host: 0.0.0.0:PORT']],
  [403, 'another private address', ['Host: 192.168.0.1:PORT']],
  [403, 'a path in the host', ['Host: 127.0.0.1:PORT/x']],
  [403, 'two hosts, ours first', ['Host: 127.0.0.1:PORT', 'Host: evil.example']],
  [403, 'two hosts, ours last', ['Host: evil.example', 'Host: 127.0.0.1:PORT']],
  [403, 'a foreign origin', ['Host: 127.0.0.1:PORT', 'Origin: http://evil.example']],
  [403, 'the origin of a sandboxed page', ['Host: 127.0.0.1:PORT', 'Origin: null']],
  [403, 'an empty origin', ['Host: 127.0.0.1:PORT', 'Origin:']],
  [403, 'an origin of another port', ['Host: 127.0.0.1:PORT', 'Origin: http://127.0.0.1:1']],
  [403, 'an origin that begins like ours', ['Host: 127.0.0.1:PORT', 'Origin: http://127.0.0.1:PORT.evil.example']],
  [403, 'an origin with user information', ['Host: 127.0.0.1:PORT', 'Origin: http://127.0.0.1:PORT@evil.example']],
  [403, 'an origin of another scheme', ['Host: 127.0.0.1:PORT', 'Origin: file://127.0.0.1:PORT']],
  [
    403,
    'two origins, ours first',
    ['Host: 127.0.0.1:PORT', 'Origin: http://127.0.0.1:PORT', 'Origin: http://evil.example'],
  ],
  [
    403,
    'two origins, ours last',
    ['Host: 127.0.0.1:PORT', 'Origin: http://evil.example', 'Origin: http://127.0.0.1:PORT'],
  ],
  [403, 'a rebound name that is its own origin', ['Host: evil.example:PORT', 'Origin: http://evil.example:PORT']],
];

const configured: readonly Row[] = [
  [400, 'a host that is listed', ['Host: Gateway.example']],
  [400, 'a host that is listed, with a port', ['Host: gateway.example:443']],
  [400, 'an origin that is listed', ['Host: 127.0.0.1:PORT', 'Origin: https://app.example']],
  [403, 'a subdomain of a host that is listed', ['Host: x.gateway.example']],
  [403, 'an origin that is listed with another scheme', ['Host: 127.0.0.1:PORT', 'Origin: http://app.example']],
  [403, 'an origin below one that is listed', ['Host: 127.0.0.1:PORT', 'Origin: https://x.app.example']],
  [403, 'a host that is not listed with an origin that is', ['Host: evil.example', 'Origin: https://app.example']],
];

const send = (gateway: HttpGateway, lines: readonly string[]) =>
  postLines(
    gateway.origin,
    lines.map((line) => line.replaceAll('PORT', new URL(gateway.origin).port)),
  );

describe('the host and origin guard with default settings', () => {
  let gateway: HttpGateway;
  beforeAll(async () => {
    gateway = await startHttp({ config: '' });
  });

  it.each(strict)('answers %i to %s', async (status, _, lines) => {
    const reply = await send(gateway, lines);
    expect(reply.status, reply.body).toBe(status);
    expect(JSON.parse(reply.body)).toMatchObject({
      error: { data: { code: status === 403 ? 'forbidden' : 'session_missing' } },
    });
  });

  it('answers 403 to an empty Host in the very first request', async () => {
    const fresh = await startHttp({ config: '', ready: false });
    expect((await send(fresh, ['Host:'])).status).toBe(403);
  });

  it('answers 403 to HTTP/1.0 without a Host header', async () => {
    const reply = await exchange(gateway.origin, 'GET /mcp HTTP/1.0\r\nAccept: text/event-stream\r\n\r\n');
    expect(reply.status).toBe(403);
  });

  it.each(['GET', 'DELETE', 'OPTIONS', 'PUT'])('checks %s the same way as POST', async (verb) => {
    const lines = [`${verb} /mcp HTTP/1.1`, 'Host: evil.example', 'Accept: text/event-stream', 'Connection: close'];
    expect((await exchange(gateway.origin, `${lines.join('\r\n')}\r\n\r\n`)).status).toBe(403);
  });

  it('refuses the CORS preflight of an unknown origin', async () => {
    const headers = { origin: 'https://app.example', 'access-control-request-method': 'POST' };
    const reply = await fetch(gateway.url, { method: 'OPTIONS', headers });
    expect(reply.status).toBe(403);
    expect(reply.headers.get('access-control-allow-origin')).toBeNull();
  });

  it('answers health probes under any Host name', async () => {
    const lines = ['GET /health HTTP/1.1', 'Host: 10.0.0.7:8808', 'Connection: close'];
    expect((await exchange(gateway.origin, `${lines.join('\r\n')}\r\n\r\n`)).status).toBe(200);
  });
});

describe('the guard with allowed_hosts and allowed_origins', () => {
  let gateway: HttpGateway;
  const origin = 'https://app.example';
  beforeAll(async () => {
    const config = `[http]\nallowed_hosts = ["gateway.example", "Capital.Example"]\nallowed_origins = ["${origin}"]\n`;
    gateway = await startHttp({ config });
  });

  it.each([...strict, ...configured])('answers %i to %s', async (status, _, lines) => {
    expect((await send(gateway, lines)).status).toBe(status);
  });

  it('matches a host regardless of its spelling in the configuration', async () => {
    expect((await send(gateway, ['Host: capital.example'])).status).toBe(400);
  });

  it('allows the CORS preflight of a listed origin', async () => {
    const headers = { origin, 'access-control-request-method': 'POST' };
    const reply = await fetch(gateway.url, { method: 'OPTIONS', headers });
    expect(reply.status).toBe(204);
    expect(reply.headers.get('access-control-allow-origin')).toBe(origin);
    expect(reply.headers.get('access-control-allow-methods')).toBe('POST, GET, DELETE');
    expect(reply.headers.get('access-control-allow-headers')).toContain('mcp-session-id');
    expect(reply.headers.get('vary')).toBe('origin');
  });

  it('lets a listed origin read replies, the session id and errors', async () => {
    const session = await startSession(gateway, { headers: { origin } });
    const answered = await session.post('{"jsonrpc":"2.0","id":1,"method":"tools/list"}');
    const failed = await gateway.post('{"jsonrpc":"2.0","id":1,"method":"tools/list"}', {
      origin,
      'mcp-session-id': 'gone',
    });
    expect([answered.status, failed.status]).toEqual([200, 404]);
    for (const { headers } of [answered, failed]) {
      expect(headers.get('access-control-allow-origin')).toBe(origin);
      expect(headers.get('access-control-expose-headers')).toContain('mcp-session-id');
    }
  });

  it('sends an unlisted origin no readable reply', async () => {
    const reply = await gateway.post('{}', { origin: 'https://evil.example' });
    expect(reply.status).toBe(403);
    expect(reply.headers.get('access-control-allow-origin')).toBeNull();
  });
});
