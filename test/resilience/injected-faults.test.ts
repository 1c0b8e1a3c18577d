/** Some of the places that start a program or write a file, with some errors of the system. The soak run has all of them. */
import { expect, it } from 'vitest';
import { faultsOf } from '../support/faults.ts';
import { startLife } from '../support/faulty-life.ts';
import { useProcesses } from '../support/switch.ts';

useProcesses('servers');

/** Those that need no pause between two restarts, which take their time on a busy machine. */
const ACTS = ['a call', 'a changed server', 'a toolset'];
/** Of each act. */
const PLACES = 3;

it('a start or a write that fails is told with its cause, and works again afterwards', {
  timeout: 300_000,
}, async () => {
  const life = await startLife();
  const places = await life.learn(ACTS);
  const wrong: string[] = [];
  for (const act of ACTS)
    for (const [i, one] of places
      .filter((place) => place.act === act)
      .slice(0, PLACES)
      .entries()) {
      const faults = faultsOf(one.kind);
      wrong.push(...(await life.suffer(one, [faults[i % faults.length]!])));
    }
  await life.close();
  expect(wrong).toEqual([]);
});
