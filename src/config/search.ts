/** The section `search`: what helps the search to find tools. */
import * as z from 'zod';
import type { ResolveContext } from './context.ts';
import { flag, mapOf, type Section, section, text, textList } from './fields.ts';

export interface SearchConfig {
  /** Queries for which a tool is right, by `server.tool` or by its exposed name. */
  readonly examples: Readonly<Record<string, readonly string[]>>;
  /** Whether a query that led to a successful call becomes an example. */
  readonly learn: boolean;
  /** The file with vectors of words; null without them. */
  readonly vectors: string | null;
  /** The most that vectors add to a score, as a part of the best one. */
  readonly vectorWeight: number;
}

/** What was measured to help without harm; see docs/search.md. */
const USUAL_WEIGHT = 0.2;
const MOST_WEIGHT = 2;
const wrongWeight = `expected a number from 0 to ${MOST_WEIGHT}`;

const searchShape = {
  examples: mapOf('lists of queries', text(), textList())
    .prefault({})
    .describe(
      'Queries for which a tool is right, by `server.tool` or by its exposed name. Three to five for a tool help most.',
    ),
  learn: flag()
    .prefault(true)
    .describe(
      'Whether a query of `search_tools` that is followed by a successful call of a tool that it found becomes an example for ' +
        'that tool. Each agent learns for itself. `toolgate search --examples` shows what was learned.',
    ),
  vectors: text()
    .optional()
    .describe(
      'A file with vectors of words, which `toolgate vectors` makes from a model: the search then also finds tools that ' +
        'mean the same in other words. Relative to the folder of this file. Default: none.',
    ),
  vector_weight: z
    .number({ error: wrongWeight })
    .min(0, { error: wrongWeight })
    .max(MOST_WEIGHT, { error: wrongWeight })
    .prefault(USUAL_WEIGHT)
    .describe('How much these vectors count: what the best one adds, as a part of the best score by words.'),
};

export const searchSchema = section(searchShape);

export function resolveSearch(search: Section<typeof searchShape>, { path }: ResolveContext): SearchConfig {
  const { vectors, ...rest } = search;
  return { ...rest, vectors: vectors == null ? null : path(['search', 'vectors'], vectors) };
}
