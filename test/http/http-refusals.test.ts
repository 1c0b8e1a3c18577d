/**
 * Requests that are not valid MCP over HTTP are refused with a status that says why, and do not affect other clients.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeAll, describe, expect, it } from 'vitest';
import { type HttpGateway, startHttp } from '../support/gateway.ts';
import { exchange, openSocket, PING, type RawSession, readReply, startSession } from '../support/raw-http.ts';
import { server, serversToml } from '../support/server.ts';

const MIB = 1024 * 1024;
let gateway: HttpGateway;
let session: RawSession;
beforeAll(async () => {
  const limits = '[limits]\nbody = "1MiB"\ndepth = 20\n';
  gateway = await startHttp({ config: `controls = []\n${limits}${serversToml({ up: server('basic') })}` });
  session = await startSession(gateway);
});
afterEach(async () => {
  expect((await session.post(PING)).status).toBe(200);
});

const codeOf = async (reply: Response) =>
  ((await reply.json()) as { error: { data: { code: string } } }).error.data.code;

describe('the HTTP method, path and media types', () => {
  it.each(['PUT', 'PATCH', 'OPTIONS'])('%s is answered with 405 and an Allow header', async (method) => {
    const reply = await fetch(gateway.url, { method, headers: session.headers });
    expect([reply.status, reply.headers.get('allow')]).toEqual([405, 'POST, GET, DELETE']);
  });

  it('HEAD is answered with 405 without a body', async () => {
    expect((await fetch(gateway.url, { method: 'HEAD', headers: session.headers })).status).toBe(405);
  });

  it.each(['/', '/mcp/', '/mcp/x', '//mcp', '/MCP', '/mcp%00'])('the path %s is answered with 404', async (path) => {
    expect((await gateway.post(PING, session.headers, path)).status).toBe(404);
  });

  it('a query string is ignored', async () => {
    expect((await gateway.post(PING, session.headers, '/mcp?x=1')).status).toBe(200);
  });

  it.each([
    ['application/json', 406],
    ['text/event-stream', 406],
    ['text/html', 406],
    ['', 406],
    ['application/json, text/event-stream', 200],
    ['text/event-stream;q=0.5,application/json;q=0.9', 200],
    ['*/*', 200],
  ])('a POST that accepts %j is answered with %i', async (accept, status) => {
    const reply = await session.post(PING, { accept });
    expect(reply.status).toBe(status);
    if (status === 406) expect(await codeOf(reply)).toBe('not_acceptable');
  });

  it('a GET that accepts only JSON is answered with 406', async () => {
    expect((await session.listen({ accept: 'application/json' })).response.status).toBe(406);
  });

  it('a GET without an Accept header is answered with 406', async () => {
    const { accept: _, ...headers } = session.headers as Record<string, string>;
    const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
    const { host } = new URL(gateway.origin);
    const text = `GET /mcp HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n${lines.join('')}\r\n`;
    expect((await exchange(gateway.origin, text)).status).toBe(406);
  });

  it.each([
    ['application/json', 200],
    ['application/json; charset=utf-8', 200],
    ['Application/JSON', 200],
    ['text/plain', 415],
    ['application/x-www-form-urlencoded', 415],
    ['multipart/form-data; boundary=application/json', 415],
    ['application/jsonp', 415],
    ['text/plain; application/json', 415],
  ])('a POST of type %j is answered with %i', async (type, status) => {
    expect((await session.post(PING, { 'content-type': type })).status).toBe(status);
  });
});

describe('a message', () => {
  it.each([
    ['nothing', ''],
    ['only spaces', '  \n '],
    ['half a message', '{"jsonrpc":"2.0","id":1,'],
    ['two messages', `${PING}${PING}`],
    ['text after a batch', `[${PING}] x`],
    ['a batch without an end', `[${PING}`],
    ['single quotes', "{'jsonrpc':'2.0'}"],
    ['a comma too many', '{"jsonrpc":"2.0","id":1,"method":"ping",}'],
    ['NaN', '{"jsonrpc":"2.0","id":NaN,"method":"ping"}'],
    ['a raw tab in a string', '{"jsonrpc":"2.0","id":"a\tb","method":"ping"}'],
  ])('that is %s is answered with 400 as a parse error', async (_, body) => {
    const reply = await session.post(body);
    expect(reply.status).toBe(400);
    expect(await reply.json()).toMatchObject({
      jsonrpc: '2.0',
      id: null,
      error: { code: -32700, data: { code: 'parse' } },
    });
  });

  it('that is not UTF-8 is answered with 400', async () => {
    const body = Buffer.from('{"jsonrpc":"2.0","id":"\u00ff","method":"ping"}', 'latin1');
    expect((await session.post(body)).status).toBe(400);
  });

  it.each([
    ['a number', '3'],
    ['null', 'null'],
    ['a string', '"ping"'],
    ['an empty object', '{}'],
    ['an object without a method, a result or an error', '{"jsonrpc":"2.0","id":1}'],
    ['of another version', '{"jsonrpc":"1.0","id":1,"method":"ping"}'],
    ['a request with the id null', '{"jsonrpc":"2.0","id":null,"method":"ping"}'],
    ['a request with an object for an id', '{"jsonrpc":"2.0","id":{},"method":"ping"}'],
    ['a request with a number for a method', '{"jsonrpc":"2.0","id":1,"method":2}'],
    ['a request with an empty method', '{"jsonrpc":"2.0","id":1,"method":""}'],
  ])('that is %s is answered with 400 as an invalid request', async (_, body) => {
    const reply = await session.post(body);
    expect(reply.status).toBe(400);
    expect(await reply.json()).toMatchObject({
      id: null,
      error: { code: -32600, data: { success: false, result: null } },
    });
  });

  it.each([
    ['notifications/initialized', '{"jsonrpc":"2.0","method":"notifications/initialized"}'],
    ['a notification that nobody knows', '{"jsonrpc":"2.0","method":"notifications/x","params":{}}'],
    ['a response', '{"jsonrpc":"2.0","id":1,"result":{}}'],
    ['an error', '{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"x"}}'],
  ])('that is %s is answered with 202 without a body', async (_, body) => {
    const reply = await session.post(body);
    expect([reply.status, await reply.text()]).toEqual([202, '']);
  });

  it('with an unknown method is answered with -32601', async () => {
    expect((await session.ask('no/such')).error).toMatchObject({ code: -32601, data: { code: 'method_unknown' } });
  });

  it('with a cursor is answered with -32602, because lists are not paged by default', async () => {
    expect((await session.ask('tools/list', { cursor: 'x' })).error?.code).toBe(-32602);
  });
});

describe('the size of a message', () => {
  const sized = (bytes: number) => {
    const head = '{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"';
    return `${head}${'x'.repeat(bytes - head.length - 3)}"}}`;
  };

  it.each([
    [MIB - 1, 200],
    [MIB, 200],
    [MIB + 1, 413],
    [3 * MIB, 413],
  ])('of %i bytes is answered with %i', async (bytes, status) => {
    const reply = await session.post(sized(bytes));
    expect(reply.status).toBe(status);
    if (status === 413) expect(await codeOf(reply)).toBe('too_large');
  });

  it('is counted while the body arrives if there is no Content-Length', async () => {
    const socket = openSocket(gateway.origin);
    const lines = [
      'POST /mcp HTTP/1.1',
      'Host: localhost',
      'Content-Type: application/json',
      'Transfer-Encoding: chunked',
    ];
    socket.write(`${lines.join('\r\n')}\r\nAccept: */*\r\n\r\n`);
    const chunk = `10000\r\n${'x'.repeat(65_536)}\r\n`;
    for (let i = 0; i < 17; i++) socket.write(chunk);
    expect((await readReply(socket)).status).toBe(413);
  });

  it('is refused before the body arrives if Content-Length is too large', async () => {
    const socket = openSocket(gateway.origin);
    const lines = [
      'POST /mcp HTTP/1.1',
      'Host: localhost',
      'Content-Type: application/json',
      `Content-Length: ${MIB * 500}`,
    ];
    socket.write(`${lines.join('\r\n')}\r\nAccept: */*\r\n\r\n`);
    expect((await readReply(socket)).status).toBe(413);
  });

  it('does not cut off the refusal for a client that is still sending', async () => {
    const body = sized(3 * MIB);
    for (let i = 0; i < 10; i++) {
      const replies = await Promise.all([1, 2, 3].map(() => session.post(body)));
      expect(await Promise.all(replies.map(codeOf))).toEqual(['too_large', 'too_large', 'too_large']);
    }
  });

  it('with headers over 16 KiB is answered with 431', async () => {
    const lines = ['GET /health HTTP/1.1', 'Host: localhost', `X-Long: ${'x'.repeat(17_000)}`, 'Connection: close'];
    expect((await exchange(gateway.origin, `${lines.join('\r\n')}\r\n\r\n`)).status).toBe(431);
  });
});

describe('slow and broken clients', () => {
  it('an incomplete request does not block other clients', async () => {
    const half = 'POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n';
    const sockets = Array.from({ length: 100 }, (_, i) => {
      const socket = openSocket(gateway.origin);
      socket.write(i % 2 === 0 ? half : `${half}Mcp-Session-Id: ${session.id}\r\n\r\n{"jsonrpc":`);
      return socket;
    });
    await sleep(50);
    const start = performance.now();
    await Promise.all(Array.from({ length: 20 }, () => session.post(PING)));
    // Otherwise they would wait until the incomplete requests time out, after 30 s and more.
    expect(performance.now() - start).toBeLessThan(25_000);
    for (const socket of sockets) socket.destroy();
  });

  it('input that is not HTTP is answered with 400', async () => {
    expect((await exchange(gateway.origin, 'hello\r\n\r\n')).status).toBe(400);
  });
});
