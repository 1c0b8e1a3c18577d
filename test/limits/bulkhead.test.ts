/**
 * A hanging server does not slow down others: its concurrency and queue are limited, and further calls are refused at
 * once.
 */
import { expect, it } from 'vitest';
import { open } from '../support/open-gateway.ts';
import { patient } from '../support/patience.ts';
import { waitFor } from '../support/processes.ts';
import { basic, begin, beginMany, doorOf, hanging, refusalOf, textOf } from './limits.ts';

it('a hanging server gets 256 running and 256 waiting calls, and other servers answer as before', async () => {
  const { gateway } = await open({ a: hanging(), b: basic() });
  const door = doorOf(gateway);
  const calls = beginMany(door, 600, 'a_hang');
  expect(gateway.metrics.inFlight).toBe(256);
  const refused = () => calls.filter(({ isOver }) => isOver);
  await waitFor(() => refused().length >= 600 - 512);
  for (const call of refused()) expect((await refusalOf(call)).code).toBe('source_busy');
  const start = performance.now();
  for (let i = 0; i < 200; i++) await textOf(begin(door, 'b_count'));
  // A single call that waited for the hanging server would take its timeout of 30 s.
  expect(performance.now() - start).toBeLessThan(patient(15_000));
  expect(refused()).toHaveLength(600 - 512);
  for (const call of calls) call.cancel();
  expect(gateway.metrics.inFlight).toBe(0);
  expect(await textOf(begin(door, 'a_ok'))).toMatch(/^\d+$/);
});
