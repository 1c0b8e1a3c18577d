/**
 * Counts tokens with a real tokenizer, for reports: `list --tokens`, `doctor` and `/metrics`. The tokenizer takes 0.2 s to
 * load and 100 MB, so it is a process that ends with its work. What has to be quick uses the estimate of tokens.ts.
 */
import { BoundedMap } from '../base/bounded-map.ts';
import { GatewayError } from '../base/errors.ts';
import { sha256 } from '../base/hash.ts';
import { ownFile } from '../base/own-files.ts';
import { startProcess } from '../base/start-process.ts';
import { definitionOf, type Entry } from '../catalog/entry.ts';
import { tokensOf } from '../catalog/tokens.ts';

/** The tokenizer of current models of OpenAI. Others differ, but hardly in what costs more than what. */
export const TOKENIZER = 'o200k_base';

export interface TokenMeter {
  /** The definition of an item, as it is in a list. Only items that were given to `meterTokens` are counted. */
  of(entry: Entry): number;
  ofAll(entries: Iterable<Entry>): number;
}

const known = new WeakMap<Entry, number>();
/** By the hash of the definition: a changed catalog has new entries, and most of their definitions are the same. */
const counted = new BoundedMap<string, number>(20_000);

const METER: TokenMeter = {
  of: (entry) => known.get(entry) ?? tokensOf(entry),
  ofAll(entries) {
    let sum = 0;
    for (const entry of entries) sum += METER.of(entry);
    return sum;
  },
};

/** Counts the definitions of these items. Each is counted once, however often it is asked for. */
export async function meterTokens(entries: Iterable<Entry>): Promise<TokenMeter> {
  await lastCount.catch(() => undefined);
  await countUnknown(entries);
  return METER;
}

/** The same without waiting: what has not been counted yet is an estimate, and is counted soon. */
export function meterTokensSoon(entries: readonly Entry[]): TokenMeter {
  if (isCounting || entries.every((entry) => known.has(entry))) return METER;
  isCounting = true;
  lastCount = countUnknown(entries)
    .catch(() => undefined)
    .finally(() => {
      isCounting = false;
    });
  return METER;
}

let isCounting = false;
let lastCount: Promise<unknown> = Promise.resolve();

async function countUnknown(entries: Iterable<Entry>): Promise<void> {
  const wanted = [...new Set(entries)].filter((entry) => !known.has(entry));
  const rest: { entry: Entry; text: string; hash: string }[] = [];
  for (const entry of wanted) {
    const text = definitionOf(entry, 'legacy').toString();
    const hash = sha256(text, 'base64');
    const count = counted.get(hash);
    if (count === undefined) rest.push({ entry, text, hash });
    else known.set(entry, count);
  }
  if (rest.length === 0) return;
  const counts = await countTexts(rest.map(({ text }) => text));
  for (const [i, { entry, hash }] of rest.entries()) {
    known.set(entry, counts[i]!);
    counted.set(hash, counts[i]!);
  }
}

/** How many tokens each text has. */
async function countTexts(texts: readonly string[]): Promise<number[]> {
  const { text } = await import('node:stream/consumers');
  const program = startProcess(process.execPath, [ownFile('dist/tokenizer.js')], {
    stdio: ['pipe', 'pipe', 'ignore'],
    env: {},
  });
  const failed = new Promise<never>((_, reject) => {
    program.once('error', reject);
    program.stdin!.once('error', reject);
  });
  program.stdin!.end(JSON.stringify(texts));
  const answer = await Promise.race([text(program.stdout!), failed]);
  if (answer === '') throw new GatewayError('internal', 'The tokens could not be counted: the tokenizer failed.');
  return JSON.parse(answer) as number[];
}
