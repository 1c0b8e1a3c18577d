/** Calls as they happen. The list can be paused and filtered; a row opens with its steps, and with arguments and result where they are recorded. */
import { effect, signal } from '@preact/signals';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import type {
  CallDetail,
  CallOutcome,
  CallRow,
  RecentCalls,
  Recording,
  StreamEvents,
} from '../../../src/dashboard/api-types.ts';
import { at, get, put, remove, replica } from '../api.ts';
import { dayTime, duration, hasWords, number, plural, pretty, size, time, wordsOf } from '../format.ts';
import { Icon } from '../icons.tsx';
import { useLoad } from '../load.ts';
import { Chip, Code, Empty, Facts, Failure, type Tone } from '../parts/bits.tsx';
import { Dialog } from '../parts/dialog.tsx';
import { Filter } from '../parts/filter.tsx';
import { type Column, Table } from '../parts/table.tsx';
import { attempt } from '../parts/toast.tsx';
import { Waterfall } from '../parts/waterfall.tsx';
import { go, route, to } from '../route.ts';
import { session } from '../state.ts';
import { useStream } from '../stream.ts';

const MOST = 2_000;
/** Drawn at most so often, in milliseconds: people cannot read quicker. */
const EVERY = 250;
/** Asked for what the stream left out, while somebody searches. Before the gateway forgets them. */
const REFILL = 2_000;

/** Kept while the page is open, so that a look at another view loses nothing. Newest first. */
let kept = new Map<number, CallRow>();
/** How many calls the stream left out that are not in the list. */
let skipped = 0;
/** How many calls had ended at the last batch of the stream, and when all that were kept were asked for. */
let streamed = 0;
let asked = 0;
const drawn = signal(0);
let drawnAt = 0;
let planned = false;

function take(rows: readonly CallRow[]): void {
  for (const row of rows) {
    kept.delete(row.id);
    kept.set(row.id, row);
  }
  if (kept.size > MOST * 1.5) kept = new Map([...kept].sort(([a], [b]) => a - b).slice(-MOST));
  if (planned) return;
  planned = true;
  const wait = Math.max(0, drawnAt + EVERY - performance.now());
  setTimeout(() => {
    planned = false;
    drawnAt = performance.now();
    drawn.value += 1;
  }, wait);
}

const newest = (): readonly CallRow[] => [...kept.values()].sort((a, b) => b.id - a.id).slice(0, MOST);

function takeBatch({ calls, skipped: more, ended }: StreamEvents['calls']): void {
  // It counts from one again after a restart.
  if (ended < streamed) asked = 0;
  // A batch may come after an answer that has what it left out.
  skipped += Math.min(more, Math.max(0, ended - asked));
  streamed = ended;
  take(calls);
}

/** Takes what the gateway keeps, also what the stream left out. */
async function refill(limit: number): Promise<void> {
  const recent = await get<RecentCalls>('calls', { limit }).catch(() => null);
  if (recent === null) return;
  const { calls, ended } = recent;
  if (limit >= MOST || calls.length < limit) {
    asked = ended;
    skipped = Math.min(skipped, Math.max(0, streamed - ended));
  }
  take(calls.toReversed());
}

// Ids are those of one replica.
let home: string | null = null;
effect(() => {
  const now = replica.value?.id ?? null;
  if (now !== home && home !== null) {
    kept = new Map();
    skipped = 0;
    streamed = 0;
    asked = 0;
  }
  home = now;
});

const TONES: Readonly<Record<CallOutcome, Tone>> = {
  running: 'accent',
  ok: 'good',
  cached: 'good',
  tool_error: 'warn',
  error: 'bad',
  failed: 'bad',
  timeout: 'bad',
  cancelled: '',
  refused: 'warn',
};

const COLUMNS: readonly Column<CallRow>[] = [
  { key: 'at', title: 'Time', width: '62px', wide: true, cell: (row) => <span class="muted">{time(row.at)}</span> },
  {
    key: 'outcome',
    title: 'Outcome',
    width: '92px',
    cell: ({ outcome, error }) => (
      <Chip tone={TONES[outcome]} title={error ?? undefined}>
        {outcome.replaceAll('_', ' ')}
      </Chip>
    ),
  },
  { key: 'agent', title: 'Agent', width: 'minmax(60px, 0.85fr)', wide: true, cell: ({ agent }) => agent },
  {
    key: 'name',
    title: 'Tool',
    width: 'minmax(110px, 2.3fr)',
    cell: ({ name, through }) => (
      <span title={through ? `${name}, through ${through}` : name}>
        <b>{name}</b>
        {through ? <span class="muted"> via {through}</span> : null}
      </span>
    ),
  },
  { key: 'server', title: 'Server', width: 'minmax(60px, 0.8fr)', wide: 860, cell: ({ server }) => server },
  { key: 'ms', title: 'Took', width: '76px', right: true, cell: ({ ms }) => (ms === null ? '…' : duration(ms)) },
  { key: 'in', title: 'In', width: '60px', right: true, wide: 960, cell: ({ bytesIn }) => size(bytesIn) },
  { key: 'out', title: 'Out', width: '60px', right: true, wide: 700, cell: ({ bytesOut }) => size(bytesOut) },
  {
    key: 'limits',
    title: 'Why',
    width: 'minmax(90px, 1.25fr)',
    wide: 640,
    cell: ({ limits, error }) => (
      <>
        {limits.map((limit) => (
          <Chip key={limit} tone="warn">
            {limit}
          </Chip>
        ))}{' '}
        <span class="muted">{error}</span>
      </>
    ),
  },
  {
    key: 'trace',
    title: 'Trace',
    width: '70px',
    wide: 1_040,
    cell: ({ trace }) => (
      <span class="mono muted" title={trace ?? undefined}>
        {trace?.slice(0, 8) ?? '–'}
      </span>
    ),
  },
];

const textOf = ({ agent, name, server, outcome, error, method, trace, limits, through, door }: CallRow) =>
  [agent, name, server, outcome, error, method, trace, through, door, ...limits].join(' ').toLowerCase();

export function Calls() {
  const [filter, setFilter] = useState('');
  const [isPaused, setPaused] = useState(false);
  const still = useRef<readonly CallRow[]>([]);
  const open = route.value.rest[0];
  useEffect(() => void refill(500), []);
  useStream('calls', takeBatch);
  const version = drawn.value;
  const all = useMemo(newest, [version]);
  if (!isPaused) still.current = all;
  const source = isPaused ? still.current : all;
  const words = wordsOf(filter);
  // The stream leaves calls out if there are more than anyone can read. Who searches or stops wants them.
  const isSearched = words.length > 0 && !isPaused;
  useEffect(() => {
    if (!isSearched) return;
    void refill(MOST);
    let known = skipped;
    const asking = setInterval(() => {
      if (skipped === known) return;
      known = skipped;
      void refill(MOST);
    }, REFILL);
    return () => clearInterval(asking);
  }, [isSearched]);
  const pause = () => {
    setPaused(!isPaused);
    if (isPaused) return;
    const last = all[0]?.id ?? 0;
    void refill(MOST).then(() => {
      still.current = newest().filter(({ id }) => id <= last);
    });
  };
  const rows = words.length === 0 ? source : source.filter((row) => hasWords(textOf(row), words));
  return (
    <div class="view full">
      <div class="head">
        <h1>Live calls</h1>
        <Filter
          label="Filter calls by words"
          value={filter}
          change={setFilter}
          placeholder="agent, tool, server, outcome"
        />
        <button type="button" class="button" data-pause aria-pressed={isPaused} onClick={pause}>
          <Icon name={isPaused ? 'play' : 'pause'} />
          {isPaused ? 'Go on' : 'Pause'}
        </button>
        <span class="sub small">
          {plural(rows.length, 'call')}
          {skipped > 0 && !isPaused ? (
            <span title="More calls come than anyone can read. Pause or filter to see all of the last 2,000.">
              , {number(skipped)} more left out
            </span>
          ) : null}
        </span>
        <span class="grow" />
        <RecordingButton />
      </div>
      <Table
        label="Calls"
        rows={rows}
        columns={COLUMNS}
        id={({ id }) => String(id)}
        selected={open ?? null}
        open={({ id }) => go('calls', String(id))}
        tone={({ outcome }) => (TONES[outcome] === 'bad' ? 'bad-row' : '')}
        empty={
          words.length > 0 ? (
            <Empty title="No call has these words">Esc in the filter shows all.</Empty>
          ) : (
            <Empty title="No calls yet">
              Calls show here as they happen. Leave the page open, or try a tool in the catalog.
            </Empty>
          )
        }
      />
      {open ? <CallSheet key={open} id={open} row={kept.get(Number(open))} close={() => go('calls')} /> : null}
    </div>
  );
}

const STEPS = { lookup: 'Look-up', wait: 'Waiting', server: 'Server', deliver: 'Answer' };

function CallSheet({ id, row, close }: { id: string; row: CallRow | undefined; close: () => void }) {
  const { value, error, again } = useLoad<CallDetail>(
    (signal) => get(`calls/${at(id)}`, {}, signal),
    [id, row?.outcome],
  );
  const shown = value ?? row;
  return (
    <Dialog sheet title={shown?.name ?? `Call ${id}`} close={close}>
      {error ? <Failure error={error} again={again} /> : null}
      {shown ? (
        <>
          <div class="line">
            <Chip tone={TONES[shown.outcome]}>{shown.outcome.replaceAll('_', ' ')}</Chip>
            {shown.limits.map((limit) => (
              <Chip key={limit} tone="warn">
                {limit}
              </Chip>
            ))}
            <span class="muted">{duration(shown.ms)}</span>
          </div>
          {value?.message ? <p class="note bad">{value.message}</p> : null}
          <Facts
            rows={[
              ['Agent', shown.agent],
              ['Client', value?.client],
              ['Door', shown.door],
              ['Method', <code key="m">{shown.method}</code>],
              ['Server', shown.server],
              ['Through', shown.through],
              ['Came in', dayTime(shown.at)],
              ['Size', `${size(shown.bytesIn)} in, ${size(shown.bytesOut)} out`],
              ['Error', shown.error],
              ['Trace', shown.trace ? <code key="t">{shown.trace}</code> : null],
            ]}
          />
        </>
      ) : null}
      {value ? (
        <>
          <h3>Where the time went</h3>
          <Waterfall
            total={value.ms ?? 0}
            steps={value.steps.map(({ step, from, to: until, detail }) => ({
              name: detail ? `${STEPS[step]}: ${detail}` : STEPS[step],
              from,
              ms: until - from,
              bad: step === 'server' && TONES[value.outcome] === 'bad',
            }))}
          />
          <h3>Arguments</h3>
          {value.arguments === null ? <NotRecorded /> : <Code text={jsonText(value.arguments)} label="Arguments" />}
          <h3>Result</h3>
          {value.result === null ? <NotRecorded /> : <Code text={jsonText(value.result)} label="Result" />}
          <p>
            <a href={to('catalog', 'tool', value.name)}>Open it in the catalog</a>
          </p>
        </>
      ) : null}
    </Dialog>
  );
}

/** Indented if it is whole. What was shortened is no JSON any more, and stays as it is. */
function jsonText(text: string): string {
  try {
    return pretty(JSON.parse(text));
  } catch {
    return text;
  }
}

function NotRecorded() {
  return (
    <p class="muted">Not recorded. "Record" in the list keeps arguments and results of the next calls, for a while.</p>
  );
}

const MINUTES = 15;

function RecordingButton() {
  const info = session.value;
  if (!info) return null;
  const { recording } = info;
  const set = (next: Recording) => {
    session.value = { ...info, recording: next };
  };
  if (recording.by === 'audit') return <Chip title="The configuration says so.">recorded by the audit</Chip>;
  return recording.by === 'page' ? (
    <button
      type="button"
      class="button"
      aria-pressed="true"
      onClick={async () => {
        const next = await attempt(() => remove<Recording>('recording'), 'Nothing more is recorded.');
        if (next !== undefined) set(next);
      }}
    >
      Recording{recording.until ? ` until ${time(recording.until).slice(0, 5)}` : ''}
    </button>
  ) : (
    <button
      type="button"
      class="button"
      aria-pressed="false"
      title="Keeps arguments and results, without secrets, in memory"
      onClick={async () => {
        const next = await attempt(
          () => put<Recording>('recording', { arguments: true, results: true, minutes: MINUTES }),
          `Arguments and results are kept for ${MINUTES} minutes, without secrets.`,
        );
        if (next !== undefined) set(next);
      }}
    >
      Record
    </button>
  );
}
