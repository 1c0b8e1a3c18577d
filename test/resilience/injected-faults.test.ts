/** Some of the places that start a program or write a file, with some errors of the system. The soak run has all of them. */
import { expect, it } from 'vitest';
import { faultsOf } from '../support/faults.ts';
import { startLife } from '../support/faulty-life.ts';
import { useProcesses } from '../support/switch.ts';
import { onePart } from '../support/wide.ts';

useProcesses('servers');

it('a start or a write that fails is told with its cause, and works again afterwards', {
  timeout: 300_000,
}, async () => {
  const life = await startLife();
  const places = onePart(5, await life.learn(onePart(4, Object.keys(life.acts))));
  const wrong: string[] = [];
  for (const one of places) wrong.push(...(await life.suffer(one, onePart(2, faultsOf(one.kind)))));
  await life.close();
  expect(wrong).toEqual([]);
});
