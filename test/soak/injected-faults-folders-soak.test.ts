/** Tool files and changed servers: every place that starts a program or writes a file, with every error of the system. */
import { it } from 'vitest';
import { sufferSystem } from '../support/faulty-life.ts';
import { useProcesses } from '../support/switch.ts';

useProcesses('servers');

it(
  'a start or a write that fails anywhere is told with its cause, and works again afterwards',
  {
    timeout: 1_800_000,
  },
  // What a call writes is in the other file.
  () => sufferSystem((act) => /file$|a changed server/.test(act), ['a call']),
);
