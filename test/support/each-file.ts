/** Runs before each test file. Files of one worker share their modules, so a hook in a module would be registered for the first file only. */
import fc from 'fast-check';
import { afterAll, vi } from 'vitest';
import { SeenClient } from '../../src/calls/seen-client.ts';
import { endFile } from './cleanup.ts';
import { endUseOfProcesses } from './switch.ts';

// A property that fails prints its seed; `SEED=…` runs the same cases again.
fc.configureGlobal({ seed: Number(process.env.SEED) });

// Clients of tests do not list again by themselves, and each of them would wait a second for that.
SeenClient.longestWait = 30;

afterAll(async () => {
  vi.useRealTimers();
  await endFile();
  endUseOfProcesses();
});
