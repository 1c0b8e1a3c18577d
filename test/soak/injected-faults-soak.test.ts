/** Every place that starts a program or writes a file, with every error that the system may give there. */
import { it } from 'vitest';
import { sufferRandomly, sufferSystem } from '../support/faulty-life.ts';
import { useProcesses } from '../support/switch.ts';

useProcesses('servers');

const LONG = { timeout: 1_200_000 };
/** Those of folders and packages have files of their own, which run at the same time. */
const isHere = (act: string) => !/file$|package|a changed server/.test(act);

it('a start or a write that fails anywhere is told with its cause, and works again afterwards', LONG, () =>
  sufferSystem(isHere),
);

it('starts and writes that fail at random never end the gateway', LONG, () => sufferRandomly(50));
