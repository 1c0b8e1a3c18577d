/** The written record: search, use over time, and whether it is whole. */
import { useMemo, useState } from 'preact/hooks';
import type { AuditPage, AuditRow, UsageLine, UsageReport, VerifyReport } from '../../../src/dashboard/api-types.ts';
import { get, post } from '../api.ts';
import { compact, dateTime, dayTime, duration, number, plural, pretty, size } from '../format.ts';
import { useLoad, useSettled } from '../load.ts';
import { Chip, Code, Empty, Failure, Panel, type Tone } from '../parts/bits.tsx';
import { Dialog } from '../parts/dialog.tsx';
import { Filter } from '../parts/filter.tsx';
import { Plot } from '../parts/plot.tsx';
import { type Column, Table } from '../parts/table.tsx';
import { Tabs } from '../parts/tabs.tsx';
import { attempt } from '../parts/toast.tsx';
import { go, route } from '../route.ts';
import { session } from '../state.ts';

const SPANS: readonly (readonly [string, string])[] = [
  ['1h', 'the last hour'],
  ['24h', 'the last day'],
  ['7d', 'the last 7 days'],
  ['30d', 'the last 30 days'],
  ['', 'all time'],
];

export function Audit() {
  const tab = route.value.rest[0] ?? 'records';
  const isWritten = session.value?.features.audit !== false;
  return (
    <div class="view">
      <div class="head">
        <h1>Audit</h1>
        {isWritten ? null : <Chip tone="warn">not written</Chip>}
      </div>
      {isWritten ? null : (
        <p class="note">
          No audit is written. Switch it on with an <code>[audit]</code> section in the configuration.
        </p>
      )}
      <Tabs
        label="Parts of the audit"
        chosen={tab}
        choose={(key) => go('audit', key)}
        tabs={[
          { key: 'records', title: 'Records', body: () => <Records /> },
          { key: 'usage', title: 'Use', body: () => <Usage /> },
          { key: 'verify', title: 'Is it whole?', body: () => <Verify /> },
        ]}
      />
    </div>
  );
}

function Span({ value, change }: { value: string; change: (value: string) => void }) {
  return (
    <select class="input" aria-label="Which time" value={value} onChange={(event) => change(event.currentTarget.value)}>
      {SPANS.map(([key, title]) => (
        <option key={key} value={key}>
          {title}
        </option>
      ))}
    </select>
  );
}

function toneOf({ kind, status }: AuditRow): Tone {
  if (kind === 'denial') return 'warn';
  if (kind === 'admin') return 'accent';
  if (status === 'ok') return 'good';
  return status === 'begun' ? '' : 'warn';
}

/** The status of a denial is its code, which is too long for a mark, and stands with the rule. */
function outcomeOf({ kind, status }: AuditRow): string {
  if (kind === 'admin') return 'admin';
  return kind === 'denial' ? 'refused' : status?.replaceAll('_', ' ');
}

const COLUMNS: readonly Column<AuditRow>[] = [
  {
    key: 'time',
    title: 'Time',
    width: '104px',
    cell: (row) => (
      <span class="muted" title={dateTime(row.time)}>
        {dayTime(row.time)}
      </span>
    ),
  },
  {
    key: 'status',
    title: 'Outcome',
    width: '96px',
    cell: (row) => (
      <Chip tone={toneOf(row)} title={row.status}>
        {outcomeOf(row)}
      </Chip>
    ),
  },
  { key: 'agent', title: 'Agent', width: 'minmax(60px, 0.7fr)', wide: true, cell: ({ agent }) => agent ?? '–' },
  {
    key: 'name',
    title: 'What',
    width: 'minmax(110px, 2fr)',
    cell: (row) => {
      const text =
        row.kind === 'admin'
          ? [row.act, row.detail].filter(Boolean).join(': ')
          : (row.name ?? row.tool ?? row.method ?? '');
      return <b title={text}>{text}</b>;
    },
  },
  { key: 'server', title: 'Server', width: 'minmax(60px, 0.7fr)', wide: 860, cell: ({ server }) => server ?? '–' },
  {
    key: 'ms',
    title: 'Took',
    width: '76px',
    right: true,
    wide: 700,
    cell: ({ ms }) => (ms === undefined ? '–' : duration(ms)),
  },
  { key: 'out', title: 'Out', width: '66px', right: true, wide: 960, cell: (row) => size(row.bytes_out) },
  {
    key: 'why',
    title: 'Error or rule',
    width: 'minmax(90px, 1fr)',
    wide: 640,
    cell: ({ kind, status, error = kind === 'denial' ? status : undefined, rule, dry_run: dry }) => (
      <span class="muted">
        {[error, rule, dry ? `dry run: ${dry}` : ''].filter((one) => one !== undefined && one !== '').join(' · ')}
      </span>
    ),
  },
];

function Records() {
  const [typed, setTyped] = useState('');
  const [since, setSince] = useState('7d');
  const [kind, setKind] = useState('');
  const [older, setOlder] = useState<{ of: string; records: readonly AuditRow[]; cursor: string | null } | null>(null);
  const [open, setOpen] = useState<AuditRow | null>(null);
  const q = useSettled(typed, 200);
  const query = { q, since, kind, limit: 200 };
  const key = JSON.stringify(query);
  const first = useLoad<AuditPage>((signal) => get('audit', query, signal), [key]);
  const more = older?.of === key ? older : null;
  const rows = useMemo(() => [...(first.value?.records ?? []), ...(more?.records ?? [])], [first.value, more]);
  const cursor = more ? more.cursor : (first.value?.cursor ?? null);
  const numbered = useMemo(() => rows.map((row, index) => ({ ...row, at: String(index) })), [rows]);
  const next = async () => {
    const page = await attempt(() => get<AuditPage>('audit', { ...query, before: cursor }));
    if (page) setOlder({ of: key, records: [...(more?.records ?? []), ...page.records], cursor: page.cursor });
  };
  return (
    <>
      <div class="head">
        <Filter label="Search the audit" value={typed} change={setTyped} placeholder="Words that a record has" />
        <Span value={since} change={setSince} />
        <select class="input" aria-label="Kind" value={kind} onChange={(event) => setKind(event.currentTarget.value)}>
          <option value="">every kind</option>
          <option value="call">calls</option>
          <option value="denial">denials</option>
          <option value="admin">changes by people</option>
        </select>
        <button type="button" class="button" onClick={first.again}>
          Refresh
        </button>
        <span class="sub small" role="status">
          {plural(rows.length, 'record')}
          {cursor === null ? '' : ', and older ones'}
        </span>
      </div>
      {first.error ? <Failure error={first.error} again={first.again} /> : null}
      {first.value && first.value.damaged > 0 ? (
        <p class="note bad">{plural(first.value.damaged, 'line')} cannot be read. "Is it whole?" says which.</p>
      ) : null}
      <Table
        label="Records"
        rows={numbered}
        columns={COLUMNS as readonly Column<AuditRow & { at: string }>[]}
        id={({ at: index }) => index}
        height={576}
        open={setOpen}
        empty={
          <Empty title={first.value ? 'No record is like that' : 'Loading…'}>
            A longer time or fewer words may find some.
          </Empty>
        }
      />
      {cursor === null ? null : (
        <div>
          <button type="button" class="button" onClick={() => void next()}>
            Older records
          </button>
        </div>
      )}
      {open ? (
        <Dialog sheet title={`Record of ${dateTime(open.time)}`} close={() => setOpen(null)}>
          <Code text={pretty(without(open))} label="Record" />
        </Dialog>
      ) : null}
    </>
  );
}

/** The record as it is written, without what only this list knows. */
function without({ at: _, ...row }: AuditRow & { at?: unknown }): unknown {
  return row;
}

const USAGE_COLUMNS: readonly Column<UsageLine>[] = [
  {
    key: 'agent',
    title: 'Agent',
    width: 'minmax(70px, 0.8fr)',
    sort: ({ agent }) => agent,
    cell: ({ agent }) => agent,
  },
  {
    key: 'name',
    title: 'Tool',
    width: 'minmax(90px, 1.6fr)',
    sort: ({ name }) => name,
    cell: ({ name }) => <b title={name}>{name}</b>,
  },
  { key: 'server', title: 'Server', width: 'minmax(60px, 0.8fr)', wide: 860, cell: ({ server }) => server },
  {
    key: 'calls',
    title: 'Calls',
    width: '70px',
    right: true,
    sort: ({ calls }) => -calls,
    cell: ({ calls }) => number(calls),
  },
  {
    key: 'errors',
    title: 'Errors',
    width: '66px',
    right: true,
    wide: true,
    sort: ({ errors }) => -errors,
    cell: ({ errors }) => <span class={errors > 0 ? 'bad' : 'muted'}>{number(errors)}</span>,
  },
  {
    key: 'denials',
    title: 'Denied',
    width: '66px',
    right: true,
    wide: true,
    sort: ({ denials }) => -denials,
    cell: ({ denials }) => <span class={denials > 0 ? 'warn' : 'muted'}>{number(denials)}</span>,
  },
  { key: 'p50', title: 'Half within', width: '76px', right: true, wide: 760, cell: ({ p50 }) => duration(p50) },
  { key: 'p99', title: '99 % within', width: '86px', right: true, wide: 640, cell: ({ p99 }) => duration(p99) },
  { key: 'out', title: 'Out', width: '76px', right: true, wide: 960, cell: ({ bytesOut }) => size(bytesOut) },
];

const BARS = [
  { name: 'calls, with denied ones', colour: 'accent', bars: true },
  { name: 'errors and denials', colour: 'bad', bars: true },
] as const;

const day = (seconds: number) => new Date(seconds * 1_000).toISOString().slice(5, 10);

function Usage() {
  const [since, setSince] = useState('30d');
  const [agent, setAgent] = useState('');
  const [tool, setTool] = useState('');
  const { value, error, again } = useLoad<UsageReport>(
    (signal) => get('audit/usage', { since, agent, tool }, signal),
    [since, agent, tool],
  );
  // The choices are those of the whole time, so that a choice does not hide the others.
  const whole = useLoad<UsageReport>((signal) => get('audit/usage', { since }, signal), [since]);
  const agents = [...new Set((whole.value?.rows ?? []).map((row) => row.agent))].sort();
  const tools = [...new Set((whole.value?.rows ?? []).map((row) => row.name))].sort();
  const days = useMemo(() => {
    const byDay = new Map<string, { calls: number; bad: number }>();
    for (const { day, calls, errors, denials } of value?.days ?? []) {
      const sum = byDay.get(day) ?? { calls: 0, bad: 0 };
      // A denied call is not among the calls. It is part of the whole bar, so that the bad part is never the higher one.
      byDay.set(day, { calls: sum.calls + calls + denials, bad: sum.bad + errors + denials });
    }
    const known = [...byDay.keys()].sort();
    if (known.length === 0) return null;
    const start = Date.parse(`${known[0]}T12:00:00Z`);
    // A week at least, so that a first day is not a wall.
    const end = Date.parse(`${known.at(-1)}T12:00:00Z`);
    const from = Math.min(start, end - 6 * 86_400_000);
    const all = Array.from(
      { length: Math.round((end - from) / 86_400_000) + 1 },
      (_, index) => from + index * 86_400_000,
    );
    const of = (at: number) => byDay.get(new Date(at).toISOString().slice(0, 10));
    return [all.map((at) => at / 1_000), all.map((at) => of(at)?.calls ?? 0), all.map((at) => of(at)?.bad ?? 0)];
  }, [value]);
  const total = (value?.days ?? []).reduce((sum, { calls }) => sum + calls, 0);
  return (
    <>
      <div class="head">
        <Span value={since} change={setSince} />
        <Choice label="Agent" none="every agent" value={agent} options={agents} change={setAgent} />
        <Choice label="Tool" none="every tool" value={tool} options={tools} change={setTool} />
        <span class="sub small">{plural(total, 'call')}</span>
      </div>
      {error ? <Failure error={error} again={again} /> : null}
      <Panel title="By day">
        {days ? (
          <Plot label="Calls by day" series={BARS} data={days} format={compact} at={day} height={170} />
        ) : (
          <Empty title={value ? 'No calls in this time' : 'Loading…'} />
        )}
      </Panel>
      <div class="cols">
        <Share title="By agent" rows={value?.rows ?? []} of={(row) => row.agent} />
        <Share title="By tool" rows={value?.rows ?? []} of={(row) => row.name} />
      </div>
      <Table
        label="Use by agent and tool"
        rows={value?.rows ?? []}
        columns={USAGE_COLUMNS}
        id={(row) => `${row.agent} ${row.server} ${row.name}`}
        height={416}
        empty={<Empty title={value ? 'No calls in this time' : 'Loading…'} />}
      />
    </>
  );
}

interface ChoiceProperties {
  readonly label: string;
  readonly none: string;
  readonly value: string;
  readonly options: readonly string[];
  readonly change: (value: string) => void;
}

function Choice({ label, none, value, options, change }: ChoiceProperties) {
  return (
    <select class="input" aria-label={label} value={value} onChange={(event) => change(event.currentTarget.value)}>
      <option value="">{none}</option>
      {options.slice(0, 500).map((one) => (
        <option key={one} value={one}>
          {one}
        </option>
      ))}
    </select>
  );
}

const MOST_BARS = 8;

function Share({ title, rows, of }: { title: string; rows: readonly UsageLine[]; of: (row: UsageLine) => string }) {
  const sums = new Map<string, number>();
  for (const row of rows) sums.set(of(row), (sums.get(of(row)) ?? 0) + row.calls);
  const sorted = [...sums].sort(([, a], [, b]) => b - a);
  const most = sorted[0]?.[1] ?? 1;
  return (
    <Panel title={title} sub={plural(sorted.length, 'name')}>
      {sorted.length === 0 ? <p class="muted">Nothing in this time.</p> : null}
      <ul class="shares">
        {sorted.slice(0, MOST_BARS).map(([name, calls]) => (
          <li key={name}>
            <span class="clip" title={name}>
              {name}
            </span>
            <span class="bar-track" aria-hidden="true">
              <span style={{ width: `${(calls / Math.max(1, most)) * 100}%` }} />
            </span>
            <span class="num">{compact(calls)}</span>
          </li>
        ))}
      </ul>
    </Panel>
  );
}

function Verify() {
  const [report, setReport] = useState<VerifyReport | null>(null);
  const [busy, setBusy] = useState(false);
  const verify = async () => {
    setBusy(true);
    setReport((await attempt(() => post<VerifyReport>('audit/verify'))) ?? null);
    setBusy(false);
  };
  return (
    <>
      <p>
        Every line of the audit is sealed by a hash with all lines before it. This reads all files and says whether
        something was changed, removed or added.
      </p>
      <div>
        <button type="button" class="button primary" disabled={busy} onClick={() => void verify()}>
          {busy ? 'It reads…' : 'Verify now'}
        </button>
      </div>
      <div class="stack" role="status">
        {report ? (
          report.problems.length === 0 ? (
            <p class="note good">
              It is whole: {number(report.sound)} of {plural(report.files, 'file')} {report.sound === 1 ? 'is' : 'are'}{' '}
              as written
              {report.unlisted > 0 ? `, ${plural(report.unlisted, 'file')} from before seals` : ''}.
            </p>
          ) : (
            <>
              <p class="note bad">
                {plural(report.problems.length, 'problem')} in {plural(report.files, 'file')}.
              </p>
              <ul class="stack tight">
                {report.problems.map(({ file, line, message }) => (
                  <li key={`${file}${line}${message}`} class="note bad">
                    <code>
                      {file}:{line}
                    </code>{' '}
                    {message}
                  </li>
                ))}
              </ul>
            </>
          )
        ) : null}
      </div>
    </>
  );
}
