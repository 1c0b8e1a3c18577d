import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { startHttp } from '../support/gateway.ts';
import { callTool } from '../support/modern-request.ts';
import { waitFor } from '../support/processes.ts';
import { createRandom } from '../support/random.ts';
import { startUpstreams } from '../support/soak-servers.ts';
import { useProcesses } from '../support/switch.ts';
import { type Era, openSlowCalls, openSlowListener, type SlowReader, startSmallCalls } from './slow.ts';
import { socketsOf, watchMemory } from './watching.ts';

useProcesses();

const MIB = 1024 * 1024;
const LIMITS = { unread: 4 * MIB, unread_total: 160 * MIB, replay: MIB / 4 };
/** In addition to unread data: what is kept for clients that reconnect, what passes through, and garbage. In MB. */
const MARGIN = 200;
/** How much memory may be in use above the start when they are gone. */
const LEFT = 60;
/** How long half of the small calls may take meanwhile, and all of them, on a busy machine. */
const SOON = 1_000;
const LATEST = 30_000;
/** Otherwise the allocator keeps freed memory, which the system counts as used. */
const GIVES_BACK = { MALLOC_MMAP_THRESHOLD_: '32768', MALLOC_TRIM_THRESHOLD_: '131072' };
const URI = `pipe_wordy://${'long/'.repeat(800)}`;
const MESSAGE = 32_768;

it('survives 200 clients that do not read', { timeout: 300_000 }, async () => {
  const random = createRandom();
  const upstreams = await startUpstreams({}, { limits: LIMITS });
  const gateway = await startHttp({ config: upstreams.config, env: GIVES_BACK });
  const memory = watchMemory(gateway.pid);
  const sockets = socketsOf(gateway.pid);
  const stopSmallCalls = startSmallCalls(gateway);
  await sleep(2000);

  const open = (count: number, one: (era: Era, sips: boolean, index: number) => Promise<SlowReader>) =>
    Promise.all(
      Array.from({ length: count }, (_, index) =>
        one(index % 2 === 0 ? 'session' : 'modern', random.chance(0.25), index),
      ),
    );
  const cuts = () => gateway.stderr().split('a client was cut off').length - 1;
  const stage = (what: string) =>
    console.log(`${what}: ${cuts()} cut so far, ${memory.now()} MB, at most ${memory.most} MB so far`);

  // No message is needed: a server behind HTTP waits.
  const web = await open(100, (era, sips, index) => {
    const name = index < 70 ? 'http_flood' : 'modernhttp_flood';
    return openSlowCalls(gateway, era, name, { word: `w${index}`, messages: 1_000_000, bytes: MESSAGE }, sips);
  });
  const sent = () => upstreams.sum('sent', 'http') + upstreams.sum('sent', 'modernhttp');
  const held = await waitFor(async () => {
    const before = sent();
    await sleep(3000);
    // Clients that read slowly make progress.
    return before > 0 && sent() - before < (100 * MIB) / 4 && { mb: Math.round(sent() / MIB) };
  }, 60_000);
  stage(`${web.length} floods behind HTTP`);
  console.log(`held back after ${held.mb} MB`);

  const pipe = await open(40, (era, sips, index) =>
    openSlowCalls(gateway, era, 'pipe_flood', { word: `p${index}`, messages: 400, bytes: MESSAGE }, sips),
  );
  // Calls with a session run to the end, because the client may reconnect for the result.
  await waitFor(() => upstreams.sum('sent', 'pipe') >= (pipe.length / 2) * 400 * MESSAGE, 60_000);
  stage(`${pipe.length} floods on a pipe`);

  const big = await open(30, (era, sips, index) => {
    const name = index % 3 === 0 ? 'pipe_big' : 'http_big';
    return openSlowCalls(gateway, era, name, { word: `b${index}`, bytes: 1_000_000 }, sips, 12);
  });
  await sleep(5000);
  stage(`${big.length} times 12 results of 1 MB`);

  const listeners = await open(30, (era, sips) => openSlowListener(gateway, era, URI, sips));
  for (let n = 0; n < 4; n++) await callTool(gateway, 'pipe_touch', { times: 500, changes: 20 });
  await sleep(2000);
  stage(`${listeners.length} streams of changes`);

  const { calls, median, most, failures } = await stopSmallCalls();
  console.log(
    `meanwhile ${calls} small calls, ${failures.length} failed, half within ${median} ms, all within ${most} ms`,
  );
  const peak = memory.most;
  await Promise.all([...web, ...pipe, ...big, ...listeners].map((reader) => reader.leave()));
  expect(await upstreams.calm()).toEqual([]);
  await waitFor(() => socketsOf(gateway.pid) <= sockets, 90_000);
  // Garbage is collected only while there is work.
  const stopLaterCalls = startSmallCalls(gateway);
  await waitFor(() => memory.now() < memory.base + LEFT, 60_000).catch(() => {});
  const later = await stopLaterCalls();
  const end = memory.now();
  console.log(`${memory.base} MB, at most ${peak} MB, ${end} MB and ${sockets} sockets as before at the end`);
  expect([...failures, ...later.failures]).toEqual([]);
  expect(median).toBeLessThan(SOON);
  expect(most).toBeLessThan(LATEST);
  expect(peak).toBeLessThan(memory.base + LIMITS.unread_total / MIB + MARGIN);
  expect(end).toBeLessThan(memory.base + LEFT);
});
