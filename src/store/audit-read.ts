/** Reads the audit: line by line, oldest first. Damaged lines are reported and skipped. */
import { createReadStream } from 'node:fs';
import { readdir, stat } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { getOrMake } from '../base/memo.ts';
import { matchesPattern } from '../base/pattern.ts';
import { counted } from '../base/text.ts';
import { DAY_FILE, dayOf } from './audit-file.ts';
import { type Heads, headsFile, macOf } from './audit-heads.ts';
import { createVerifier, type SealProblem } from './audit-seal.ts';

/** One line of the audit. Which keys it has depends on its kind. */
export interface AuditRecord {
  readonly time: string;
  readonly id: string;
  /** `begun` is the line that `audit.before` adds before a call is sent. Another one with its outcome follows. */
  readonly kind: 'call' | 'begun' | 'denial' | 'admin';
  readonly agent?: string;
  readonly method?: string;
  readonly server?: string;
  /** The server's own name for it; for a denial, what was asked for. */
  readonly tool?: string;
  readonly name?: string;
  readonly status: string;
  readonly ms?: number;
  readonly error?: string | number;
  /** For a denial: the key of the configuration, or what else denied it. */
  readonly rule?: string;
  /** What the rule would have decided on a call that a dry run let pass. */
  readonly dry_run?: 'deny' | 'confirm';
  readonly bytes_in?: number;
  readonly bytes_out?: number;
  /** The tool with which the call was made, if it was not the tool itself: `toolman_call`. */
  readonly through?: string;
  /** The id of the line that was written before the call was sent. */
  readonly begun?: string;
  /** What was done, for an administrative act. */
  readonly act?: string;
  /** The name of the admin token that it was done with. */
  readonly by?: string;
  readonly detail?: string;
}

/** Selects records. Every part that is given has to match. */
export interface AuditFilter {
  readonly agent?: string;
  readonly server?: string;
  /** A pattern over the exposed name or the server's own name. */
  readonly tool?: string;
  readonly status?: string;
  readonly kind?: string;
  /** Only calls that a dry run let pass. */
  readonly dryRun?: boolean;
  /** Milliseconds since 1970. */
  readonly since?: number;
  readonly until?: number;
}

/** Which records are read, and for how long. */
export interface ReadOptions {
  readonly filter?: AuditFilter;
  /** Continues with what is written from now on, until it is aborted. */
  readonly follow?: AbortSignal;
  /** Called with the id of a line of the kind `begun` when the call has ended, whether or not the filter matches. */
  ended?(id: string): void;
  /** Called for a line that cannot be understood. */
  damaged?(): void;
  /** Called when all existing records have been read; with `follow`, more may come. */
  caughtUp?(): void;
}

const POLL = 200;

/**
 * The records of an audit folder, the oldest first.
 *
 * @example
 * for await (const record of readAudit(config.audit.dir, { filter: { agent: 'ci' } })) console.log(record.tool);
 */
export async function* readAudit(folder: string, options: ReadOptions = {}): AsyncGenerator<AuditRecord> {
  const { filter = {}, follow, ended, damaged, caughtUp } = options;
  const matches = createFilter(filter);
  const first = filter.since === undefined ? '' : dayOf(filter.since);
  let at = { name: '', offset: 0 };
  for (let isFirst = true; ; isFirst = false) {
    const names = (await dayFiles(folder)).filter((name) => name >= first && name >= at.name);
    for (const name of names) {
      const offset = name === at.name ? at.offset : 0;
      at = { name, offset };
      for await (const { text, end } of linesOf(join(folder, name), offset, follow !== undefined)) {
        at.offset = end;
        const record = text === '' ? null : parseRecord(text);
        if (record?.begun !== undefined) ended?.(record.begun);
        if (record === undefined) damaged?.();
        else if (record !== null && matches(record)) yield record;
      }
    }
    if (isFirst) caughtUp?.();
    if (follow === undefined || follow.aborted) return;
    await sleep(POLL, undefined, { signal: follow }).catch(() => {});
  }
}

/** Sorted by day, because the names begin with dates. */
async function dayFiles(folder: string): Promise<string[]> {
  const names = await readdir(folder).catch(() => []);
  return names.filter((name) => DAY_FILE.test(name)).sort();
}

interface AuditLine {
  readonly text: string;
  /** Where the next line begins. */
  readonly end: number;
}

/** With `isFollowing`, an incomplete last line is left for the next read. */
async function* linesOf(file: string, from: number, isFollowing: boolean): AsyncGenerator<AuditLine> {
  const { size } = await stat(file).catch(() => ({ size: 0 }));
  if (size <= from) return;
  let rest: Buffer = Buffer.alloc(0);
  let end = from;
  for await (const chunk of createReadStream(file, { start: from, end: size - 1, highWaterMark: 256 * 1024 })) {
    rest = rest.length === 0 ? (chunk as Buffer) : Buffer.concat([rest, chunk as Buffer]);
    let start = 0;
    for (let at = rest.indexOf(10); at >= 0; at = rest.indexOf(10, start)) {
      end += at + 1 - start;
      yield { text: rest.toString('utf8', start, at), end };
      start = at + 1;
    }
    rest = rest.subarray(start);
  }
  if (rest.length > 0 && !isFollowing) yield { text: rest.toString(), end: end + rest.length };
}

function parseRecord(text: string): AuditRecord | undefined {
  try {
    const value = JSON.parse(text) as AuditRecord | null;
    const isOurs =
      typeof value?.time === 'string' && typeof value.kind === 'string' && typeof value.status === 'string';
    return isOurs ? value : undefined;
  } catch {
    return undefined;
  }
}

function createFilter({
  agent,
  server,
  tool,
  status,
  kind,
  dryRun,
  since,
  until,
}: AuditFilter): (record: AuditRecord) => boolean {
  const from = since === undefined ? '' : new Date(since).toISOString();
  const to = until === undefined ? '' : new Date(until).toISOString();
  const isTool = (text = '') => tool === undefined || matchesPattern(tool, text);
  return (record) =>
    (agent === undefined || record.agent === agent) &&
    (server === undefined || record.server === server) &&
    (isTool(record.name) || isTool(record.tool)) &&
    (status === undefined || record.status === status) &&
    (kind === undefined || record.kind === kind) &&
    (dryRun !== true || record.dry_run !== undefined) &&
    record.time >= from &&
    (to === '' || record.time < to);
}

/** A place where the audit differs from what was written. */
export interface AuditProblem extends SealProblem {
  readonly file: string;
}

/** What the files are compared with, in addition to their own seals. */
export interface VerifyOptions {
  /** The file with the heads of the audit (`config.audit.heads`). Without it, a missing end is not found. */
  readonly heads?: string;
  /** The key of the seals (`config.audit.key`). */
  readonly key?: string | null;
  /** Seals that were kept elsewhere. */
  readonly against?: readonly string[];
}

/** What verification found. */
export interface AuditVerdict {
  /** How many lines are as they were written. */
  readonly sound: number;
  readonly files: number;
  /** How many of them belong to runs that the heads do not know: from before heads were kept, or of another data folder. */
  readonly unlisted: number;
  readonly problems: readonly AuditProblem[];
}

/**
 * Checks by the seals whether the files were altered, and by the heads whether something is missing.
 *
 * @example
 * const { problems } = await verifyAudit(config.audit.dir, { heads: config.audit.heads });
 */
export async function verifyAudit(folder: string, options: VerifyOptions = {}): Promise<AuditVerdict> {
  const { heads: path, key = null, against = [] } = options;
  const problems: AuditProblem[] = [];
  // Read first: a gateway that runs writes its lines before its heads.
  const heads = path === undefined ? null : await readHeads(path, problems);
  const runs = new Map(heads?.runs.map((run) => [run.chain, run]));
  /** By day, the seals that are right. */
  const seals = new Map<string, Set<string>>();
  let day = '';
  let unlisted = 0;
  let [hasHeads, hasKeyed] = [false, false];
  const verifier = createVerifier({
    key,
    mayContinue: (chain) =>
      runs.get(chain)?.cut === true && Object.keys(runs.get(chain)!.days).every((one) => one >= day),
    batch({ chain, seal, prev, lines, isKeyed, line, isFirst }) {
      getOrMake(seals, day, () => new Set()).add(seal);
      hasHeads ||= isFirst && prev !== '';
      hasKeyed ||= isKeyed;
      if (heads === null || runs.has(chain)) return;
      unlisted += lines;
      if (key !== null && !isKeyed && day > heads.since)
        problems.push({ file: `${day}.jsonl`, line, message: 'is of an unknown run, and sealed without the key' });
    },
  });
  const names = await dayFiles(folder);
  for (const name of names) {
    day = DAY_FILE.exec(name)![1]!;
    const note = (found: readonly SealProblem[]) => problems.push(...found.map((one) => ({ file: name, ...one })));
    for await (const { text } of linesOf(join(folder, name), 0, false)) note(verifier.line(text));
    note(verifier.end());
  }
  if (heads !== null) problems.push(...missingIn(heads, seals, names));
  if (path !== undefined) problems.push(...headProblems(basename(path), heads, key, { hasHeads, hasKeyed }, problems));
  const known = new Set([...seals.values()].flatMap((of) => [...of]));
  for (const seal of against)
    if (!known.has(seal))
      problems.push({
        file: '',
        line: 0,
        message: `the seal ${seal} is not there: what it stands for is missing or was replaced`,
      });
  return { sound: verifier.sound, files: names.length, unlisted, problems };
}

async function readHeads(path: string, problems: AuditProblem[]): Promise<Heads | null> {
  try {
    return await headsFile(path).read();
  } catch {
    problems.push({ file: basename(path), line: 1, message: 'cannot be read: it was changed' });
    return null;
  }
}

/** The ends that the heads know and the files do not have. */
function missingIn(
  { runs }: Heads,
  seals: ReadonlyMap<string, ReadonlySet<string>>,
  names: readonly string[],
): AuditProblem[] {
  const lost = new Map<string, number>();
  for (const { days } of runs)
    for (const [day, seal] of Object.entries(days))
      if (seals.get(day)?.has(seal) !== true) lost.set(day, (lost.get(day) ?? 0) + 1);
  return [...lost].sort().map(([day, count]) => {
    const file = `${day}.jsonl`;
    const whose = counted(count, 'run');
    const message = names.includes(file)
      ? `the last lines of ${whose} are missing or were replaced`
      : `the file is missing; ${whose} wrote to it`;
    return { file, line: 0, message };
  });
}

function headProblems(
  file: string,
  heads: Heads | null,
  key: string | null,
  { hasHeads, hasKeyed }: { readonly hasHeads: boolean; readonly hasKeyed: boolean },
  known: readonly AuditProblem[],
): AuditProblem[] {
  const about = (message: string) => [{ file, line: 1, message }];
  if (heads === null) {
    const isKnown = known.some((one) => one.file === file);
    return hasHeads && !isKnown ? about('is missing, so nobody can tell whether the ends of the files are') : [];
  }
  if (key === null) return [];
  if (heads.mac === undefined) return hasKeyed ? about('has no code of the key: it was replaced') : [];
  return heads.mac === macOf(heads, key) ? [] : about('was changed, or written with another key');
}
