/** Servers that go away and come back, possibly in another era. */
import { type AddressInfo, connect, createServer as createTcpServer, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { atEnd } from '../support/cleanup.ts';
import { startHttp } from '../support/gateway.ts';
import { killServer } from '../support/in-process-server.ts';
import { startModernFixture, textOf } from '../support/modern-servers.ts';
import { Fault, legacyMethods, modernMethods, only, startServer, text } from '../support/plain-http-server.ts';
import { waitFor } from '../support/processes.ts';
import { callText, logged, toml, toolNames, toolsToBe } from '../support/running-gateway.ts';
import { server } from '../support/server.ts';

it('restarts a modern stdio server that has died, and lists its items again', async () => {
  const config = toml([{ namespace: 'up', command: server('modern', '--era', 'modern') }], { controls: [] });
  const gateway = await startHttp({ config });
  const [legacy, modern] = [await gateway.connect(), await gateway.connectModern()];
  const pid = Number(await callText(legacy.client, 'up_pid'));
  killServer(pid);
  // A call may still be answered by the old process, or fail before the new one is up.
  await waitFor(async () => {
    const result = await modern.client.callTool({ name: 'up_pid' });
    return result.isError !== true && Number(textOf(result)) !== pid;
  }, 20_000);
  // Its tools disappear and return.
  await waitFor(() => legacy.changes('tools') === 2 && modern.changes('tools') === 2);
});

it('connects to a modern HTTP server that comes up late, and again after an outage', async () => {
  const upstream = await startServer(modernMethods());
  await upstream.stop();
  const gateway = await startHttp({ config: toml([{ namespace: 'up', url: upstream.url }], { controls: [] }) });
  const { client } = await gateway.connect();
  await logged(gateway, 'down: refused the connection; is it running?');
  for (let round = 1; round <= 2; round++) {
    await upstream.start();
    await toolsToBe(client, ['up_echo'], 10_000);
    expect(await callText(client, 'up_echo', { round })).toBe(`{"round":${round}}`);
    await waitFor(() => upstream.streams.size === 1);
    await upstream.stop();
    // No call is needed: the end of the stream is enough.
    await toolsToBe(client, []);
  }
  // After any number of failed attempts, it was never mistaken for a legacy server.
  expect(upstream.of('initialize')).toEqual([]);
});

it('fails only the running calls when a modern HTTP server breaks the connection', async () => {
  let isBroken = true;
  const upstream = await startServer(
    modernMethods({
      'tools/call': (_, { response }) => {
        if (isBroken) response.destroy();
        return text('fine');
      },
    }),
  );
  const gateway = await startHttp({ config: toml([{ namespace: 'up', url: upstream.url }], { controls: [] }) });
  const { client } = await gateway.connect();
  const { content, isError } = await client.callTool({ name: 'up_echo' });
  expect(isError).toBe(true);
  expect(JSON.stringify(content)).toContain('broke the connection');
  isBroken = false;
  expect(await callText(client, 'up_echo')).toBe('fine');
  expect(await toolNames(client)).toEqual(['up_echo']);
});

it('does not repeat the handshake because a call fails, even after the stream has ended', async () => {
  const upstream = await startServer(
    modernMethods({
      'tools/call': () => {
        throw new Fault(-32_602, 'No such argument');
      },
    }),
  );
  const gateway = await startHttp({ config: toml([{ namespace: 'up', url: upstream.url }], { controls: [] }) });
  const { client } = await gateway.connect();
  await waitFor(() => upstream.streams.size === 1);
  for (const stream of upstream.streams) stream.destroy();
  await waitFor(() => upstream.streams.size === 0);
  for (let n = 0; n < 10; n++) await expect(client.callTool({ name: 'up_echo' })).rejects.toThrow('No such argument');
  expect(upstream.of('tools/call')).toHaveLength(10);
  expect(upstream.of('server/discover')).toHaveLength(1);
});

/** One address for a server that can be replaced. Replacing it closes the connections to the old one. */
async function startSwitch(port: number) {
  let target = port;
  const sockets = new Set<Socket>();
  const front = createTcpServer((socket) => {
    const back = connect(target, '127.0.0.1');
    for (const one of [socket, back]) {
      sockets.add(one);
      one.on('error', () => {});
      one.on('close', () => {
        socket.destroy();
        back.destroy();
        sockets.delete(one);
      });
    }
    socket.pipe(back).pipe(socket);
  });
  await new Promise<void>((resolve) => front.listen(0, '127.0.0.1', resolve));
  const cut = () => {
    for (const socket of sockets) socket.destroy();
  };
  atEnd(() => {
    front.close();
    cut();
  });
  return {
    url: `http://127.0.0.1:${(front.address() as AddressInfo).port}/mcp`,
    turnTo(next: number) {
      target = next;
      cut();
    },
  };
}

describe('an HTTP server that is replaced while in use', () => {
  const eras = ['modern', 'legacy', 'both'] as const;
  const pairs = eras.flatMap((from) => eras.map((to) => ({ from, to, namespace: `${from}-${to}` })));

  // The only visible sign is a stream that has ended.
  it('fails no call, whichever era the new server has', async () => {
    const started = await Promise.all(eras.map((era) => startModernFixture('--era', era)));
    const again = await Promise.all(eras.map((era) => startModernFixture('--era', era)));
    const switches = await Promise.all(pairs.map(({ from }) => startSwitch(started[eras.indexOf(from)]!.port)));
    const entries = pairs.map(({ namespace }, n) => ({ namespace, url: switches[n]!.url }));
    const gateway = await startHttp({ config: toml(entries, { controls: [] }) });
    const [legacy, modern] = [await gateway.connect(), await gateway.connectModern()];
    const names = await toolNames(legacy.client);
    const replace = async ({ to, namespace }: (typeof pairs)[number], n: number) => {
      const { port, pid } = again[eras.indexOf(to)]!;
      switches[n]!.turnTo(port);
      const name = `${namespace}_pid`;
      // The stream is reopened after a second. This covers the time before, during and after that.
      for (const end = performance.now() + 2000; performance.now() < end; await sleep(50)) {
        const calls = [legacy.client.callTool({ name }), modern.client.callTool({ name })];
        expect((await Promise.all(calls)).map(textOf), name).toEqual([String(pid), String(pid)]);
      }
    };
    await Promise.all(pairs.map(replace));
    expect(await toolNames(legacy.client)).toEqual(names);
  });

  it('fails no call if the new server rejects the revision only later', async () => {
    const upstream = await startServer(modernMethods());
    const gateway = await startHttp({ config: toml([{ namespace: 'up', url: upstream.url }], { controls: [] }) });
    const { client } = await gateway.connect();
    expect(await callText(client, 'up_echo', { n: 0 })).toBe('{"n":0}');
    const replies = [1, 2, 3].map((n) => ({ n, json: `{"n":${n}}` }));
    const ask = () => Promise.all(replies.map(({ n }) => callText(client, 'up_echo', { n })));
    upstream.methods = only('legacy', legacyMethods());
    expect(await ask()).toEqual(replies.map(({ json }) => json));
    expect(upstream.of('initialize')).toHaveLength(1);
    // Now there is no session to forget and no stream to lose: the error of the server is the only sign.
    upstream.methods = only('modern', modernMethods());
    expect(await ask()).toEqual(replies.map(({ json }) => json));
    expect(upstream.of('server/discover')).toHaveLength(3);
  });
});
