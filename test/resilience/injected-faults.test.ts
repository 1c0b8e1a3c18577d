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
  const places = await life.learn(onePart(4, Object.keys(life.acts)));
  const cases = places.flatMap((one) => faultsOf(one.kind).map((fault) => ({ ...one, fault })));
  const wrong: string[] = [];
  for (const { fault, ...one } of onePart(5, cases))
    for (const found of await life.suffer(one, fault)) wrong.push(`${fault}, ${one.act}, ${one.site}: ${found}`);
  await life.close();
  expect(wrong).toEqual([]);
});
