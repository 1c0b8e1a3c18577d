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
  for (const one of cases)
    for (const fault of faultsOf(one.kind))
      for (const found of await life.suffer(one, fault)) wrong.push(`${fault}, ${one.act}, ${one.site}: ${found}`);
  console.log(`${cases.length} places`);
  await life.close();
  expect(wrong).toEqual([]);
});

it('starts and writes that fail at random never end the gateway', LONG, async () => {
  const random = createRandom();
  const life = await startLife();
  const wrong: string[] = [];
  for (let round = 0; round < 100; round++) {
    const act = random.pick(Object.keys(life.acts));
    const kind = random.pick(['spawn', 'write'] as const);
    const fault = random.pick(faultsOf(kind));
    const found = await life.sufferAnywhere(act, () => (random.chance(0.3) ? fault : null), kind);
    wrong.push(...found.map((one) => `${fault} at random, ${act}, seed ${random.seed}: ${one}`));
  }
  await life.close();
  expect(wrong).toEqual([]);
});
