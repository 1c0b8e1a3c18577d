/** The reader of responses against undici: the same bytes, cut at the same places, have to mean the same. */
import { type AddressInfo, createServer } from 'node:net';
import { Duplex } from 'node:stream';
import { Client } from 'undici';
import { expect, it, onTestFinished } from 'vitest';
import { isWide } from '../../test/support/wide.ts';
import { createHttpClient, type ResponseHandler, requestHead } from './http-client.ts';
import { type Connector, createConnector } from './http-connector.ts';
import { ResponseReader } from './http-response.ts';

/** A server in memory that answers the first request with these pieces and then closes the connection. */
class Script extends Duplex {
  readonly #pieces: readonly Buffer[];
  #isAsked = false;

  constructor(pieces: readonly Buffer[]) {
    super();
    this.#pieces = pieces;
  }

  override _write(_chunk: Buffer, _encoding: string, done: () => void): void {
    done();
    if (this.#isAsked) return;
    this.#isAsked = true;
    void this.#answer();
  }

  override _read(): void {}

  async #answer(): Promise<void> {
    for (const piece of this.#pieces) {
      // Otherwise a stream that is read by hand would return several pieces at once.
      await new Promise<void>((resolve) => process.nextTick(resolve));
      if (this.destroyed) return;
      this.push(piece);
    }
    await new Promise<void>((resolve) => setImmediate(resolve));
    if (!this.destroyed) this.push(null);
  }

  setKeepAlive(): this {
    return this;
  }

  setNoDelay(): this {
    return this;
  }

  ref(): this {
    return this;
  }

  unref(): this {
    return this;
  }
}

type Verdict = { readonly status: number; readonly body: string } | { readonly refused: string };

function ours(pieces: readonly Buffer[], method: string): Promise<Verdict> {
  const connector: Connector = (_reads, opened) => {
    const socket = new Script(pieces);
    process.nextTick(() => opened(socket as never, true));
    return () => socket.destroy();
  };
  const client = createHttpClient(connector, 1);
  return new Promise<Verdict>((resolve) => {
    let status = 0;
    let body = '';
    const handler: ResponseHandler = {
      started() {},
      head: (_request, head) => {
        status = head.status;
      },
      data: (_request, part) => {
        body += part.toString('latin1');
      },
      ended: () => resolve({ status, body }),
      failed: (_request, error) => resolve({ refused: error.message }),
    };
    client.send(requestHead(method, '/', 'example.test', []), method === 'POST' ? '{}' : null, handler);
  }).finally(() => client.destroy());
}

function oracle(pieces: readonly Buffer[], method: 'POST' | 'HEAD'): Promise<Verdict> {
  const client = new Client('http://example.test', {
    connect: (_options, callback) => {
      const socket = new Script(pieces);
      process.nextTick(() => callback(null, socket as never));
    },
  });
  return new Promise<Verdict>((resolve) => {
    let status = 0;
    let body = '';
    client.dispatch(
      { path: '/', method, body: method === 'POST' ? '{}' : null },
      {
        onRequestStart() {},
        onResponseStart(_controller, code) {
          if (code >= 200) status = code;
        },
        onResponseData(_controller, chunk) {
          body += chunk.toString('latin1');
        },
        onResponseEnd: () => resolve({ status, body }),
        onResponseError: (_controller, error) => resolve({ refused: error.message }),
      },
    );
  }).finally(() => void client.destroy().catch(() => {}));
}

/** What we refuse and undici takes, why, and what the bytes have to contain for that. */
const STRICTER: readonly [RegExp, string, RegExp?][] = [
  [
    /closed the connection/,
    'undici takes a body that was cut off as whole, if the server said Connection: close',
    /^connection:[^\n]*close|^HTTP\/1\.0/im,
  ],
  [/Transfer-Encoding other than chunked/, 'undici reads to the end of the connection then, and others do not'],
  [/Transfer-Encoding twice/, 'proxies differ in which of the two they use'],
  [/HTTP\/1\.0 and has a Transfer-Encoding/, 'such a server may not know chunks'],
  [/start with HTTP\/1\.1/, 'undici skips empty lines before a response, and knows HTTP/0.9 and HTTP/2.0'],
  [/not a length/, 'undici takes lengths that a number cannot hold exactly'],
  [/size of a chunk is not valid/, 'leading zeros, and extensions that are not in the grammar'],
  [/no valid status/, 'undici takes statuses under 100'],
  [/its reason has/, 'undici takes control characters in the text after the status'],
  [/too (?:long|many)/, 'our limits'],
];
/** What we take and undici refuses. */
const LAXER: readonly [RegExp, string][] = [
  [/^HTTP\/1\.[01] 100[ \r]/, 'a client has to skip an interim response that it did not ask for (RFC 9110, 15.2)'],
];

/** Numbers that are the same for the same seed. */
function createRandom(seed: number): (below: number) => number {
  let state = seed >>> 0;
  return (below) => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) % below;
  };
}

type Random = ReturnType<typeof createRandom>;
const pick = <T>(random: Random, all: readonly T[]): T => all[random(all.length)]!;

const STATUS = [
  ...Array.from({ length: 12 }, () => 'HTTP/1.1 200 OK'),
  ...['HTTP/1.1 202 Accepted', 'HTTP/1.1 204 No Content', 'HTTP/1.1 304 Not Modified', 'HTTP/1.1 404', 'HTTP/1.1 500 '],
  ...[
    'HTTP/1.0 200 OK',
    'HTTP/2.0 200 OK',
    'HTTP/1.1 101 Switching',
    'HTTP/1.1  200 OK',
    'HTTP/1.1 20 OK',
    'http/1.1 200 OK',
  ],
  ...['HTTP/1.1 200 \u00e9', 'HTTP/1.1 2000 OK', 'ICY 200 OK', 'HTTP/1.1 099 Low', 'HTTP/1.1 999 High'],
];
const HEADERS = [
  ...['Content-Type: application/json', 'Date: Thu, 01 Jan 1970 00:00:00 GMT', 'Server: x', 'X-Empty:', 'X-Tab:\ta\t'],
  ...['Connection: keep-alive', 'Connection: close', 'Connection: Close, x', 'Keep-Alive: timeout=5', 'Upgrade: h2c'],
  ...[
    'Mcp-Session-Id: abc',
    'X Y: 1',
    'X-Bad : 1',
    ' folded',
    ': none',
    'X-\u00e9: 1',
    'X: \u00e9',
    'X: a\u0001b',
    'NoColon',
  ],
];
const FRAMING = [
  ...['Content-Length: +5', 'Content-Length: -1', 'Content-Length: 5, 5', 'Content-Length:', 'Content-Length: 0x5'],
  ...['Content-Length: 99999999999999999999', 'Content-Length: 5 ', 'Content-Length: 005', 'content-length : 5'],
  ...['Transfer-Encoding: gzip', 'Transfer-Encoding: gzip, chunked', 'Transfer-Encoding: chunked, gzip'],
  ...[
    'Transfer-Encoding: CHUNKED',
    'Transfer-Encoding: chunked;q=1',
    'Transfer-Encoding: identity',
    'Transfer-Encoding:',
  ],
  ...['Transfer-Encoding: chunked', 'Content-Length: 5'],
];
const TRAILERS = ['', '', '', 'X-Sum: 1\r\n', 'X-Sum: 1\r\nX-More: 2\r\n', 'bad trailer\r\n', 'Content-Length: 5\r\n'];
const EXTENSIONS = ['', '', '', '', ';a=b', ';a', ';a="b c"', '; a=b', ' ', ';', ';a="', ';a=b;c=d'];

function chunked(random: Random, body: string): string {
  let text = '';
  for (let at = 0; at < body.length; ) {
    const size = Math.min(body.length - at, 1 + random(12));
    const digits = size.toString(16).padStart(pick(random, [1, 1, 1, 2, 4]), '0');
    text += `${digits}${pick(random, EXTENSIONS)}\r\n${body.slice(at, at + size)}\r\n`;
    at += size;
  }
  return `${text}0${pick(random, EXTENSIONS)}\r\n${pick(random, TRAILERS)}\r\n`;
}

function generate(random: Random): Buffer {
  const body = 'abcde\r\n{}0\r\n'.slice(0, random(13));
  const headers = Array.from({ length: random(5) }, () =>
    pick(random, random(4) === 0 ? HEADERS : HEADERS.slice(0, 5)),
  );
  const way = random(10);
  let text = body;
  if (way < 4) headers.push(`Content-Length: ${body.length}`);
  else if (way < 8) {
    headers.push('Transfer-Encoding: chunked');
    text = chunked(random, body);
  } else if (way < 9) headers.push(pick(random, FRAMING));
  if (random(8) === 0) headers.push(pick(random, FRAMING));
  if (random(10) === 0) headers.push(pick(random, HEADERS));
  const interim =
    random(12) === 0 ? pick(random, ['HTTP/1.1 100 Continue\r\n\r\n', 'HTTP/1.1 103 Early\r\nX: 1\r\n\r\n']) : '';
  const after = random(15) === 0 ? pick(random, ['x', '\r\n', 'HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n']) : '';
  const head = [pick(random, STATUS), ...headers, '', ''].join('\r\n');
  return mutate(random, Buffer.from(`${interim}${head}${text}${after}`, 'latin1'));
}

function mutate(random: Random, bytes: Buffer): Buffer {
  if (random(3) > 0) return bytes;
  let text = bytes.toString('latin1');
  for (let n = 1 + random(2); n > 0; n--) {
    const at = random(text.length + 1);
    const some = pick(random, ['\r', '\n', '\r\n', ' ', '\t', ':', '\0', '0', 'f', ';', '\u007f', '\u00ff', 'a']);
    const way = random(4);
    if (way === 0) text = text.slice(0, at) + some + text.slice(at);
    else if (way === 1) text = text.slice(0, at) + text.slice(at + 1);
    else if (way === 2) text = text.slice(0, at) + some + text.slice(at + 1);
    else text = text.slice(0, at);
  }
  return Buffer.from(text, 'latin1');
}

function cut(random: Random, bytes: Buffer): Buffer[] {
  const places = Array.from({ length: random(5) }, () => random(bytes.length + 1)).sort((a, b) => a - b);
  const ends = [0, ...places, bytes.length];
  return ends
    .slice(1)
    .map((end, i) => bytes.subarray(ends[i], end))
    .filter((piece) => piece.length > 0);
}

const CASES = process.env.SOAK === '1' ? 100_000 : isWide ? 20_000 : 1_000;

it(`judges ${CASES} responses as undici does, however they are cut`, { timeout: 900_000 }, async () => {
  const seed = Number(process.env.SEED ?? 1);
  const random = createRandom(seed);
  const wrong: string[] = [];
  let taken = 0;
  for (let n = 0; n < CASES; n++) {
    const bytes = generate(random);
    const pieces = cut(random, bytes);
    const method = random(20) === 0 ? 'HEAD' : 'POST';
    const [mine, theirs] = await Promise.all([ours(pieces, method), oracle(pieces, method)]);
    if ('refused' in mine) {
      const text = bytes.toString('latin1');
      const mayBeStricter = STRICTER.some(
        ([message, , only]) => message.test(mine.refused) && (only === undefined || only.test(text)),
      );
      if ('refused' in theirs || mayBeStricter) continue;
    } else {
      taken++;
      if (
        'refused' in theirs
          ? LAXER.some(([start]) => start.test(bytes.toString('latin1')))
          : mine.body === theirs.body && mine.status === theirs.status
      )
        continue;
    }
    wrong.push(JSON.stringify({ method, bytes: bytes.toString('latin1'), mine, theirs }));
    if (wrong.length > 20) break;
  }
  expect(wrong).toEqual([]);
  // Otherwise the comparison says little.
  expect(taken).toBeGreaterThan(CASES / 6);
});

/** A server on a socket that answers each request with the next of these texts. */
async function startServer(answers: readonly string[], close = false) {
  const seen: string[] = [];
  let connections = 0;
  let next = 0;
  const server = createServer((socket) => {
    connections++;
    socket.on('error', () => {});
    socket.on('data', (chunk) => {
      seen.push(chunk.toString('latin1'));
      socket.write(answers[next++ % answers.length]!, 'latin1');
      if (close) socket.end();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const client = createHttpClient(await createConnector(new URL(`http://127.0.0.1:${port}`), undefined, null), 2);
  onTestFinished(() => {
    client.destroy();
    server.close();
  });
  const ask = (body: string | Buffer = '{}') =>
    new Promise<string>((resolve) => {
      const parts: Buffer[] = [];
      client.send(requestHead('POST', '/mcp', 'x', ['x-one', 'a']), body, {
        started() {},
        head() {},
        data: (_request, part) => parts.push(part),
        ended: () => resolve(Buffer.concat(parts).toString()),
        failed: (_request, error) => resolve(`failed: ${error.message}`),
      });
    });
  return { ask, seen, connections: () => connections, client };
}

const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}';

it('sends one request after another on one socket, and a long body whole', async () => {
  const { ask, seen, connections } = await startServer([OK]);
  expect(await ask()).toBe('{}');
  expect(await ask(Buffer.from('{"a":1}'))).toBe('{}');
  expect(connections()).toBe(1);
  expect(seen[0]).toBe(
    'POST /mcp HTTP/1.1\r\nhost: x\r\nconnection: keep-alive\r\nx-one: a\r\ncontent-length: 2\r\n\r\n{}',
  );
  expect(seen.slice(1).join('')).toMatch(/content-length: 7\r\n\r\n\{"a":1\}$/);
});

it('reads a head that comes again as it read it before, also between others and in answer to HEAD', () => {
  const said: string[] = [];
  const reader = new ResponseReader({
    head: ({ status, length, session }) => said.push(`${status} ${length} ${session}`),
    data: (part) => said.push(part.toString()),
    complete: (mayStay) => said.push(mayStay ? 'stays' : 'closes'),
  });
  const read = (text: string, isHead = false) => {
    said.length = 0;
    reader.begin(isHead);
    reader.push(Buffer.from(text, 'latin1'));
    return said.join(', ');
  };
  const fixed = 'HTTP/1.1 200 OK\r\nMcp-Session-Id: a\r\nContent-Length: 2\r\n\r\n';
  const chunked = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n';
  const interim = 'HTTP/1.1 103 Early Hints\r\n\r\n';
  for (let round = 0; round < 2; round++) {
    for (const body of ['{}', '[]']) expect(read(fixed + body)).toBe(`200 2 a, ${body}, stays`);
    expect(read(fixed, true)).toBe('200 0 a, closes');
    expect(read(`${fixed}{}`)).toBe('200 2 a, {}, stays');
    for (const body of ['{}', '[]'])
      expect(read(`${chunked}2\r\n${body}\r\n0\r\n\r\n`)).toBe(`200 -1 null, ${body}, closes`);
    expect(read(`${interim.repeat(3)}${fixed}{}`)).toBe('200 2 a, {}, stays');
  }
  expect(() => read(interim.repeat(17))).toThrow('too many interim responses');
});

it('never takes what follows a response for the next one', async () => {
  const { ask, connections } = await startServer([`${OK}${OK.replace('{}', '!!')}`]);
  expect(await ask()).toBe('{}');
  expect(await ask()).toBe('{}');
  expect(connections()).toBe(2);
});

it('does not use a socket again on which the request was answered before it was sent whole', async () => {
  // The rest of it, which a client wrote, would be the next request for a server that has stopped reading this one.
  const { ask, connections } = await startServer([OK]);
  expect(await ask(Buffer.alloc(32 * 1024 * 1024, 'POST / HTTP/1.1\r\n\r\n'))).toBe('{}');
  expect(await ask()).toBe('{}');
  expect(connections()).toBe(2);
});

it('opens another socket after the server closed one, and never more than it may', async () => {
  const { ask, connections } = await startServer([OK], true);
  expect(await ask()).toBe('{}');
  expect(await ask()).toBe('{}');
  expect(connections()).toBe(2);
  expect(await Promise.all(Array.from({ length: 20 }, () => ask()))).toEqual(Array.from({ length: 20 }, () => '{}'));
});

it('keeps the parts of a long body as they came', async () => {
  const body = Array.from({ length: 400_000 }, (_, i) => String.fromCharCode(97 + (i % 26))).join('');
  const { ask } = await startServer([`HTTP/1.1 200 OK\r\nContent-Length: ${body.length}\r\n\r\n${body}`, OK]);
  const [first, second] = await Promise.all([ask(), ask()]);
  expect([first, second].sort()).toEqual([body, '{}'].sort());
});

it.each([
  [['a\r\nb', '1']],
  [['x', 'a\r\nHost: y']],
  [['Content-Length', '7']],
  [['Transfer-Encoding', 'chunked']],
  [['x', '\u0100']],
])('refuses to send the header %j', (headers) => {
  expect(() => requestHead('POST', '/', 'x', headers)).toThrow('cannot be sent');
});
