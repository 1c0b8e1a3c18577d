/** Calls that wait for a person: the whole call, and the decision. */
import { effect, signal } from '@preact/signals';
import { useEffect, useId, useState } from 'preact/hooks';
import type { ApprovalRow, ApprovalsReport, DecisionReport } from '../../../src/dashboard/api-types.ts';
import { at, get, post } from '../api.ts';
import { ago, dateTime, plural, pretty } from '../format.ts';
import { useLoad } from '../load.ts';
import { Chip, Code, Empty, Facts, Failure } from '../parts/bits.tsx';
import { attempt, tell } from '../parts/toast.tsx';
import { go, route, to } from '../route.ts';
import { approvals, areApprovalsKnown } from '../state.ts';

const LASTING: readonly (readonly [label: string, ms: number | null])[] = [
  ['this call only', null],
  ['for 15 minutes', 15 * 60_000],
  ['for an hour', 3_600_000],
  ['for a day', 24 * 3_600_000],
  ['for 7 days', 7 * 24 * 3_600_000],
];

const permission = signal<NotificationPermission | 'none'>('Notification' in window ? Notification.permission : 'none');

/** Tells of each new request once, also while another view is open. */
export function notifyOfApprovals(): void {
  let known: Set<string> | null = null;
  effect(() => {
    const rows = approvals.value;
    if (!areApprovalsKnown.value) return;
    const fresh = known === null ? [] : rows.filter(({ id }) => !known?.has(id));
    known = new Set(rows.map(({ id }) => id));
    for (const { id, agent, tool } of fresh) {
      if (route.peek().view !== 'approvals') tell(`${agent} asks to use ${tool}.`, to('approvals'));
      if (permission.peek() !== 'granted' || document.visibilityState === 'visible') continue;
      const note = new Notification('Toolgate: a call waits for you', {
        body: `${agent} asks to use ${tool}.`,
        tag: id,
      });
      note.onclick = () => {
        window.focus();
        go('approvals');
      };
    }
  });
}

export function Approvals() {
  const { error, again } = useLoad(async (signal) => {
    approvals.value = (await get<ApprovalsReport>('approvals', {}, signal)).approvals;
  }, []);
  const rows = approvals.value;
  return (
    <div class="view">
      <div class="head">
        <h1>Approvals</h1>
        <span class="sub" role="status">
          {rows.length === 0
            ? 'nothing waits'
            : `${plural(rows.length, 'request')} ${rows.length === 1 ? 'waits' : 'wait'}`}
        </span>
        <span class="grow" />
        <Notify />
      </div>
      {error ? <Failure error={error} again={again} /> : null}
      {rows.length === 0 ? (
        <div class="panel">
          <Empty title="No call waits for a person">
            Calls that need approval show here, and in the list of views, as soon as an agent makes them.
          </Empty>
        </div>
      ) : (
        rows.map((row) => <Request key={row.id} row={row} />)
      )}
    </div>
  );
}

function Notify() {
  if (permission.value === 'granted') return <Chip tone="good">notifications are on</Chip>;
  if (permission.value === 'none') return null;
  if (permission.value === 'denied')
    return <Chip title="This browser does not allow them for this page.">notifications are off</Chip>;
  return (
    <button
      type="button"
      class="button"
      onClick={async () => {
        permission.value = await Notification.requestPermission();
      }}
    >
      Notify me in the browser
    </button>
  );
}

function useNow(): number {
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 1_000);
    return () => clearInterval(timer);
  }, []);
  return now;
}

const KINDS = { call: 'a call', access: 'access to a tool', prompt: 'a prompt' };

function Request({ row }: { row: ApprovalRow }) {
  const [reason, setReason] = useState('');
  const [lasting, setLasting] = useState('0');
  const [busy, setBusy] = useState(false);
  const id = useId();
  const now = useNow();
  const decide = async (decision: 'approve' | 'deny') => {
    setBusy(true);
    await attempt(
      () =>
        post<DecisionReport>(`approvals/${at(row.id)}`, {
          decision,
          reason,
          lasting_ms: decision === 'approve' ? (LASTING[Number(lasting)]?.[1] ?? null) : null,
        }),
      ({ more }) =>
        decision === 'deny'
          ? `Denied: ${row.tool} for ${row.agent}.`
          : more > 0
            ? `Approved. ${plural(more, 'more person has', 'more people have')} to approve.`
            : `Approved: ${row.tool} for ${row.agent}.`,
    );
    setBusy(false);
  };
  return (
    <article class="panel" aria-labelledby={`${id}-title`}>
      <header>
        <h2 id={`${id}-title`} class="wrap">
          {row.agent} asks for {KINDS[row.kind]}: {row.tool}
        </h2>
        {row.require > 1 ? (
          <Chip tone="accent">
            {row.approved.length} of {row.require} approved
          </Chip>
        ) : null}
        <span class="grow" />
        <span class="sub" title={dateTime(row.expires)}>
          asked {ago(row.asked, now)}, ends {ago(row.expires, now)}
        </span>
      </header>
      <div class="body stack">
        <Facts
          rows={[
            ['Why it asks', row.reason],
            ['Who may decide', row.approvers.join(', ')],
            ['Approved by', row.approved.join(', ')],
          ]}
        />
        <Code text={jsonText(row.arguments)} label={`Arguments of ${row.tool}`} plain />
        <div class="line">
          <label for={`${id}-for`}>Approve</label>
          <select
            id={`${id}-for`}
            class="input"
            value={lasting}
            onChange={(event) => setLasting(event.currentTarget.value)}
          >
            {LASTING.map(([label], index) => (
              <option key={label} value={String(index)}>
                {label}
              </option>
            ))}
          </select>
          <button type="button" class="button primary" disabled={busy} onClick={() => void decide('approve')}>
            Approve
          </button>
          <input
            class="input grow reason"
            aria-label="Reason, which the agent reads"
            placeholder="Reason, which the agent reads"
            maxLength={1_000}
            value={reason}
            onInput={(event) => setReason(event.currentTarget.value)}
          />
          <button type="button" class="button danger" disabled={busy} onClick={() => void decide('deny')}>
            Deny
          </button>
        </div>
      </div>
    </article>
  );
}

function jsonText(text: string): string {
  try {
    return pretty(JSON.parse(text));
  } catch {
    return text;
  }
}
