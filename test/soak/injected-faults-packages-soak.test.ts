/** Packages of servers and of folders: every place that starts a program or writes a file, with every error of the system. */
import { it } from 'vitest';
import { sufferSystem } from '../support/faulty-life.ts';
import { useProcesses } from '../support/switch.ts';

useProcesses('servers');

it('an install that fails anywhere is told with its cause, and works again afterwards', { timeout: 1_800_000 }, () =>
  // What these write is in the other files.
  sufferSystem((act) => act.includes('package'), ['a call', 'a changed server', 'a TypeScript file']),
);
