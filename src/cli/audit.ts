/** `toolgate audit`: reads the audit files. No gateway has to run. */
import { GatewayError } from '../base/errors.ts';
import { counted } from '../base/text.ts';
import { loadConfig } from '../config/load.ts';
import { headsFile, openEnds } from '../store/audit-heads.ts';
import { type AuditFilter, type AuditProblem, type AuditRecord, readAudit, verifyAudit } from '../store/audit-read.ts';
import { type AuditUsage, createUsageCount } from '../store/audit-usage.ts';
import { withVerbs } from './arguments.ts';
import type { CommandIo } from './command-io.ts';
import { loadOptions, type Options } from './options.ts';
import {
  brief,
  columns,
  duration,
  jsonText,
  paint,
  plain,
  print,
  printResult,
  table,
  untilSignal,
  warn,
} from './terminal.ts';

export const audit = withVerbs('audit', { tail, query, usage, verify, seal });

const TAIL_LIMIT = 20;
const QUERY_LIMIT = 100;

async function folderOf(options: Options, io: CommandIo): Promise<string> {
  return (await loadConfig(loadOptions(options, io))).audit.dir;
}

async function tail(_: readonly string[], options: Options, io: CommandIo): Promise<number> {
  const limit = readLimit(options.limit, TAIL_LIMIT);
  return options.follow === true ? follow(options, limit, io) : show(options, limit, io);
}

async function query(_: readonly string[], options: Options, io: CommandIo): Promise<number> {
  if (options.follow === true) throw new GatewayError('usage', '--follow is for toolgate audit tail.');
  return show(options, readLimit(options.limit, QUERY_LIMIT), io);
}

async function show(options: Options, limit: number, io: CommandIo): Promise<number> {
  const folder = await folderOf(options, io);
  const last: AuditRecord[] = [];
  /** Calls that have begun and not ended, by the id of their line. */
  const open = new Map<string, AuditRecord>();
  const take = (record: AuditRecord) => {
    if (record.kind === 'begun') open.set(record.id, record);
    else keepLast(last, record, limit);
  };
  await readAll(folder, options, io, take, (id) => open.delete(id));
  const all = open.size === 0 ? last : [...last, ...open.values()].sort(byTime);
  const records = lastOf(all, limit);
  if (options.json === true) for (const record of records) print(jsonText(record), io);
  else if (records.length === 0) print(nothingIn(folder), io);
  else print(table([HEAD.map((word) => paint('dim', word, io)), ...records.map((record) => toCells(record, io))]), io);
  return 0;
}

function byTime(a: AuditRecord, b: AuditRecord): number {
  return a.time < b.time ? -1 : a.time > b.time ? 1 : 0;
}

/** Prints the last records, and then each new one until it is interrupted. */
async function follow(options: Options, limit: number, io: CommandIo): Promise<number> {
  const folder = await folderOf(options, io);
  const ending = new AbortController();
  void untilSignal(io).then(() => ending.abort());
  const last: AuditRecord[] = [];
  const write = (record: AuditRecord) =>
    print(options.json ? jsonText(record) : toCells(record, io).join('  ').trimEnd(), io);
  let isCaughtUp = false;
  const caughtUp = () => {
    isCaughtUp = true;
    lastOf(last, limit).forEach(write);
  };
  for await (const record of readAudit(folder, { filter: filterOf(options), follow: ending.signal, caughtUp })) {
    // The line with the outcome follows, and one line per call is enough. Who wants the others asks for them.
    if (record.kind === 'begun' && options.kind === undefined) continue;
    if (isCaughtUp) write(record);
    else keepLast(last, record, limit);
  }
  return 0;
}

/** Reads the records that match, and warns about damaged lines. */
async function readAll(
  folder: string,
  options: Options,
  io: CommandIo,
  onRecord: (record: AuditRecord) => void,
  onEnded?: (id: string) => void,
): Promise<void> {
  let damaged = 0;
  const reading = {
    filter: filterOf(options),
    damaged: () => damaged++,
    ...(onEnded !== undefined && { ended: onEnded }),
  };
  for await (const record of readAudit(folder, reading)) onRecord(record);
  if (damaged > 0) warn(`${counted(damaged, 'damaged line')} skipped`, io);
}

/**
 * Keeps at least the last `limit` records, or all if it is 0. Old ones are removed in bulk, because each removal moves
 * the rest.
 */
function keepLast(last: AuditRecord[], record: AuditRecord, limit: number): void {
  last.push(record);
  if (limit > 0 && last.length >= 2 * limit) last.splice(0, last.length - limit);
}

function lastOf(last: readonly AuditRecord[], limit: number): readonly AuditRecord[] {
  return limit === 0 ? last : last.slice(-limit);
}

function nothingIn(folder: string): string {
  return `${folder} has no matching records.`;
}

const HEAD = ['TIME', 'KIND', 'AGENT', 'WHAT', 'STATUS', 'TOOK'];

function toCells(record: AuditRecord, io: CommandIo): string[] {
  const { time, kind, agent = '-', status, ms, error, rule, dry_run: tried } = record;
  const style = kind === 'denial' ? 'red' : status === 'ok' && tried === undefined ? 'green' : 'yellow';
  const reason =
    tried === undefined ? (rule ?? (error === status ? undefined : error)) : `dry run: ${tried} by ${rule}`;
  const why = reason === undefined ? '' : ` (${reason})`;
  return [
    paint('dim', plain(time.replace('T', ' ').replace(/Z$/, '')), io),
    plain(kind),
    brief(agent, 24),
    paint('bold', brief(subjectOf(record), Math.max(20, columns(io) - 80)), io),
    paint(style, brief(`${status}${why}`, 60), io),
    ms === undefined ? '' : duration(ms),
  ];
}

/** What was called or done. */
function subjectOf({ name, tool, act, detail, method = '' }: AuditRecord): string {
  if (act !== undefined) return detail === undefined ? act : `${act}: ${detail}`;
  return name ?? tool ?? detail ?? method;
}

async function usage(_: readonly string[], options: Options, io: CommandIo): Promise<number> {
  const folder = await folderOf(options, io);
  const count = createUsageCount();
  await readAll(folder, options, io, (record) => count.add(record));
  const rows = count.rows().slice(0, readLimit(options.limit, 0) || undefined);
  const text = () =>
    table([USAGE_HEAD.map((word) => paint('dim', word, io)), ...rows.map((row) => toUsageCells(row, io))]);
  return printResult(options, rows, rows.length === 0 ? nothingIn(folder) : text(), io);
}

const USAGE_HEAD = ['AGENT', 'NAME', 'SERVER', 'CALLS', 'ERRORS', 'DENIALS', 'P50', 'P99', 'IN', 'OUT'];

function toUsageCells(row: AuditUsage, io: CommandIo): string[] {
  const { agent, name, server, calls, errors, denials, p50, p99, bytesIn, bytesOut } = row;
  return [
    brief(agent, 24),
    paint('bold', brief(name, 48), io),
    brief(server === '' ? '-' : server, 24),
    ...[calls, errors, denials].map(String),
    duration(p50),
    duration(p99),
    sizeText(bytesIn),
    sizeText(bytesOut),
  ];
}

function sizeText(bytes: number): string {
  if (bytes < 1024) return `${bytes} B`;
  return bytes < 1024 ** 2 ? `${(bytes / 1024).toFixed(1)} KiB` : `${(bytes / 1024 ** 2).toFixed(1)} MiB`;
}

async function verify(_: readonly string[], options: Options, io: CommandIo): Promise<number> {
  const { audit: config } = await loadConfig(loadOptions(options, io));
  const against = readSeals(options.against);
  const { sound, files, unlisted, problems } = await verifyAudit(config.dir, {
    heads: config.heads,
    key: config.key(),
    against,
  });
  const mark = problems.length === 0 ? paint('green', '✓', io) : paint('yellow', '!', io);
  const place = ({ file, line }: AuditProblem) => (file === '' ? '' : line === 0 ? `${file}: ` : `${file}:${line}: `);
  const lines = [
    ...problems.map((problem) => `${paint('red', '✗', io)} ${place(problem)}${problem.message}`),
    `${mark} ${counted(sound, 'line')} in ${counted(files, 'file')} unaltered`,
    ...(unlisted === 0 ? [] : [`! ${counted(unlisted, 'line')} of runs without a head: ${UNLISTED}`]),
    ...(against.length > 0 && problems.length === 0 ? [`${mark} the seal from elsewhere is there`] : []),
  ];
  printResult(options, { files, sound, unlisted, problems }, lines.join('\n'), io);
  return problems.length === 0 ? 0 : 1;
}

const UNLISTED = 'written before heads were kept, or with another data folder. A missing end of them is not found';

const SEAL = /^[\w-]{43}$/;

function readSeals(text: string | undefined): string[] {
  if (text === undefined) return [];
  const seals = text.trim().split('.');
  if (!seals.every((one) => SEAL.test(one)))
    throw new GatewayError('usage', '--against is what toolgate audit seal printed.');
  return seals;
}

/** Prints what stands for everything that was written so far, to be kept elsewhere. */
async function seal(_: readonly string[], options: Options, io: CommandIo): Promise<number> {
  const { audit: config } = await loadConfig(loadOptions(options, io));
  const heads = await headsFile(config.heads).read();
  const ends = heads === null ? [] : openEnds(heads);
  if (ends.length === 0) throw new GatewayError('usage', `${config.heads} has no seals: nothing was recorded yet.`);
  return printResult(options, { seal: ends.join('.') }, ends.join('.'), io);
}

function filterOf(options: Options): AuditFilter {
  const { agent, server, tool, status, kind, since, until } = options;
  if (kind !== undefined && !['call', 'begun', 'denial', 'admin'].includes(kind))
    throw new GatewayError('usage', `--kind is call, begun, denial or admin, not "${kind}".`);
  return {
    ...(agent !== undefined && { agent }),
    ...(server !== undefined && { server }),
    ...(tool !== undefined && { tool }),
    ...(status !== undefined && { status }),
    ...(kind !== undefined && { kind }),
    ...(options['dry-run'] === true && { dryRun: true }),
    ...(since !== undefined && { since: readTime('--since', since) }),
    ...(until !== undefined && { until: readTime('--until', until) }),
  };
}

const UNITS: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** A point in time, or how long ago. */
function readTime(option: string, text: string): number {
  const [, amount, unit = ''] = /^(\d{1,6})([smhd])$/.exec(text) ?? [];
  const time = amount === undefined ? Date.parse(text) : Date.now() - Number(amount) * UNITS[unit]!;
  if (!/^\d/.test(text) || Number.isNaN(time) || time < 0)
    throw new GatewayError(
      'usage',
      `${option} is like 30m, 24h, 7d, 2026-11-16 or 2026-11-16T08:00:00Z, not "${text}".`,
    );
  return time;
}

/** 0 means all. */
function readLimit(text: string | undefined, usual: number): number {
  if (text === undefined) return usual;
  if (!/^\d{1,9}$/.test(text)) throw new GatewayError('usage', `--limit is a number of lines, not "${text}".`);
  return Number(text);
}
