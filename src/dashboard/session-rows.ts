/** The clients of a gateway, as the dashboard shows them. */
import type { Caller } from '../calls/caller.ts';
import type { Gateway } from '../gateway/gateway.ts';
import { clientStatus } from '../gateway/status.ts';
import type { SessionCounts, SessionPage, SessionRow } from './api-types.ts';

export function sessionCounts(gateway: Gateway): SessionCounts {
  const agents = new Map<string, number>();
  const clients = gateway.clients();
  for (const { agent } of clients) agents.set(agent, (agents.get(agent) ?? 0) + 1);
  const byAgent = [...agents].map(([agent, sessions]) => ({ agent, sessions }));
  return { all: clients.length, byAgent: byAgent.sort((a, b) => b.sessions - a.sessions) };
}

/** Changes when a client has another toolset, or another client comes. */
export function equippedStamp(gateway: Gateway): string {
  return gateway
    .clients()
    .map(({ label, selection }) => `${label}=${selection?.toolset?.name ?? ''}`)
    .join('\n');
}

export function sessionPage(gateway: Gateway, query: string, offset: number, limit: number): SessionPage {
  const words = query
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== '');
  const found = gateway.clients().filter((caller) => words.every((word) => textOf(caller).includes(word)));
  // Newest first: those are the ones that somebody looks for.
  found.sort((a, b) => b.joined - a.joined);
  return { total: found.length, offset, sessions: found.slice(offset, offset + limit).map(sessionRow) };
}

function textOf({ agent, label, door, own, selection }: Caller): string {
  const { title, sent } = own.traits;
  return [agent, label, door, title, sent?.name ?? '', selection?.toolset?.name ?? ''].join(' ').toLowerCase();
}

function sessionRow(caller: Caller): SessionRow {
  const { lists: _, results: __, ...row } = clientStatus(caller);
  return row;
}
