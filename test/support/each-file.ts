/** Runs before each test file. Files of one worker share their modules, so a hook that a module registers would be that of the first file only. */
import { afterAll, vi } from 'vitest';
import { endFile } from './cleanup.ts';

afterAll(async () => {
  vi.useRealTimers();
  await endFile();
});
