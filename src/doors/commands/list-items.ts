/** What `toolgate list` shows of a gateway: tools, resources or prompts, and which of them are active. */
import { awayText } from '../../catalog/away.ts';
import { type Category, categoryOf } from '../../catalog/category.ts';
import type { Entry } from '../../catalog/entry.ts';
import type { Kind } from '../../catalog/item.ts';
import type { Gateway } from '../../gateway/gateway.ts';
import { meterTokens } from '../../observe/token-meter.ts';
import { openLocalDoor } from '../local.ts';

export interface ListRequest {
  readonly kinds: readonly Kind[];
  /** Only what this agent may use. Absent: everything. */
  readonly agent?: string;
  /** Whether each item says what it costs. */
  readonly tokens?: boolean;
}

export interface ItemList {
  readonly items: readonly ListedItem[];
  /** Why items may be missing: one sentence for each server. */
  readonly missing: readonly string[];
  /** Whether there are servers that are not up, listed or not. */
  readonly isAnyAway: boolean;
  readonly hasPolicy: boolean;
}

export interface ListedItem {
  readonly name: string;
  readonly kind: Kind;
  readonly server: string;
  /** Whether a new client sees it. */
  readonly active: boolean;
  readonly category?: Category;
  readonly description: string;
  /** How many tokens its definition costs a model, if that was asked for. */
  readonly tokens?: number;
}

export async function listItems(gateway: Gateway, { kinds, agent, tokens }: ListRequest): Promise<ItemList> {
  const door = openLocalDoor(gateway, 'default', agent ?? null);
  const view = door.caller.view();
  door.close();
  const entries = kinds.flatMap((kind) => [...view.catalog.entries[kind].values()]);
  const meter = tokens === true ? await meterTokens(entries) : null;
  const toItem = (entry: Entry): ListedItem => ({
    name: entry.name,
    kind: entry.kind,
    server: entry.sourceKey,
    active: view.entries[entry.kind].has(entry.name),
    ...(entry.kind === 'tool' && { category: categoryOf(entry) }),
    description: entry.item.description,
    ...(meter !== null && { tokens: meter.of(entry) }),
  });
  return {
    items: entries.map(toItem),
    missing: view.catalog.away.filter(({ isListed }) => !isListed).map((source) => awayText([source])),
    isAnyAway: view.catalog.away.length > 0,
    hasPolicy: gateway.config.policy !== null,
  };
}
