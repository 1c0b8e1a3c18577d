/** The section `search`: what helps the search to find tools. */

import type * as z from 'zod';
import { flag, mapOf, section, text, textList } from './fields.ts';

export interface SearchConfig {
  /** Queries for which a tool is right, by `server.tool` or by its exposed name. */
  readonly examples: Readonly<Record<string, readonly string[]>>;
  /** Whether a query that led to a successful call becomes an example. */
  readonly learn: boolean;
}

export const searchSchema = section({
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
}) satisfies z.ZodType<SearchConfig>;
