/** Verification finds what is missing from the audit: a line, a run, a file, a day, or the heads themselves. */
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { verifyAudit } from '../../src/index.ts';
import { createHeadKeeper, type Heads, headsFile, openEnds } from '../../src/store/audit-heads.ts';
import { AuditLog } from '../../src/store/audit-log.ts';
import { auditOf } from '../support/audit-records.ts';
import { runCli } from '../support/cli.ts';
import { server, serversToml } from '../support/server.ts';
import { tempFolder } from '../support/temp.ts';

const DAYS = ['2026-11-14', '2026-11-15', '2026-11-16'];

interface Written {
  readonly folder: string;
  readonly heads: string;
  readonly key: string | null;
}

function newPlace(key: string | null = null): Written {
  const data = tempFolder();
  return { folder: join(data, 'logs'), heads: join(data, 'audit-heads.json'), key };
}

/** One run: a batch for each day and word. */
async function run({ folder, heads: path, key }: Written, boot: string, days: readonly string[], retention = 30) {
  let now = 0;
  const clock = () => now;
  const log = new AuditLog({
    folder,
    boot,
    key,
    heads: createHeadKeeper({ path, boot, key, now: clock, warn: (problem) => expect.fail(problem) }),
    now: clock,
    retention: () => retention,
    report: () => {},
    lostLine: () => '{}',
  });
  for (const day of days) {
    now = Date.parse(`${day}T12:00:00Z`);
    for (const batch of [1, 2]) {
      for (const word of ['a', 'b'])
        log.write(JSON.stringify({ time: log.time(), kind: 'call', status: 'ok', name: `${boot}.${batch}.${word}` }));
      await log.flush();
    }
  }
  await log.close();
}

/** Three runs over three days; the second is within one day. */
async function written(key: string | null = null): Promise<Written> {
  const place = newPlace(key);
  await run(place, 'one', [DAYS[0]!, DAYS[1]!]);
  await run(place, 'two', [DAYS[1]!]);
  await run(place, 'three', [DAYS[1]!, DAYS[2]!]);
  return place;
}

const fileOf = ({ folder }: Written, day: string) => join(folder, `${day}.jsonl`);

function edit(place: Written, day: string, change: (lines: string[]) => string[]): void {
  const lines = readFileSync(fileOf(place, day), 'utf8').trimEnd().split('\n');
  writeFileSync(
    fileOf(place, day),
    change(lines)
      .map((line) => `${line}\n`)
      .join(''),
  );
}

const without = (boot: string) => (lines: string[]) => lines.filter((line) => !line.includes(`"name":"${boot}.`));

const TAMPERING: readonly (readonly [string, string, (place: Written) => void])[] = [
  ['the last line removed', DAYS[2]!, (place) => edit(place, DAYS[2]!, (lines) => lines.slice(0, -1))],
  ['the last batch removed', DAYS[2]!, (place) => edit(place, DAYS[2]!, (lines) => lines.slice(0, -2))],
  ['the last batch of a day removed', DAYS[1]!, (place) => edit(place, DAYS[1]!, (lines) => lines.slice(0, -2))],
  ['a run removed', DAYS[1]!, (place) => edit(place, DAYS[1]!, without('two'))],
  ['a file emptied', DAYS[2]!, (place) => writeFileSync(fileOf(place, DAYS[2]!), '')],
  ['the last file removed', DAYS[2]!, (place) => rmSync(fileOf(place, DAYS[2]!))],
  ['a file in the middle removed', DAYS[1]!, (place) => rmSync(fileOf(place, DAYS[1]!))],
  ['the first file removed', DAYS[0]!, (place) => rmSync(fileOf(place, DAYS[0]!))],
  ['every file removed', DAYS[0]!, (place) => rmSync(place.folder, { recursive: true })],
];

describe.each([
  ['without a key', null],
  ['with a key', 'the key of the audit'],
])('an audit %s', (_, key) => {
  it('is whole if nothing was touched', async () => {
    const place = await written(key);
    expect(await verifyAudit(place.folder, place)).toEqual({ sound: 20, files: 3, unlisted: 0, problems: [] });
  });

  it.each(TAMPERING)('with %s is not', async (_, day, tamper) => {
    const place = await written(key);
    tamper(place);
    const { problems } = await verifyAudit(place.folder, place);
    expect(problems.map(({ file }) => file)).toContain(`${day}.jsonl`);
  });

  it('with its heads removed is not whole', async () => {
    const place = await written(key);
    rmSync(place.heads);
    expect((await verifyAudit(place.folder, place)).problems).toMatchObject([{ file: 'audit-heads.json' }]);
    writeFileSync(place.heads, '{');
    expect((await verifyAudit(place.folder, place)).problems).toMatchObject([{ file: 'audit-heads.json' }]);
  });

  it('is whole after old files were removed for their age', async () => {
    const place = await written(key);
    await run(place, 'four', ['2026-11-17'], 2);
    expect(readdirSync(place.folder).sort()).toEqual(['2026-11-16.jsonl', '2026-11-17.jsonl']);
    expect((await verifyAudit(place.folder, place)).problems).toEqual([]);
    rmSync(fileOf(place, DAYS[2]!));
    expect((await verifyAudit(place.folder, place)).problems).toMatchObject([{ file: '2026-11-16.jsonl' }]);
  });

  it('without the heads, the chain of runs still reveals a missing run', async () => {
    const place = await written(key);
    edit(place, DAYS[1]!, without('two'));
    const { problems } = await verifyAudit(place.folder, { key });
    expect(problems.map(({ message }) => message)).toEqual([expect.stringContaining('the end of the run before')]);
  });
});

describe('a seal that was kept elsewhere', () => {
  async function sealOf(place: Written): Promise<string[]> {
    return openEnds((await headsFile(place.heads).read())!);
  }

  it('is one for all runs, and is found as long as nothing was replaced', async () => {
    const place = await written();
    const against = await sealOf(place);
    expect(against).toHaveLength(1);
    await run(place, 'four', ['2026-11-17']);
    expect((await verifyAudit(place.folder, { ...place, against })).problems).toEqual([]);
  });

  it('reveals files that were written again from the beginning, with right seals', async () => {
    const place = await written();
    const against = await sealOf(place);
    rmSync(place.folder, { recursive: true });
    rmSync(place.heads);
    await run(place, 'one', [DAYS[0]!, DAYS[1]!]);
    expect((await verifyAudit(place.folder, place)).problems).toEqual([]);
    const { problems } = await verifyAudit(place.folder, { ...place, against });
    expect(problems.map(({ message }) => message)).toEqual([expect.stringContaining(`the seal ${against[0]}`)]);
  });
});

describe('the key of the audit', () => {
  it('is needed to seal: heads and lines rewritten without it are found', async () => {
    const place = await written('a key');
    const heads = JSON.parse(readFileSync(place.heads, 'utf8')) as Heads;
    const runs = heads.runs.filter(({ chain }) => chain !== 'three');
    edit(place, DAYS[1]!, without('three'));
    rmSync(fileOf(place, DAYS[2]!));
    writeFileSync(place.heads, JSON.stringify({ ...heads, runs }));
    expect((await verifyAudit(place.folder, place)).problems).toMatchObject([
      { file: 'audit-heads.json', message: expect.stringContaining('another key') },
    ]);
    writeFileSync(place.heads, JSON.stringify({ since: heads.since, runs }));
    expect((await verifyAudit(place.folder, place)).problems).toMatchObject([{ file: 'audit-heads.json' }]);
  });

  it('reveals a run that was made up without it', async () => {
    const place = await written('a key');
    await run({ ...place, heads: `${place.heads}.other`, key: null }, 'forged', ['2026-11-17']);
    expect((await verifyAudit(place.folder, place)).problems).toMatchObject([
      { file: '2026-11-17.jsonl', message: expect.stringContaining('without the key') },
      { file: '2026-11-17.jsonl' },
    ]);
  });

  it('is asked for if lines are sealed with one, and a wrong one is not accepted', async () => {
    const place = await written('a key');
    const [first] = (await verifyAudit(place.folder, { heads: place.heads })).problems;
    expect(first!.message).toContain('set audit.key');
    expect((await verifyAudit(place.folder, { ...place, key: 'another' })).problems.length).toBeGreaterThan(0);
  });
});

it('files from before there were heads are verified as before, and counted', async () => {
  const place = newPlace();
  const old = new AuditLog({
    folder: place.folder,
    boot: 'old',
    now: () => Date.parse('2026-11-14T08:00:00Z'),
    retention: () => 30,
    report: () => {},
    lostLine: () => '{}',
  });
  old.write(JSON.stringify({ time: old.time(), kind: 'call', status: 'ok' }));
  await old.close();
  await run(place, 'new', [DAYS[0]!]);
  expect(await verifyAudit(place.folder, place)).toEqual({ sound: 5, files: 1, unlisted: 1, problems: [] });
});

describe('the command line', () => {
  const toml = `[audit]\nenabled = true\nkey = "\${AUDIT_SEALS}"\n${serversToml({ a: server('basic') })}`;
  const env = { AUDIT_SEALS: 'a long key for the audit' };

  it('verifies against a seal that it printed, and names what is missing', async () => {
    const cwd = tempFolder({ 'tools.toml': `controls = []\n${toml}` });
    const cli = (...words: string[]) => runCli(words, { cwd, env });
    await cli('call', 'a_echo');
    const seal = (await cli('audit', 'seal')).stdout.trim();
    expect(seal).toMatch(/^[\w-]{43}$/);
    await cli('call', 'a_echo');
    const well = await cli('audit', 'verify', '--against', seal);
    expect([well.code, well.stdout]).toEqual([0, expect.stringContaining('the seal from elsewhere is there')]);
    const folder = auditOf(cwd);
    const [name] = readdirSync(folder);
    const text = readFileSync(join(folder, name!), 'utf8');
    expect(text).not.toContain(env.AUDIT_SEALS);
    writeFileSync(join(folder, name!), `${text.trimEnd().split('\n').slice(0, -1).join('\n')}\n`);
    const bad = await cli('audit', 'verify', '--against', seal);
    expect([bad.code, bad.stdout]).toEqual([1, expect.stringContaining('the last lines of 1 run are missing')]);
    const wrong = await cli('audit', 'verify', '--against', 'nonsense');
    expect([wrong.code, wrong.stderr]).toEqual([2, expect.stringContaining('toolgate audit seal')]);
  });
});
