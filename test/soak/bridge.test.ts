import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { type HttpGateway, startHttp } from '../support/gateway.ts';
import { descendants, waitFor } from '../support/processes.ts';
import { callModern } from '../support/questions.ts';
import { createRandom } from '../support/random.ts';
import { startUpstreams } from '../support/soak-servers.ts';
import { useProcesses } from '../support/switch.ts';
import { gather } from './crowd.ts';
import { socketsOf, watchMemory } from './watching.ts';
import { createFindings } from './word.ts';

useProcesses();

const CLIENTS = 200;
const SECONDS = Number(process.env.SOAK_SECONDS ?? 60);
/** How long a client without a session may take to answer a question. */
const HELD = 120_000;
/** An additional process of a server ends if it is idle at two checks, a minute apart. */
const IDLE = 130_000;

const NONE = { foreign: [], broken: [] };

it(`keeps ${CLIENTS} clients with the same ids apart for ${SECONDS} s, and leaves nothing open`, {
  timeout: 600_000,
}, async () => {
  const random = createRandom();
  console.log(`seed ${random.seed}`);
  const findings = createFindings();
  const upstreams = await startUpstreams({ timeout: '10s', total_timeout: '15s' }, { http: { session_ttl: '20s' } });
  const gateway = await startHttp({ config: upstreams.config });
  const before = { processes: descendants(gateway.pid).length, sockets: socketsOf(gateway.pid) };
  const memory = watchMemory(gateway.pid);

  const crowd = await gather(gateway.origin, CLIENTS, SECONDS * 1000, findings, random);
  const leftAt = performance.now();
  const counts = Object.fromEntries([...findings.counts].sort());
  console.log(`${crowd.clients} clients, ids 1 to ${crowd.ids}: ${print(counts)}`);
  console.log(
    `upstreams: ${upstreams.sum('calls')} calls, ${upstreams.sum('asked')} questions, ${upstreams.sum('cancelled')} cancelled, ${upstreams.sum('overtaken')} before they arrived`,
  );
  console.log(`${findings.foreign.length} foreign, ${findings.broken.length} broken`);
  expect({ foreign: findings.foreign.slice(0, 20), broken: findings.broken.slice(0, 20) }).toEqual(NONE);
  expect(upstreams.sum('foreign')).toBe(0);

  expect(await upstreams.calm()).toEqual([]);
  console.log(`no call open after ${since(leftAt)} s`);
  // Eight questions can be parked only if no other is parked any more.
  await sleep(Math.max(0, leftAt + HELD + 10_000 - performance.now()));
  // The last timeouts may have opened the breaker of a server. The next call closes it.
  await parkable(gateway);
  expect(await parkable(gateway)).toBe(8);
  expect(await upstreams.calm()).toEqual([]);
  await waitFor(() => descendants(gateway.pid).length <= before.processes, IDLE);
  await waitFor(() => socketsOf(gateway.pid) <= before.sockets, 70_000);
  const { base, most } = memory;
  console.log(
    `nothing parked, ${before.processes} processes and ${before.sockets} sockets as before after ${since(leftAt)} s; ${base} MB, at most ${most} MB, ${memory.now()} MB at the end`,
  );
  expect(most).toBeLessThan(base + 250);
});

const since = (start: number) => Math.round((performance.now() - start) / 1000);
const print = (counts: Record<string, number>) =>
  Object.entries(counts)
    .map(([what, n]) => `${n} ${what}`)
    .join(', ');

/** How many of ten questions reach a client without a session. Each is answered afterwards. */
async function parkable(gateway: HttpGateway): Promise<number> {
  const ask = (place: number, more: object = {}) => callModern(gateway, 'http_ask', { word: `p-${place}` }, more);
  const replies = await Promise.all(Array.from({ length: 10 }, (_, place) => ask(place)));
  const parked = replies.flatMap(({ result }, place) =>
    result?.resultType === 'input_required' ? [{ place, requestState: result.requestState! }] : [],
  );
  const inputResponses = { 'question-1': { action: 'decline' } };
  await Promise.all(parked.map(({ place, requestState }) => ask(place, { inputResponses, requestState })));
  return parked.length;
}
