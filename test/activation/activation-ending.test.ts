/** Shutdown of a gateway with connected clients: no process is left behind and no client is left waiting. */
import { describe, expect, it } from 'vitest';
import { atEnd } from '../support/cleanup.ts';
import { activated, callText, doors, enter, isPipe } from '../support/doors.ts';
import { patient } from '../support/patience.ts';
import { running } from '../support/processes.ts';
import { server, serversToml } from '../support/server.ts';
import { useProcesses } from '../support/switch.ts';
import { onePart } from '../support/wide.ts';

useProcesses();

const ways = [...onePart(2, ['SIGTERM', 'SIGINT'] as const), 'stdin'] as const;

describe.each(doors)('a gateway with a client over %s', (door) => {
  it.each(ways.filter((how) => how !== 'stdin' || isPipe(door)))(
    'stops all its servers when it ends by %s',
    async (how) => {
      const name = `ending-${process.pid}-${door.replace(' ', '-')}-${how}`;
      // Even if the test fails, no server process may outlive it.
      atEnd(() => {
        for (const pid of running(name)) process.kill(pid, 'SIGKILL');
      });
      const config = serversToml({ used: server('basic', '--name', name), idle: server('basic', '--name', name) });
      const { client, stop, subscription } = await enter(door, { config });
      await activated(client, { tools_on: ['used_whoami'] });
      await callText(client, 'used_whoami');
      expect(running(name)).toHaveLength(2);
      const start = performance.now();
      expect(await stop(how)).toEqual({ code: 0, signal: null });
      expect(performance.now() - start).toBeLessThan(patient(3_000));
      expect(running(name)).toEqual([]);
      // A listening client is told that the shutdown was intended.
      if (subscription) expect(await subscription.closed).toBe('graceful');
    },
  );
});

describe.each(doors.filter(isPipe))('a gateway with a client over %s', (door) => {
  it('answers pending requests when its input ends', async () => {
    const { raw, stop } = await enter(door, {
      config: `active_toolsets = ["*"]\n${serversToml({ s: server('hang') })}`,
    });
    const [{ result }, exit] = await Promise.all([
      raw('tools/call', '{"name":"s_slow","arguments":{"ms":300,"tag":"x"}}'),
      stop('stdin'),
    ]);
    expect(result).toContain('slow x');
    expect(exit).toEqual({ code: 0, signal: null });
  });
});
