/** A server that hangs does not slow the others: it has its places, so many calls wait, and the rest is refused at once. */
import { expect, it } from 'vitest';
import { open } from '../metrics/use.ts';
import { basic, begin, beginMany, doorOf, hanging, refusalOf, textOf } from './use.ts';

it('has 256 places and room for 256 more, and what is beside it goes on as before', async () => {
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
  // Generous, because other tests run at the same time; without places of its own it would be seconds.
  expect(beside).toBeLessThan(quiet * 5 + 20);
  for (const call of calls) call.cancel();
  expect(gateway.metrics.inFlight).toBe(0);
  expect(await textOf(begin(door, 'a_ok'))).toMatch(/^\d+$/);
});

/** The slowest but two of many, in milliseconds. */
async function times(call: () => Promise<unknown>): Promise<number> {
  const all: number[] = [];
  for (let i = 0; i < 200; i++) {
    const start = performance.now();
    await call();
    all.push(performance.now() - start);
  }
  return all.sort((a, b) => b - a)[2]!;
}
