/** A replica is killed with calls under way. Each of them ends once: with its result, or as unknown. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { StubbornClient, startReplica } from '../support/fleet.ts';
import { isMissing } from '../support/needs.ts';
import { waitFor } from '../support/processes.ts';
import { startRedis } from '../support/redis.ts';
import { useProcesses } from '../support/switch.ts';
import { tempFolder } from '../support/temp.ts';

useProcesses();

describe.skipIf(isMissing('redis'))('a replica that is killed', () => {
  it('leaves calls that others end, and make again only if that is declared safe', async () => {
    const redis = await startRedis();
    const runs = join(tempFolder({ runs: '' }), 'runs');
    const starting = [startReplica(redis.url, runs), startReplica(redis.url, runs, null, '5s')] as const;
    const [a, b] = await Promise.all(starting);
    const timesRun = (line: string) =>
      readFileSync(runs, 'utf8')
        .split('\n')
        .filter((one) => one === line).length;
    // Everything goes to the first one until it is gone.
    const client = new StubbornClient([a.origin]);
    await client.open();
    const reads = client.call('read', 'again', { ms: 3_000, steps: 6 });
    const writes = client.call('write', 'once', { ms: 3_000, steps: 6 });
    await waitFor(async () => timesRun('read again') === 1 && timesRun('write once') === 1);
    Object.assign(client, { origins: [b.origin] });
    a.signal('SIGKILL');
    const [read, write] = await Promise.all([reads, writes]);
    expect(read).toMatchObject({ outcome: 'result', answers: 1, steps: [1, 2, 3, 4, 5, 6] });
    expect(write).toMatchObject({ outcome: 'unknown', answers: 1 });
    expect([timesRun('read again'), timesRun('write once')]).toEqual([2, 1]);
    // The session is not affected.
    expect(await client.call('write', 'after', {})).toMatchObject({ outcome: 'result', answers: 1 });
    // A replica that drains ends its calls and hands its clients over.
    const c = await startReplica(redis.url, runs);
    const last = client.call('write', 'drained', { ms: 1_000, steps: 2 });
    await waitFor(async () => timesRun('write drained') === 1);
    Object.assign(client, { origins: [c.origin] });
    const ended = b.stop();
    await waitFor(async () => (await fetch(`${b.origin}/ready`)).status === 503);
    // A balancer has not noticed yet, and sends one more client.
    const late = new StubbornClient([b.origin]);
    await late.open();
    expect(await late.call('read', 'late', {})).toMatchObject({ outcome: 'result', answers: 1 });
    expect(await last).toMatchObject({ outcome: 'result', answers: 1, steps: [1, 2] });
    await ended;
    expect(await client.call('read', 'moved', {})).toMatchObject({ outcome: 'result' });
  });
});
