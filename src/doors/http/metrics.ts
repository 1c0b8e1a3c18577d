/** `/metrics`: how the gateway is doing, in the text format of Prometheus (0.0.4), or as JSON for whoever asks for that. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { GatewayError } from '../../errors.ts';
import type { Gateway } from '../../gateway.ts';
import { toBytes } from '../../protocol/json.ts';
import { VERSION } from '../../version.ts';
import { sendReply } from './exchange.ts';

type Labels = Readonly<Record<string, string>>;
type Sample = readonly [labels: Labels, value: number, suffix?: string];

export function sendMetrics(
  gateway: Gateway,
  sessions: number,
  { method, headers: asked }: IncomingMessage,
  response: ServerResponse,
  headers: readonly string[],
): void {
  if (method !== 'GET') throw new GatewayError('method_not_allowed', 'Only GET is possible here.');
  if (asked.accept === 'application/json') {
    const body = toBytes({ version: VERSION, calls: gateway.figures.entries() });
    sendReply(response, 200, { head: '', body, tail: '' }, headers);
    return;
  }
  const body = printMetrics(gateway, sessions);
  response
    .writeHead(200, [
      ...headers,
      'content-type',
      'text/plain; version=0.0.4; charset=utf-8',
      'content-length',
      String(Buffer.byteLength(body)),
    ])
    .end(body);
}

function printMetrics(gateway: Gateway, sessions: number): string {
  const { figures } = gateway;
  const entries = figures.entries();
  const labelled = entries.map(({ server, kind, name }) => ({ server, kind, tool: name }));
  const durations = figures.durations();
  const servers = gateway.statuses();
  const { user, system } = process.cpuUsage();
  return [
    metric(
      'toolgate_calls_total',
      'counter',
      'Calls sent to servers, by outcome. What is called beyond 1000 different items is counted under empty labels.',
      entries.flatMap(({ outcomes }, i) =>
        Object.entries(outcomes).map(([outcome, count]): Sample => [{ ...labelled[i], outcome }, count]),
      ),
    ),
    metric(
      'toolgate_call_duration_seconds',
      'histogram',
      'How long servers took to answer, also those that took too long.',
      durations.flatMap(({ buckets, sum, count }, i): Sample[] => [
        ...buckets.map((bucket): Sample => [{ ...labelled[i], le: String(bucket.bound) }, bucket.count, '_bucket']),
        [{ ...labelled[i], le: '+Inf' }, count, '_bucket'],
        [labelled[i]!, sum, '_sum'],
        [labelled[i]!, count, '_count'],
      ]),
    ),
    metric('toolgate_calls_refused_total', 'counter', 'Calls that Toolgate refused: no server was asked.', [
      [{}, figures.refused],
    ]),
    metric('toolgate_calls_in_flight', 'gauge', 'Calls that servers are working on.', [[{}, figures.inFlight]]),
    metric('toolgate_sessions', 'gauge', 'Open sessions of clients.', [[{}, sessions]]),
    metric(
      'toolgate_server_up',
      'gauge',
      '1 while a server runs, or sleeps until it is called.',
      servers.map(({ key, state }) => [{ server: key }, state === 'up' || state === 'asleep' ? 1 : 0]),
    ),
    metric(
      'toolgate_server_restarts_total',
      'counter',
      'How often a server was started again.',
      servers.map(({ key, restarts }) => [{ server: key }, restarts]),
    ),
    metric('toolgate_clients_cut_total', 'counter', 'Clients that were left because they did not read.', [
      [{}, figures.cut],
    ]),
    metric('process_resident_memory_bytes', 'gauge', 'Resident memory of the gateway, without its servers.', [
      [{}, process.memoryUsage.rss()],
    ]),
    metric('process_cpu_seconds_total', 'counter', 'CPU time of the gateway, without its servers.', [
      [{}, (user + system) / 1e6],
    ]),
    metric('process_start_time_seconds', 'gauge', 'When the gateway was started, since 1970.', [
      [{}, performance.timeOrigin / 1e3],
    ]),
    // Measuring its lag would need a timer of its own; this is counted anyway, and its rate says how busy the loop is.
    metric('nodejs_eventloop_active_seconds_total', 'counter', 'How long the event loop was busy.', [
      [{}, performance.eventLoopUtilization().active / 1e3],
    ]),
  ].join('');
}

function metric(name: string, type: string, help: string, samples: readonly Sample[]): string {
  const lines = samples.map(([labels, value, suffix = '']) => `${name}${suffix}${printLabels(labels)} ${value}\n`);
  return `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n${lines.join('')}`;
}

function printLabels(labels: Labels): string {
  const pairs = Object.entries(labels).map(([name, value]) => `${name}="${escaped(value)}"`);
  return pairs.length === 0 ? '' : `{${pairs.join(',')}}`;
}

const ESCAPED: Readonly<Record<string, string>> = { '\\': '\\\\', '"': '\\"', '\n': '\\n' };

function escaped(value: string): string {
  return value.replace(/[\\"\n]/g, (char) => ESCAPED[char]!);
}
