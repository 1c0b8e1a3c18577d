/**
 * A replica is killed between every two commands that it sends to the store for a call: before each of them, and after the
 * store has carried it out but before the replica knows.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { describe, expect, it } from 'vitest';
import { type FaultProxy, startFaultProxy } from '../support/fault-proxy.ts';
import { type Ended, StubbornClient, startReplica } from '../support/fleet.ts';
import type { HttpGateway } from '../support/gateway.ts';
import { isMissing } from '../support/needs.ts';
import { freePort } from '../support/ports.ts';
import { waitFor } from '../support/processes.ts';
import { type RedisServer, startRedis } from '../support/redis.ts';
import { useProcesses } from '../support/switch.ts';
import { tempFolder } from '../support/temp.ts';

useProcesses();

describe.skipIf(isMissing('redis'))('a replica that is killed between two commands', () => {
  it.each([
    ['write', 2],
    ['write', 0],
    ['read', 2],
    ['ask', 0],
  ])(
    'leaves no call of %s with %i messages before its answer lost or doubled',
    { timeout: 300_000 },
    async (tool, steps) => {
      const redis = await startRedis();
      const store = new Redis(redis.url);
      const runs = join(tempFolder({ runs: '' }), 'runs');
      const survivor = await startReplica(redis.url, runs);
      const start = () => startBehindProxy(redis.port, runs);

      /** Makes a call, and kills the replica at this command of it. */
      async function callWith(key: string, at: number, isAfter: boolean, next: ReturnType<typeof start>) {
        const { gateway, proxy } = await next;
        const client = new StubbornClient([gateway.origin]);
        await client.open();
        // A replica also sends what belongs to no call: signs of life, and what it does about one that was killed before.
        const point = killAt(gateway, proxy, [client.session], at, isAfter, () => {
          Object.assign(client, { origins: [survivor.origin] });
        });
        const ended = await client.call(tool === 'ask' ? 'q_ask' : tool, key, { ms: 50 * steps, steps });
        // Its client may have its answer before the store.
        const state = () => store.hget(`toolgate:c:${client.session}:n1`, 's');
        await waitFor(async () => point.isHit || (await state()) === 'done');
        if (point.isHit) {
          await gateway.exited;
          proxy.cut();
        } else await gateway.stop();
        return { ended, ...point };
      }

      const outcomes: string[] = [];
      let replica = start();
      // How many commands a call takes is known when one ends before its replica is killed.
      for (let at = 1; ; at++) {
        const hits: boolean[] = [];
        for (const isAfter of [false, true]) {
          const one = replica;
          replica = one.then(start);
          const key = keyOf(tool, at, isAfter);
          const { ended, sent, isHit } = await callWith(key, at, isAfter, one);
          hits.push(isHit);
          outcomes.push(describeEnd(key, sent, isHit, ended));
          expect(ended, key).toMatchObject({ answers: 1 });
          expect(ended.outcome, `${key}: ${ended.text}`).not.toBe('other');
          // Before it is admitted it is not known to anybody, so it is made elsewhere.
          if (tool === 'read' || !isHit || (at === 1 && !isAfter)) expect(ended.outcome, key).toBe('result');
          if (tool !== 'read') expect(timesRun(runs, tool, key), key).toBeLessThanOrEqual(1);
          if (ended.outcome === 'result') expect(timesRun(runs, tool, key), key).toBeGreaterThanOrEqual(1);
        }
        if (hits.every((isHit) => !isHit)) break;
      }
      console.log(outcomes.join('\n'));
      // Admitting it, an event if it has some, and the answer, at least.
      expect(outcomes.length).toBeGreaterThanOrEqual(2 * (steps > 0 ? 4 : 3));
      store.disconnect();
      await (await replica).gateway.stop();
      await expectNothingLeft(redis.url, 1);
    },
  );

  it.each(['write', 'read'])(
    'leaves no call of %s lost or doubled that it was taking over from another one',
    { timeout: 600_000 },
    async (tool) => {
      /** Kills the replica that makes a call, then the one that takes it over at this command of it; a third one is left. */
      async function takeWith(at: number, isAfter: boolean, redis: RedisServer) {
        const store = new Redis(redis.url);
        const runs = join(tempFolder({ runs: '' }), 'runs');
        const key = keyOf(tool, at, isAfter);
        const [maker, { gateway: taker, proxy }, port] = await Promise.all([
          startReplica(redis.url, runs),
          startBehindProxy(redis.port, runs),
          freePort(),
        ]);
        const client = new StubbornClient([maker.origin]);
        await client.open();
        const calling = client.call(tool, key, { ms: 1_000, steps: 2 });
        await waitFor(async () => timesRun(runs, tool, key) === 1);
        const makerId = (await store.hget(`toolgate:c:${client.session}:n1`, 'o'))!;
        // What is about the call, and about the replica that made it. Looking for signs of life is not.
        const texts = [client.session, `:own:${makerId}`, `:lock:${makerId}`];
        const point = killAt(taker, proxy, texts, at, isAfter, () => {});
        Object.assign(client, { origins: [`http://127.0.0.1:${port}`] });
        maker.signal('SIGKILL');
        await maker.exited;
        // It has ended, or nothing is left for it to do.
        await waitFor(async () => point.isHit || (await store.sismember('toolgate:replicas', makerId)) === 0);
        if (point.isHit) await taker.exited;
        const last = await startReplica(redis.url, runs, port);
        const ended = await calling;
        proxy.cut();
        if (!point.isHit) await taker.stop();
        await expectNothingLeft(redis.url, 1);
        await last.stop();
        store.disconnect();
        expect(ended, key).toMatchObject({ answers: 1, outcome: tool === 'read' ? 'result' : 'unknown' });
        if (tool === 'write') expect(timesRun(runs, tool, key), key).toBe(1);
        else expect(timesRun(runs, tool, key), key).toBeGreaterThanOrEqual(2);
        return { isHit: point.isHit, outcome: describeEnd(key, point.sent, point.isHit, ended) };
      }

      const engines = await Promise.all([startRedis(), startRedis()]);
      const outcomes: string[] = [];
      for (let at = 1; ; at++) {
        const ends = await Promise.all(engines.map((redis, i) => takeWith(at, i === 1, redis)));
        outcomes.push(...ends.map(({ outcome }) => outcome));
        if (ends.every(({ isHit }) => !isHit)) break;
      }
      console.log(outcomes.join('\n'));
      // Claiming, looking, taking, and ending it, at least.
      expect(outcomes.length).toBeGreaterThanOrEqual(2 * 5);
    },
  );
});

async function startBehindProxy(port: number, runs: string): Promise<{ gateway: HttpGateway; proxy: FaultProxy }> {
  const proxy = await startFaultProxy(port);
  return { proxy, gateway: await startReplica(`redis://127.0.0.1:${proxy.port}`, runs) };
}

/**
 * Kills a replica at this one of the commands that have one of these texts in them: before the store gets it, or after it
 * has carried it out.
 */
function killAt(
  gateway: HttpGateway,
  proxy: FaultProxy,
  texts: readonly string[],
  at: number,
  isAfter: boolean,
  killing: () => void,
): { readonly sent: readonly string[]; readonly isHit: boolean } {
  const sent: string[] = [];
  const point = { sent, isHit: false };
  const kill = () => {
    killing();
    gateway.signal('SIGKILL');
    return gateway.exited;
  };
  proxy.watch(commandsIn, (command) => {
    if (point.isHit || !texts.some((text) => command.includes(text))) return null;
    sent.push(nameOf(command));
    if (sent.length !== at) return null;
    point.isHit = true;
    // Held back for ever if it is killed before.
    if (!isAfter) return kill().then(() => proxy.silence());
    proxy.mute();
    setTimeout(() => void kill(), 50);
    return null;
  });
  return point;
}

function timesRun(runs: string, tool: string, key: string): number {
  return readFileSync(runs, 'utf8')
    .split('\n')
    .filter((line) => line === `${tool} ${key}`).length;
}

function keyOf(tool: string, at: number, isAfter: boolean): string {
  return `${tool}-${at}-${isAfter ? 'after' : 'before'}`;
}

function describeEnd(key: string, sent: readonly string[], isHit: boolean, { outcome, ms }: Ended): string {
  return `${key} ${sent.at(-1)} ${isHit ? '' : 'not '}killed ${outcome} ${Math.round(ms)} ms`;
}

/** Nothing of the replicas that are gone is in the store. */
async function expectNothingLeft(url: string, replicas: number): Promise<void> {
  const store = new Redis(url);
  await expect.poll(() => store.keys('*:own:*'), { timeout: 10_000 }).toEqual([]);
  await expect.poll(() => store.scard('toolgate:replicas'), { timeout: 10_000 }).toBe(replicas);
  store.disconnect();
}

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
