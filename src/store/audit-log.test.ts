import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { it } from 'vitest';
import { waitFor } from '../../test/support/processes.ts';
import { tempFolder } from '../../test/support/temp.ts';
import { AuditLog } from './audit-log.ts';

it('writes what was held back while something else was being written', async () => {
  const folder = tempFolder();
  const held: string[] = [];
  let looks = 0;
  const log: AuditLog = new AuditLog({
    folder,
    boot: 'b',
    retention: () => 30,
    report() {},
    lostLine: () => '{}',
    collect() {
      for (const line of held.splice(0)) log.add(line);
      if (++looks > 1) return;
      // The first look is over, and the disk is waited for.
      setImmediate(() => {
        held.push('{"second":2}');
        log.hurry();
      });
    },
  });
  log.time();
  log.write('{"first":1}');
  await waitFor(() =>
    readdirSync(folder).some((name) => readFileSync(join(folder, name), 'utf8').includes('"second"')),
  );
  await log.close();
});
