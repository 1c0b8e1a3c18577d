/** What a new client sees before it changes anything: for the start, for `doctor`, and for programs. */
import type { View } from '../access/view.ts';
import { memo } from '../base/memo.ts';
import { BUILT_IN } from '../catalog/entry.ts';
import { tokensOfAll } from '../catalog/tokens.ts';
import { ACTIVATE } from './activate.ts';
import { EQUIP } from './equip-tools.ts';
import { SEARCH_TOOLS } from './search-tools.ts';
import { ENABLE } from './toolset-tools.ts';

/** What a new client sees before it changes anything. */
export interface FirstList {
  /** The tools in its first list, Toolgate's own included. */
  readonly shown: number;
  /** About how many tokens that list costs: the characters of its JSON, divided by four. */
  readonly tokens: number;
  /** All tools that the client may use, Toolgate's own included. */
  readonly tools: number;
  /** How many of them are Toolgate's own. */
  readonly own: number;
  /** The equipped toolset, by its name; null for none. */
  readonly toolset: string | null;
  /**
   * What shows it the others: activating tools, searching them, equipping a toolset, or enabling toolsets. Null if it
   * cannot change what it sees.
   */
  readonly until: 'activate' | 'search' | 'equip' | 'enable' | null;
}

/** Once for each view: the dashboard asks again and again, and ten thousand tools take milliseconds. */
export const firstListOf = memo(({ entries, catalog, selection }: View): FirstList => {
  const shown = [...entries.tool.values()];
  const own = shown.filter(({ sourceId }) => sourceId === BUILT_IN).length;
  return {
    shown: shown.length,
    tokens: tokensOfAll(shown),
    tools: own + catalog.entries.tool.size,
    own,
    toolset: selection.toolset?.name ?? null,
    until: untilOf(entries.tool),
  };
});

function untilOf(tools: ReadonlyMap<string, unknown>): FirstList['until'] {
  if (tools.has(ACTIVATE)) return 'activate';
  if (tools.has(SEARCH_TOOLS)) return 'search';
  if (tools.has(EQUIP)) return 'equip';
  return tools.has(ENABLE) ? 'enable' : null;
}
