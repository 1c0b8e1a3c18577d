/** Runs before each test file. Files of one worker share their modules, so a hook in a module would be registered for the first file only. */
import { afterAll, vi } from 'vitest';
import { endFile } from './cleanup.ts';

afterAll(async () => {
  vi.useRealTimers();
  await endFile();
});
