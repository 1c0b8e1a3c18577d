/** `toolgate list --stats`: the figures of a gateway that is running. */
import {
  type AgentMetrics,
  type CallKind,
  type EntryMetrics,
  GatewayError,
  messageOf,
  type TallyMetrics,
} from '../internal.ts';
import type { Options } from './commands.ts';
import { brief, duration, jsonText, paint, table } from './terminal.ts';

const kinds: Readonly<Record<string, CallKind>> = { tools: 'tool', resources: 'resource', prompts: 'prompt' };
const DEFAULT_URL = 'http://127.0.0.1:8808';
const PATIENCE = 10_000;

export async function showStats(what: string, options: Options): Promise<number> {
  const kind = kinds[what];
  if (kind === undefined && what !== 'agents')
    throw new GatewayError(
      'usage',
      `There are no figures of ${what}. Choose from ${[...Object.keys(kinds), 'agents'].join(', ')}.`,
    );
  const { calls, agents } = await askGateway(options.url ?? DEFAULT_URL);
  if (kind === undefined) print(agents, printAgents, options);
  else
    print(
      calls.filter((row) => row.kind === kind),
      printItems,
      options,
    );
  return 0;
}

function print<T extends TallyMetrics>(all: readonly T[], toText: (rows: readonly T[]) => string, options: Options) {
  const rows = [...all].sort((a, b) => b.calls - a.calls);
  if (options.json === true) process.stdout.write(`${jsonText(rows, 2)}\n`);
  else process.stdout.write(rows.length === 0 ? 'Nothing has been called yet.\n' : `${toText(rows)}\n`);
}

interface Told {
  readonly calls: readonly EntryMetrics[];
  readonly agents: readonly AgentMetrics[];
}

async function askGateway(address: string): Promise<Told> {
  if (!URL.canParse(address) || !/^https?:/.test(address))
    throw new GatewayError('usage', `--url is an address such as ${DEFAULT_URL}, not "${address}".`);
  const { origin } = new URL(address);
  const token = process.env.BEARER_TOKEN;
  const headers = { accept: 'application/json', ...(token ? { authorization: `Bearer ${token}` } : {}) };
  const response = await fetch(`${origin}/metrics`, { headers, signal: AbortSignal.timeout(PATIENCE) }).catch(
    (error: Error) => {
      const why = error.cause instanceof Error ? messageOf(error.cause) : error.message;
      throw new GatewayError(
        'source_unavailable',
        `No gateway answers at ${origin} (${why}). Start one with toolgate serve, or say where it is with --url.`,
      );
    },
  );
  if (response.status === 401)
    throw new GatewayError('unauthorized', `The gateway at ${origin} wants its token: set BEARER_TOKEN to it.`);
  if (response.status === 403)
    throw new GatewayError(
      'forbidden',
      `The gateway at ${origin} gives figures to admins only: set BEARER_TOKEN to the token of one.`,
    );
  const metrics = response.ok ? await readFigures(response) : null;
  if (metrics === null)
    throw new GatewayError(
      'source_broken',
      `What answers at ${origin} gives no figures (status ${response.status}): it is no Toolgate, or an older one.`,
    );
  return metrics;
}

async function readFigures(response: Response): Promise<Told | null> {
  try {
    const { calls, agents = [] } = (await response.json()) as Partial<Told>;
    return Array.isArray(calls) ? { calls, agents } : null;
  } catch {
    return null;
  }
}

const COUNTS = ['CALLS', 'ERRORS', 'TOOL ERRORS', 'P50', 'P99'];

function printItems(rows: readonly EntryMetrics[]): string {
  const cells = rows.map((row) => [name(row.name || 'others'), plainly(row.server || 'any'), ...counts(row)]);
  return table([head('NAME', 'SERVER', ...COUNTS), ...cells]);
}

function printAgents(rows: readonly AgentMetrics[]): string {
  const cells = rows.map((row) => [name(row.agent || 'others'), ...counts(row), String(row.refused)]);
  return table([head('AGENT', ...COUNTS, 'REFUSED'), ...cells]);
}

function counts({ calls, outcomes, p50, p99 }: TallyMetrics): string[] {
  const errors = outcomes.error + outcomes.failed + outcomes.timeout;
  return [String(calls), String(errors), String(outcomes.tool_error), duration(p50), duration(p99)];
}

function head(...words: readonly string[]): string[] {
  return words.map((word) => paint('dim', word));
}

function name(text: string): string {
  return paint('bold', plainly(text));
}

function plainly(text: string): string {
  return brief(text, Number.POSITIVE_INFINITY);
}
