/** Without free descriptors nothing can be started or opened. The gateway lives on, and recovers. */
import { execFileSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { expect, it } from 'vitest';
import { startHttp, startStdio } from '../support/gateway.ts';
import { waitFor } from '../support/processes.ts';
import { openSocket } from '../support/raw-http.ts';
import { callError, callText, logged, toml } from '../support/running-gateway.ts';
import { server } from '../support/server.ts';
import { useProcesses } from '../support/switch.ts';

useProcesses();

const limitFiles = (pid: number, count: number) =>
  execFileSync('prlimit', ['--pid', String(pid), `--nofile=${count}:`]);

it('a server that cannot be started again is down until there are descriptors again', { timeout: 90_000 }, async () => {
  const gateway = await startStdio({ config: toml([{ namespace: 's', command: server('hang') }]) });
  const { client } = gateway;
  const before = Number(await callText(client, 's_ok'));
  limitFiles(gateway.pid!, readdirSync(`/proc/${gateway.pid}/fd`).length);
  process.kill(before, 'SIGKILL');
  await logged(gateway, 'could not be started');
  expect(await callError(client, 's_ok')).toMatchObject({ code: expect.stringMatching(/^(source|item)_/) });
  limitFiles(gateway.pid!, 1_000);
  const after = await waitFor(async () => Number(await callText(client, 's_ok').catch(() => '')) || null, 60_000);
  expect(after).not.toBe(before);
});

it('idle connections are limited, in all and from one address', { timeout: 60_000 }, async () => {
  const config = `http = { max_connections = 20, max_connections_per_address = 10 }\n${toml([{ namespace: 's', command: server('hang') }])}`;
  const gateway = await startHttp({ config });
  const isClosed = (socket: ReturnType<typeof openSocket>) => socket.destroyed;
  const sockets = Array.from({ length: 30 }, () => openSocket(gateway.origin));
  for (const socket of sockets) socket.on('end', () => socket.destroy()).resume();
  await waitFor(() => sockets.filter(isClosed).length >= 20);
  await logged(gateway, 'http.max_connections_per_address allows no more');
  for (const socket of sockets.slice(0, 15)) socket.destroy();
  await waitFor(async () => (await fetch(`${gateway.origin}/health`).catch(() => null))?.status === 200);
});
