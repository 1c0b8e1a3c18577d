/**
 * How long Toolgate's own texts may be for a client. Clients cut long texts without a word, Claude Code after 2,048
 * characters, so a client of which nothing is known gets short ones.
 */
import type { Config } from '../config/config.ts';
import type { ClientTraits } from '../protocol/known-clients.ts';

/** The most characters of a short text. */
export const SHORT_TEXT = 2_000;

/** The most characters of texts for one client; infinite for no limit. */
export interface TextRoom {
  readonly description: number;
  readonly instructions: number;
}

export function textRoom({ description, instructions }: ClientTraits, catalog: Config['catalog']): TextRoom {
  if (catalog === 'full') return { description: Number.POSITIVE_INFINITY, instructions: Number.POSITIVE_INFINITY };
  if (catalog === 'short') return { description: SHORT_TEXT, instructions: SHORT_TEXT };
  return { description: roomOf(description), instructions: roomOf(instructions) };
}

/** `shown` is how many characters the client shows; null if nobody knows. */
function roomOf(shown: number | null): number {
  return shown === Number.POSITIVE_INFINITY ? shown : Math.min(shown ?? SHORT_TEXT, SHORT_TEXT);
}
