import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync, rmSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { waitFor } from '../../test/support/processes.ts';
import { tempFolder } from '../../test/support/temp.ts';
import { AuditLog } from './audit-log.ts';
import { verifyAudit } from './audit-read.ts';

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

function openLog(folder: string, problems: (string | null)[]): AuditLog {
  return new AuditLog({
    folder,
    boot: 'b',
    retention: () => 30,
    report: (problem) => problems.push(problem),
    lostLine: () => '{}',
  });
}

it('does not remove what it wrote while the clock was a month behind', async () => {
  const folder = tempFolder({ '2026-01-01.jsonl': '' });
  let now = Date.parse('2026-06-15T12:00:00Z');
  const log = new AuditLog({
    folder,
    boot: 'boot',
    retention: () => 7,
    report() {},
    lostLine: () => '{}',
    now: () => now,
  });
  const write = async () => {
    log.time();
    log.write('{"line":1}');
    await log.flush();
  };
  await write();
  expect(readdirSync(folder)).toEqual(['2026-06-15.jsonl']);
  now = Date.parse('2026-07-28T12:00:00Z');
  await write();
  now = Date.parse('2026-07-29T12:00:00Z');
  await write();
  expect(readdirSync(folder).sort()).toEqual(['2026-06-15.jsonl', '2026-07-28.jsonl', '2026-07-29.jsonl']);
  await log.close();
});

it('keeps failing while the file of the day is a pipe, and counts no line as written', async () => {
  const folder = tempFolder();
  const file = join(folder, `${new Date().toISOString().slice(0, 10)}.jsonl`);
  execFileSync('mkfifo', [file]);
  const problems: (string | null)[] = [];
  const log = openLog(folder, problems);
  log.time();
  for (let i = 0; i < 3; i++) {
    log.write('{"line":1}');
    await log.flush();
  }
  expect([log.isFailing, log.written, problems]).toEqual([true, 0, [expect.stringContaining('is not a regular file')]]);
  rmSync(file);
  await log.flush();
  expect([log.isFailing, log.written, problems.at(-1)]).toEqual([false, 3, null]);
  await log.close();
});

it('counts a write that does not return as failing, until it does', async () => {
  const folder = tempFolder();
  const pipes = Array.from({ length: 4 }, (_, i) => join(folder, `pipe${i}`));
  execFileSync('mkfifo', pipes);
  // Each open waits for a writer in a thread of the pool, so nothing else on the disk returns.
  const opened = pipes.map((pipe) => open(pipe, 'r'));
  const problems: (string | null)[] = [];
  const log = openLog(folder, problems);
  log.time();
  log.write('{"line":1}');
  await waitFor(() => log.isFailing, 20_000);
  expect(problems).toEqual([expect.stringContaining('has not responded')]);
  for (const pipe of pipes) execFileSync('sh', ['-c', ': > "$0"', pipe]);
  for (const handle of await Promise.all(opened)) await handle.close();
  await waitFor(() => !log.isFailing);
  expect([log.written, problems.at(-1)]).toEqual([1, null]);
  await log.close();
}, 40_000);

it('leaves a sound file if a full disk takes half of the lines, and cannot even give them back for a while', async () => {
  const folder = tempFolder();
  const problems: (string | null)[] = [];
  const log = openLog(folder, problems);
  const write = async () => {
    log.time();
    for (let i = 0; i < 3; i++) log.write(`{"line":${i}}`);
    await log.flush();
  };
  await write();
  const handle = await open(join(folder, readdirSync(folder)[0]!));
  const prototype = Object.getPrototypeOf(handle) as Record<'write' | 'truncate', (...args: unknown[]) => unknown>;
  await handle.close();
  const { write: wrote, truncate } = prototype;
  let refused = 0;
  prototype.write = function (this: unknown, bytes: unknown) {
    return wrote.call(this, (bytes as Buffer).subarray(0, (bytes as Buffer).length >> 1));
  };
  prototype.truncate = () => {
    refused++;
    return Promise.reject(new Error('ENOSPC'));
  };
  try {
    await write();
    await waitFor(() => refused >= 2);
  } finally {
    Object.assign(prototype, { write: wrote, truncate });
  }
  await log.flush();
  expect([log.isFailing, log.written, problems]).toEqual([false, 6, [expect.stringContaining('ENOSPC'), null]]);
  await write();
  await log.close();
  const { problems: found } = await verifyAudit(folder);
  expect(found).toEqual([]);
  const lines = readFileSync(join(folder, readdirSync(folder)[0]!), 'utf8').match(/"line":/g);
  expect(lines).toHaveLength(9);
});
