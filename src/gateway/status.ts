/** The state of a running gateway in one value: for `toolgate status` and `/admin/status`. */
import { memo } from '../base/memo.ts';
import { isPattern } from '../base/pattern.ts';
import { VERSION } from '../base/version.ts';
import type { Caller } from '../calls/caller.ts';
import type { WatchedServer } from '../calls/limits/limiters.ts';
import type { Problem } from '../catalog/catalog.ts';
import type { Entry } from '../catalog/entry.ts';
import { tokensOfAll, tokensOfBytes } from '../catalog/tokens.ts';
import type { FirstList } from '../controls/first-list.ts';
import type { Root } from './root.ts';

/** A running gateway: its servers, its clients, and what they see. */
export interface GatewayStatus {
  readonly version: string;
  readonly pid: number;
  /** When it was started, as ISO 8601. */
  readonly started: string;
  /** The configuration file; null if it has none. */
  readonly file: string | null;
  readonly dataDir: string;
  readonly servers: readonly ServerLine[];
  readonly clients: readonly ClientStatus[];
  /** What a new client sees, by agent; one entry without an agent if all agents see the same. */
  readonly firstLists: readonly (FirstList & { readonly agent: string | null })[];
  /** Calls that wait for a person's decision. */
  readonly approvals: readonly ApprovalLine[];
  /** Dropped names and the like. */
  readonly problems: readonly Problem[];
}

/** A server, with the tools that it has in the catalog. */
export interface ServerLine extends WatchedServer {
  readonly tools: number;
  /** About how many tokens the definitions of these tools cost. */
  readonly tokens: number;
}

/** A client, or a group of clients that nothing distinguishes. */
export interface ClientStatus {
  /** By which commands name it, such as `toolgate toolsets equip NAME --session ID`. */
  readonly id: string;
  readonly agent: string;
  readonly door: Caller['door'];
  /** The client as people know it, or as it calls itself; null if it does not say. */
  readonly client: string | null;
  /** Its version, as it says itself; null if it does not. */
  readonly version: string | null;
  /** Since when, as ISO 8601. */
  readonly since: string;
  /** The revision of the protocol that it speaks; null if it is not known. */
  readonly revision: string | null;
  /** The toolset that it has equipped, or that its address names; null for none. */
  readonly toolset: string | null;
  /** The namespace that its address names; null for none. */
  readonly namespace: string | null;
  /** How many tools it sees, Toolgate's own included, and about how many tokens they cost. */
  readonly tools: number;
  readonly tokens: number;
  /** The tools and resources that it has activated or deactivated itself, and the toolsets that it has enabled. */
  readonly activated: readonly string[];
  readonly deactivated: readonly string[];
  readonly enabled: readonly string[];
  /**
   * How often it was notified that its list of tools had changed, how often it was sent a changed list after the first
   * one, and about how many tokens these have.
   */
  readonly lists: { readonly changes: number; readonly sentAgain: number; readonly tokens: number };
  /** The bytes of the results of its calls, and about how many tokens these have. */
  readonly results: { readonly bytes: number; readonly tokens: number };
}

/** A call that waits for a person. */
export interface ApprovalLine {
  readonly id: string;
  readonly agent: string;
  readonly tool: string;
  /** As ISO 8601. */
  readonly asked: string;
}

/** The parts of a status that are about no particular server or client. */
export type GatewayOutline = Omit<GatewayStatus, 'servers' | 'clients' | 'approvals'>;

export function outlineOf(root: Root): GatewayOutline {
  const { config, catalog, startedAt } = root;
  return {
    version: VERSION,
    pid: process.pid,
    started: startedAt,
    file: config.file,
    dataDir: config.dataDir,
    firstLists: agentsOf(root).map((agent) => ({ agent, ...root.firstList(agent ?? 'default') })),
    problems: [
      ...catalog.problems,
      ...root.defaults.renamed.map(({ toolset, from, to }) => ({
        source: `toolset ${toolset}`,
        message: `it has "${from}", which is called "${to}" now`,
      })),
    ],
  };
}

export function statusOf(root: Root): GatewayStatus {
  const { catalog, callers } = root;
  const tools = [...catalog.entries.tool.values()];
  const { firstLists, problems, ...outline } = outlineOf(root);
  return {
    ...outline,
    servers: root.watchedStatuses().map((server) => {
      const own = tools.filter(({ sourceKey }) => sourceKey === server.key);
      return { ...server, tools: own.length, tokens: tokensOfAll(own) };
    }),
    clients: [...callers.all].filter(({ isOperator }) => !isOperator).map(clientStatus),
    firstLists,
    approvals: root.approvals.list().map(({ id, agent, tool, asked }) => ({ id, agent, tool, asked })),
    problems,
  };
}

/** Many clients see the same list. */
const costOf = memo((tools: ReadonlyMap<string, Entry>) => tokensOfAll(tools.values()));

export function clientStatus(caller: Caller): ClientStatus {
  const { selection, entries } = caller.view();
  const { title, sent } = caller.own.traits;
  const { tools, resources, toolset, enabled } = selection;
  return {
    id: caller.label,
    agent: caller.agent,
    door: caller.door,
    client: title === 'unknown' ? (sent?.name ?? null) : title,
    version: sent?.version || null,
    since: new Date(caller.joined).toISOString(),
    revision: caller.revision,
    toolset: toolset?.name ?? null,
    namespace: caller.namespace,
    tools: entries.tool.size,
    tokens: costOf(entries.tool),
    activated: [...tools.on, ...resources.on],
    deactivated: [...tools.off, ...resources.off],
    enabled: enabled.map((one) => one.name),
    lists: { changes: caller.changes, sentAgain: caller.sentAgain.count, tokens: caller.sentAgain.tokens },
    results: { bytes: caller.resultBytes, tokens: tokensOfBytes(caller.resultBytes) },
  };
}

/** The agents that have policies of their own, and `default` for all others. Without policies all agents see the same. */
function agentsOf({ config: { policy } }: Root): readonly (string | null)[] {
  const named = (policy?.agents ?? []).map(({ name }) => name).filter((name) => !isPattern(name));
  return named.length === 0 ? [null] : [...new Set([...named, 'default'])];
}
