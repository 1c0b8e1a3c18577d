/** What more than one view shows: servers, sessions, figures of the last minutes, and calls that wait for a person. */
import { computed, effect, signal } from '@preact/signals';
import type {
  ApprovalRow,
  Overview,
  ServerCard,
  SessionCounts,
  SessionInfo,
  Tick,
} from '../../src/dashboard/api-types.ts';
import { get, isOver, replica } from './api.ts';
import { isLive, listen } from './stream.ts';

export const session = signal<SessionInfo | null>(null);
export const overview = signal<Overview | null>(null);
/** The last second that was summed up when the overview was asked for. */
export const overviewTick = signal(0);
export const failure = signal<Error | null>(null);
export const servers = signal<readonly ServerCard[]>([]);
export const sessions = signal<SessionCounts>({ all: 0, byAgent: [] });
export const ticks = signal<readonly Tick[]>([]);
export const approvals = signal<readonly ApprovalRow[]>([]);
/** Whether the list of approvals has come once. What came before is not news. */
export const areApprovalsKnown = signal(false);
/** Counts of changes: what depends on one asks again. */
export const catalogChanges = signal(0);
export const toolsetChanges = signal(0);
export const loginChanges = signal(0);
export const agents = computed(() => {
  const { totals, firstLists } = overview.value ?? {};
  const names = [
    ...(totals?.agents ?? []).map(({ agent }) => agent),
    ...(firstLists ?? []).flatMap(({ agent }) => agent ?? []),
    ...sessions.value.byAgent.map(({ agent }) => agent),
  ];
  return [...new Set(names)].sort();
});

const MOST_TICKS = 300;

/** Effects call it, so it must not read what it writes: that would call them again. */
export async function refresh(): Promise<void> {
  try {
    const last = ticks.peek().at(-1)?.t ?? 0;
    const [info, now] = await Promise.all([get<SessionInfo>('session'), get<Overview>(`overview?since=${last}`)]);
    session.value = info;
    overview.value = now;
    overviewTick.value = now.ticks.at(-1)?.t ?? last;
    servers.value = now.servers;
    sessions.value = now.sessions;
    // The stream tells of every change. This finds one that was lost on the way.
    if (areApprovalsKnown.value && now.approvals !== approvals.value.length) await loadApprovals();
    // Also those that the stream missed.
    const known = new Map([...now.ticks, ...ticks.peek()].map((tick) => [tick.t, tick]));
    ticks.value = [...known.values()].sort((a, b) => a.t - b.t).slice(-MOST_TICKS);
    failure.value = null;
  } catch (error) {
    failure.value = error as Error;
  }
}

async function loadApprovals(): Promise<void> {
  approvals.value = (await get<{ approvals: readonly ApprovalRow[] }>('approvals')).approvals;
  areApprovalsKnown.value = true;
}

/** Memory and CPU are only in answers. Until the next one, those of the same process stand. */
function withProcess(news: ServerCard | undefined, row: ServerCard): ServerCard {
  if (news === undefined) return row;
  return news.pid === row.pid && news.process === null ? { ...news, process: row.process } : news;
}

export function start(): void {
  void refresh();
  listen('ticks', (tick) => {
    ticks.value = [...ticks.value.filter(({ t }) => t < tick.t), tick].slice(-MOST_TICKS);
  });
  listen('servers', ({ changed, gone }) => {
    const news = new Map(changed.map((row) => [row.key, row]));
    const kept = servers.value
      .filter(({ key }) => !gone.includes(key))
      .map((row) => withProcess(news.get(row.key), row));
    const known = new Set(kept.map(({ key }) => key));
    servers.value = [...kept, ...changed.filter(({ key }) => !known.has(key))];
  });
  listen('sessions', (counts) => {
    sessions.value = counts;
  });
  listen('approvals', (report) => {
    approvals.value = report.approvals;
  });
  // Each new stream begins with it, so it may be known.
  let version = -1;
  listen('catalog', (now) => {
    if (now.version === version) return;
    version = now.version;
    catalogChanges.value += 1;
  });
  listen('toolsets', () => {
    toolsetChanges.value += 1;
  });
  listen('logins', () => {
    loginChanges.value += 1;
  });
  loadApprovals().catch(() => undefined);
  // A gateway that was away may be another one now.
  let wasLive = true;
  effect(() => {
    if (isLive.value && !wasLive) void refresh();
    wasLive = isLive.value;
  });
  // Another replica has other calls, servers and figures.
  let home: string | null = null;
  effect(() => {
    const now = replica.value?.id ?? null;
    if (now === home) return;
    if (home !== null) ticks.value = [];
    home = now;
    void refresh();
  });
  // Tokens, totals and memory are not in the stream. They are asked for while somebody looks.
  effect(() => {
    catalogChanges.value;
    if (overview.peek() !== null) void refresh();
  });
  setInterval(() => {
    if (document.visibilityState === 'visible' && !isOver.value) void refresh();
  }, 5_000);
}
