/**
 * A replica is killed between every two commands that it sends to the store for a call: before each of them, and after the
 * store has carried it out but before the replica knows.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { describe, expect, it } from 'vitest';
import { type FaultProxy, startFaultProxy } from '../support/fault-proxy.ts';
import { StubbornClient, startReplica } from '../support/fleet.ts';
import type { HttpGateway } from '../support/gateway.ts';
import { isMissing } from '../support/needs.ts';
import { startRedis } from '../support/redis.ts';
import { useProcesses } from '../support/switch.ts';
import { tempFolder } from '../support/temp.ts';

useProcesses();

describe.skipIf(isMissing('redis'))('a replica that is killed between two commands', () => {
  it.each(['write', 'read', 'ask'])('leaves no call of %s lost or doubled', { timeout: 300_000 }, async (tool) => {
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

    /** Makes a call, and kills the replica at this command of it. */
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
      let isHit = false;
      proxy.watch(commandsIn, (command) => {
        // A replica also sends what belongs to no call: signs of life, and what it does about one that was killed before.
        if (isHit || !command.includes(client.session)) return null;
        sent.push(nameOf(command));
        if (sent.length !== at) return null;
        isHit = true;
        // Held back for ever if it is killed before.
        if (!isAfter) return kill().then(() => proxy.silence());
        proxy.mute();
        setTimeout(() => void kill(), 50);
        return null;
      });
      const ended = await client.call(tool === 'ask' ? 'q_ask' : tool, key, { ms: 100, steps: 2 });
      if (isHit) {
        await gateway.exited;
        proxy.cut();
      } else await gateway.stop();
      return { ended, sent, isHit };
    }

    const outcomes: string[] = [];
    let replica = start();
    // How many commands a call takes is known when one ends before its replica is killed.
    for (let at = 1; ; at++) {
      const hits: boolean[] = [];
      for (const isAfter of [false, true]) {
        const one = replica;
        replica = one.then(start);
        const key = `${tool}-${at}-${isAfter ? 'after' : 'before'}`;
        const { ended, sent, isHit } = await callWith(key, at, isAfter, one);
        hits.push(isHit);
        outcomes.push(`${key} ${sent.at(-1)} ${isHit ? '' : 'not '}killed ${ended.outcome} ${Math.round(ended.ms)} ms`);
        expect(ended, key).toMatchObject({ answers: 1 });
        expect(ended.outcome, `${key}: ${ended.text}`).not.toBe('other');
        // Before it is admitted it is not known to anybody, so it is made elsewhere.
        if (tool === 'read' || !isHit || (at === 1 && !isAfter)) expect(ended.outcome, key).toBe('result');
        if (tool !== 'read') expect(timesRun(key), key).toBeLessThanOrEqual(1);
        if (ended.outcome === 'result') expect(timesRun(key), key).toBeGreaterThanOrEqual(1);
      }
      if (hits.every((isHit) => !isHit)) break;
    }
    console.log(outcomes.join('\n'));
    // Admitting it, an event, and the answer, at least.
    expect(outcomes.length).toBeGreaterThanOrEqual(2 * 4);
    await (await replica).gateway.stop();
    // Nothing is left behind.
    const store = new Redis(redis.url);
    await expect.poll(() => store.keys('*:own:*'), { timeout: 10_000 }).toEqual([]);
    await expect.poll(() => store.scard('toolgate:replicas'), { timeout: 10_000 }).toBe(1);
    store.disconnect();
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
