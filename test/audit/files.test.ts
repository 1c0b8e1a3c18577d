/** Audit files: complete lines, one file per day, limited retention, and recovery from every disk failure. */
import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { readAudit, verifyAudit } from '../../src/index.ts';
import { AuditLog } from '../../src/store/audit-log.ts';
import { atEnd } from '../support/cleanup.ts';
import { asOtherUser } from '../support/other-user.ts';
import { waitFor } from '../support/processes.ts';
import { tempFolder } from '../support/temp.ts';

const isRoot = process.getuid?.() === 0;

interface Opened extends AuditLog {
  readonly folder: string;
  readonly told: (string | null)[];
  add(text: string): void;
}

function open(options: { folder?: string; now?: () => number; boot?: string; retention?: number } = {}): Opened {
  const { folder = join(tempFolder(), 'audit'), now = Date.now, boot = 'boot', retention = 30 } = options;
  const told: (string | null)[] = [];
  const log: AuditLog = new AuditLog({
    folder,
    boot,
    now,
    retention: () => retention,
    report: (problem) => told.push(problem),
    lostLine: (count) => JSON.stringify({ time: log.time(), kind: 'admin', act: 'audit_lost', status: 'ok', count }),
  });
  atEnd(() => log.close());
  const add = (text: string) => log.write(JSON.stringify({ time: log.time(), kind: 'call', status: 'ok', name: text }));
  return Object.defineProperties(log, {
    folder: { value: folder },
    told: { value: told },
    add: { value: add },
  }) as Opened;
}

async function names(folder: string): Promise<string[]> {
  const found: string[] = [];
  for await (const { name, act } of readAudit(folder)) found.push(name ?? act ?? '');
  return found;
}

function files(folder: string): string[] {
  return readdirSync(folder).sort();
}

describe('writing audit files', () => {
  it('batches lines briefly, and writes them whole into a file that only its owner can read', async () => {
    const log = open();
    log.add('one');
    log.add('two');
    expect(existsSync(log.folder)).toBe(false);
    await waitFor(() => existsSync(log.folder) && files(log.folder).length === 1);
    await log.flush();
    const [file] = files(log.folder);
    expect(file).toMatch(/^\d{4}-\d\d-\d\d\.jsonl$/);
    expect(statSync(join(log.folder, file!)).mode & 0o777).toBe(0o600);
    expect(statSync(log.folder).mode & 0o777).toBe(0o700);
    expect(await names(log.folder)).toEqual(['one', 'two']);
    expect(log.written).toBe(2);
  });

  it('writes a full batch at once, in order', async () => {
    const log = open();
    const all = Array.from({ length: 5_000 }, (_, i) => `line ${i} ${'x'.repeat(100)}`);
    all.forEach(log.add);
    await log.close();
    expect(await names(log.folder)).toEqual(all);
    expect(await verifyAudit(log.folder)).toMatchObject({ sound: 5_000, problems: [] });
  });

  it('accepts lines that are longer than a batch', async () => {
    const log = open();
    const all = ['a', 'b'.repeat(300_000), 'c'];
    all.forEach(log.add);
    await log.close();
    expect(await names(log.folder)).toEqual(all);
    expect(await verifyAudit(log.folder)).toMatchObject({ sound: 3, problems: [] });
  });

  it('starts a new file at midnight UTC, with each line in the file of its day', async () => {
    let now = Date.parse('2026-11-15T23:59:59.998Z');
    const log = open({ now: () => now });
    log.add('before');
    now += 1;
    log.add('just before');
    now += 1;
    log.add('midnight');
    await log.close();
    expect(files(log.folder)).toEqual(['2026-11-15.jsonl', '2026-11-16.jsonl']);
    const lines = (day: string) =>
      readFileSync(join(log.folder, `2026-11-${day}.jsonl`), 'utf8')
        .trim()
        .split('\n');
    expect(lines('15')).toHaveLength(2);
    expect(lines('16').map((line) => (JSON.parse(line) as { time: string }).time)).toEqual([
      '2026-11-16T00:00:00.000Z',
    ]);
    expect(await verifyAudit(log.folder)).toMatchObject({ sound: 3, problems: [] });
  });

  it('removes files older than the retention, and no file that is not its own', async () => {
    const folder = tempFolder({
      '2026-10-01.jsonl': '',
      '2026-11-13.jsonl': '',
      '2026-11-14.jsonl': '',
      '2026-10-01.jsonl.bak': '',
      'notes.txt': '',
      '2026-10-01.json': '',
    });
    const log = open({ folder, now: () => Date.parse('2026-11-16T12:00:00Z'), retention: 3 });
    log.add('x');
    await log.close();
    expect(files(folder)).toEqual(
      ['2026-10-01.json', '2026-10-01.jsonl.bak', '2026-11-14.jsonl', '2026-11-16.jsonl', 'notes.txt'].sort(),
    );
  });

  it('appends to a file that ends in an incomplete line, and leaves that line unchanged', async () => {
    const now = () => Date.parse('2026-11-16T12:00:00Z');
    const first = open({ now });
    first.add('whole');
    await first.close();
    const file = join(first.folder, '2026-11-16.jsonl');
    writeFileSync(file, `${readFileSync(file, 'utf8')}{"time":"2026-11-16T12:`);
    const second = open({ folder: first.folder, now });
    second.add('after');
    await second.close();
    let damaged = 0;
    const found: string[] = [];
    for await (const { name } of readAudit(first.folder, { damaged: () => damaged++ })) found.push(name ?? '');
    expect([found, damaged]).toEqual([['whole', 'after'], 1]);
  });

  it('does not follow a link out of its folder', async () => {
    const elsewhere = join(tempFolder(), 'secret.txt');
    writeFileSync(elsewhere, 'mine');
    const folder = tempFolder();
    symlinkSync(elsewhere, join(folder, '2026-11-16.jsonl'));
    const log = open({ folder, now: () => Date.parse('2026-11-16T12:00:00Z') });
    log.add('x');
    await log.flush();
    expect(log.isFailing).toBe(true);
    expect(readFileSync(elsewhere, 'utf8')).toBe('mine');
  });
});

describe('an audit that cannot be written', () => {
  it('is reported once, keeps its lines, and writes them when the folder is back', async () => {
    const folder = join(tempFolder({ taken: 'a file' }), 'taken');
    const log = open({ folder });
    log.add('one');
    await log.flush();
    log.add('two');
    await log.flush();
    expect(log.isFailing).toBe(true);
    expect(log.told).toEqual([expect.stringMatching(/EEXIST|ENOTDIR/)]);
    rmSync(folder);
    await waitFor(() => !log.isFailing, 3_000);
    expect(log.told).toEqual([expect.any(String), null]);
    await log.flush();
    expect(await names(folder)).toEqual(['one', 'two']);
  });

  it('recreates its folder if that was removed', async () => {
    const log = open();
    log.add('gone');
    await log.flush();
    rmSync(log.folder, { recursive: true });
    await sleep(60);
    log.add('here');
    await log.flush();
    expect(await names(log.folder)).toEqual(['here']);
    expect(log.told).toEqual([]);
    const problems = (await verifyAudit(log.folder)).problems;
    expect(problems).toEqual([]);
  });

  it('loses no lines in a folder without write permission', async () => {
    const folder = tempFolder();
    chmodSync(folder, 0o500);
    await asOtherUser(folder, async () => {
      const log = open({ folder });
      log.add('one');
      await log.flush();
      expect(log.told).toEqual([expect.stringContaining('EACCES')]);
      chmodSync(folder, 0o700);
      await waitFor(() => !log.isFailing, 3_000);
      expect(await names(folder)).toEqual(['one']);
      await log.close();
    });
  });

  it('buffers a limited amount, counts lost lines, and records the loss', async () => {
    const folder = join(tempFolder({ taken: 'a file' }), 'taken');
    const log = open({ folder });
    const text = 'x'.repeat(64_000);
    for (let i = 0; i < 200; i++) log.add(`${i} ${text}`);
    await log.flush();
    expect(log.lost).toBeGreaterThan(50);
    rmSync(folder);
    await waitFor(() => !log.isFailing, 5_000);
    await log.close();
    const found = await names(folder);
    expect(found.at(-1)).toBe('audit_lost');
    expect(found.length - 1 + log.lost).toBe(200);
    expect(log.written).toBe(found.length);
    expect(readFileSync(join(folder, files(folder)[0]!), 'utf8')).toContain(`"count":${log.lost}`);
  });

  const disk = isRoot ? mountSmall() : null;
  it.skipIf(disk === null)(
    'waits on a full disk, and writes no line twice or cut when there is space again',
    async () => {
      const folder = join(disk!, 'audit');
      mkdirSync(folder, { recursive: true });
      writeFileSync(join(disk!, 'ballast'), Buffer.alloc(180 * 1024));
      const log = open({ folder });
      const all = Array.from({ length: 300 }, (_, i) => `line ${i} ${'y'.repeat(400)}`);
      all.forEach(log.add);
      await log.flush();
      expect(log.isFailing).toBe(true);
      expect(log.told).toHaveLength(1);
      rmSync(join(disk!, 'ballast'));
      await waitFor(() => !log.isFailing, 5_000);
      await log.close();
      expect(log.lost).toBe(0);
      expect(await names(folder)).toEqual(all);
      expect(await verifyAudit(folder)).toMatchObject({ sound: 300, problems: [] });
    },
  );
});

/** A file system of 256 KiB; null if mounting is not permitted. */
function mountSmall(): string | null {
  const folder = tempFolder();
  const mounted = spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=256k', 'tmpfs', folder]);
  if (mounted.status !== 0) return null;
  atEnd(() => void spawnSync('umount', [folder]));
  return folder;
}

describe('several gateways that audit to one folder', () => {
  it('never mix their lines', async () => {
    const folder = join(tempFolder(), 'audit');
    const logs = ['a', 'b', 'c'].map((boot) => open({ folder, boot }));
    for (let round = 0; round < 20; round++) {
      for (const [which, log] of logs.entries())
        for (let i = 0; i < 100; i++) log.add(`${which} ${round} ${i} ${'z'.repeat((i * 37) % 500)}`);
      await sleep(2);
    }
    await Promise.all(logs.map((log) => log.close()));
    const found = await names(folder);
    expect(found).toHaveLength(6_000);
    for (const which of [0, 1, 2]) {
      const own = found
        .filter((name) => name.startsWith(`${which} `))
        .map((name) => name.split(' ').slice(1, 3).map(Number));
      expect(own.map(([round, i]) => round! * 100 + i!)).toEqual(Array.from({ length: 2_000 }, (_, i) => i));
    }
    expect(await verifyAudit(folder)).toMatchObject({ sound: 6_000, problems: [] });
  });
});

describe('audit seals', () => {
  async function written(): Promise<{ folder: string; file: string; lines: string[] }> {
    const log = open({ now: () => Date.parse('2026-11-16T12:00:00Z') });
    for (let batch = 0; batch < 4; batch++) {
      for (let i = 0; i < 5; i++) log.add(`${batch}.${i}`);
      await log.flush();
    }
    await log.close();
    const file = join(log.folder, '2026-11-16.jsonl');
    return { folder: log.folder, file, lines: readFileSync(file, 'utf8').trimEnd().split('\n') };
  }

  it('are valid if nothing was changed', async () => {
    const { folder, lines } = await written();
    expect(lines).toHaveLength(20);
    expect(await verifyAudit(folder)).toEqual({ sound: 20, files: 1, unlisted: 0, problems: [] });
  });

  it.each<[string, (lines: string[]) => void, number]>([
    ['a changed line', (lines) => lines.splice(7, 1, lines[7]!.replace('1.2', '1.9')), 6],
    ['a line taken out', (lines) => lines.splice(7, 1), 6],
    ['two lines swapped', (lines) => lines.splice(7, 2, lines[8]!, lines[7]!), 6],
    ['a line put in', (lines) => lines.splice(7, 0, lines[7]!), 6],
    ['a whole batch taken out', (lines) => lines.splice(5, 5), 6],
    ['two batches swapped', (lines) => lines.push(...lines.splice(5, 5)), 6],
    ['a line put between two batches', (lines) => lines.splice(5, 0, lines[0]!), 6],
    ['lines added at the end', (lines) => lines.push(lines[0]!), 21],
    ['the end cut off', (lines) => lines.splice(18, 2), 16],
  ])('reveal %s', async (_, change, line) => {
    const { folder, file, lines } = await written();
    change(lines);
    writeFileSync(file, `${lines.join('\n')}\n`);
    const { problems } = await verifyAudit(folder);
    expect(problems[0]).toMatchObject({ file: '2026-11-16.jsonl', line });
  });
});
