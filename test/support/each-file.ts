/** Runs before each test file. Files of one worker share their modules, so a hook in a module would be registered for the first file only. */
import fc from 'fast-check';
import { afterAll, vi } from 'vitest';
import { cpuMs } from '../../scripts/results.mjs';
import { forgetSandboxes } from '../../src/workers/isolation.ts';
import { endFile } from './cleanup.ts';
import { endUseOfListWait } from './list-wait.ts';
import { endUseOfProcesses } from './switch.ts';

const cpuBefore = cpuMs();
// A property that fails prints its seed; `SEED=…` runs the same cases again.
fc.configureGlobal({ seed: Number(process.env.SEED) });

// biome-ignore lint/correctness/noEmptyPattern: vitest reads from the pattern which fixtures are wanted
afterAll(async ({}, file) => {
  vi.useRealTimers();
  await endFile();
  endUseOfProcesses();
  endUseOfListWait();
  // Otherwise gateways of later files would look at all processes of the machine for every connection.
  forgetSandboxes();
  // The reporter writes it into the results.
  Object.assign(file.meta, { cpuMs: cpuMs() - cpuBefore });
});
