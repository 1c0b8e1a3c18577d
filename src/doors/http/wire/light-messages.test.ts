import { once } from 'node:events';
import { createServer, type RequestListener, type Server, type ServerResponse } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, it } from 'vitest';
import { type BodyListener, LIGHT_MESSAGES, type LightRequest, type LightResponse } from './light-messages.ts';

const open: Server[] = [];
afterEach(() => {
  for (const server of open.splice(0)) {
    server.closeAllConnections();
    server.close();
  }
});

async function serve(options: object, listener: RequestListener): Promise<number> {
  const server = createServer(options, listener);
  open.push(server);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

/** What the server sends until it has said `count` times `status`, or closed the connection. */
async function say(port: number, parts: readonly string[], count = 1): Promise<string> {
  const socket = connect(port, '127.0.0.1');
  let text = '';
  const done = new Promise<void>((resolve) => {
    socket.on('close', () => resolve());
    socket.on('data', (chunk) => {
      text += chunk.toString('latin1');
      const replies = text.split('HTTP/1.1 ').length - 1;
      if (replies >= count && text.endsWith('}')) resolve();
    });
  });
  for (const part of parts) {
    socket.write(part, 'latin1');
    await sleep(20);
  }
  await done;
  socket.destroy();
  return text;
}

const HEADERS = 'x-content-type-options: nosniff\r\ncontent-type: application/json\r\n';
const post = (body: string, more = '') =>
  `POST / HTTP/1.1\r\nHost: localhost\r\n${more}Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
const withoutDate = (text: string) => text.replace(/Date: [^\r]*/g, 'Date: now');

/** Answers with the body that came, and counts the parts that it came in. */
function echo(request: LightRequest, response: LightResponse): void {
  const parts: Buffer[] = [];
  const listener: BodyListener = {
    part(bytes) {
      expect(this).toBe(request);
      parts.push(bytes);
    },
    end() {
      const text = JSON.stringify({ body: Buffer.concat(parts).toString(), parts: parts.length });
      if (!response.sendShort(HEADERS, text)) response.writeHead(200, LIST).end(text);
    },
  };
  if (!request.giveBody(listener)) throw new Error('too late');
}
const LIST = ['x-content-type-options', 'nosniff', 'content-type', 'application/json'];
const echoing = () => serve(LIGHT_MESSAGES, echo as unknown as RequestListener);

describe('a short reply', () => {
  const usual = (_: unknown, response: ServerResponse) =>
    response.writeHead(200, [...LIST, 'content-length', '2']).end('{}', 'latin1');
  const own = (_: unknown, response: ServerResponse) => {
    if (!(response as LightResponse).sendShort(HEADERS, '{}')) usual(_, response);
  };

  it.each([
    ['a usual one', post('{"a":1}')],
    ['one that asks to close the connection', post('{}', 'Connection: close\r\n')],
    ['one of HTTP/1.0', post('{}').replace('HTTP/1.1', 'HTTP/1.0')],
  ])('has the bytes that Node would write, for %s', async (_, request) => {
    const ports = [
      await serve({ keepAliveTimeout: LIGHT_MESSAGES.keepAliveTimeout }, usual),
      await serve(LIGHT_MESSAGES, own),
    ];
    const [expected, said] = await Promise.all(ports.map((port) => say(port, [request])));
    expect(withoutDate(said!)).toBe(withoutDate(expected!));
    const [, date] = /Date: ([^\r]*)/.exec(said!)!;
    expect(Math.abs(Date.parse(date!) - Date.now())).toBeLessThan(30_000);
  });

  it('is sent once', async () => {
    const said: boolean[] = [];
    const port = await serve(LIGHT_MESSAGES, (_, response) => {
      said.push(
        (response as LightResponse).sendShort(HEADERS, '{}'),
        (response as LightResponse).sendShort(HEADERS, '[]'),
      );
    });
    expect(await say(port, [post('{}')])).toMatch(/\r\n\r\n\{\}$/);
    expect(said).toEqual([true, false]);
  });

  it('has no body for HEAD', async () => {
    const port = await serve(LIGHT_MESSAGES, own);
    const response = await fetch(`http://127.0.0.1:${port}/`, { method: 'HEAD' });
    expect([response.status, response.headers.get('content-length'), await response.text()]).toEqual([200, '2', '']);
  });
});

describe('the body of a request', () => {
  it('is given in the parts that it comes in', async () => {
    const text = post('{"one":1,"two":2}');
    const said = await say(await echoing(), [text.slice(0, -12), text.slice(-12, -5), text.slice(-5)]);
    expect(said).toContain('{"body":"{\\"one\\":1,\\"two\\":2}","parts":3}');
  });

  it('is given in chunks', async () => {
    const chunked =
      'POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n3\r\n[1]\r\n0\r\n\r\n';
    expect(await say(await echoing(), [chunked])).toContain('{"body":"{}[1]","parts":2}');
  });

  it('may be empty', async () => {
    expect(await say(await echoing(), [post('')])).toContain('{"body":"","parts":0}');
  });

  it('belongs to its own request if many are sent at once, and the replies keep their order', async () => {
    const many = Array.from({ length: 50 }, (_, n) => post(`{"n":${n}}`));
    const said = await say(await echoing(), [many.join('')], 50);
    expect([...said.matchAll(/\\"n\\":(\d+)/g)].map(([, n]) => Number(n))).toEqual(many.map((_, n) => n));
  });

  it('is a stream if some of it has come before, or nobody takes it', async () => {
    const port = await serve(LIGHT_MESSAGES, (request, response) => {
      void (async () => {
        await sleep(50);
        const isGiven = (request as LightRequest).giveBody({ part() {}, end() {} });
        let text = '';
        for await (const chunk of request) text += chunk;
        response.end(JSON.stringify({ isGiven, text }));
      })();
    });
    expect(await say(port, [post('{"a":1}')])).toContain('{"isGiven":false,"text":"{\\"a\\":1}"}');
    const dropping = await serve(LIGHT_MESSAGES, (_, response) => void response.end('{}'));
    expect((await say(dropping, [post('{"a":1}'), post('{"b":2}')], 2)).split('HTTP/1.1 200').length).toBe(3);
  });

  it('ends nothing if the client leaves in the middle of it', async () => {
    let ended = 0;
    let left = 0;
    const port = await serve(LIGHT_MESSAGES, (request, response) => {
      response.on('close', () => left++);
      (request as LightRequest).giveBody({
        part() {},
        end() {
          ended++;
        },
      });
    });
    const socket = connect(port, '127.0.0.1');
    socket.write(post('{"a":1}').slice(0, -3));
    await sleep(50);
    socket.destroy();
    await expect.poll(() => left).toBe(1);
    expect(ended).toBe(0);
  });

  it('leaves no request behind on its connection', async () => {
    const requests: LightRequest[] = [];
    const port = await serve(LIGHT_MESSAGES, (request, response) => {
      requests.push(request as LightRequest);
      echo(request as LightRequest, response as LightResponse);
    });
    const socket = connect(port, '127.0.0.1');
    socket.write(post('{}'));
    await once(socket, 'data');
    await sleep(20);
    const { parser } = requests[0]!.socket as unknown as { readonly parser: { readonly incoming: unknown } };
    expect([requests[0]!.readableEnded, parser.incoming]).toEqual([true, null]);
    socket.destroy();
  });
});
