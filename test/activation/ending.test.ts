/** The end of a gateway, whoever is connected to it: nothing is left behind, and nobody is left waiting. */
import { describe, expect, it } from 'vitest';
import { atEnd } from '../support/cleanup.ts';
import { running } from '../support/processes.ts';
import { server, serversToml } from '../support/server.ts';
import { activated, callText, doors, enter, isPipe } from './doors.ts';

const ways = ['SIGTERM', 'SIGINT', 'stdin'] as const;

describe.each(doors)('a gateway with a client over %s', (door) => {
  it.each(ways.filter((how) => how !== 'stdin' || isPipe(door)))('ends by %s, with all its servers', async (how) => {
    const name = `ending-${process.pid}-${door.replace(' ', '-')}-${how}`;
    // Whatever the test says, none of them may outlive it.
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
    expect(performance.now() - start).toBeLessThan(3000);
    expect(running(name)).toEqual([]);
    // Who listens is told that the end was meant.
    if (subscription) expect(await subscription.closed).toBe('graceful');
  });
});

describe.each(doors.filter(isPipe))('a gateway with a client over %s', (door) => {
  it('answers what is still due when its input ends', async () => {
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
