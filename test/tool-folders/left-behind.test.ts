/** What edits and deletions of folders leave in the data folder. */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { tsTool } from '../support/dock.ts';
import { openDock } from '../support/open-dock.ts';
import { waitFor } from '../support/processes.ts';
import { useProcesses } from '../support/switch.ts';

useProcesses();

it('offers/ has one file for each server, however often its folder is edited', { timeout: 90_000 }, async () => {
  const dock = await openDock({
    'a/x.ts': tsTool('x', 'return "0";'),
    'b/y.ts': tsTool('y', 'return "y";'),
  });
  const offers = () => readdirSync(join(dock.dataDir, 'offers')).length;
  await dock.lists('a_x', 'b_y');
  for (const text of ['1', '2']) {
    dock.put('a/x.ts', tsTool('x', `return "${text}";`));
    await dock.answers('a_x', text);
  }
  await waitFor(() => offers() === 2);
  dock.remove('a');
  await dock.lists('b_y');
  await waitFor(() => offers() === 1);
  expect((await dock.call('b_y')).text).toBe('y');
});
