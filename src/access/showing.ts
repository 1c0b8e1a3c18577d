/** How `controls = "auto"` shows the tools of a caller: by how many they are, and what they cost. */
import { memo } from '../base/memo.ts';
import type { Catalog } from '../catalog/catalog.ts';
import { tokensOfAll } from '../catalog/tokens.ts';
import type { Config } from '../config/config.ts';
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
 * until now, or null at first: lists should not change their nature in the middle of a conversation. `showsFew` says
 * whether a few tools are shown directly.
 */
export function showingFor(catalog: Catalog, before: Showing | null, showsFew = true): Showing {
  if (before === 'search') return before;
  const slack = before === null ? 1 : SLACK;
  const { tools, tokens } = sizeOf(catalog);
  const isFew = tools <= FEW.tools * slack && tokens <= FEW.tokens * slack;
  if (showsFew && isFew && before !== 'catalog') return 'all';
  return isMany(tools / slack) ? 'search' : 'catalog';
}

/** Tools of servers that are unavailable count too, so that a crash changes nothing. */
const sizeOf = memo(({ claims }: Catalog) => {
  const tools = [...claims.tool.values()].filter((entry) => entry !== null);
  return { tools: tools.length, tokens: tokensOfAll(tools) };
});

type ShowingConfig = Pick<Config, 'controls' | 'searchesMany'>;

/** Whether the controls depend on how many tools there are. */
export function isBySize({ controls, searchesMany }: ShowingConfig): boolean {
  return controls.includes('auto') || searchesMany;
}

/** Whether so many tools are searched. */
export function isMany(tools: number): boolean {
  return tools > MANY;
}

/** The controls of a configuration, with those that a way needs in place of `auto`. */
export function controlsFor({ controls, searchesMany }: ShowingConfig, showing: Showing): readonly Control[] {
  return controls.flatMap((control) =>
    control === 'auto' || (searchesMany && control === 'activate') ? NEEDED[showing] : control,
  );
}
