/** Collects all metrics of a gateway at this moment. */
import { VERSION } from '../base/version.ts';
import type { Caller, DoorKind } from '../calls/caller.ts';
import type { WatchedServer } from '../calls/limits/limiters.ts';
import type { Catalog } from '../catalog/catalog.ts';
import { type Era, isModern } from '../protocol/revisions.ts';
import type { SourceState } from '../sources/state.ts';
import type { AuditMetrics } from './audit.ts';
import { counter, type Family, gauge, type Labels } from './families.ts';
import type { AgentMetrics, CallMetrics, Counts, EntryMetrics } from './metrics.ts';

export interface Measured {
  readonly metrics: CallMetrics;
  readonly servers: readonly WatchedServer[];
  readonly catalog: Catalog;
  readonly callers: Iterable<Pick<Caller, 'door' | 'revision'>>;
  readonly audit: AuditMetrics;
  readonly tokens: MeasuredTokens;
}

/** The part of a report about tokens that is measured. */
export interface MeasuredTokens {
  readonly servers: readonly { readonly server: string; readonly tokens: number }[];
  readonly toolsets: readonly { readonly toolset: string; readonly tokens: number }[];
  readonly agents: readonly {
    readonly agent: string;
    readonly tokens: number;
    readonly first: { readonly tokens: number };
  }[];
  readonly clients: readonly {
    readonly id: string;
    readonly agent: string;
    readonly lists: { readonly sent: number; readonly changes: number; readonly tokens: number };
    readonly results: { readonly tokens: number };
  }[];
}

export function measure({ metrics, servers, catalog, callers, audit, tokens }: Measured): Family[] {
  return [
    gauge('toolgate_build_info', 'Always 1; the labels say what is running.', [
      [{ version: VERSION, node: process.version }, 1],
    ]),
    ...callFamilies(metrics),
    ...agentFamilies(metrics.agents()),
    counter(
      'toolgate_calls_refused_total',
      'Calls that Toolgate refused before they reached a server, by error code.',
      byKey('code', metrics.refusals),
    ),
    counter(
      'toolgate_dry_run_total',
      'Calls that a dry run let pass, by what the policy would have decided.',
      byKey('decision', metrics.dryRuns),
    ),
    gauge('toolgate_calls_in_flight', 'Calls that servers are working on.', metrics.inFlight),
    ...serverFamilies(servers),
    gauge(
      'toolgate_catalog_items',
      'What servers offer, by kind.',
      Object.entries(catalog.entries).map(([kind, entries]) => [{ kind }, entries.size]),
    ),
    gauge(
      'toolgate_server_tools_tokens',
      'How many tokens the definitions of all tools of a server cost a model.',
      tokens.servers.map(({ server, tokens: sum }) => [{ server }, sum]),
    ),
    ...tokenFamilies(tokens),
    gauge('toolgate_catalog_version', 'Increases with every change of what is offered.', catalog.version),
    gauge('toolgate_catalog_problems', 'Items that could not be listed unchanged.', catalog.problems.length),
    gauge(
      'toolgate_sessions',
      'Connected clients. In the modern era, which has no sessions, agents that have called.',
      sessions(callers),
    ),
    counter(
      'toolgate_http_refused_total',
      'Requests that the HTTP door refused, by error code; unauthorized means a missing or wrong token.',
      byKey('code', metrics.sentAway),
    ),
    counter(
      'toolgate_list_changes_total',
      'Changed lists that clients were notified of.',
      byKey('list', metrics.listChanges),
    ),
    counter(
      'toolgate_lists_sent_again_total',
      'Changed lists of tools that clients were sent after their first one.',
      metrics.sentLists.count,
    ),
    counter(
      'toolgate_lists_sent_again_tokens_total',
      'About how many tokens these lists have.',
      metrics.sentLists.tokens,
    ),
    counter('toolgate_clients_cut_total', 'Clients that were disconnected because they did not read.', metrics.cut),
    counter(
      'toolgate_config_reloads_total',
      'Configurations that were read while the gateway was running.',
      byKey('outcome', metrics.reloads),
    ),
    gauge('toolgate_audit_failing', '1 while the audit cannot be written.', Number(audit.isFailing)),
    counter('toolgate_audit_lines_total', 'Lines written to the audit.', audit.written),
    counter(
      'toolgate_audit_lost_total',
      'Lines of the audit that were lost because they could not be written.',
      audit.lost,
    ),
    ...metrics.added(),
    ...processFamilies(),
  ];
}

function tokenFamilies({ toolsets, agents, clients }: MeasuredTokens): Family[] {
  const byClient = (value: (client: MeasuredTokens['clients'][number]) => number) =>
    clients.map((client) => [{ client: client.id, agent: client.agent }, value(client)] as const);
  return [
    gauge(
      'toolgate_toolset_tools_tokens',
      'How many tokens the definitions of the tools of a toolset cost a model.',
      toolsets.map(({ toolset, tokens }) => [{ toolset }, tokens]),
    ),
    gauge(
      'toolgate_agent_tools_tokens',
      'How many tokens the definitions of all tools cost that an agent may use.',
      agents.map(({ agent, tokens }) => [{ agent }, tokens]),
    ),
    gauge(
      'toolgate_agent_first_list_tokens',
      'How many tokens the list costs that a new client of an agent sees.',
      agents.map(({ agent, first }) => [{ agent }, first.tokens]),
    ),
    gauge(
      'toolgate_client_lists',
      'Lists of tools that a connected client was sent.',
      byClient(({ lists }) => lists.sent),
    ),
    gauge(
      'toolgate_client_list_changes',
      'How often a connected client was notified that its list of tools had changed.',
      byClient(({ lists }) => lists.changes),
    ),
    gauge(
      'toolgate_client_lists_tokens',
      'How many tokens the lists of tools have that a connected client was sent.',
      byClient(({ lists }) => lists.tokens),
    ),
    gauge(
      'toolgate_client_results_tokens',
      'About how many tokens the results have that a connected client was sent: one for every four bytes.',
      byClient(({ results }) => results.tokens),
    ),
  ];
}

function callFamilies(metrics: CallMetrics): Family[] {
  const entries = metrics.entries();
  const labels = entries.map(({ server, kind, name }) => ({ server, kind, tool: name }));
  return [
    counter(
      'toolgate_calls_total',
      'Calls of tools, resources and prompts, by outcome. After the first 1000 items, further ones are counted under empty labels.',
      byOutcome(entries, (_, i) => labels[i]!),
    ),
    {
      name: 'toolgate_call_duration_seconds',
      help: 'Duration of calls that were answered or timed out.',
      type: 'histogram',
      samples: metrics.durations().map((value, i) => ({ labels: labels[i]!, value })),
    },
    counter(
      'toolgate_response_bytes_total',
      'Bytes of the results of servers.',
      entries.map(({ bytes }, i) => [labels[i]!, bytes]),
    ),
    counter(
      'toolgate_cache_misses_total',
      'Calls of cacheable tools that found no cached result. Those that found one have the outcome cached.',
      entries.flatMap(({ cacheMisses }, i) => (cacheMisses === 0 ? [] : [[labels[i]!, cacheMisses] as const])),
    ),
  ];
}

function agentFamilies(agents: readonly AgentMetrics[]): Family[] {
  return [
    counter(
      'toolgate_agent_calls_total',
      'The same calls by agent and outcome. After the first 200 agents, further ones are counted under an empty label.',
      byOutcome(agents, ({ agent }) => ({ agent })),
    ),
    counter(
      'toolgate_agent_calls_refused_total',
      'Calls that Toolgate refused, by agent.',
      agents.map(({ agent, refused }) => [{ agent }, refused]),
    ),
    gauge(
      'toolgate_agent_calls_in_flight',
      'Calls that servers are working on, by agent.',
      agents.map(({ agent, inFlight }) => [{ agent }, inFlight]),
    ),
    counter(
      'toolgate_agent_response_bytes_total',
      'Bytes of the results that were sent to an agent.',
      agents.map(({ agent, bytes }) => [{ agent }, bytes]),
    ),
  ];
}

const STATES: readonly SourceState[] = [
  ...(['starting', 'up', 'asleep', 'down', 'crash_loop', 'locked', 'broken', 'untrusted', 'closed'] as const),
];

function serverFamilies(servers: readonly WatchedServer[]): Family[] {
  return [
    gauge(
      'toolgate_server_up',
      '1 while a server runs, or sleeps until it is called.',
      servers.map(({ key, state }) => [{ server: key }, Number(state === 'up' || state === 'asleep')]),
    ),
    gauge(
      'toolgate_server_state',
      '1 for the state that a server is in, 0 for the others.',
      servers.flatMap(({ key, state }) =>
        STATES.map((one) => [{ server: key, state: one }, Number(one === state)] as const),
      ),
    ),
    counter(
      'toolgate_server_restarts_total',
      'How often a server was started again.',
      servers.map(({ key, restarts }) => [{ server: key }, restarts]),
    ),
    gauge(
      'toolgate_server_breaker_open',
      '1 while a server is not called, because it failed several times in a row.',
      servers.map(({ key, breaker }) => [{ server: key }, Number(breaker.state !== 'closed')]),
    ),
    gauge(
      'toolgate_server_calls_running',
      'Calls that hold one of the places of a server (`concurrency`).',
      servers.map(({ key, places }) => [{ server: key }, places.running]),
    ),
    gauge(
      'toolgate_server_calls_waiting',
      'Calls that wait for one of the places of a server (`queue`).',
      servers.map(({ key, places }) => [{ server: key }, places.waiting]),
    ),
    counter(
      'toolgate_server_health_checks_total',
      'Health checks of servers that were silent: ok if the server answered, missed if not.',
      servers.flatMap(({ key, checks }) => [
        [{ server: key, outcome: 'ok' }, checks.asked - checks.missed] as const,
        [{ server: key, outcome: 'missed' }, checks.missed] as const,
      ]),
    ),
  ];
}

function processFamilies(): Family[] {
  const { user, system } = process.cpuUsage();
  return [
    gauge(
      'process_resident_memory_bytes',
      'Resident memory of the gateway, without its servers.',
      process.memoryUsage.rss(),
    ),
    counter('process_cpu_seconds_total', 'CPU time of the gateway, without its servers.', (user + system) / 1e6),
    gauge(
      'process_start_time_seconds',
      'When the gateway was started, in seconds since 1970.',
      performance.timeOrigin / 1e3,
    ),
    // Measuring the lag of the event loop would need a separate timer. Node counts this value anyway, and its rate
    // shows how busy the loop is.
    counter(
      'nodejs_eventloop_active_seconds_total',
      'How long the event loop was busy.',
      performance.eventLoopUtilization().active / 1e3,
    ),
  ];
}

function byOutcome<T extends EntryMetrics | AgentMetrics>(
  rows: readonly T[],
  labels: (row: T, index: number) => Labels,
) {
  return rows.flatMap((row, i) =>
    Object.entries(row.outcomes).map(([outcome, count]) => [{ ...labels(row, i), outcome }, count] as const),
  );
}

function byKey(label: string, counts: Counts) {
  return [...counts].map(([key, count]) => [{ [label]: key }, count] as const);
}

/** The kinds of connections. Programs in this process have none. */
const CONNECTIONS: readonly (readonly [DoorKind, Era])[] = [
  ['http', 'legacy'],
  ['http', 'modern'],
  ['sse', 'legacy'],
  ['stdio', 'legacy'],
  ['stdio', 'modern'],
];

function sessions(callers: Measured['callers']) {
  const all = [...callers].map(
    ({ door, revision }) => `${door} ${revision !== null && isModern(revision) ? 'modern' : 'legacy'}`,
  );
  return CONNECTIONS.map(
    ([door, era]) => [{ transport: door, era }, all.filter((one) => one === `${door} ${era}`).length] as const,
  );
}
