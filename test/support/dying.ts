/** Kills gateways in every way, in front of servers that ignore signals, and looks for processes that are left. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Client } from '@modelcontextprotocol/sdk/client/index.js';
import type { Child } from './child.ts';
import { startHttp, startStdio } from './gateway.ts';
import { alive, descendants, running, waitFor } from './processes.ts';
import type { Random } from './random.ts';
import { toml } from './running-gateway.ts';
import { server } from './server.ts';

export interface Way {
  readonly door: 'stdio' | 'http';
  readonly how: 'SIGTERM' | 'SIGINT' | 'SIGKILL' | 'stdin';
  /** After some calls, in the middle of one, or at a random moment during start-up. */
  readonly when: 'used' | 'busy' | 'early';
}

export const ways: readonly Way[] = (['used', 'busy', 'early'] as const).flatMap((when) => [
  ...(['SIGTERM', 'SIGINT', 'SIGKILL'] as const).flatMap((how) => [
    { door: 'stdio', how, when } as const,
    { door: 'http', how, when } as const,
  ]),
  // If a client closes the input while it waits for an answer, the gateway still waits for that answer: see doors/stdio.ts.
  ...(when === 'busy' ? [] : [{ door: 'stdio', how: 'stdin', when } as const]),
]);

export interface Death {
  /** The number of processes below the gateway when it was killed, including its watchdog. */
  readonly processes: number;
  /** Those that still ran 3 s later. */
  readonly left: number;
  readonly ms: number;
}

const PATIENCE = 3000;
let count = 0;

/** Starts a gateway with two servers and a grandchild that ignore every signal, uses it, kills it, and looks for leftovers. */
export async function die(way: Way, random: Random): Promise<Death> {
  const name = `dying-${process.pid}-${++count}`;
  const config = toml([
    { namespace: 'stubborn', command: server('stubborn', '--name', name) },
    { namespace: 'holding', command: server('stubborn', '--name', name, '--hold-stdout') },
    { namespace: 'hang', command: server('hang', '--name', name) },
  ]);
  // Does not wait for busy servers: that is what this tests.
  const hasty = `${config}\n[http]\ndrain = "100ms"\n`;
  const gateway = way.when === 'early' ? await startBarely(way, hasty, random) : await startAndUse(way, hasty);
  const below = descendants(gateway.pid);
  const start = performance.now();
  const ended = gateway.stop(way.how);
  const left = () => [...new Set([...below, ...running(name)])].filter(alive);
  await waitFor(() => !alive(gateway.pid) && left().length === 0, PATIENCE).catch(() => {});
  const remaining = left();
  const ms = performance.now() - start;
  // Nothing may outlive the tests, even if the test fails.
  for (const pid of remaining) process.kill(pid, 'SIGKILL');
  await ended;
  return { processes: below.length, left: remaining.length, ms };
}

async function startAndUse({ door, when }: Way, config: string): Promise<Child> {
  const gateway = door === 'stdio' ? await startStdio({ config }) : await startHttp({ config });
  const client: Client = 'client' in gateway ? gateway.client : (await gateway.connect()).client;
  for (const namespace of ['stubborn', 'holding', 'hang']) await client.callTool({ name: `${namespace}_ok` });
  if (when === 'busy') {
    for (let n = 0; n < 3; n++) client.callTool({ name: 'hang_hang' }).catch(() => {});
    await client.callTool({ name: 'hang_cancelled' });
  }
  return gateway;
}

async function startBarely({ door }: Way, config: string, random: Random): Promise<Child> {
  const gateway =
    door === 'stdio' ? await startStdio({ config, connect: false }) : await startHttp({ config, ready: false });
  await sleep(random.number(400));
  return gateway;
}
