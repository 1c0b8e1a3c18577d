/** What `toolgate search` shows of a gateway: the items that match some words. */
import { GatewayError } from '../../base/errors.ts';
import { didYouMean } from '../../base/text.ts';
import { awayText } from '../../catalog/away.ts';
import { matchesServer } from '../../catalog/entry.ts';
import type { Kind } from '../../catalog/item.ts';
import { tokensOf } from '../../catalog/tokens.ts';
import { printBrief } from '../../controls/signature.ts';
import type { Gateway } from '../../gateway/gateway.ts';
import { meterTokens } from '../../observe/token-meter.ts';
import { openLocalDoor } from '../local.ts';

/** The most items that one search shows. */
export const MOST_SHOWN = 100;

export interface SearchRequest {
  readonly query: string;
  readonly limit: number;
  /** Only of this server, or of those that match this pattern. */
  readonly server?: string;
  /** Only what this agent may use. Absent: everything. */
  readonly agent?: string;
  /** Whether tokens are counted; else they are an estimate. */
  readonly tokens?: boolean;
}

export interface SearchReport {
  /** Best first. */
  readonly items: readonly FoundItem[];
  /** How many others match nearly as well, by server. */
  readonly more: Readonly<Record<string, number>>;
  /** Why items may be missing: one sentence for each server. */
  readonly missing: readonly string[];
  /** Why the search is worse than the configuration says: its vectors cannot be used. Null if nothing is wrong. */
  readonly problem: string | null;
}

export interface FoundItem {
  readonly name: string;
  readonly kind: Kind;
  readonly server: string;
  /** Whether a new client sees it. */
  readonly active: boolean;
  readonly description: string;
  /** What a model is told about it. */
  readonly line: string;
  /** How many tokens its definition costs a model: counted if that was asked for, else about so many. */
  readonly tokens: number;
}

/** The example queries of tools. */
export interface ExampleReport {
  /** Whether queries become examples. */
  readonly learn: boolean;
  /** The file with what was learned. */
  readonly file: string;
  readonly examples: readonly ExampleRow[];
}

export interface ExampleRow {
  readonly tool: string;
  /** The agent that has learned it; null for what the configuration says. */
  readonly agent: string | null;
  readonly queries: readonly string[];
}

export function searchExamples(gateway: Gateway): ExampleReport {
  const { examples, learn } = gateway.config.search;
  const rows = (agent: string | null, tools: Readonly<Record<string, readonly string[]>>) =>
    Object.entries(tools).map(([tool, queries]): ExampleRow => ({ tool, agent, queries }));
  return {
    learn,
    file: gateway.examples.path,
    examples: [...rows(null, examples), ...gateway.examples.all().flatMap(({ agent, tools }) => rows(agent, tools))],
  };
}

/** Forgets what was learned, and returns how many tools had examples. */
export function forgetExamples(gateway: Gateway): { readonly forgotten: number } {
  const forgotten = gateway.examples.all().reduce((sum, { tools }) => sum + Object.keys(tools).length, 0);
  gateway.examples.forget();
  return { forgotten };
}

export async function searchItems(gateway: Gateway, request: SearchRequest): Promise<SearchReport> {
  const { query, limit, server, agent } = request;
  const door = openLocalDoor(gateway, 'default', agent ?? null);
  const view = door.caller.view();
  door.close();
  const { catalog } = view;
  const search = await gateway.learning.search(door.caller, catalog);
  if (server !== undefined) requireServer(server, [...catalog.sources]);
  const isServer = (entry: { sourceKey: string; namespace: string }) =>
    server === undefined || matchesServer(server, entry.sourceKey, entry.namespace);
  const { best, more } = search.find(query, limit, { isServer });
  const costOf = request.tokens === true ? (await meterTokens(best.map(({ entry }) => entry))).of : tokensOf;
  return {
    items: best.map(({ name, entry }) => ({
      name,
      kind: entry.kind,
      server: entry.sourceKey,
      active: view.entries[entry.kind].has(name),
      description: entry.item.description,
      line: printBrief(name, entry),
      tokens: costOf(entry),
    })),
    more: Object.fromEntries(more),
    missing: catalog.away.filter(({ isListed }) => !isListed).map((source) => awayText([source])),
    problem: await gateway.learning.vectorProblem(),
  };
}

function requireServer(server: string, known: readonly string[]): void {
  if (known.some((one) => matchesServer(server, one, ''))) return;
  throw new GatewayError('usage', `There is no server "${server}".${didYouMean(server, known)}`);
}
