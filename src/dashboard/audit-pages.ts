/** The audit, newest first, in windows. */
import { GatewayError } from '../base/errors.ts';
import { getOrMake } from '../base/memo.ts';
import type { Gateway } from '../gateway/gateway.ts';
import { type AuditFilter, type AuditRecord, readAudit, verifyAudit } from '../store/audit-read.ts';
import { createUsageCount } from '../store/audit-usage.ts';
import type { AuditPage, AuditRow, UsageDay, UsageReport, VerifyReport } from './api-types.ts';
import { wordsOf } from './inputs.ts';

const KINDS = ['call', 'begun', 'denial', 'admin'];
const UNITS: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };
const MOST_USAGE = 1_000;
const DAY = 10;

export async function auditPage(gateway: Gateway, query: URLSearchParams, limit: number): Promise<AuditPage> {
  const words = wordsOf(query.get('q'));
  const before = cursorOf(query.get('before'));
  const last: AuditRecord[] = [];
  let damaged = 0;
  let isMore = false;
  // Lines are written in order of time, so what comes at the cursor or later was shown already.
  const reading = { filter: filterOf(query), damaged: () => damaged++ };
  for await (const record of readAudit(gateway.config.audit.dir, reading)) {
    if (before !== null && isAtOrAfter(record, before)) continue;
    if (words.length > 0 && !hasAll(record, words)) continue;
    last.push(record);
    if (last.length < 2 * limit + 2) continue;
    isMore = true;
    last.splice(0, last.length - limit);
  }
  const shown = last.slice(-Math.max(limit, 1));
  isMore ||= shown.length < last.length;
  const oldest = shown[0];
  return {
    records: shown.reverse() as AuditRow[],
    cursor: isMore && oldest !== undefined ? `${oldest.time}_${oldest.id}` : null,
    damaged,
  };
}

interface Cursor {
  readonly time: string;
  readonly id: string;
}

function cursorOf(text: string | null): Cursor | null {
  if (text === null || text === '') return null;
  const at = text.indexOf('_');
  if (at < 0) throw new GatewayError('params_invalid', '"before" is the "cursor" of an answer.');
  return { time: text.slice(0, at), id: text.slice(at + 1) };
}

/** The number of a record grows within a run, and ids of a run begin with the same text. */
function isAtOrAfter({ time, id }: AuditRecord, cursor: Cursor): boolean {
  if (time !== cursor.time) return time > cursor.time;
  return id === cursor.id || numberIn(id) >= numberIn(cursor.id);
}

const numberIn = (id: string) => Number(/\d+$/.exec(id)?.[0] ?? 0);

function hasAll(record: AuditRecord, words: readonly string[]): boolean {
  const text = JSON.stringify(record).toLowerCase();
  return words.every((word) => text.includes(word));
}

export async function auditUsage(gateway: Gateway, query: URLSearchParams): Promise<UsageReport> {
  const count = createUsageCount();
  const days = new Map<string, { -readonly [Key in keyof UsageDay]: UsageDay[Key] }>();
  let damaged = 0;
  const reading = { filter: filterOf(query), damaged: () => damaged++ };
  for await (const record of readAudit(gateway.config.audit.dir, reading)) {
    count.add(record);
    if ((record.kind !== 'call' && record.kind !== 'denial') || record.method === undefined) continue;
    const day = record.time.slice(0, DAY);
    const agent = record.agent ?? '';
    const row = getOrMake(days, `${day} ${agent}`, () => ({ day, agent, calls: 0, errors: 0, denials: 0 }));
    if (record.kind === 'denial') row.denials++;
    else {
      row.calls++;
      if (record.status !== 'ok') row.errors++;
    }
  }
  const byDay = [...days].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, row]) => row);
  return { rows: count.rows().slice(0, MOST_USAGE), days: byDay, damaged };
}

export function verifyAll({ config }: Gateway): Promise<VerifyReport> {
  const { dir, heads, key } = config.audit;
  return verifyAudit(dir, { heads, key: key() });
}

function filterOf(query: URLSearchParams): AuditFilter {
  const kind = query.get('kind') || undefined;
  if (kind !== undefined && !KINDS.includes(kind))
    throw new GatewayError(
      'params_invalid',
      `"kind" is ${KINDS.join(', ')}, not ${JSON.stringify(kind.slice(0, 40))}.`,
    );
  const text = (key: 'agent' | 'server' | 'tool' | 'status') => {
    const value = query.get(key);
    return value === null || value === '' ? {} : { [key]: value };
  };
  const since = timeOf(query, 'since');
  const until = timeOf(query, 'until');
  return {
    ...text('agent'),
    ...text('server'),
    ...text('tool'),
    ...text('status'),
    ...(kind !== undefined && { kind }),
    ...(since !== null && { since }),
    ...(until !== null && { until }),
  };
}

/** A point in time, or how long ago. */
function timeOf(query: URLSearchParams, key: string): number | null {
  const text = query.get(key);
  if (text === null || text === '') return null;
  const [, amount, unit = ''] = /^(\d{1,6})([smhd])$/.exec(text) ?? [];
  const time = amount === undefined ? Date.parse(text) : Date.now() - Number(amount) * UNITS[unit]!;
  if (!/^\d/.test(text) || Number.isNaN(time) || time < 0)
    throw new GatewayError('params_invalid', `"${key}" is like 30m, 24h, 7d, 2026-11-16 or 2026-11-16T08:00:00Z.`);
  return time;
}
