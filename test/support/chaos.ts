/**
 * Replicas behind a balancer, clients of both eras, and faults. What must hold: every call ends once, with its own result or
 * as unknown; a call that writes runs at most once; and nothing is unknown that no fault explains.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type FaultProxy, startFaultProxy } from './fault-proxy.ts';
import { type Ended, StubbornClient, startBalancer, startReplica } from './fleet.ts';
import type { HttpGateway } from './gateway.ts';
import { send } from './mcp-tasks.ts';
import { freePort } from './ports.ts';
import { type RedisServer, startRedis } from './redis.ts';
import { messagesOf } from './relay-clients.ts';
import { tempFolder } from './temp.ts';

/** The first is none: replicas are replaced one by one, and no call in a session may fail. */
export const FAULTS = ['roll', 'kill', 'kill another', 'stop', 'redis', 'half open', 'half open store'] as const;
export type Fault = (typeof FAULTS)[number];

export interface ChaosPlan {
  readonly replicas: number;
  /** With sessions, and without. */
  readonly legacy: number;
  readonly modern: number;
  readonly faults: readonly Fault[];
  /** Milliseconds that a client thinks between calls, at most. */
  readonly pause: number;
}

export interface ChaosReport {
  readonly calls: number;
  readonly results: number;
  readonly unknown: number;
  /** Calls without a session whose connection broke, as the revision says. */
  readonly broken: number;
  /** Each with the call: these have to be empty. */
  readonly wrong: readonly string[];
  /** For each fault, in order: milliseconds from its beginning to the ends of the calls that it met, sorted. */
  readonly recoveries: ReadonlyMap<Fault, readonly number[]>;
  /** How many calls met a second fault before they had ended. Their recovery counts from that one. */
  readonly metTwo: number;
}

interface Window {
  readonly fault: Fault;
  readonly from: number;
  to: number;
}

interface Replica {
  readonly port: number;
  readonly front: FaultProxy;
  readonly store: FaultProxy;
  gateway: HttpGateway;
}

/** Milliseconds that a fault may still show after it is over: signs of life, and the grace after the store was away. */
const AFTERMATH = 15_000;
const HUNG = 60_000;
/**
 * Milliseconds between faults. Calls of a killed replica are ended or made again before the next fault, so that their
 * recovery is measured; but one kill follows another while its calls are being taken over.
 */
const RECOVERED = 3_000;
const SOON = 1_500;
/** Several times what haproxy needs to see that a replica is going. */
const NOTICE = '3s';

export async function runChaos({ replicas, legacy, modern, faults, pause }: ChaosPlan): Promise<ChaosReport> {
  const redis = await startRedis();
  const runs = join(tempFolder({ runs: '' }), 'runs');
  const fleet = await Promise.all(Array.from({ length: replicas }, () => startOne(redis, runs)));
  const balancer = await startBalancer(fleet.map(({ front }) => front.port));
  const { origin } = balancer;
  const windows: Window[] = [];
  const ended: (Ended & { readonly at: number; readonly isModern: boolean })[] = [];
  const wrong: string[] = [];
  let isOver = false;

  async function use(call: (n: number) => Promise<Ended>, isModern: boolean): Promise<void> {
    for (let n = 0; !isOver; n++) {
      await sleep(Math.random() * pause);
      try {
        const one = await call(n);
        ended.push({ ...one, at: performance.now(), isModern });
        // As a client does that is told to come back later.
        if (one.outcome === 'other') await sleep(1_000);
      } catch (error) {
        wrong.push(`hung or refused: ${(error as Error).message}`);
      }
    }
  }
  const clients = Array.from({ length: legacy }, () => new StubbornClient([origin]));
  await Promise.all(clients.map((client) => client.open()));
  /** Half of the calls stream; the others have one message, which their clients get before the store. */
  const args = () =>
    Math.random() < 0.5
      ? { ms: Math.round(50 + Math.random() * 400), steps: 3 }
      : { ms: Math.round(Math.random() * 90), steps: 0 };
  const using = [
    // One of them is asked. Questions of one server to two clients at the same time would belong to neither.
    ...clients.map((client, i) =>
      use(
        (n) =>
          i === 0 ? client.call('q_ask', `${i}-${n}`, {}, HUNG) : client.call(toolFor(n), `${i}-${n}`, args(), HUNG),
        false,
      ),
    ),
    ...Array.from({ length: modern }, (_, i) => use((n) => callOnce(origin, toolFor(n), `m${i}-${n}`, args()), true)),
  ];
  await sleep(500);
  for (const [turn, fault] of faults.entries()) {
    const window: Window = { fault, from: performance.now(), to: Number.POSITIVE_INFINITY };
    windows.push(window);
    await inflict(fault, fleet, turn, redis, runs);
    window.to = performance.now();
    await sleep(fault === 'kill' ? SOON : RECOVERED);
  }
  isOver = true;
  await Promise.all(using);
  wrong.push(...wrongIn(ended, windows, runs));
  if (wrong.length > 0) console.log(`${describeFaults(windows)}\n${balancer.log()}`);
  const results = ended.filter(({ outcome }) => outcome === 'result');
  return {
    calls: ended.length,
    results: results.length,
    unknown: ended.filter(({ outcome }) => outcome === 'unknown').length,
    broken: ended.filter(({ isModern, outcome }) => isModern && outcome === 'other').length,
    wrong,
    ...recoveriesOf(ended, windows),
  };
}

function recoveriesOf(
  ended: readonly (Ended & { readonly at: number })[],
  windows: readonly Window[],
): Pick<ChaosReport, 'recoveries' | 'metTwo'> {
  const faults = windows.filter(({ fault }) => fault !== 'roll');
  const recoveries = new Map<Fault, number[]>(faults.map(({ fault }) => [fault, []]));
  let metTwo = 0;
  for (const { at, ms } of ended) {
    const met = faults.filter(({ from }) => at - ms < from && at > from);
    const last = met.at(-1);
    if (last !== undefined) recoveries.get(last.fault)!.push(at - last.from);
    if (met.length > 1) metTwo++;
  }
  for (const of of recoveries.values()) of.sort((a, b) => a - b);
  return { recoveries, metTwo };
}

const toolFor = (n: number) => (n % 2 === 0 ? 'write' : 'read');

async function startOne(redis: RedisServer, runs: string): Promise<Replica> {
  const port = await freePort();
  const store = await startFaultProxy(redis.port);
  const gateway = await startReplica(`redis://127.0.0.1:${store.port}`, runs, port, NOTICE);
  return { port, store, front: await startFaultProxy(port), gateway };
}

async function inflict(
  fault: Fault,
  fleet: readonly Replica[],
  turn: number,
  redis: RedisServer,
  runs: string,
): Promise<void> {
  const one = fleet[turn % fleet.length]!;
  const startAgain = async (replica: Replica) => {
    replica.gateway = await startReplica(`redis://127.0.0.1:${replica.store.port}`, runs, replica.port, NOTICE);
  };
  switch (fault) {
    case 'kill':
    case 'kill another':
      one.gateway.signal('SIGKILL');
      await one.gateway.exited;
      await startAgain(one);
      return;
    case 'stop':
      one.gateway.signal('SIGSTOP');
      await sleep(3_500);
      one.gateway.signal('SIGCONT');
      return;
    case 'redis':
      await redis.kill();
      await sleep(500);
      await redis.start();
      return;
    case 'half open':
      one.front.silence();
      await sleep(3_000);
      one.front.heal();
      return;
    case 'half open store':
      one.store.silence();
      await sleep(4_000);
      one.store.heal();
      return;
    case 'roll':
      for (const replica of fleet) {
        await replica.gateway.stop();
        await startAgain(replica);
      }
      return;
    default:
      fault satisfies never;
  }
}

/** A call of a client without a session. It is not made again if its connection breaks: nobody knows what became of it. */
async function callOnce(origin: string, tool: string, key: string, args: object): Promise<Ended> {
  const began = performance.now();
  const end = (outcome: Ended['outcome'], text: string): Ended => {
    return { key, tool, outcome, text, answers: 1, steps: [], ms: performance.now() - began };
  };
  try {
    const params = { name: `c_${tool}`, arguments: { key, ...args } };
    const response = await send(`${origin}/mcp`, 'tools/call', params, { signal: AbortSignal.timeout(HUNG) });
    if (response.status !== 200) return end('other', `${response.status} ${(await response.text()).slice(-60)}`);
    const { result, error } = JSON.parse((await messagesOf(response)).at(-1)!.toString()) as {
      result?: { content: { text: string }[] };
      error?: { message: string };
    };
    const text = result?.content[0]?.text ?? error?.message ?? '';
    return end(text === key ? 'result' : 'other', text);
  } catch (error) {
    if ((error as Error).name === 'TimeoutError') throw new Error(`${tool} ${key} hangs`);
    return end('other', 'the connection broke');
  }
}

function wrongIn(
  ended: readonly (Ended & { readonly at: number; readonly isModern: boolean })[],
  windows: readonly Window[],
  runs: string,
): string[] {
  const times = new Map<string, number>();
  for (const line of readFileSync(runs, 'utf8').split('\n')) times.set(line, (times.get(line) ?? 0) + 1);
  return ended.flatMap(({ tool, key, outcome, text, answers, steps, at, ms, isModern }) => {
    const name = tool.replace(/^q_/, '');
    const when = new Date(performance.timeOrigin + at).toISOString().slice(11, 23);
    const what = `${isModern ? 'modern ' : ''}${tool} ${key} at ${when} after ${Math.round(ms)} ms (${text.slice(0, 80)})`;
    const ran = times.get(`${name} ${key}`) ?? 0;
    const isExplained = windows.some(
      ({ fault, from, to }) => fault !== 'roll' && at - ms < to + AFTERMATH && at > from,
    );
    return [
      ...(answers === 1 ? [] : [`${answers} answers: ${what}`]),
      ...(outcome === 'other' && !isModern ? [`neither result nor unknown: ${what}`] : []),
      ...(outcome !== 'result' && !isExplained ? [`no fault explains: ${what}`] : []),
      ...(outcome === 'other' && isModern && !/^(503|502|504|the connection broke)|store|unknown/.test(text)
        ? [`foreign: ${what}`]
        : []),
      ...(outcome === 'result' && ran === 0 ? [`a result of nothing: ${what}`] : []),
      ...(name !== 'read' && ran > 1 ? [`ran ${ran} times: ${what}`] : []),
      ...(outcome === 'result' && !isModern && name !== 'ask' && !isAscending(steps)
        ? [`steps ${steps}: ${what}`]
        : []),
    ];
  });
}

/** When each fault began and ended. */
function describeFaults(windows: readonly Window[]): string {
  const at = (ms: number) => new Date(performance.timeOrigin + ms).toISOString().slice(11, 23);
  return windows.map(({ fault, from, to }) => `${at(from)} to ${at(to)} ${fault}`).join('\n');
}

/** Each step once, in order. */
function isAscending(steps: readonly number[]): boolean {
  return steps.every((step, i) => i === 0 || step > steps[i - 1]!);
}

export function quantile(sorted: readonly number[], q: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * q))] ?? 0;
}
