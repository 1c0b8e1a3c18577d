/** `toolgate list --stats`: the call metrics of a running gateway. */
import { GatewayError } from '../base/errors.ts';
import type { CallKind } from '../calls/outcome.ts';
import { loadConfig } from '../config/load.ts';
import type { TallyMetrics } from '../observe/histogram.ts';
import type { AgentMetrics, EntryMetrics } from '../observe/metrics.ts';
import { readUrl } from './arguments.ts';
import type { CommandIo } from './command-io.ts';
import { loadOptions, type Options } from './options.ts';
import { ask } from './remote.ts';
import { type RunningGateway, runningGateways } from './running.ts';
import { cell, duration, paint, printResult, table } from './terminal.ts';

const kinds: Readonly<Record<string, CallKind>> = { tools: 'tool', resources: 'resource', prompts: 'prompt' };

export async function showStats(what: string, options: Options, io: CommandIo): Promise<number> {
  const kind = kinds[what];
  if (kind === undefined && what !== 'agents')
    throw new GatewayError(
      'usage',
      `There are no metrics for ${what}. Choose from ${[...Object.keys(kinds), 'agents'].join(', ')}.`,
    );
  const { calls, agents } = await readStats(options, io);
  if (kind === undefined) return show(agents, agentTable, options, io);
  const ofKind = calls.filter((row) => row.kind === kind);
  return show(ofKind, entryTable, options, io);
}

function show<T extends TallyMetrics>(
  all: readonly T[],
  toTable: (rows: readonly T[], io: CommandIo) => string,
  options: Options,
  io: CommandIo,
) {
  const rows = [...all].sort((a, b) => b.calls - a.calls);
  return printResult(options, rows, rows.length === 0 ? 'Nothing has been called yet.' : toTable(rows, io), io);
}

interface ReportedMetrics {
  readonly calls: readonly EntryMetrics[];
  readonly agents: readonly AgentMetrics[];
}

/** Of the gateway that runs with this configuration, if one does; else of that at the usual address. */
async function readStats(options: Options, io: CommandIo): Promise<ReportedMetrics> {
  if (options.url === undefined) {
    const [running] = await runningHere(options, io);
    if (running !== undefined) return JSON.parse((await running.ask('/metrics')).toString()) as ReportedMetrics;
  }
  return fetchMetrics(readUrl('--url', options.url ?? 'http://127.0.0.1:8808'), io);
}

/** A folder without a configuration has none. */
async function runningHere(options: Options, io: CommandIo): Promise<RunningGateway[]> {
  const config = await loadConfig(loadOptions(options, io)).catch(() => null);
  return config === null ? [] : runningGateways(config, io);
}

async function fetchMetrics({ origin }: URL, { env }: CommandIo): Promise<ReportedMetrics> {
  const token = env.BEARER_TOKEN;
  const response = await ask(new URL('/metrics', origin), token ? { authorization: `Bearer ${token}` } : {});
  if (response.status === 401)
    throw new GatewayError('unauthorized', `The gateway at ${origin} needs a token: set BEARER_TOKEN.`);
  if (response.status === 403)
    throw new GatewayError(
      'forbidden',
      `The gateway at ${origin} shows metrics to admins only: set BEARER_TOKEN to the token of an admin.`,
    );
  const metrics = response.ok ? await readMetrics(response) : null;
  if (metrics === null)
    throw new GatewayError(
      'source_broken',
      `The server at ${origin} gives no metrics (status ${response.status}): it is not Toolgate, or an older version.`,
    );
  return metrics;
}

async function readMetrics(response: Response): Promise<ReportedMetrics | null> {
  try {
    const { calls, agents = [] } = (await response.json()) as Partial<ReportedMetrics>;
    return Array.isArray(calls) ? { calls, agents } : null;
  } catch {
    return null;
  }
}

const COUNTS = ['CALLS', 'ERRORS', 'TOOL ERRORS', 'P50', 'P99'];

function entryTable(rows: readonly EntryMetrics[], io: CommandIo): string {
  const cells = rows.map((row) => [nameCell(row.name || 'others', io), cell(row.server || 'any'), ...counts(row)]);
  return table([heading(['NAME', 'SERVER', ...COUNTS], io), ...cells]);
}

function agentTable(rows: readonly AgentMetrics[], io: CommandIo): string {
  const cells = rows.map((row) => [nameCell(row.agent || 'others', io), ...counts(row), String(row.refused)]);
  return table([heading(['AGENT', ...COUNTS, 'REFUSED'], io), ...cells]);
}

function counts({ calls, outcomes, p50, p99 }: TallyMetrics): string[] {
  const errors = outcomes.error + outcomes.failed + outcomes.timeout;
  return [String(calls), String(errors), String(outcomes.tool_error), duration(p50), duration(p99)];
}

function heading(words: readonly string[], io: CommandIo): string[] {
  return words.map((word) => paint('dim', word, io));
}

function nameCell(text: string, io: CommandIo): string {
  return paint('bold', cell(text), io);
}
