/** The first view: how the gateway is, in one value. */
import type { Gateway } from '../gateway/gateway.ts';
import type { CallTotals, Overview, Tick } from './api-types.ts';
import { serverCards, toolCounts, withProcesses } from './server-cards.ts';
import { sessionCounts } from './session-rows.ts';

export function overview(gateway: Gateway, url: string | null, ticks: readonly Tick[]): Overview {
  const { version, pid, started, file, firstLists, problems } = gateway.outline();
  const counts = [...toolCounts(gateway.catalog).values()];
  const { rss, heapUsed } = process.memoryUsage();
  const { user, system } = process.cpuUsage();
  return {
    ...{ version, pid, started, file, url, firstLists, problems },
    servers: withProcesses(serverCards(gateway)),
    sessions: sessionCounts(gateway),
    catalog: {
      version: gateway.catalog.version,
      tools: gateway.catalog.entries.tool.size,
      tokens: counts.reduce((sum, { tokens }) => sum + tokens, 0),
    },
    totals: totals(gateway),
    ticks,
    approvals: gateway.approvals.list().length,
    process: { rss, heapUsed, cpu: (user + system) / 1e6 },
  };
}

function totals({ metrics }: Gateway): CallTotals {
  const agents = metrics.agents().map(({ agent, refused, inFlight, calls, outcomes }) => {
    const errors = calls - outcomes.ok - outcomes.cached - outcomes.cancelled;
    return { agent, calls, errors, refused, inFlight };
  });
  const sum = (key: 'calls' | 'errors') => agents.reduce((all, agent) => all + agent[key], 0);
  return {
    calls: sum('calls'),
    errors: sum('errors'),
    refused: metrics.refused,
    inFlight: metrics.inFlight,
    refusals: [...metrics.refusals].map(([code, count]) => ({ code, count })),
    agents,
  };
}
