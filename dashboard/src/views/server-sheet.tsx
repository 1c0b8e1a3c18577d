/** One server: its state and why, its restarts, what it wrote, and a restart by hand. */
import type { ServerCard, ServerStateWord } from '../../../src/dashboard/api-types.ts';
import { at, post } from '../api.ts';
import { ago, compact, dateTime, duration, plural, size, time } from '../format.ts';
import { Chip, Code, Dot, Facts, type Tone } from '../parts/bits.tsx';
import { Dialog } from '../parts/dialog.tsx';
import type { Column } from '../parts/table.tsx';
import { attempt } from '../parts/toast.tsx';
import { to } from '../route.ts';

const TONES: Readonly<Record<string, Tone>> = {
  up: 'good',
  starting: 'warn',
  asleep: 'off',
  closed: 'off',
  unserved: 'off',
};

export function toneOf(state: ServerStateWord | 'unserved'): Tone {
  return TONES[state] ?? 'bad';
}

/** Whether somebody should look at it. */
export function isTrouble(state: string): boolean {
  return !['up', 'asleep', 'starting', 'closed'].includes(state);
}

export const inWords = (state: string): string => state.replaceAll('_', ' ');

export function StateCell({ state }: { state: ServerStateWord | 'unserved' }) {
  return (
    <span class="line">
      <Dot tone={toneOf(state)} />
      {inWords(state)}
    </span>
  );
}

export const SERVER_COLUMNS: readonly Column<ServerCard>[] = [
  {
    key: 'state',
    title: 'State',
    width: '104px',
    sort: ({ state }) => state,
    cell: ({ state }) => <StateCell state={state} />,
  },
  {
    key: 'name',
    title: 'Server',
    width: 'minmax(90px, 1fr)',
    sort: ({ key }) => key,
    cell: ({ key }) => <b title={key}>{key}</b>,
  },
  { key: 'kind', title: 'Transport', width: '76px', wide: 720, sort: ({ kind }) => kind, cell: ({ kind }) => kind },
  {
    key: 'era',
    title: 'Protocol',
    width: '76px',
    wide: 860,
    sort: ({ revision }) => revision ?? '',
    cell: ({ era, revision }) => (
      <span class="muted" title={era ?? undefined}>
        {revision ?? '–'}
      </span>
    ),
  },
  {
    key: 'tools',
    title: 'Tools',
    width: '56px',
    right: true,
    sort: ({ tools }) => -tools,
    cell: ({ tools }) => compact(tools),
  },
  {
    key: 'tokens',
    title: 'Tokens',
    width: '68px',
    right: true,
    wide: true,
    sort: ({ tokens }) => -tokens,
    cell: ({ tokens }) => compact(tokens),
  },
  {
    key: 'start',
    title: 'Start',
    width: '72px',
    right: true,
    wide: 820,
    sort: ({ startMs }) => startMs ?? -1,
    cell: ({ startMs }) => duration(startMs),
  },
  {
    key: 'restarts',
    title: 'Restarts',
    width: '66px',
    right: true,
    wide: 640,
    sort: ({ restarts }) => -restarts,
    cell: ({ restarts }) => <span class={restarts > 0 ? 'warn' : 'muted'}>{restarts}</span>,
  },
  {
    key: 'memory',
    title: 'Memory',
    width: '76px',
    right: true,
    wide: 1_140,
    sort: ({ process }) => -(process?.rss ?? 0),
    cell: ({ process }) => size(process?.rss),
  },
  {
    key: 'detail',
    title: 'Detail',
    width: 'minmax(110px, 3fr)',
    wide: 480,
    cell: ({ state, detail, since }) => (
      <span class={isTrouble(state) ? '' : 'muted'} title={detail}>
        {detail || inWords(state)} <span class="muted">· {ago(since)}</span>
      </span>
    ),
  },
];

export function ServerSheet({ server, close }: { server: ServerCard; close: () => void }) {
  const { key, state, detail, history, stderr, problems, breaker, places, checks } = server;
  return (
    <Dialog
      sheet
      title={key}
      close={close}
      footer={
        <>
          <a class="button" href={`${to('catalog')}?server=${encodeURIComponent(key)}`}>
            Its tools
          </a>
          <button
            type="button"
            class="button"
            onClick={() => attempt(() => post(`servers/${at(key)}/restart`), `${key} is restarted.`)}
          >
            Restart
          </button>
        </>
      }
    >
      <div class="line">
        <Chip tone={toneOf(state)}>{inWords(state)}</Chip>
        {server.required ? <Chip>required</Chip> : null}
        {breaker.state !== 'closed' ? <Chip tone="bad">breaker {breaker.state}</Chip> : null}
        <span class="muted wrap">{detail}</span>
      </div>
      {server.description ? <p class="wrap">{server.description}</p> : null}
      <Facts
        rows={[
          ['Transport', server.kind],
          ['Names begin with', server.namespace ? <code>{server.namespace}</code> : ''],
          ['Protocol', server.revision ? `${server.revision} (${server.era})` : ''],
          ['Tools', `${plural(server.tools, 'tool')}, about ${compact(server.tokens)} tokens`],
          ['Process', server.pid === null ? '' : `pid ${server.pid}`],
          [
            'Memory and CPU',
            server.process ? `${size(server.process.rss)}, ${duration(server.process.cpu * 1_000)} of CPU` : '',
          ],
          ['Start took', server.startMs === null ? '' : duration(server.startMs)],
          ['Since', dateTime(server.since)],
          ['Restarts', String(server.restarts)],
          ['Health checks', checks.asked > 0 ? `${checks.asked} asked, ${checks.missed} missed` : ''],
          ['Calls now', `${places.running} running, ${places.waiting} waiting`],
          ['Isolation', server.isolation],
          ['Logged in as', server.login ? `${server.login.who ?? 'somebody'} at ${server.login.issuer}` : ''],
        ]}
      />
      <h3>What happened</h3>
      <ol class="stack tight">
        {history.toReversed().map((one, index) => (
          <li key={index} class="line">
            <span class="mono muted">{time(one.time)}</span>
            <Dot tone={toneOf(one.state)} />
            {inWords(one.state)}
            <span class="muted wrap">{one.detail}</span>
          </li>
        ))}
      </ol>
      {problems.length > 0 ? (
        <>
          <h3>Files with errors</h3>
          <ul class="stack tight">
            {problems.map(({ file, line, message }) => (
              <li key={`${file}${line}`} class="note bad">
                <code>{line === null ? file : `${file}:${line}`}</code> {message}
              </li>
            ))}
          </ul>
        </>
      ) : null}
      {stderr ? (
        <>
          <h3>What it wrote last</h3>
          <Code text={stderr} label={`Output of ${key}`} />
        </>
      ) : null}
    </Dialog>
  );
}
