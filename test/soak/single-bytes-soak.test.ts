/** Peers that send their bytes one by one: a limit on bytes has to limit the memory, too. */
import type { AddressInfo } from 'node:net';
import { createServer, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { atEnd } from '../support/cleanup.ts';
import { callTool } from '../support/dock.ts';
import { type HttpGateway, startHttp } from '../support/gateway.ts';
import { openSocket } from '../support/raw-http.ts';
import { memoryOf, toml } from '../support/running-gateway.ts';
import { tempFolder } from '../support/temp.ts';

const MIB = 1024 * 1024;
const LIMITS = { body: '4MiB', message: '4MiB' };
/** What a hostile server says of itself. */
const ABOUT = {
  initialize: {
    protocolVersion: '2025-11-25',
    capabilities: { tools: {} },
    serverInfo: { name: 'hostile', version: '1' },
  },
  'tools/list': { tools: ['chunks', 'lines'].map((name) => ({ name, inputSchema: { type: 'object' } })) },
};

/** Sends this again and again, as quickly as it is read, until so many were sent or nobody listens. */
async function repeat(socket: Socket, unit: string, times: number): Promise<void> {
  const many = Buffer.from(unit.repeat(10_000));
  for (let sent = 0; sent < times && !socket.destroyed; sent += 10_000)
    if (!socket.write(many))
      await new Promise<void>((resolve) => {
        const goOn = () => {
          socket.off('drain', goOn).off('close', goOn);
          resolve();
        };
        socket.on('drain', goOn).on('close', goOn);
      });
}

/** `chunks` answers with chunks of one byte, `lines` with one event of empty lines. */
async function startHostile(): Promise<string> {
  const server = createServer((socket) => {
    socket.on('error', () => {});
    let text = '';
    socket.on('data', (bytes) => {
      text += bytes.toString('latin1');
      for (let end = text.indexOf('\r\n\r\n'); end >= 0; end = text.indexOf('\r\n\r\n')) {
        const length = Number(/content-length: (\d+)/i.exec(text.slice(0, end))?.[1] ?? 0);
        if (text.length < end + 4 + length) return;
        const isPost = text.startsWith('POST');
        const body = text.slice(end + 4, end + 4 + length);
        text = text.slice(end + 4 + length);
        answer(socket, isPost ? JSON.parse(body) : {});
      }
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  atEnd(() => server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`;
}

function answer(socket: Socket, { id, method, params }: { id?: number; method?: string; params?: { name: string } }) {
  if (method === 'tools/call') {
    const isChunks = params?.name === 'chunks';
    socket.write(
      isChunks
        ? 'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n'
        : 'HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n',
    );
    void repeat(socket, isChunks ? '1\r\n \r\n' : 'data:\n', 5 * MIB);
    return;
  }
  const result = ABOUT[method as keyof typeof ABOUT];
  const body =
    id === undefined
      ? ''
      : JSON.stringify({ jsonrpc: '2.0', id, ...(result ? { result } : { error: { code: -32601, message: 'no' } }) });
  const status = id !== undefined ? '200 OK' : method === undefined ? '405 No' : '202 Accepted';
  socket.write(`HTTP/1.1 ${status}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`);
}

/** The most memory in megabytes that it took more than before. */
async function grown({ pid }: HttpGateway, work: Promise<unknown>): Promise<number> {
  const before = memoryOf(pid!);
  let most = before;
  let isOver = false;
  const done = work.finally(() => {
    isOver = true;
  });
  while (!isOver) {
    most = Math.max(most, memoryOf(pid!));
    await Promise.race([done, sleep(50)]);
  }
  await done;
  return Math.round(most - before);
}

async function start(servers: Parameters<typeof toml>[0]): Promise<HttpGateway> {
  return startHttp({ config: toml(servers, { controls: [], limits: LIMITS }), process: true });
}

const LONG = { timeout: 300_000 };

it('a request in chunks of one byte takes little more memory than its bytes', LONG, async () => {
  const gateway = await start([]);
  const post = async (path: string) => {
    const socket = openSocket(gateway.origin);
    let reply = '';
    socket.on('data', (chunk) => {
      reply += chunk;
    });
    socket.write(
      `POST ${path} HTTP/1.1\r\nhost: ${new URL(gateway.origin).host}\r\ncontent-type: application/json\r\naccept: application/json, text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n`,
    );
    await repeat(socket, '1\r\n \r\n', 5 * MIB);
    while (reply === '') await sleep(20);
    socket.destroy();
    expect(reply).toContain('413');
  };
  for (const path of ['/mcp', '/tools/x']) {
    const more = await grown(gateway, post(path));
    console.log(`${path}: ${more} MB more`);
    expect(more).toBeLessThan(150);
  }
});

it('an answer in chunks of one byte, or in empty lines, takes little more memory than its bytes', LONG, async () => {
  const gateway = await start([{ namespace: 'x', url: await startHostile(), timeout: '200s' }]);
  for (const tool of ['x_chunks', 'x_lines']) {
    const more = await grown(
      gateway,
      callTool(gateway.url, tool).then(({ text }) => expect(text).toContain('limits.message')),
    );
    console.log(`${tool}: ${more} MB more`);
    expect(more).toBeLessThan(150);
  }
});

it('a line of a server that writes byte by byte takes little more memory than its bytes', LONG, async () => {
  const cwd = tempFolder({
    // It is read as quickly as it writes, so most reads have one byte.
    'drip.mjs': `import { writeSync } from 'node:fs';
import { createInterface } from 'node:readline';
const ABOUT = ${JSON.stringify({ ...ABOUT, 'tools/list': { tools: [{ name: 'drip', inputSchema: { type: 'object' } }] } })};
createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method } = JSON.parse(line);
  if (id === undefined) return;
  const result = ABOUT[method];
  const text = JSON.stringify({ jsonrpc: '2.0', id, ...(result ? { result } : { error: { code: -32601, message: 'no' } }) });
  if (method !== 'tools/call') writeSync(1, text + '\\n');
  else {
    for (let n = 0; n < 400_000; n++) writeSync(1, ' ');
    writeSync(1, JSON.stringify({ jsonrpc: '2.0', id, result: { content: [{ type: 'text', text: 'done' }] } }) + '\\n');
  }
});
`,
  });
  const gateway = await start([{ namespace: 'x', command: `node ${cwd}/drip.mjs`, timeout: '200s' }]);
  const more = await grown(
    gateway,
    callTool(gateway.url, 'x_drip').then(({ text }) => expect(text).toBe('done')),
  );
  console.log(`${more} MB more`);
  expect(more).toBeLessThan(150);
});
