/** The servers of a gateway, as the dashboard shows them. */
import { memo } from '../base/memo.ts';
import { processFile } from '../base/proc.ts';
import type { WatchedServer } from '../calls/limits/limiters.ts';
import type { Catalog } from '../catalog/catalog.ts';
import { tokensOf } from '../catalog/tokens.ts';
import type { Gateway } from '../gateway/gateway.ts';
import { isModern } from '../protocol/revisions.ts';
import type { ServerCard } from './api-types.ts';

/** How many tools each server has in a catalog, and about how many tokens they cost. */
export const toolCounts = memo((catalog: Catalog) => {
  const counts = new Map<string, { tools: number; tokens: number }>();
  for (const entry of catalog.entries.tool.values()) {
    const count = counts.get(entry.sourceKey) ?? { tools: 0, tokens: 0 };
    count.tools++;
    count.tokens += tokensOf(entry);
    counts.set(entry.sourceKey, count);
  }
  return counts;
});

export function serverCards(gateway: Gateway): ServerCard[] {
  return gateway.statuses().map((status) => serverCard(gateway, status));
}

/** Characters of what a server printed. */
const SHOWN_OUTPUT = 8_000;

/** Changes with what a card shows. A card itself is made only if it changed. */
export function serverStamp({ catalog }: Gateway, status: WatchedServer): string {
  const { state, since, detail, restarts, pid, revision, breaker, places, checks, problems, stderr, login } = status;
  const { tools = 0, tokens = 0 } = toolCounts(catalog).get(status.key) ?? {};
  return [
    ...[state, since, detail, restarts, pid, revision, breaker.state, breaker.failures, places.running, places.waiting],
    ...[checks.missed, problems.length, stderr.length, stderr.slice(-80), login?.expires, login?.who, tools, tokens],
  ].join('|');
}

export function serverCard({ catalog, redact }: Gateway, status: WatchedServer): ServerCard {
  const { key, namespace, kind, description, state, detail, since, revision, pid, restarts, history } = status;
  const { checks, breaker, places, required, present, isolation, stderr, problems, login } = status;
  return {
    ...{ key, namespace, kind, description, state, detail, since, revision, pid, restarts, history },
    ...{ checks, breaker, places, required, present, problems },
    era: revision === null ? null : isModern(revision) ? 'modern' : 'legacy',
    startMs: startTime(status),
    isolation: isolation ?? null,
    ...(toolCounts(catalog).get(key) ?? { tools: 0, tokens: 0 }),
    process: null,
    stderr: redact(stderr).slice(-SHOWN_OUTPUT),
    login: login === undefined ? null : { who: login.who ?? null, issuer: login.issuer, expires: login.expires },
  };
}

/** From its last start to the moment when it was up. */
function startTime({ history }: WatchedServer): number | null {
  for (let i = history.length - 1; i > 0; i--) {
    if (history[i]!.state !== 'up' || history[i - 1]!.state !== 'starting') continue;
    return Date.parse(history[i]!.time) - Date.parse(history[i - 1]!.time);
  }
  return null;
}

/** With the memory and time of their processes. These differ each time, so they are only in an answer. */
export function withProcesses(cards: readonly ServerCard[]): ServerCard[] {
  return cards.map((card) => (card.pid === null ? card : { ...card, process: processFigures(card.pid) }));
}

/** A second has this many ticks on every Linux that Node runs on. */
const TICKS = 100;

function processFigures(pid: number): ServerCard['process'] {
  const rss = /^VmRSS:\s+(\d+) kB/m.exec(processFile(pid, 'status').toString())?.[1];
  // The name of the program is in brackets, and may have spaces and brackets in it.
  const stat = processFile(pid, 'stat').toString();
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  if (rss === undefined || fields.length < 13) return null;
  return { rss: Number(rss) * 1_024, cpu: (Number(fields[11]) + Number(fields[12])) / TICKS };
}
