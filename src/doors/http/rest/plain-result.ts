/**
 * The result of a tool as plain JSON, without its MCP wrapping: the structured content, or else the content of the
 * blocks. A text that is valid JSON becomes that JSON.
 */
import { isOneString } from '../../../protocol/bracket-scan.ts';
import { ASKS } from '../../../protocol/bridge.ts';
import {
  decodeString,
  findMember,
  longValueEnd,
  readElements,
  readMembers,
  type Span,
  skipSpace,
  skipString,
} from '../../../protocol/json.ts';
import { join, type Parts } from '../../../protocol/parts.ts';

export interface BareResult {
  readonly isError: boolean;
  /** JSON. */
  readonly value: Parts;
}

const NULL = Buffer.from('null');
const TRUE = 0x74;
const QUOTE = 0x22;
const OPEN = 0x7b;
const CLOSE = 0x7d;

/** The bytes that JSON can start with, and the backslash, because the first byte may be escaped. */
const CAN_START = new Uint8Array(256);
for (const byte of Buffer.from('{["-0123456789tfn\\')) CAN_START[byte] = 1;

/** `isWrapped` says that structured content is wrapped in an object. Throws a JsonError if the result is not JSON. */
export function bareResult(result: Parts, isWrapped: boolean): BareResult | typeof ASKS {
  const long = Buffer.isBuffer(result) ? null : longText(result);
  if (long !== null) return { isError: false, value: long };
  const bytes = join(result);
  const text = singleTextEnd(bytes);
  if (text > 0) return { isError: false, value: ofText(bytes, TEXT_HEAD.length - 1, text) };
  readParts(bytes);
  if (parts.asks) return ASKS;
  const { structured, content, isError } = parts;
  // Tools describe their errors in text. Structured content is for results.
  if (structured.start >= 0 && !isError)
    return { isError, value: isWrapped ? inner(bytes, structured) : slice(bytes, structured) };
  return { isError, value: content.start < 0 ? NULL : ofBlocks(bytes, content) };
}

const TEXT_HEAD = '{"content":[{"type":"text","text":"';
const TEXT_TAIL = '}]}';
const BLOCK_HEAD = '[{"type":"text","text":"';
const BLOCK_TAIL = '}]';
/** Longer strings are searched for their end instead of being read byte by byte. */
const LONG = 16_384;

/** Where the text ends in a result that is a single text, as nearly every server writes it; -1 for other results. */
function singleTextEnd(bytes: Buffer): number {
  return textEnd(bytes, 0, bytes.length, TEXT_HEAD, TEXT_TAIL);
}

/**
 * The text of a result that arrived in several parts, without joining them. Null for any other result, and for a text
 * that may be JSON.
 */
function longText(parts: readonly Buffer[]): readonly Buffer[] | null {
  const [first, ...more] = parts;
  const last = more.pop();
  if (first === undefined || last === undefined || last.length <= TEXT_TAIL.length) return null;
  if (!matchesAt(first, 0, TEXT_HEAD) || !matchesAt(last, last.length - TEXT_TAIL.length, TEXT_TAIL)) return null;
  const initial = first[skipSpace(first, TEXT_HEAD.length, first.length)];
  if (initial === undefined || CAN_START[initial] === 1) return null;
  const text = [first.subarray(TEXT_HEAD.length - 1), ...more, last.subarray(0, last.length - TEXT_TAIL.length)];
  return isOneString(text) ? text : null;
}

/**
 * The end of the string between a head and a tail; -1 if there is anything else between them. The head includes the
 * string's first quote.
 */
function textEnd(bytes: Buffer, start: number, end: number, head: string, tail: string): number {
  const last = end - tail.length;
  const first = start + head.length - 1;
  if (first >= last || !matchesAt(bytes, start, head) || !matchesAt(bytes, last, tail)) return -1;
  if (last - first > LONG) return isOneString([bytes.subarray(first, last)]) ? last : -1;
  return skipString(bytes, first, end) === last ? last : -1;
}

function matchesAt(bytes: Buffer, at: number, text: string): boolean {
  for (let i = 0; i < text.length; i++) if (bytes[at + i] !== text.charCodeAt(i)) return false;
  return true;
}

/** What `readParts` found. One object is reused, because each result is processed before the next is read. */
const parts = {
  structured: { start: -1, end: -1 },
  content: { start: -1, end: -1 },
  isError: false,
  asks: false,
};

function readParts(bytes: Buffer): void {
  const { length } = bytes;
  parts.structured.start = -1;
  parts.content.start = -1;
  parts.isError = false;
  parts.asks = false;
  let at = skipSpace(bytes, 1, length);
  while (bytes[at] !== CLOSE) {
    const keyEnd = skipString(bytes, at, length);
    const start = skipSpace(bytes, skipSpace(bytes, keyEnd, length) + 1, length);
    const end = longValueEnd(bytes, start);
    switch (decodeString(bytes, at, keyEnd)) {
      case 'structuredContent':
        setSpan(parts.structured, start, end);
        break;
      case 'content':
        setSpan(parts.content, start, end);
        break;
      case 'isError':
        parts.isError = bytes[start] === TRUE;
        break;
      case 'resultType':
        parts.asks = decodeString(bytes, start, end) === 'input_required';
        break;
      default:
    }
    const next = skipSpace(bytes, end, length);
    if (bytes[next] === CLOSE) break;
    at = skipSpace(bytes, next + 1, length);
  }
}

function setSpan(span: { start: number; end: number }, start: number, end: number): void {
  span.start = start;
  span.end = end;
}

/** The member that holds wrapped output. */
const WRAPPER = 'result';

function inner(bytes: Buffer, structured: Span): Buffer {
  const member = bytes[structured.start] === OPEN ? findMember(bytes, WRAPPER, structured.start, structured.end) : null;
  return slice(bytes, member ?? structured);
}

/** Null for no blocks, the content of a single block, or an array of the contents. */
function ofBlocks(bytes: Buffer, { start, end }: Span): Parts {
  const text = textEnd(bytes, start, end, BLOCK_HEAD, BLOCK_TAIL);
  if (text > 0) return ofText(bytes, start + BLOCK_HEAD.length - 1, text);
  const elements = readElements(bytes, start, end) ?? [];
  if (elements.length === 0) return NULL;
  if (elements.length === 1) return ofBlock(bytes.subarray(elements[0]!.start, elements[0]!.end));
  const parts: Buffer[] = [];
  for (const element of elements) {
    parts.push(parts.length === 0 ? LIST : COMMA);
    const value = ofBlock(bytes.subarray(element.start, element.end));
    if (Buffer.isBuffer(value)) parts.push(value);
    else parts.push(...value);
  }
  return [...parts, LIST_END];
}

const LIST = Buffer.from('[');
const COMMA = Buffer.from(',');
const LIST_END = Buffer.from(']');

function ofBlock(block: Buffer): Parts {
  const members = readMembers(block) ?? [];
  const text = (key: string) => members.find((one) => one.key === key && block[one.start] === QUOTE) ?? null;
  const type = text('type');
  switch (type === null ? '' : block.toString('latin1', type.start + 1, type.end - 1)) {
    case 'text': {
      const content = text('text');
      return content === null ? block : ofText(block, content.start, content.end);
    }
    case 'image':
    case 'audio': {
      const data = text('data');
      const mime = text('mimeType');
      return data === null || mime === null ? block : dataUrl(block, mime, data);
    }
    default:
      return block;
  }
}

function dataUrl(block: Buffer, mime: Span, data: Span): Parts {
  return [
    Buffer.from(`"data:${block.toString('latin1', mime.start + 1, mime.end - 1)};base64,`, 'latin1'),
    block.subarray(data.start + 1, data.end),
  ];
}

function ofText(bytes: Buffer, start: number, end: number): Buffer {
  const first = bytes[skipSpace(bytes, start + 1, end)]!;
  if (CAN_START[first] === 0) return bytes.subarray(start, end);
  const text = decodeString(bytes, start, end);
  return isJson(text) ? Buffer.from(text) : bytes.subarray(start, end);
}

function isJson(text: string): boolean {
  // A lone surrogate has no UTF-8 form and would be altered.
  if (/\p{Surrogate}/u.test(text)) return false;
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

function slice(bytes: Buffer, { start, end }: Span): Buffer {
  return bytes.subarray(start, end);
}
