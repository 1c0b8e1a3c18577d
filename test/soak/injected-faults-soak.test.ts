/** Every place that starts a program or writes a file, with every error that the system may give there. */
import { expect, it } from 'vitest';
import { faultsOf } from '../support/faults.ts';
import { startLife } from '../support/faulty-life.ts';
import { createRandom } from '../support/random.ts';
import { useProcesses } from '../support/switch.ts';

useProcesses('servers');

const LONG = { timeout: 3_600_000 };

it('a start or a write that fails anywhere is told with its cause, and works again afterwards', LONG, async () => {
  const life = await startLife({ packages: true });
  const cases = await life.learn(Object.keys(life.acts));
  const wrong: string[] = [];
  for (const one of cases) wrong.push(...(await life.suffer(one, faultsOf(one.kind))));
  console.log(`${cases.length} places`);
  await life.close();
  expect(wrong).toEqual([]);
});

it('starts and writes that fail at random never end the gateway', LONG, async () => {
  const random = createRandom();
  console.log(`seed ${random.seed}`);
  const life = await startLife();
  const wrong: string[] = [];
  for (let round = 0; round < 100; round++) {
    const act = random.pick(Object.keys(life.acts));
    const kind = random.pick(['spawn', 'write'] as const);
    const fault = random.pick(faultsOf(kind));
    wrong.push(...(await life.sufferAnywhere(act, () => (random.chance(0.3) ? fault : null), kind)));
  }
  await life.close();
  expect(wrong).toEqual([]);
});
