/** `toolgate list --stats`: the figures of a gateway that is running. */
import { type CallKind, type EntryFigures, GatewayError, messageOf } from '../index.ts';
import type { Options } from './commands.ts';
import { brief, jsonText, paint, table } from './terminal.ts';

const kinds: Readonly<Record<string, CallKind>> = { tools: 'tool', resources: 'resource', prompts: 'prompt' };
const DEFAULT_URL = 'http://127.0.0.1:8808';
const PATIENCE = 10_000;

export async function showStats(what: string, options: Options): Promise<number> {
  const kind = kinds[what];
  if (kind === undefined)
    throw new GatewayError('usage', `There are no figures of ${what}. Choose from ${Object.keys(kinds).join(', ')}.`);
  const all = await askGateway(options.url ?? DEFAULT_URL);
  const rows = all.filter((row) => row.kind === kind).sort((a, b) => b.calls - a.calls);
  if (options.json === true) process.stdout.write(`${jsonText(rows, 2)}\n`);
  else process.stdout.write(rows.length === 0 ? 'Nothing has been called yet.\n' : `${printRows(rows)}\n`);
  return 0;
}

async function askGateway(address: string): Promise<readonly EntryFigures[]> {
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
  const figures = response.ok ? await readFigures(response) : null;
  if (figures === null)
    throw new GatewayError(
      'source_broken',
      `What answers at ${origin} gives no figures (status ${response.status}): it is no Toolgate, or an older one.`,
    );
  return figures;
}

async function readFigures(response: Response): Promise<readonly EntryFigures[] | null> {
  try {
    const { calls } = (await response.json()) as { calls?: unknown };
    return Array.isArray(calls) ? (calls as EntryFigures[]) : null;
  } catch {
    return null;
  }
}

const HEAD = ['NAME', 'SERVER', 'CALLS', 'ERRORS', 'TOOL ERRORS', 'P50', 'P99'];

function printRows(rows: readonly EntryFigures[]): string {
  const cells = rows.map(({ server, name, calls, outcomes, p50, p99 }) => [
    paint('bold', brief(name || 'others', Number.POSITIVE_INFINITY)),
    brief(server || 'any', Number.POSITIVE_INFINITY),
    String(calls),
    String(outcomes.error + outcomes.failed + outcomes.timeout),
    String(outcomes.tool_error),
    duration(p50),
    duration(p99),
  ]);
  return table([HEAD.map((word) => paint('dim', word)), ...cells]);
}

function duration(ms: number | null): string {
  if (ms === null) return '-';
  return ms < 1_000 ? `${ms < 10 ? ms.toFixed(1) : Math.round(ms)} ms` : `${(ms / 1_000).toFixed(1)} s`;
}
