/**
 * The toolsets as a model reads them, with what each would cost: in the description of `equip-toolset`, and shorter in
 * the instructions. Clients cut both at about 2,000 characters.
 */
import { implicitToolsets } from '../access/implicit-toolsets.ts';
import { type Toolset, toolServers, toolsWithin } from '../access/toolset.ts';
import { type FitLine, fitLines } from '../base/fit.ts';
import { memo } from '../base/memo.ts';
import { counted } from '../base/text.ts';
import type { Catalog } from '../catalog/catalog.ts';
import type { Entry } from '../catalog/entry.ts';
import { serverPurpose } from '../catalog/overview.ts';
import { tokensOfAll, tokensText } from '../catalog/tokens.ts';

/** A toolset with the tools that a caller may use. */
export interface ToolsetCost {
  readonly toolset: Toolset;
  readonly tools: number;
  readonly tokens: number;
  /** What it is for; may be empty. */
  readonly purpose: string;
}

/**
 * The toolsets of which a catalog has tools: those that users made first, then everything, then the servers. A server
 * that is unavailable counts with what it last offered, so that the texts do not change with every crash.
 */
export const toolsetCosts = memo((catalog: Catalog) =>
  memo((made: readonly Toolset[]): readonly ToolsetCost[] => {
    const names = new Set(made.map(({ name }) => name));
    const implicit = implicitToolsets(toolServers(catalog), (name) => names.has(name));
    return [...made, ...implicit]
      .map((toolset) => {
        const entries = toolsWithin(toolset, catalog);
        const { standing, description } = toolset;
        const purpose = standing === 'implicit' ? implicitPurpose(toolset, catalog, entries) : description;
        return { toolset, tools: entries.length, tokens: tokensOfAll(entries), purpose };
      })
      .filter(({ tools }) => tools > 0);
  }),
);

/** The toolset of a server is for what the server is for. The name `all` says everything. */
function implicitPurpose({ tools: [only] }: Toolset, catalog: Catalog, entries: readonly Entry[]): string {
  return only?.server === undefined ? '' : serverPurpose(catalog, only.server, entries);
}

/** One line for each toolset: its name, what it costs, and what it is for. */
export function toolsetLines(costs: readonly ToolsetCost[], room: number): string {
  const lines = costs.map(
    ({ toolset: { name }, tools, tokens, purpose }): FitLine => ({
      head: `${oneLine(name)} (${counted(tools, 'tool')}, ${tokensText(tokens)})`,
      text: oneLine(purpose),
    }),
  );
  return fitLines(lines, { room, more: (left) => `and ${left} more: call list-saved-toolsets` });
}

/** Only names and numbers of tools: `git (12), docker (2)`. */
export function toolsetNames(costs: readonly ToolsetCost[], room: number): string {
  const lines = costs.map(({ toolset: { name }, tools }) => ({ head: `${oneLine(name)} (${tools})`, text: '' }));
  return fitLines(lines, { room, separator: ', ', more: (left) => `and ${left} more` });
}

/** A text that could imitate another line is put on one line. */
function oneLine(text: string): string {
  return text.replace(/[\s\p{Cc}\u2028\u2029]+/gu, ' ').trim();
}
