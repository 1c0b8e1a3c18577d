/** Sums up the audit: who used what, how often, with which outcome, and how long it took. */
import { getOrMake } from '../base/memo.ts';
import type { AuditRecord } from './audit-read.ts';

/** What one agent did with one tool, according to the audit. */
export interface AuditUsage {
  readonly agent: string;
  readonly server: string;
  /** The exposed name; for a denial, what was asked for. */
  readonly name: string;
  readonly calls: number;
  /** How many of the calls failed. */
  readonly errors: number;
  readonly denials: number;
  /** Milliseconds; null if there were no calls. */
  readonly p50: number | null;
  readonly p99: number | null;
  readonly bytesIn: number;
  readonly bytesOut: number;
}

type UsageRow = { -readonly [Key in Exclude<keyof AuditUsage, 'p50' | 'p99'>]: AuditUsage[Key] } & {
  /** From duration to number of calls. Durations are rounded to steps of about 9 %. */
  readonly durations: Map<number, number>;
};

const STEPS = 8;

/** Sums up records of the audit. */
export interface UsageCount {
  add(record: AuditRecord): void;
  /** Most calls first. */
  rows(): AuditUsage[];
}

/** An empty count for the records of `readAudit`. */
export function createUsageCount(): UsageCount {
  const rows = new Map<string, UsageRow>();

  function rowOf({ agent = '', server = '', name, tool = '' }: AuditRecord): UsageRow {
    const key = JSON.stringify([agent, server, name ?? tool]);
    const counts = { calls: 0, errors: 0, denials: 0, bytesIn: 0, bytesOut: 0 };
    return getOrMake(rows, key, () => ({ agent, server, name: name ?? tool, ...counts, durations: new Map() }));
  }

  return {
    add(record) {
      // A call that has begun has another line when it ends.
      if (record.kind === 'admin' || record.kind === 'begun' || record.method === undefined) return;
      const row = rowOf(record);
      row.bytesIn += record.bytes_in ?? 0;
      row.bytesOut += record.bytes_out ?? 0;
      if (record.kind === 'denial') {
        row.denials++;
        return;
      }
      row.calls++;
      if (record.status !== 'ok') row.errors++;
      const step = Math.round(Math.log2(Math.max(record.ms ?? 0, 0.001)) * STEPS);
      row.durations.set(step, (row.durations.get(step) ?? 0) + 1);
    },
    rows: () =>
      [...rows.values()]
        .sort((a, b) => b.calls + b.denials - a.calls - a.denials)
        .map(({ durations, ...row }) => ({ ...row, p50: quantile(durations, 0.5), p99: quantile(durations, 0.99) })),
  };
}

function quantile(durations: ReadonlyMap<number, number>, share: number): number | null {
  const steps = [...durations].sort(([a], [b]) => a - b);
  const rank = Math.ceil(share * steps.reduce((sum, [, count]) => sum + count, 0));
  let seen = 0;
  for (const [step, count] of steps) {
    seen += count;
    if (seen >= rank) return Number((2 ** (step / STEPS)).toPrecision(3));
  }
  return null;
}
