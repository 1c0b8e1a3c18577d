/** Clients that pipeline requests and never read the replies. */
import { connect } from 'node:net';
import { expect, it } from 'vitest';
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
