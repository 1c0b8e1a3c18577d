/**
 * About how many tokens definitions cost a model: one for every four characters of their JSON. Models count
 * differently, so this is an estimate, for what has to be quick. token-meter.ts counts.
 */
import { isAscii } from 'node:buffer';
import { memo } from '../base/memo.ts';
import { definitionOf, type Entry } from './entry.ts';

const CHARACTERS = 4;

/** What the definition of an item costs in a list. */
export const tokensOf = memo((entry: Entry): number => {
  const definition = definitionOf(entry, 'legacy');
  const characters = isAscii(definition) ? definition.length : definition.toString().length;
  return Math.ceil(characters / CHARACTERS);
});

/** What the definitions of these items cost together. */
export function tokensOfAll(entries: Iterable<Entry>): number {
  let sum = 0;
  for (const entry of entries) sum += tokensOf(entry);
  return sum;
}

/** About how many tokens a result of this size has. */
export function tokensOfBytes(bytes: number): number {
  return Math.ceil(bytes / CHARACTERS);
}

/** `1,900 tokens`, with two digits that count, because it is an estimate. */
export function tokensText(tokens: number): string {
  const unit = 10 ** Math.max(0, Math.trunc(tokens).toString().length - 2);
  const rounded = Math.round(tokens / unit) * unit;
  // `toLocaleString` loads the data of all languages: 15 ms and 7 MB of every start, because the log names the size of a list.
  return `${String(rounded).replace(/\B(?=(?:\d{3})+$)/g, ',')} ${rounded === 1 ? 'token' : 'tokens'}`;
}

/** `1,912 tokens`, of a number that was counted. */
export function countedTokensText(tokens: number): string {
  return `${tokens.toLocaleString('en-US')} ${tokens === 1 ? 'token' : 'tokens'}`;
}
