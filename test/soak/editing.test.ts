import { expect, it } from 'vitest';
import { noPython } from '../support/python.ts';
import { createRandom } from '../support/random.ts';
import { useProcesses } from '../support/switch.ts';
import { editUnderLoad } from './editing.ts';

useProcesses();

it.skipIf(noPython !== undefined)(
  'serves every call through 200 edits of tool files, and the last good version of each',
  { timeout: 840_000 },
  async () => {
    const random = createRandom();
    console.log(`seed ${random.seed}`);
    const start = performance.now();
    const { edits, broken, calls, failures, gaps, served } = await editUnderLoad(
      Number(process.env.SOAK_EDITS ?? 200),
      random,
    );
    const seconds = Math.round((performance.now() - start) / 1000);
    const times = Object.entries(served).map(([language, list]) => `${language} ${middle(list)} ms`);
    console.log(
      `${edits} edits (${broken} broken) in ${seconds} s, ${calls} calls, ${failures.length} failed, ${gaps.length} gaps; from edit to served: ${times.join(', ')}`,
    );
    expect(failures).toEqual([]);
    expect(gaps).toEqual([]);
    expect(calls).toBeGreaterThan(edits);
  },
);

function middle(list: readonly number[]): number {
  return [...list].sort((a, b) => a - b)[list.length >> 1] ?? 0;
}
