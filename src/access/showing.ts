/** How `controls = "auto"` shows the tools of a caller: by how many they are, and what they cost. */
import { memo } from '../base/memo.ts';
import type { Catalog } from '../catalog/catalog.ts';
import { tokensOfAll } from '../catalog/tokens.ts';
import type { Control } from '../config/toolsets.ts';

/**
 * `all`: every tool is in the list. `catalog`: a tool has a catalog of them, and activates some. `search`: tools are
 * found by words.
 */
export type Showing = 'all' | 'catalog' | 'search';

/** Up to this size every tool is shown: it costs no more than a catalog and the few tools that are activated from it. */
const FEW = { tools: 15, tokens: 3_000 };

/** More than this are searched: the catalog alone would cost more than a search and what it finds. */
const MANY = 60;

/** A caller keeps the way until there are so many times more tools. */
const SLACK = 2;

/** The controls that each way needs. */
const NEEDED: Readonly<Record<Showing, readonly Control[]>> = { all: [], catalog: ['activate'], search: ['search'] };

/**
 * The way for a caller with this catalog, which is already narrowed to what the caller may know. `before` is the way
 * until now, or null at first: lists should not change their nature in the middle of a conversation.
 */
export function showingFor(catalog: Catalog, before: Showing | null): Showing {
  if (before === 'search') return before;
  const slack = before === null ? 1 : SLACK;
  const { tools, tokens } = sizeOf(catalog);
  const isFew = tools <= FEW.tools * slack && tokens <= FEW.tokens * slack;
  if (isFew && before !== 'catalog') return 'all';
  return tools <= MANY * slack ? 'catalog' : 'search';
}

/** Tools of servers that are unavailable count too, so that a crash changes nothing. */
const sizeOf = memo(({ claims }: Catalog) => {
  const tools = [...claims.tool.values()].filter((entry) => entry !== null);
  return { tools: tools.length, tokens: tokensOfAll(tools) };
});

/** The controls of a configuration, with those that a way needs in place of `auto`. */
export function controlsFor(controls: readonly Control[], showing: Showing): readonly Control[] {
  return controls.flatMap((control) => (control === 'auto' ? NEEDED[showing] : control));
}
