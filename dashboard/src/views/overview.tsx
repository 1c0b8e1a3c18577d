/** The first view: what is up, what is going on, and what a model sees and pays for. */
import { computed, signal } from '@preact/signals';
import { useMemo, useState } from 'preact/hooks';
import type { SessionPage, SessionRow } from '../../../src/dashboard/api-types.ts';
import { get } from '../api.ts';
import { ago, compact, duration, number, plural, size, time } from '../format.ts';
import { usePaged } from '../paged.ts';
import { Empty, Failure, Panel } from '../parts/bits.tsx';
import { Plot } from '../parts/plot.tsx';
import { type Column, Table } from '../parts/table.tsx';
import { to } from '../route.ts';
import { failure, overview, overviewTick, refresh, servers, sessions, ticks } from '../state.ts';
import { SERVER_COLUMNS, ServerSheet } from './server-sheet.tsx';
import { SessionSheet } from './session-sheet.tsx';

/** The plots always have the same width in time, so that they do not jump. */
const SECONDS = 120;
const opened = signal<string | null>(null);

const plotted = computed(() => {
  const known = new Map(ticks.value.map((tick) => [Math.floor(tick.t / 1_000), tick]));
  const last = Math.floor((ticks.value.at(-1)?.t ?? Date.now()) / 1_000);
  const times = Array.from({ length: SECONDS }, (_, index) => last - SECONDS + 1 + index);
  // A second without a call, or one that was lost, is passed over. A time in which nobody looked is a hole.
  const isWatched = (at: number) => [-2, -1, 0, 1, 2].some((near) => known.has(at + near));
  const of = (pick: 'calls' | 'errors' | 'p50' | 'p95' | 'p99') =>
    times.map((at) => known.get(at)?.[pick] ?? (isWatched(at) ? undefined : null));
  return { rate: [times, of('calls'), of('errors')], latency: [times, of('p50'), of('p95'), of('p99')] };
});

const clock = (seconds: number) => time(seconds * 1_000);

const RATE = [
  { name: 'calls', colour: 'accent', fill: true },
  { name: 'errors', colour: 'bad' },
] as const;
const LATENCY = [
  { name: 'p50', colour: 'good' },
  { name: 'p95', colour: 'accent' },
  { name: 'p99', colour: 'warn' },
] as const;

export function Overview() {
  const now = overview.value;
  const shown = servers.value.find(({ key }) => key === opened.value);
  return (
    <div class="view">
      <div class="head">
        <h1>Overview</h1>
        {now ? (
          <span class="sub">
            up for {duration(Date.now() - new Date(now.started).getTime())} · {size(now.process.rss)} of memory
          </span>
        ) : null}
      </div>
      {failure.value ? <Failure error={failure.value} again={() => void refresh()} /> : null}
      <Cards />
      {now && now.problems.length > 0 ? (
        <Panel title="Problems" sub={plural(now.problems.length, 'problem')} bare>
          <ul class="list">
            {now.problems.map(({ source, message }) => (
              <li key={source + message}>
                <b>{source}</b> <span class="wrap">{message}</span>
              </li>
            ))}
          </ul>
        </Panel>
      ) : null}
      <div class="cols even">
        <Panel title="Calls per second">
          <Plot
            label="Calls and errors per second"
            series={RATE}
            data={plotted.value.rate}
            format={compact}
            at={clock}
          />
        </Panel>
        <Panel title="Time of a call">
          <Plot
            label="Percentiles of the time of a call"
            series={LATENCY}
            data={plotted.value.latency}
            format={duration}
            at={clock}
          />
        </Panel>
      </div>
      <Panel title="Servers" sub={stateCounts()} bare>
        <Table
          label="Servers"
          rows={servers.value}
          columns={SERVER_COLUMNS}
          id={({ key }) => key}
          height={418}
          open={({ key }) => {
            opened.value = key;
          }}
          empty={
            <Empty title="No servers yet">
              Add one with <code>toolgate add</code>, or <a href={to('servers')}>search the registry</a>.
            </Empty>
          }
        />
      </Panel>
      <div class="cols">
        <FirstLists />
        <Refusals />
      </div>
      <Sessions />
      {shown ? (
        <ServerSheet
          server={shown}
          close={() => {
            opened.value = null;
          }}
        />
      ) : null}
    </div>
  );
}

function Cards() {
  const now = overview.value;
  const recent = ticks.value.slice(-10);
  const latest = ticks.value.at(-1);
  const totals = totalsNow();
  const calls = recent.reduce((sum, { calls: count }) => sum + count, 0);
  const errors = recent.reduce((sum, { errors: count }) => sum + count, 0);
  const first = now?.firstLists[0];
  const tokens = now && now.firstLists.length > 0 ? now.firstLists.map((list) => list.tokens) : [];
  const spread =
    tokens.length === 0
      ? '–'
      : Math.min(...tokens) === Math.max(...tokens)
        ? compact(tokens[0]!)
        : `${compact(Math.min(...tokens))}–${compact(Math.max(...tokens))}`;
  const up = servers.value.filter(({ state }) => state === 'up').length;
  const withLatency = recent.filter(({ p95 }) => p95 !== null);
  return (
    <dl class="cards">
      <Card
        title="Servers up"
        value={`${up} / ${servers.value.length}`}
        sub={plural(now?.catalog.tools ?? 0, 'tool')}
      />
      <Card
        title="Calls per second"
        value={recent.length === 0 ? '0' : (calls / recent.length).toFixed(calls / recent.length < 10 ? 1 : 0)}
        sub={`${compact(totals.calls)} since the start`}
      />
      <Card
        title="95 % of calls within"
        value={withLatency.length === 0 ? '–' : duration(Math.max(...withLatency.map(({ p95 }) => p95 ?? 0)))}
        sub="in the last 10 s"
      />
      <Card
        title="Errors"
        value={calls === 0 ? '0 %' : `${((errors / calls) * 100).toFixed(1)} %`}
        sub={`${compact(totals.errors)} errors, ${compact(totals.refused)} refused`}
      />
      <Card
        title="Sessions"
        value={number(sessions.value.all)}
        sub={`${plural(latest?.inFlight ?? now?.totals.inFlight ?? 0, 'call')} running`}
      />
      <Card
        title="A model starts with"
        value={spread}
        sub={now && first ? `of ${compact(now.catalog.tokens)} tokens in all` : 'tokens'}
      />
    </dl>
  );
}

/** The totals of the last answer, and the seconds since. The first of them is left out: part of it is in the answer. */
function totalsNow(): { readonly calls: number; readonly errors: number; readonly refused: number } {
  const base = overview.value?.totals ?? { calls: 0, errors: 0, refused: 0 };
  const since = ticks.value.filter(({ t }) => t > overviewTick.value).slice(1);
  const sum = (pick: 'calls' | 'errors' | 'refused') => since.reduce((all, tick) => all + tick[pick], 0);
  return {
    calls: base.calls + sum('calls') - sum('refused'),
    errors: base.errors + sum('errors'),
    refused: base.refused + sum('refused'),
  };
}

/** Characters: longer ones would take two lines of a card, and all cards of the row would grow. */
const LONG_VALUE = 8;

function Card({ title, value, sub }: { title: string; value: string; sub: string }) {
  return (
    <div class="card">
      <dt>{title}</dt>
      <dd class={value.length > LONG_VALUE ? 'long' : ''}>
        {value}
        <small title={sub}>{sub}</small>
      </dd>
    </div>
  );
}

function stateCounts(): string {
  const counts = new Map<string, number>();
  for (const { state } of servers.value) counts.set(state, (counts.get(state) ?? 0) + 1);
  return [...counts].map(([state, count]) => `${count} ${state.replaceAll('_', ' ')}`).join(', ');
}

const HOW = {
  activate: 'activates more itself',
  search: 'finds more by search',
  equip: 'equips toolsets',
  enable: 'enables toolsets',
};

function FirstLists() {
  const now = overview.value;
  const most = now?.catalog.tokens ?? 0;
  return (
    <Panel title="What a model sees first" sub="about how many tokens the list costs" bare>
      {now && now.firstLists.length > 0 ? (
        <table class="plain">
          <thead>
            <tr>
              <th scope="col">Agent</th>
              <th scope="col" class="num">
                Tools
              </th>
              <th scope="col" class="num">
                Tokens
              </th>
              <th scope="col">Of all</th>
            </tr>
          </thead>
          <tbody>
            {now.firstLists.map((list) => (
              <tr key={list.agent ?? ''}>
                <td>
                  {list.agent === 'default' ? 'every other agent' : (list.agent ?? 'every agent')}
                  <div class="muted small">
                    {list.toolset ? `toolset ${list.toolset}` : list.until ? HOW[list.until] : 'sees all it may use'}
                  </div>
                </td>
                <td class="num">
                  {number(list.shown)}
                  <span class="muted"> / {number(list.tools)}</span>
                </td>
                <td class="num">{number(list.tokens)}</td>
                <td>
                  <div class="bar-track" title={`${Math.round((list.tokens / Math.max(1, most)) * 100)} %`}>
                    <span style={{ width: `${Math.min(100, (list.tokens / Math.max(1, most)) * 100)}%` }} />
                  </div>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      ) : (
        <Empty title="Nothing is listed yet" />
      )}
    </Panel>
  );
}

function Refusals() {
  const totals = overview.value?.totals;
  return (
    <Panel title="Agents" sub="calls since the start" bare>
      {totals && totals.agents.length > 0 ? (
        <table class="plain">
          <thead>
            <tr>
              <th scope="col">Agent</th>
              <th scope="col" class="num">
                Calls
              </th>
              <th scope="col" class="num">
                Errors
              </th>
              <th scope="col" class="num">
                Refused
              </th>
              <th scope="col" class="num">
                Now
              </th>
            </tr>
          </thead>
          <tbody>
            {totals.agents.slice(0, 12).map((row) => (
              <tr key={row.agent}>
                <td>{row.agent}</td>
                <td class="num">{compact(row.calls)}</td>
                <td class={`num ${row.errors > 0 ? 'bad' : 'muted'}`}>{compact(row.errors)}</td>
                <td class={`num ${row.refused > 0 ? 'warn' : 'muted'}`}>{compact(row.refused)}</td>
                <td class="num">{row.inFlight}</td>
              </tr>
            ))}
          </tbody>
        </table>
      ) : (
        <Empty title="No calls yet">They show here as soon as an agent makes one.</Empty>
      )}
    </Panel>
  );
}

const SESSION_COLUMNS: readonly Column<SessionRow>[] = [
  { key: 'agent', title: 'Agent', width: 'minmax(80px, 1fr)', cell: ({ agent }) => <b title={agent}>{agent}</b> },
  {
    key: 'client',
    title: 'Client',
    width: 'minmax(80px, 1.2fr)',
    cell: ({ client, version }) => [client ?? 'unnamed', version].filter(Boolean).join(' '),
  },
  { key: 'door', title: 'Door', width: '80px', wide: 860, cell: ({ door }) => door },
  { key: 'revision', title: 'Protocol', width: '96px', wide: 700, cell: ({ revision }) => revision ?? '–' },
  {
    key: 'toolset',
    title: 'Toolset',
    width: 'minmax(70px, 1fr)',
    wide: true,
    cell: ({ toolset, enabled }) => toolset ?? (enabled.length > 0 ? enabled.join(', ') : '–'),
  },
  { key: 'tools', title: 'Tools', width: '60px', right: true, wide: 640, cell: ({ tools }) => number(tools) },
  { key: 'tokens', title: 'Tokens', width: '72px', right: true, cell: ({ tokens }) => compact(tokens) },
  { key: 'since', title: 'Since', width: '90px', right: true, wide: true, cell: ({ since }) => ago(since) },
];

function Sessions() {
  const [open, setOpen] = useState<SessionRow | null>(null);
  const count = sessions.value.all;
  const columns = useMemo(() => SESSION_COLUMNS, []);
  const list = usePaged<SessionRow, SessionPage>(
    (offset, limit, signal) => get('sessions', { offset, limit }, signal),
    (answer) => answer.sessions,
    [],
    sessions.value,
  );
  return (
    <Panel title="Sessions" sub={plural(count, 'session')} bare>
      <Table
        label="Sessions"
        rows={list.rows}
        range={list.range}
        columns={columns}
        id={({ id }) => id}
        open={setOpen}
        height={258}
        empty={
          <Empty title="No client is connected">
            Connect one: <code>toolgate init</code> writes it into the file of your client.
          </Empty>
        }
      />
      {open ? <SessionSheet row={open} close={() => setOpen(null)} /> : null}
    </Panel>
  );
}
