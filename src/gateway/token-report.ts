/** What tools cost models, counted with a tokenizer: by server, by toolset, by agent, and by client. */
import { toolsWithin } from '../access/toolset.ts';
import { getOrMake } from '../base/memo.ts';
import { isPattern } from '../base/pattern.ts';
import type { Caller } from '../calls/caller.ts';
import type { Entry } from '../catalog/entry.ts';
import { tokensOfBytes } from '../catalog/tokens.ts';
import { meterTokens, meterTokensSoon, TOKENIZER, type TokenMeter } from '../observe/token-meter.ts';
import type { Root } from './root.ts';

/** What tools cost models: tokens by the tokenizer, and about how many tokens results have. */
export interface TokenReport {
  readonly tokenizer: string;
  /** All tools of each server. */
  readonly servers: readonly (TokenCost & { readonly server: string })[];
  /** The tools of each toolset that somebody made. */
  readonly toolsets: readonly (TokenCost & { readonly toolset: string })[];
  /** All that each agent may use, and what a new client of it sees first. */
  readonly agents: readonly (TokenCost & { readonly agent: string; readonly first: TokenCost })[];
  readonly clients: readonly ClientTokens[];
}

export interface TokenCost {
  readonly tools: number;
  readonly tokens: number;
}

/** What a client has been sent until now. */
export interface ClientTokens {
  readonly id: string;
  readonly agent: string;
  /** The client as people know it, or as it calls itself; null if it does not say. */
  readonly client: string | null;
  /** The list of tools that it sees now. */
  readonly now: TokenCost;
  /**
   * The lists of tools that it was sent, and how often it was notified of a change. If the list has changed, earlier ones
   * are taken to have as many tokens for each byte as the present one.
   */
  readonly lists: { readonly sent: number; readonly changes: number; readonly tokens: number };
  /** Results of calls. Their tokens are an estimate: one for every four bytes. */
  readonly results: { readonly bytes: number; readonly tokens: number };
}

/** The most agents and clients; clients that joined last come first. */
const MOST = 200;

/** Waits until everything is counted. */
export async function reportTokens(root: Root): Promise<TokenReport> {
  return report(root, await meterTokens(metered(root)));
}

/** Does not wait: what has not been counted yet is an estimate, until the next report. */
export function reportTokensSoon(root: Root): TokenReport {
  return report(root, meterTokensSoon(metered(root)));
}

/** All items that a report is about. */
function metered(root: Root): Entry[] {
  return [
    ...root.catalog.entries.tool.values(),
    ...agentsOf(root).flatMap((agent) => root.shownTo(agent).first),
    ...clientsOf(root).flatMap((caller) => [...caller.view().entries.tool.values()]),
  ];
}

function report(root: Root, meter: TokenMeter): TokenReport {
  const { catalog } = root;
  const cost = (entries: readonly Entry[]): TokenCost => ({ tools: entries.length, tokens: meter.ofAll(entries) });
  const byServer = new Map<string, Entry[]>();
  for (const entry of catalog.entries.tool.values()) getOrMake(byServer, entry.sourceKey, () => []).push(entry);
  return {
    tokenizer: TOKENIZER,
    servers: [...byServer].map(([server, own]) => ({ server, ...cost(own) })),
    toolsets: root.defaults.toolsets.map((toolset) => ({
      toolset: toolset.name,
      ...cost(toolsWithin(toolset, catalog)),
    })),
    agents: agentsOf(root).map((agent) => {
      const { all, first } = root.shownTo(agent);
      return { agent, ...cost(all), first: cost(first) };
    }),
    clients: clientsOf(root).map((caller) => clientTokens(caller, meter)),
  };
}

function clientsOf({ callers }: Root): Caller[] {
  return [...callers.all].filter(({ isOperator }) => !isOperator).slice(-MOST);
}

function clientTokens(caller: Caller, meter: TokenMeter): ClientTokens {
  const view = caller.view();
  const shown = [...view.entries.tool.values()];
  const tokens = meter.ofAll(shown);
  const { title, sent } = caller.own.traits;
  const { listed, changes, resultBytes } = caller;
  const bytes = view.list('tool', 'legacy').length;
  return {
    id: caller.label,
    agent: caller.agent,
    client: title === 'unknown' ? (sent?.name ?? null) : title,
    now: { tools: shown.length, tokens },
    lists: { sent: listed.count, changes, tokens: Math.round((listed.bytes * tokens) / Math.max(1, bytes)) },
    results: { bytes: resultBytes, tokens: tokensOfBytes(resultBytes) },
  };
}

/** Those with policies of their own, and those of the clients that are here. */
function agentsOf(root: Root): string[] {
  const { policy } = root.config;
  const named = (policy?.agents ?? []).map(({ name }) => name).filter((name) => !isPattern(name));
  const present = clientsOf(root).map(({ agent }) => agent);
  return [...new Set(['default', ...named, ...present])].slice(0, MOST);
}
