/** `toolgate serve --processes`: several processes on one port, without a store. */
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { StubbornClient } from '../support/fleet.ts';
import { startHttp } from '../support/gateway.ts';
import { server, serversToml } from '../support/server.ts';
import { useProcesses } from '../support/switch.ts';
import { tempFolder } from '../support/temp.ts';

useProcesses();

it('serves a session in each of its processes, and ends them all', async () => {
  const runs = join(tempFolder({ runs: '' }), 'runs');
  const config = `controls = []\n${serversToml({ c: server('../fleet/counted', '--runs', runs) })}`;
  const gateway = await startHttp({ config, args: ['--processes', '2'] });
  const clients = Array.from({ length: 4 }, () => new StubbornClient([gateway.origin]));
  await Promise.all(clients.map((client) => client.open()));
  const calls = clients.flatMap((client, i) =>
    Array.from({ length: 5 }, (_, n) => client.call('write', `${i}-${n}`, {})),
  );
  for (const ended of await Promise.all(calls)) expect(ended).toMatchObject({ outcome: 'result', answers: 1 });
  // One after the other: a question that may belong to the calls of two clients is answered by none of them.
  for (const [i, client] of clients.entries())
    expect(await client.call('ask', `${i}`, {})).toMatchObject({ outcome: 'result', answers: 1 });
  expect(await gateway.stop()).toEqual({ code: 0, signal: null });
});
