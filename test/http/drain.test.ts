/** Draining: a gateway that is told to stop finishes its running calls and accepts no new ones. */
import { once } from 'node:events';
import { describe, expect, it } from 'vitest';
import { type HttpGateway, startHttp } from '../support/gateway.ts';
import { callsInFlight } from '../support/in-flight.ts';
import { enveloped, mirrored } from '../support/modern.ts';
import { patient } from '../support/patience.ts';
import { waitFor } from '../support/processes.ts';
import { openSocket } from '../support/raw-http.ts';
import { server, serversToml } from '../support/server.ts';
import { useProcesses } from '../support/switch.ts';

useProcesses();

const servers = serversToml({ up: server('hang') });
const start = (drain: string) => startHttp({ config: `controls = []\n${servers}[http]\ndrain = "${drain}"\n` });

/** Waits until the gateway no longer accepts connections. */
const isDraining = ({ origin }: HttpGateway) =>
  waitFor(async () => (await fetch(`${origin}/health`).catch(() => null)) === null);

describe('SIGTERM', () => {
  it('lets every running call finish, in both eras', async () => {
    const gateway = await start('10s');
    const clients = [...(await Promise.all([1, 2].map(() => gateway.connect()))), await gateway.connectModern()];
    const calls = clients.flatMap(({ client }) =>
      [1000, 1300, 1600].map((ms) => client.callTool({ name: 'up_slow', arguments: { ms, tag: `${ms}` } })),
    );
    await callsInFlight(gateway, 9);
    gateway.process.kill('SIGTERM');
    await isDraining(gateway);
    const texts = (await Promise.all(calls)).map((result) => JSON.stringify(result));
    for (const [i, text] of texts.entries()) expect(text).toContain(`slow ${[1000, 1300, 1600][i % 3]}`);
    await waitFor(() => gateway.process.exitCode !== null);
    expect(gateway.process.exitCode).toBe(0);
  });

  it('reports not ready on an open connection, and closes it', async () => {
    const gateway = await start('10s');
    const params = enveloped('{"name":"up_slow","arguments":{"ms":1500}}');
    const body = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":${params}}`;
    const headers = { ...mirrored('tools/call', '{"name":"up_slow"}'), 'content-type': 'application/json' };
    const socket = openSocket(gateway.origin);
    const lines = Object.entries({ ...headers, accept: 'application/json, text/event-stream' });
    socket.write(
      [
        'POST /mcp HTTP/1.1',
        `host: ${new URL(gateway.origin).host}`,
        ...lines.map(([name, value]) => `${name}: ${value}`),
        `content-length: ${Buffer.byteLength(body)}`,
        '',
        body,
      ].join('\r\n'),
    );
    let text = '';
    socket.on('data', (chunk: Buffer) => {
      text += chunk;
    });
    await callsInFlight(gateway);
    gateway.process.kill('SIGTERM');
    await isDraining(gateway);
    socket.write(`GET /ready HTTP/1.1\r\nhost: ${new URL(gateway.origin).host}\r\n\r\n`);
    await once(socket, 'close');
    expect(text).toContain('slow');
    expect(text).toMatch(/HTTP\/1\.1 503 [\s\S]*connection: close[\s\S]*\{"status":"draining"\}$/i);
    await waitFor(() => gateway.process.exitCode !== null);
  });

  it('stops waiting for calls after the configured drain time', async () => {
    const gateway = await start('300ms');
    const { client } = await gateway.connect();
    client.callTool({ name: 'up_hang' }).catch(() => {});
    await callsInFlight(gateway);
    const began = Date.now();
    gateway.process.kill('SIGTERM');
    await waitFor(() => gateway.process.exitCode !== null);
    expect(Date.now() - began).toBeGreaterThanOrEqual(300);
    expect(Date.now() - began).toBeLessThan(patient(8_000));
  });

  it('sent twice stops the gateway at once', async () => {
    const gateway = await start('60s');
    const { client } = await gateway.connect();
    client.callTool({ name: 'up_hang' }).catch(() => {});
    await callsInFlight(gateway);
    gateway.process.kill('SIGTERM');
    await isDraining(gateway);
    gateway.process.kill('SIGTERM');
    await waitFor(() => gateway.process.exitCode !== null, 5_000);
    expect(gateway.process.exitCode).toBe(143);
  });
});
