/** A server that asks without end and does not read the answers must not fill the gateway's memory. */
import { expect, it } from 'vitest';
import { startStdio } from '../support/gateway.ts';
import { callText, memoryOf, toml } from '../support/running-gateway.ts';
import { server } from '../support/server.ts';
import { useProcesses } from '../support/switch.ts';

useProcesses();

it('pings that are never read stop the server, and others are served', { timeout: 90_000 }, async () => {
  const config = toml([
    { namespace: 'bad', command: server('pinging') },
    { namespace: 'good', command: server('hang') },
  ]);
  const gateway = await startStdio({ config });
  const { client } = gateway;
  await callText(client, 'good_ok');
  const before = memoryOf(gateway.pid!);
  expect(await callText(client, 'bad_ping')).toBe('from now on');
  for (let n = 0; n < 300; n++) await callText(client, 'good_ok');
  const early = memoryOf(gateway.pid!);
  for (let n = 0; n < 1_000; n++) await callText(client, 'good_ok');
  // The answers grew by 35 MB each second.
  expect(memoryOf(gateway.pid!) - before).toBeLessThan(150);
  expect(memoryOf(gateway.pid!) - early).toBeLessThan(60);
});
