/**
 * A replica is killed between every two commands that it sends to the store for a call: before each of them, and after the
 * store has carried it out but before the replica knows.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { type FaultProxy, startFaultProxy } from '../support/fault-proxy.ts';
import { StubbornClient, startReplica } from '../support/fleet.ts';
import type { HttpGateway } from '../support/gateway.ts';
import { isMissing } from '../support/needs.ts';
import { startRedis } from '../support/redis.ts';
import { useProcesses } from '../support/switch.ts';
import { tempFolder } from '../support/temp.ts';

useProcesses();

/** What a replica sends all the time, for no call: signs of life, and reading. */
const IDLE = /^(?:sadd|set|smembers|mget|xread|xtrim|info|hello|client|ping)$/i;

describe.skipIf(isMissing('redis'))('a replica that is killed between two commands', () => {
  it.each(['write', 'read', 'ask'])('leaves no call of %s lost or doubled', { timeout: 900_000 }, async (tool) => {
    const redis = await startRedis();
    const runs = join(tempFolder({ runs: '' }), 'runs');
    const survivor = await startReplica(redis.url, runs);
    const start = async (): Promise<{ gateway: HttpGateway; proxy: FaultProxy }> => {
      const proxy = await startFaultProxy(redis.port);
      return { proxy, gateway: await startReplica(`redis://127.0.0.1:${proxy.port}`, runs) };
    };
    const timesRun = (key: string) =>
      readFileSync(runs, 'utf8')
        .split('\n')
        .filter((line) => line === `${tool} ${key}`).length;

    /** Makes a call, and kills the replica at this command: 0 for none. Returns the commands that were sent. */
    async function callWith(key: string, at: number, isAfter: boolean, next: ReturnType<typeof start>) {
      const { gateway, proxy } = await next;
      const client = new StubbornClient([gateway.origin]);
      await client.open();
      const sent: string[] = [];
      const kill = () => {
        Object.assign(client, { origins: [survivor.origin] });
        gateway.signal('SIGKILL');
        return gateway.exited;
      };
      let isArmed = true;
      proxy.watch(commandsIn, (command) => {
        const name = nameOf(command);
        if (!isArmed || IDLE.test(name)) return null;
        sent.push(name);
        if (sent.length !== at) return null;
        isArmed = false;
        // Held back for ever if it is killed before.
        if (!isAfter) return kill().then(() => proxy.silence());
        proxy.mute();
        setTimeout(() => void kill(), 50);
        return null;
      });
      const name = tool === 'ask' ? 'q_ask' : tool;
      const ended = await client.call(name, key, { ms: 100, steps: 2 });
      if (at > 0) {
        await gateway.exited;
        proxy.cut();
      } else await gateway.stop();
      return { ended, sent };
    }

    const whole = await callWith(`${tool}-whole`, 0, false, start());
    expect(whole.ended).toMatchObject({ outcome: 'result', answers: 1 });
    // Admitting it, and the answer, at least.
    expect(whole.sent.length).toBeGreaterThanOrEqual(2);
    const points = whole.sent.flatMap((_, i) => [
      { at: i + 1, isAfter: false },
      { at: i + 1, isAfter: true },
    ]);
    const outcomes: string[] = [];
    let next = start();
    for (const [i, { at, isAfter }] of points.entries()) {
      const replica = next;
      if (i < points.length - 1) next = replica.then(start);
      const key = `${tool}-${at}-${isAfter ? 'after' : 'before'}`;
      const { ended } = await callWith(key, at, isAfter, replica);
      outcomes.push(`${key} ${ended.outcome}`);
      expect(ended, key).toMatchObject({ answers: 1 });
      expect(ended.outcome, `${key}: ${ended.text}`).not.toBe('other');
      if (tool === 'read') expect(ended.outcome, key).toBe('result');
      else expect(timesRun(key), key).toBeLessThanOrEqual(1);
      if (ended.outcome === 'result') expect(timesRun(key), key).toBeGreaterThanOrEqual(1);
      // Nothing is left behind.
    }
    console.log(`${tool}: ${whole.sent.join(' ')}; ${outcomes.join(', ')}`);
    // Before it is admitted it is not known to anybody, so it is made elsewhere.
    expect(outcomes[0]).toBe(`${tool}-1-before result`);
  });
});

/** The commands in what a client sends. Each is an array of byte strings. */
function commandsIn(data: Buffer): readonly Buffer[] {
  const found: Buffer[] = [];
  let start = 0;
  while (start < data.length) {
    const end = endOf(data, start);
    if (end < 0) break;
    found.push(data.subarray(start, end));
    start = end;
  }
  if (start < data.length) found.push(data.subarray(start));
  return found;
}

function endOf(data: Buffer, start: number): number {
  const line = data.indexOf('\r\n', start);
  if (line < 0 || data[start] !== 0x2a) return -1;
  let at = line + 2;
  for (let left = Number(data.toString('latin1', start + 1, line)); left > 0; left--) {
    const next = data.indexOf('\r\n', at);
    if (next < 0) return -1;
    at = next + 2 + Number(data.toString('latin1', at + 1, next)) + 2;
    if (at > data.length) return -1;
  }
  return at;
}

function nameOf(command: Buffer): string {
  return command.toString('latin1', 0, 60).split('\r\n')[2] ?? '';
}
