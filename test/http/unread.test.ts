/** Clients that pipeline requests and never read the replies. */
import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { expect, it } from 'vitest';
import { createBackpressure } from '../../src/doors/http/wire/backpressure.ts';
import { atEnd } from '../support/cleanup.ts';
import { startHttp } from '../support/gateway.ts';
import { headersFor, requestText } from '../support/modern-request.ts';
import { waitFor } from '../support/processes.ts';
import { toml } from '../support/running-gateway.ts';
import { server } from '../support/server.ts';

it('counts every unread reply on a connection against limits.unread_total', async () => {
  const config = toml([{ namespace: '', command: server('flood') }], { limits: { unread_total: '8MiB' } });
  const gateway = await startHttp({ config });
  const { hostname, port } = new URL(gateway.origin);
  const socket = connect(Number(port), hostname);
  socket.on('error', () => {});
  atEnd(() => socket.destroy());
  const params = { name: 'big', arguments: { bytes: 900_000 } };
  const body = requestText('tools/call', params);
  const headers = { host: hostname, 'content-type': 'application/json', ...headersFor('tools/call', params) };
  const lines = Object.entries({ ...headers, accept: 'application/json, text/event-stream' });
  const head = lines.map(([name, value]) => `${name}: ${value}\r\n`).join('');
  const request = `POST /mcp HTTP/1.1\r\n${head}content-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
  socket.write(request.repeat(20));
  await waitFor(() => /cut off: it left \d+ bytes unread/.test(gateway.stderr()));
  const left = Number(/it left (\d+) bytes/.exec(gateway.stderr())![1]);
  expect(left).toBeGreaterThan(4_000_000);
  expect(left).toBeLessThan(10_000_000);
});

it('counts only what clients have left unread that are still there, and ends only the slowest of them', async () => {
  const MiB = 1024 * 1024;
  const dropped: number[] = [];
  const limits = { unread: 1_024 * MiB, unreadTotal: 70 * MiB };
  const backpressure = createBackpressure(
    () => limits as never,
    (bytes) => dropped.push(bytes),
  );
  const replies: ServerResponse[] = [];
  const listener = createServer((request, response) => {
    // The system takes a few MiB of it.
    response.write(Buffer.alloc(Number(request.url!.slice(1)) * MiB));
    backpressure.written(response);
    replies.push(response);
  });
  atEnd(() => listener.close());
  atEnd(() => backpressure.close());
  listener.listen(0, '127.0.0.1');
  await once(listener, 'listening');
  const leaveUnread = async (size: number) => {
    const socket = connect((listener.address() as AddressInfo).port, '127.0.0.1');
    atEnd(() => socket.destroy());
    socket.on('error', () => {});
    const before = replies.length;
    socket.write(`GET /${size} HTTP/1.1\r\nhost: x\r\n\r\n`);
    await waitFor(() => replies.length > before);
    return { socket, reply: replies[before]! };
  };
  for (let i = 0; i < 3; i++) {
    const { socket, reply } = await leaveUnread(60);
    expect(reply.writableLength).toBeGreaterThan(40 * MiB);
    const gone = once(reply, 'close');
    socket.destroy();
    await gone;
  }
  expect(dropped).toEqual([]);
  const { reply: quick } = await leaveUnread(40);
  const { reply: slow } = await leaveUnread(60);
  expect(dropped).toHaveLength(1);
  expect([quick.destroyed, slow.destroyed]).toEqual([false, true]);
});
