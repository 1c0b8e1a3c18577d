/** Runs before each test file. Files of one worker share their modules, so a hook in a module would be registered for the first file only. */
import fc from 'fast-check';
import { afterAll, vi } from 'vitest';
import { endFile } from './cleanup.ts';
import { endUseOfListWait } from './list-wait.ts';
import { endUseOfProcesses } from './switch.ts';

// A property that fails prints its seed; `SEED=…` runs the same cases again.
fc.configureGlobal({ seed: Number(process.env.SEED) });

afterAll(async () => {
  vi.useRealTimers();
  await endFile();
  endUseOfProcesses();
  endUseOfListWait();
});
