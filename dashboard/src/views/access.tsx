/** Who may use what, and why; a policy tried before it is used; the tokens of agents. */
import { useId, useMemo, useState } from 'preact/hooks';
import type {
  AccessCell,
  AccessMatrix,
  AccessRow,
  AgentRow,
  AgentsReport,
  DryRunReport,
  ExplainRow,
  NewAgentToken,
  PolicyText,
} from '../../../src/dashboard/api-types.ts';
import { at, get, post, RequestError, remove } from '../api.ts';
import { ago, dateTime, number, plural } from '../format.ts';
import { Icon } from '../icons.tsx';
import { useLoad, useSettled } from '../load.ts';
import { narrow } from '../narrow.ts';
import { usePaged } from '../paged.ts';
import { Chip, Empty, Facts, Failure, type Tone } from '../parts/bits.tsx';
import { Dialog } from '../parts/dialog.tsx';
import { Filter } from '../parts/filter.tsx';
import { type Column, Table } from '../parts/table.tsx';
import { Tabs } from '../parts/tabs.tsx';
import { attempt } from '../parts/toast.tsx';
import { go, route } from '../route.ts';
import { catalogChanges } from '../state.ts';

const CELLS: Readonly<Record<AccessCell, readonly [mark: string, tone: Tone, words: string]>> = {
  seen: ['●', 'good', 'sees it at once'],
  allowed: ['○', 'good', 'may use it'],
  asks: ['?', 'warn', 'needs a person'],
  denied: ['×', 'bad', 'may not use it'],
  away: ['–', '', 'its server is away'],
};

export function Access() {
  const tab = route.value.rest[0] ?? 'matrix';
  return (
    <div class="view">
      <div class="head">
        <h1>Access</h1>
      </div>
      <Tabs
        label="Parts of access"
        chosen={tab}
        choose={(key) => go('access', key)}
        tabs={[
          { key: 'matrix', title: 'Agents and tools', body: () => <Matrix /> },
          { key: 'policy', title: 'Try a policy', body: () => <Policy /> },
          { key: 'tokens', title: 'Tokens', body: () => <Tokens /> },
        ]}
      />
    </div>
  );
}

function Matrix() {
  const [typed, setTyped] = useState(route.value.query.get('q') ?? '');
  const [from, setFrom] = useState(0);
  const [why, setWhy] = useState<{ name: string; agent: string } | null>(null);
  const q = useSettled(typed);
  const list = usePaged<AccessRow, AccessMatrix>(
    (offset, limit, signal) => get('access', { kind: 'tool', q, offset, limit }, signal),
    (answer) => answer.rows,
    [q],
    catalogChanges.value,
  );
  const { last } = list;
  const agents = last?.agents ?? [];
  const most = narrow.value ? 2 : 8;
  const shown = agents.slice(from, from + most);
  const columns = useMemo<readonly Column<AccessRow>[]>(
    () => [
      { key: 'name', title: 'Tool', width: 'minmax(110px, 2fr)', cell: ({ name }) => <b title={name}>{name}</b> },
      {
        key: 'category',
        title: 'Category',
        width: 'minmax(60px, 0.6fr)',
        wide: true,
        cell: ({ category }) => <span class="muted">{category ?? '–'}</span>,
      },
      ...shown.map(
        (agent, index): Column<AccessRow> => ({
          key: `agent-${agent}`,
          title: agent,
          width: 'minmax(56px, 0.7fr)',
          cell: ({ name, cells }) => {
            const cell = cells[from + index] ?? 'away';
            const [mark, tone, words] = CELLS[cell];
            return (
              <button
                type="button"
                class={`cell ${tone}`}
                title={`${agent} ${words}`}
                aria-label={`${agent} ${words}: ${name}. Why?`}
                onClick={() => setWhy({ name, agent })}
              >
                <span aria-hidden="true">{mark}</span>
              </button>
            );
          },
        }),
      ),
    ],
    [shown.join('\n'), from],
  );
  return (
    <>
      <div class="head">
        <Filter label="Filter tools" value={typed} change={setTyped} placeholder="Filter tools by words" />
        {agents.length > most ? (
          <div class="line">
            <button
              type="button"
              class="button tiny"
              disabled={from === 0}
              onClick={() => setFrom(Math.max(0, from - most))}
            >
              Agents before
            </button>
            <span class="muted small">
              {from + 1}–{Math.min(agents.length, from + most)} of {agents.length}
            </span>
            <button
              type="button"
              class="button tiny"
              disabled={from + most >= agents.length}
              onClick={() => setFrom(from + most)}
            >
              Agents after
            </button>
          </div>
        ) : null}
        <ul class="legend">
          {Object.entries(CELLS).map(([key, [mark, tone, words]]) => (
            <li key={key}>
              <span class={tone} aria-hidden="true">
                {mark}
              </span>{' '}
              {words}
            </li>
          ))}
        </ul>
      </div>
      {list.error ? <Failure error={list.error} again={list.again} /> : null}
      {last && !last.hasPolicy ? (
        <p class="note">
          There is no policy: every agent may use every tool. "Try a policy" shows what one would change.
        </p>
      ) : null}
      {last?.dryRun ? (
        <p class="note warn">The policy is a dry run: it decides and records, and lets everything pass.</p>
      ) : null}
      <Table
        label="Agents and tools"
        rows={list.rows}
        range={list.range}
        columns={columns}
        id={({ name }) => name}
        height={608}
        open={({ name }) => shown[0] && setWhy({ name, agent: shown[0] })}
        empty={<Empty title={last ? 'No tool is like that' : 'Loading…'} />}
      />
      {last && last.moreAgents.length > 0 ? (
        <p class="muted small">{plural(last.moreAgents.length, 'more agent')} not shown.</p>
      ) : null}
      {why ? <Why {...why} agents={agents} choose={setWhy} close={() => setWhy(null)} /> : null}
    </>
  );
}

interface WhyProperties {
  readonly name: string;
  readonly agent: string;
  readonly agents: readonly string[];
  readonly choose: (next: { name: string; agent: string }) => void;
  readonly close: () => void;
}

function Why({ name, agent, agents, choose, close }: WhyProperties) {
  const { value, error, again } = useLoad<readonly ExplainRow[]>(
    () => post('commands/explain', { name, agent }),
    [name, agent],
  );
  return (
    <Dialog title={`${name}: why?`} close={close}>
      <label class="line">
        For
        <select class="input" value={agent} onChange={(event) => choose({ name, agent: event.currentTarget.value })}>
          {agents.map((one) => (
            <option key={one} value={one}>
              {one}
            </option>
          ))}
        </select>
      </label>
      {error ? <Failure error={error} again={again} /> : null}
      {(value ?? []).map((row) => (
        <section key={`${row.kind}${row.name}`} class="stack" aria-label={row.name}>
          <div class="line">
            <Chip tone={row.allowed ? 'good' : 'bad'}>{row.allowed ? 'may use it' : 'may not use it'}</Chip>
            {row.allowed ? (
              <Chip tone={row.active ? 'good' : ''}>{row.active ? 'sees it at once' : 'on demand'}</Chip>
            ) : null}
          </div>
          {row.unavailable ? <p class="note warn">{row.unavailable}</p> : null}
          <ol class="stack tight">
            {row.findings.map(({ rule, verdict, text }) => (
              <li key={rule + text} class={`note ${verdict === 'deny' || verdict === 'denied' ? 'bad' : ''}`}>
                <b>{verdict}</b> by <code>{rule}</code>
                <div class="wrap">{text}</div>
              </li>
            ))}
          </ol>
          <Facts
            rows={[
              ['Server', row.server],
              ['Its name there', <code key="n">{row.upstreamName}</code>],
              ['Category', `${row.category.effect}, ${row.category.domain}`],
              ['Approvals', row.approvals.join(', ')],
              [
                'Limits',
                Object.entries(row.limits)
                  .map(([key, limit]) => `${key}: ${JSON.stringify(limit)}`)
                  .join('\n'),
              ],
            ]}
          />
        </section>
      ))}
    </Dialog>
  );
}

const CHANGE_COLUMNS: readonly Column<DryRunReport['changes'][number]>[] = [
  {
    key: 'agent',
    title: 'Agent',
    width: 'minmax(70px, 0.8fr)',
    cell: ({ agent }) => agent,
    sort: ({ agent }) => agent,
  },
  {
    key: 'name',
    title: 'Tool',
    width: 'minmax(90px, 1.5fr)',
    cell: ({ name }) => <b title={name}>{name}</b>,
    sort: ({ name }) => name,
  },
  {
    key: 'after',
    title: 'Would be',
    width: '84px',
    cell: ({ after }) => <Chip tone={after === 'allowed' ? 'good' : 'bad'}>{after}</Chip>,
    sort: ({ after }) => after,
  },
  {
    key: 'rule',
    title: 'Because of',
    width: 'minmax(60px, 2fr)',
    wide: true,
    cell: ({ rule, reason }) => (
      <span class="muted" title={reason}>
        <code>{rule}</code> {reason}
      </span>
    ),
  },
];

function Policy() {
  const id = useId();
  const policy = useLoad<PolicyText>((signal) => get('access/policy', {}, signal), []);
  const [typed, setTyped] = useState<string | null>(null);
  const [report, setReport] = useState<DryRunReport | null>(null);
  const [wrong, setWrong] = useState<{ message: string; line: number | null } | null>(null);
  const [busy, setBusy] = useState(false);
  const text = typed ?? policy.value?.text ?? '';
  const tryIt = async () => {
    setBusy(true);
    setWrong(null);
    try {
      setReport(await post<DryRunReport>('access/dry-run', { text }));
    } catch (error) {
      setReport(null);
      const line = error instanceof RequestError && typeof error.detail.line === 'number' ? error.detail.line : null;
      setWrong({ message: (error as Error).message, line });
    }
    setBusy(false);
  };
  return (
    <div class="split">
      <div class="stack">
        {policy.error ? <Failure error={policy.error} again={policy.again} /> : null}
        <div class="field">
          <label for={id}>Policy</label>
          <p class="about">
            Edit it and see what would change. Nothing is saved: when it is right, put it into{' '}
            {policy.value?.file ? <code>{policy.value.file}</code> : 'your configuration'}.
          </p>
          <textarea
            id={id}
            class="input"
            rows={20}
            spellcheck={false}
            value={text}
            aria-invalid={wrong !== null}
            aria-describedby={wrong ? `${id}-wrong` : undefined}
            onInput={(event) => setTyped(event.currentTarget.value)}
            onKeyDown={(event) => {
              if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) void tryIt();
            }}
          />
        </div>
        {wrong ? (
          <p class="note bad" role="alert" id={`${id}-wrong`}>
            {wrong.line === null ? '' : `Line ${wrong.line}: `}
            {wrong.message}
          </p>
        ) : null}
        <div class="line">
          <button type="button" class="button primary" disabled={busy || text === ''} onClick={() => void tryIt()}>
            What would change?
          </button>
          <button type="button" class="button" disabled={typed === null} onClick={() => setTyped(null)}>
            As it is now
          </button>
          <span class="muted small wide-only">
            <kbd>Ctrl</kbd> <kbd>Enter</kbd>
          </span>
        </div>
      </div>
      <div class="stack" role="status">
        {report ? (
          <>
            <p>
              <b>
                {report.total === 0 ? 'Nothing would change.' : `${plural(report.total, 'decision')} would change.`}
              </b>
            </p>
            {report.warnings.map((warning) => (
              <p key={warning} class="note warn">
                {warning}
              </p>
            ))}
            <table class="plain" aria-label="Tools each agent may use">
              <thead>
                <tr>
                  <th scope="col">Agent</th>
                  <th scope="col" class="num">
                    Now
                  </th>
                  <th scope="col" class="num">
                    Then
                  </th>
                </tr>
              </thead>
              <tbody>
                {report.agents.map(({ agent, before, after }) => (
                  <tr key={agent}>
                    <td>{agent}</td>
                    <td class="num">{number(before)}</td>
                    <td class={`num ${after < before ? 'bad' : after > before ? 'good' : ''}`}>{number(after)}</td>
                  </tr>
                ))}
              </tbody>
            </table>
            {report.changes.length > 0 ? (
              <Table
                label="What would change"
                rows={report.changes}
                columns={CHANGE_COLUMNS}
                id={({ agent, kind, name }) => `${agent} ${kind} ${name}`}
                height={320}
                empty=""
              />
            ) : null}
          </>
        ) : (
          <div class="panel">
            <Empty title="Nothing tried yet">
              The answer names every decision that would be another one, and its rule.
            </Empty>
          </div>
        )}
      </div>
    </div>
  );
}

const LIFETIMES: readonly (readonly [string, number | null])[] = [
  ['does not expire', null],
  ['a day', 86_400_000],
  ['30 days', 30 * 86_400_000],
  ['90 days', 90 * 86_400_000],
  ['a year', 365 * 86_400_000],
];

function Tokens() {
  const list = useLoad<AgentsReport>((signal) => get('agents', {}, signal), []);
  const [isNew, setNew] = useState(false);
  const [asked, setAsked] = useState<{ what: 'rotate' | 'revoke'; row: AgentRow } | null>(null);
  const [token, setToken] = useState<NewAgentToken | null>(null);
  const columns: readonly Column<AgentRow>[] = [
    {
      key: 'name',
      title: 'Agent',
      width: 'minmax(90px, 1fr)',
      sort: ({ name }) => name,
      cell: ({ name, admin }) => (
        <>
          <b title={name}>{name}</b> {admin ? <Chip tone="warn">admin</Chip> : null}
        </>
      ),
    },
    {
      key: 'about',
      title: 'About',
      width: 'minmax(60px, 1.2fr)',
      wide: true,
      cell: ({ description }) => <span class="muted">{description}</span>,
    },
    {
      key: 'tokens',
      title: 'Tokens',
      width: 'minmax(60px, 1fr)',
      wide: true,
      cell: ({ tokens }) =>
        tokens.length === 0
          ? 'none'
          : `${tokens.length}, ${tokens.map(({ expires }) => (expires ? `ends ${ago(expires)}` : 'no end')).join('; ')}`,
    },
    {
      key: 'from',
      title: 'From',
      width: '110px',
      wide: true,
      cell: ({ from }) => <span class="muted">{from.map((one) => (one === 'agents' ? 'added' : one)).join(', ')}</span>,
    },
    {
      key: 'sessions',
      title: 'Sessions',
      width: '66px',
      right: true,
      wide: true,
      cell: ({ sessions }) => number(sessions),
    },
    {
      key: 'act',
      title: 'Change',
      width: '150px',
      right: true,
      cell: (row) =>
        row.from.includes('agents') ? (
          <>
            <button
              type="button"
              class="button tiny"
              aria-label={`Rotate ${row.name}`}
              onClick={() => setAsked({ what: 'rotate', row })}
            >
              Rotate
            </button>{' '}
            <button
              type="button"
              class="button tiny danger"
              aria-label={`Revoke ${row.name}`}
              onClick={() => setAsked({ what: 'revoke', row })}
            >
              Revoke
            </button>
          </>
        ) : (
          <span class="muted small">in the file</span>
        ),
    },
  ];
  const done = (made: NewAgentToken | undefined) => {
    setNew(false);
    setAsked(null);
    if (made) setToken(made);
    list.again();
  };
  return (
    <>
      <div class="head">
        <button type="button" class="button primary" onClick={() => setNew(true)}>
          <Icon name="plus" /> New agent
        </button>
        <span class="muted small">A token is shown once, and only its hash is kept.</span>
      </div>
      {list.error ? <Failure error={list.error} again={list.again} /> : null}
      <Table
        label="Agents"
        rows={list.value?.agents ?? []}
        columns={columns}
        id={({ name }) => name}
        height={576}
        empty={
          <Empty title={list.value ? 'No agent has a token' : 'Loading…'}>
            Without a token everybody on this computer may come in. A first token closes the door for all who have none.
          </Empty>
        }
      />
      {isNew ? <NewAgent close={() => setNew(false)} done={done} /> : null}
      {asked ? <Ask {...asked} close={() => setAsked(null)} done={done} /> : null}
      {token ? <ShowToken token={token} close={() => setToken(null)} /> : null}
    </>
  );
}

function LifetimeField({ value, change }: { value: string; change: (value: string) => void }) {
  const id = useId();
  return (
    <div class="field">
      <label for={id}>Valid for</label>
      <select id={id} class="input" value={value} onChange={(event) => change(event.currentTarget.value)}>
        {LIFETIMES.map(([label], index) => (
          <option key={label} value={String(index)}>
            {label}
          </option>
        ))}
      </select>
    </div>
  );
}

interface DoneProperties {
  readonly close: () => void;
  readonly done: (made: NewAgentToken | undefined) => void;
}

function NewAgent({ close, done }: DoneProperties) {
  const id = useId();
  const [name, setName] = useState('');
  const [description, setDescription] = useState('');
  const [lifetime, setLifetime] = useState('3');
  const create = async () => {
    const made = await attempt(() =>
      post<NewAgentToken>('agents', { name, description, lifetime: LIFETIMES[Number(lifetime)]?.[1] ?? null }),
    );
    if (made) done(made);
  };
  return (
    <Dialog
      title="New agent"
      close={close}
      footer={
        <>
          <button type="button" class="button" onClick={close}>
            Cancel
          </button>
          <button type="submit" form={id} class="button primary" disabled={name.trim() === ''}>
            Make a token
          </button>
        </>
      }
    >
      <form
        id={id}
        class="stack"
        onSubmit={(event) => {
          event.preventDefault();
          void create();
        }}
      >
        <div class="field">
          <label for={`${id}-name`}>Name</label>
          <input
            id={`${id}-name`}
            class="input"
            autocomplete="off"
            value={name}
            onInput={(event) => setName(event.currentTarget.value)}
          />
          <p class="about">Policies and limits are written for this name.</p>
        </div>
        <div class="field">
          <label for={`${id}-about`}>About</label>
          <input
            id={`${id}-about`}
            class="input"
            value={description}
            onInput={(event) => setDescription(event.currentTarget.value)}
          />
        </div>
        <LifetimeField value={lifetime} change={setLifetime} />
      </form>
    </Dialog>
  );
}

function Ask({ what, row, close, done }: DoneProperties & { what: 'rotate' | 'revoke'; row: AgentRow }) {
  const [lifetime, setLifetime] = useState('3');
  const [grace, setGrace] = useState('0');
  const id = useId();
  const act = async () => {
    if (what === 'rotate') {
      const made = await attempt(() =>
        post<NewAgentToken>(`agents/${at(row.name)}/rotate`, {
          grace: Number(grace),
          lifetime: LIFETIMES[Number(lifetime)]?.[1] ?? null,
        }),
      );
      if (made) done(made);
      return;
    }
    const gone = await attempt(async () => {
      await remove(`agents/${at(row.name)}`);
      return true;
    }, `The tokens of ${row.name} are revoked.`);
    if (gone) done(undefined);
  };
  return (
    <Dialog
      title={what === 'rotate' ? `Rotate the token of ${row.name}` : `Revoke the tokens of ${row.name}?`}
      close={close}
      footer={
        <>
          <button type="button" class="button" onClick={close}>
            Cancel
          </button>
          <button type="button" class={`button ${what === 'rotate' ? 'primary' : 'danger'}`} onClick={() => void act()}>
            {what === 'rotate' ? 'Make a new token' : 'Revoke them'}
          </button>
        </>
      }
    >
      {what === 'rotate' ? (
        <>
          <LifetimeField value={lifetime} change={setLifetime} />
          <div class="field">
            <label for={id}>The old token stays valid for</label>
            <select id={id} class="input" value={grace} onChange={(event) => setGrace(event.currentTarget.value)}>
              <option value="0">no longer</option>
              <option value="600000">10 minutes</option>
              <option value="3600000">an hour</option>
              <option value="86400000">a day</option>
            </select>
          </div>
        </>
      ) : (
        <p>
          {plural(row.sessions, 'session')} of {row.name} {row.sessions === 1 ? 'ends' : 'end'} at once. This cannot be
          undone.
        </p>
      )}
    </Dialog>
  );
}

function ShowToken({ token, close }: { token: NewAgentToken; close: () => void }) {
  const [copied, setCopied] = useState(false);
  return (
    <Dialog
      title={`The token of ${token.name}`}
      close={close}
      footer={
        <>
          <button
            type="button"
            class="button"
            onClick={async () => {
              await navigator.clipboard.writeText(token.token);
              setCopied(true);
            }}
          >
            {copied ? 'Copied' : 'Copy'}
          </button>
          <button type="button" class="button primary" onClick={close}>
            I have kept it
          </button>
        </>
      }
    >
      <p>It is shown only now. Give it to the client as a bearer token.</p>
      <p class="code">
        <code class="wrap" data-token>
          {token.token}
        </code>
      </p>
      {token.expires ? <p class="muted">It is valid until {dateTime(token.expires)}.</p> : null}
    </Dialog>
  );
}
