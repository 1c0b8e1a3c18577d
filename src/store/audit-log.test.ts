import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { it } from 'vitest';
import { waitFor } from '../../test/support/processes.ts';
import { tempFolder } from '../../test/support/temp.ts';
import { AuditLog } from './audit-log.ts';

it('writes lines that were held back during another write', async () => {
  const folder = tempFolder();
  const heldBack: string[] = [];
  let collections = 0;
  const log: AuditLog = new AuditLog({
    folder,
    boot: 'b',
    retention: () => 30,
    report() {},
    lostLine: () => '{}',
    collect() {
      for (const line of heldBack.splice(0)) log.add(line);
      if (++collections > 1) return;
      // By then the log has collected its lines and waits for the disk.
      setImmediate(() => {
        heldBack.push('{"second":2}');
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
