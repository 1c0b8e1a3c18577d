/**
 * Cuts results that are longer than `max_result` allows, and adds a note that says so and names the resource with the
 * rest. Only these results are parsed. Results within the limit are passed on as the bytes they arrived in.
 */
import { GatewayError } from '../../base/errors.ts';
import { isObject } from '../../base/objects.ts';
import type { Entry } from '../../catalog/entry.ts';
import { findMember, toBytes } from '../../protocol/json.ts';
import { join, type Parts } from '../../protocol/parts.ts';
import type { SpilledText } from './spill-store.ts';
import { jsonPrefix } from './text.ts';

interface Block {
  readonly type?: unknown;
  readonly uri?: unknown;
  readonly text?: unknown;
}

interface Result {
  readonly content?: unknown;
  readonly contents?: unknown;
  readonly isError?: unknown;
  readonly resultType?: unknown;
  readonly [key: string]: unknown;
}

/** Stores a result that is cut and returns the URI of its beginning; null if it is too large to store. */
export type Keep = (kept: SpilledText) => string | null;

/** Members that carry no content, so leaving them out loses nothing. */
const WITHOUT_CONTENT: ReadonlySet<string> = new Set(['isError', '_meta', 'resultType', 'ttlMs', 'cacheScope']);

/** The result cut to the limit, in the legacy format; null if it is not a final result. */
export function cutResult(method: string, entry: Entry, parts: Parts, limit: number, keep: Keep): Buffer | null {
  const bytes = join(parts);
  const result = parse(bytes);
  if (result === null)
    throw new GatewayError('source_broken', `Server "${entry.sourceKey}" answered with invalid JSON. Try again later.`);
  // This is an MCP task or a question. The result to limit comes later.
  if (typeof result.resultType === 'string' && result.resultType !== 'complete') return null;
  switch (method) {
    case 'tools/call':
      return cutToolResult(result, bytes, entry, limit, keep);
    case 'resources/read':
      return cutContents(result, bytes, limit, keep);
    default:
      throw new GatewayError(
        'too_large',
        `The result of ${method} for "${entry.name}" has ${bytes.length} bytes, more than the ${limit} that "max_result" allows, and cannot be cut.`,
      );
  }
}

function parse(bytes: Buffer): Result | null {
  try {
    const value: unknown = JSON.parse(bytes.toString());
    return isObject(value) ? value : null;
  } catch {
    return null;
  }
}

function cutToolResult(result: Result, bytes: Buffer, { item }: Entry, limit: number, keep: Keep): Buffer {
  const blocks = blocksOf(result.content);
  const isText =
    blocks.every(isTextBlock) && Object.keys(result).every((key) => key === 'content' || WITHOUT_CONTENT.has(key));
  // Clients validate the structured content of a tool that has an output schema, and a cut result cannot provide any.
  const lacksStructured = result.isError !== true && findMember(item.bytes, 'outputSchema') !== null;
  const shown = firstTexts(blocks.filter(isTextBlock).map(toPlain), limit);
  const kept = keepRest(bytes, isText ? blocks.map(({ text }) => text as string) : null, shown, limit, keep);
  const content: object[] = shown.texts.map((text) => ({ type: 'text', text }));
  if (kept !== null)
    content.push({ type: 'text', text: lacksStructured ? `${kept.note}\n${LACKS_STRUCTURED}` : kept.note });
  if (kept !== null && kept.uri !== null) {
    const { uri, mimeType, size } = kept;
    content.push({ type: 'resource_link', uri, name: 'The rest of this result', mimeType, size });
  }
  const isError = result.isError === true || (lacksStructured && kept !== null);
  return toBytes({ content, ...(isError && { isError }) });
}

const LACKS_STRUCTURED =
  '[It is marked as an error only because the structured content that the tool promises is missing.]';

function cutContents(result: Result, bytes: Buffer, limit: number, keep: Keep): Buffer {
  const blocks = blocksOf(result.contents);
  const isText =
    blocks.every(hasText) && Object.keys(result).every((key) => key === 'contents' || WITHOUT_CONTENT.has(key));
  const texts = blocks.filter(hasText);
  const shown = firstTexts(texts, limit);
  const kept = keepRest(bytes, isText ? blocks.map(({ text }) => text as string) : null, shown, limit, keep);
  const contents: object[] = shown.texts.map((text, i) => ({ ...texts[i], text }));
  const uri = kept?.uri ?? blocks[0]?.uri ?? '';
  if (kept !== null) contents.push({ uri, mimeType: 'text/plain', text: kept.note });
  return toBytes({ contents });
}

/** Anything that is not an object counts as a block without text. */
function blocksOf(value: unknown): readonly Block[] {
  if (value === undefined) return [];
  return (Array.isArray(value) ? value : [value]).map((one) => (typeof one === 'object' && one !== null ? one : {}));
}

function hasText({ text }: Block): boolean {
  return typeof text === 'string';
}

function isTextBlock(block: Block): boolean {
  return block.type === 'text' && hasText(block);
}

interface Shown {
  readonly texts: readonly string[];
  /** The size of the texts in bytes, including the separators between them. */
  readonly bytes: number;
}

/** As many texts as fit with the JSON around them. The last one may be cut. */
function firstTexts(blocks: readonly Block[], limit: number): Shown {
  const texts: string[] = [];
  let left = limit - FRAME;
  for (const block of blocks) {
    left -= jsonSize({ ...block, text: '' }) + 1;
    if (left <= 0) break;
    const first = jsonPrefix(block.text as string, left);
    if (first === '' && block.text !== '') break;
    texts.push(first);
    left -= jsonSize(first) - 2;
    if (first !== block.text) break;
  }
  return { texts, bytes: Buffer.byteLength(texts.join(BETWEEN)) };
}

const BETWEEN = '\n';
/** The size of `{"contents":[]}`, minus one for the comma that the last block does not have. */
const FRAME = 14;

function jsonSize(value: unknown): number {
  return Buffer.byteLength(JSON.stringify(value));
}

/** A text block without its annotations and other members. */
function toPlain({ text }: Block): Block {
  return { type: 'text', text };
}

interface Rest {
  readonly note: string;
  readonly uri: string | null;
  readonly mimeType: string;
  readonly size: number;
}

/**
 * Stores what is not shown. `texts` is the complete content, or null if the result holds more than text: then the whole
 * result is stored as it arrived. Returns null if every text is shown in full, because only members without content
 * made the result too long.
 */
function keepRest(
  bytes: Buffer,
  texts: readonly string[] | null,
  shown: Shown,
  limit: number,
  keep: Keep,
): Rest | null {
  const text = texts === null ? bytes : Buffer.from(texts.join(BETWEEN));
  if (texts !== null && shown.bytes === text.length) return null;
  const mimeType = texts === null ? 'application/json' : 'text/plain';
  // Copy the bytes: they may be a slice of a larger buffer, which would stay in memory with them.
  const stored = keep({ text: texts === null ? Buffer.from(bytes) : text, mimeType, piece: limit });
  const from = texts === null ? 0 : shown.bytes;
  const uri = stored === null ? null : from === 0 ? stored : `${stored}?from=${from}`;
  return { note: noteOf(text.length, shown.bytes, uri, texts === null), uri, mimeType, size: text.length - from };
}

function noteOf(total: number, shown: number, uri: string | null, isJson: boolean): string {
  const head = `[Toolgate cut this result, which is longer than "max_result" allows: ${shown} of ${total} bytes are shown.`;
  if (uri === null) return `${head} It is too long to be stored. Ask for less.]`;
  const what = isJson ? 'The complete result, as JSON, begins' : 'The rest begins';
  return `${head} ${what} at the resource ${uri}, which you can read for ten minutes; or ask for less.]`;
}
