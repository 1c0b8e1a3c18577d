/** `toolgate audit`: what was written down of calls, read again from the files. No gateway has to run. */
import {
  type AuditFilter,
  type AuditRecord,
  type AuditUsage,
  createUsageCount,
  didYouMean,
  GatewayError,
  loadConfig,
  readAudit,
  verifyAudit,
} from '../internal.ts';
import type { Options } from './commands.ts';
import { loadOptions } from './session.ts';
import { untilSignal } from './signals.ts';
import { brief, columns, duration, jsonText, paint, plain, table } from './terminal.ts';

type Run = (folder: string, options: Options) => Promise<number>;

const runs: Readonly<Record<string, Run>> = { tail, query, usage, verify };

export async function audit(args: readonly string[], options: Options): Promise<number> {
  const [what = 'tail'] = args;
  const run = Object.hasOwn(runs, what) ? runs[what] : undefined;
  if (run === undefined) {
    const names = Object.keys(runs);
    const text = `toolgate audit has no "${what}".${didYouMean(what, names)} Choose from ${names.join(', ')}.`;
    throw new GatewayError('usage', text);
  }
  const { audit: config } = await loadConfig(loadOptions(options));
  return run(config.dir, options);
}

const TAIL = 20;
const QUERY = 100;

async function tail(folder: string, options: Options): Promise<number> {
  const limit = readLimit(options.limit, TAIL);
  return options.follow === true ? follow(folder, options, limit) : show(folder, options, limit);
}

async function query(folder: string, options: Options): Promise<number> {
  if (options.follow === true) throw new GatewayError('usage', '--follow is for toolgate audit tail.');
  return show(folder, options, readLimit(options.limit, QUERY));
}

async function show(folder: string, options: Options, limit: number): Promise<number> {
  const last: AuditRecord[] = [];
  let damaged = 0;
  const reading = { filter: filterOf(options), damaged: () => damaged++ };
  for await (const record of readAudit(folder, reading)) keepLast(last, record, limit);
  print(folder, lastOf(last, limit), options.json === true);
  tellDamaged(damaged);
  return 0;
}

/** What is there, and then what comes, until it is interrupted. */
async function follow(folder: string, options: Options, limit: number): Promise<number> {
  const ending = new AbortController();
  void untilSignal().then(() => ending.abort());
  const last: AuditRecord[] = [];
  const write = (record: AuditRecord) => process.stdout.write(`${options.json ? jsonText(record) : lineOf(record)}\n`);
  let isCaughtUp = false;
  const caughtUp = () => {
    isCaughtUp = true;
    lastOf(last, limit).forEach(write);
  };
  for await (const record of readAudit(folder, { filter: filterOf(options), follow: ending.signal, caughtUp })) {
    if (isCaughtUp) write(record);
    else keepLast(last, record, limit);
  }
  return 0;
}

/** More than will be shown, because taking one away moves all the others. */
function keepLast(last: AuditRecord[], record: AuditRecord, limit: number): void {
  last.push(record);
  if (limit > 0 && last.length >= 2 * limit) last.splice(0, last.length - limit);
}

function lastOf(last: readonly AuditRecord[], limit: number): readonly AuditRecord[] {
  return limit === 0 ? last : last.slice(-limit);
}

function print(folder: string, records: readonly AuditRecord[], json: boolean): void {
  if (json) for (const record of records) process.stdout.write(`${jsonText(record)}\n`);
  else if (records.length === 0) process.stdout.write(`Nothing like that is written down in ${folder}.\n`);
  else process.stdout.write(`${table([HEAD.map((word) => paint('dim', word)), ...records.map(cellsOf)])}\n`);
}

const HEAD = ['TIME', 'KIND', 'AGENT', 'WHAT', 'STATUS', 'TOOK'];

function cellsOf(record: AuditRecord): string[] {
  const { time, kind, agent = '-', status, ms, error } = record;
  const style = kind === 'denial' ? 'red' : status === 'ok' ? 'green' : 'yellow';
  const why = error === undefined || error === status ? '' : ` (${error})`;
  return [
    paint('dim', plain(time.replace('T', ' ').replace(/Z$/, ''))),
    plain(kind),
    brief(agent, 24),
    paint('bold', brief(whatOf(record), Math.max(20, columns() - 80))),
    paint(style, brief(`${status}${why}`, 40)),
    ms === undefined ? '' : duration(ms),
  ];
}

/** What was called or done. */
function whatOf({ name, tool, act, detail, method = '' }: AuditRecord): string {
  if (act !== undefined) return detail === undefined ? act : `${act}: ${detail}`;
  return name ?? tool ?? detail ?? method;
}

function lineOf(record: AuditRecord): string {
  return cellsOf(record).join('  ').trimEnd();
}

async function usage(folder: string, options: Options): Promise<number> {
  const count = createUsageCount();
  let damaged = 0;
  const reading = { filter: filterOf(options), damaged: () => damaged++ };
  for await (const record of readAudit(folder, reading)) count.add(record);
  const rows = count.rows().slice(0, readLimit(options.limit, 0) || undefined);
  if (options.json === true) process.stdout.write(`${jsonText(rows, 2)}\n`);
  else if (rows.length === 0) process.stdout.write(`Nothing like that is written down in ${folder}.\n`);
  else process.stdout.write(`${table([USAGE_HEAD.map((word) => paint('dim', word)), ...rows.map(usageCells)])}\n`);
  tellDamaged(damaged);
  return 0;
}

const USAGE_HEAD = ['AGENT', 'NAME', 'SERVER', 'CALLS', 'ERRORS', 'DENIALS', 'P50', 'P99', 'IN', 'OUT'];

function usageCells(row: AuditUsage): string[] {
  const { agent, name, server, calls, errors, denials, p50, p99, bytesIn, bytesOut } = row;
  return [
    brief(agent, 24),
    paint('bold', brief(name, 48)),
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

async function verify(folder: string, { json }: Options): Promise<number> {
  const { sound, files, problems } = await verifyAudit(folder);
  if (json === true) process.stdout.write(`${jsonText({ files, sound, problems }, 2)}\n`);
  else {
    for (const { file, line, message } of problems)
      process.stdout.write(`${paint('red', '✗')} ${file}:${line}: ${message}\n`);
    const mark = problems.length === 0 ? paint('green', '✓') : paint('yellow', '!');
    process.stdout.write(`${mark} ${counted(sound, 'line')} in ${counted(files, 'file')} as they were written\n`);
  }
  return problems.length === 0 ? 0 : 1;
}

function counted(count: number, what: string): string {
  return `${count} ${what}${count === 1 ? '' : 's'}`;
}

function tellDamaged(count: number): void {
  if (count === 0) return;
  const text = count === 1 ? '1 damaged line was' : `${count} damaged lines were`;
  process.stderr.write(`${paint('yellow', 'warning:', process.stderr)} ${text} passed over\n`);
}

function filterOf({ agent, server, tool, status, kind, since, until }: Options): AuditFilter {
  if (kind !== undefined && !['call', 'denial', 'admin'].includes(kind))
    throw new GatewayError('usage', `--kind is call, denial or admin, not "${kind}".`);
  return {
    ...(agent !== undefined && { agent }),
    ...(server !== undefined && { server }),
    ...(tool !== undefined && { tool }),
    ...(status !== undefined && { status }),
    ...(kind !== undefined && { kind }),
    ...(since !== undefined && { since: readTime('--since', since) }),
    ...(until !== undefined && { until: readTime('--until', until) }),
  };
}

const UNITS: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** So long ago, or a point in time. */
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

/** 0 is all of them. */
function readLimit(text: string | undefined, usual: number): number {
  if (text === undefined) return usual;
  if (!/^\d{1,9}$/.test(text)) throw new GatewayError('usage', `--limit is a number of lines, not "${text}".`);
  return Number(text);
}
