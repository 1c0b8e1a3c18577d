/**
 * A hanging server does not slow down others: its concurrency and queue are limited, and further calls are refused at
 * once.
 */
import { expect, it } from 'vitest';
import { open } from '../metrics/use.ts';
import { basic, begin, beginMany, doorOf, hanging, refusalOf, textOf } from './use.ts';

it('a hanging server gets 256 running and 256 waiting calls, and other servers stay fast', async () => {
  const { gateway } = await open({ a: hanging(), b: basic() });
  const door = doorOf(gateway);
  for (let i = 0; i < 100; i++) await textOf(begin(door, 'b_count'));
  const quiet = await times(() => textOf(begin(door, 'b_count')));
  const calls = beginMany(door, 600, 'a_hang');
  expect(gateway.metrics.inFlight).toBe(256);
  await new Promise((resolve) => setTimeout(resolve, 50));
  const refused = calls.filter(({ isOver }) => isOver);
  expect(refused).toHaveLength(600 - 512);
  for (const call of refused) expect((await refusalOf(call)).code).toBe('source_busy');
  const beside = await times(() => textOf(begin(door, 'b_count')));
  // Generous, because other tests run at the same time. Without separate limits it would be seconds.
  expect(beside).toBeLessThan(quiet * 5 + 20);
  for (const call of calls) call.cancel();
  expect(gateway.metrics.inFlight).toBe(0);
  expect(await textOf(begin(door, 'a_ok'))).toMatch(/^\d+$/);
});

/** The third slowest of many, in milliseconds. */
async function times(call: () => Promise<unknown>): Promise<number> {
  const all: number[] = [];
  for (let i = 0; i < 200; i++) {
    const start = performance.now();
    await call();
    all.push(performance.now() - start);
  }
  return all.sort((a, b) => b - a)[2]!;
}
