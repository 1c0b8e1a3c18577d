/** Counts the tokens of texts. Only token-program.ts loads it. */
import { countTokens } from 'gpt-tokenizer/encoding/o200k_base';

/** The work of the tokenizer grows with the square of such a run, and servers write these texts. */
const LONG_RUN = /[\p{L}\p{M}]{256}|\s{256}|[^\s\p{L}\p{N}]{256}/u;
const CUT = 256;

/** Names of special tokens are text like any other. */
const PLAIN_TEXT = { disallowedSpecial: new Set<string>() };

export function countAll(texts: readonly string[]): number[] {
  return texts.map(countOne);
}

function countOne(text: string): number {
  if (!LONG_RUN.test(text)) return countTokens(text, PLAIN_TEXT);
  let sum = 0;
  for (let i = 0; i < text.length; i += CUT) sum += countTokens(text.slice(i, i + CUT), PLAIN_TEXT);
  return sum;
}
