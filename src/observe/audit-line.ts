/**
 * Prints the lines of the audit. A line is one flat object whose members are always in the same order. The parts that
 * stay the same for an item or a caller are printed once and reused.
 */
import { randomBytes } from 'node:crypto';
import { argumentsSpan } from '../calls/arguments.ts';
import type { RecordedCall, RecordedCaller } from '../calls/observers.ts';
import { BUILT_IN, type Entry } from '../catalog/entry.ts';
import type { Kind } from '../catalog/item.ts';
import { decodeString, findMember } from '../protocol/json.ts';
import type { Message } from '../protocol/message.ts';
import { READ_DIRECTORY } from '../protocol/meta.ts';
import { join, type Parts, sizeOf } from '../protocol/parts.ts';

/** The maximum length of a name, in characters. Clients and servers choose names freely. */
const NAME = 256;
/** The maximum length of a numeric request id, in bytes. A longer one is printed as a shortened string. */
const ID = 64;
/** Characters read beyond the limit, so that a secret at the end of the piece is complete and can be recognized. */
const MARGIN = 2_048;

/** Returns the text without secrets. */
export type Redact = (text: string) => string;

/** The ids of records. They are numbered across all logs of one run of the gateway. */
export class RecordIds {
  /** Identifies this run of the gateway. */
  readonly boot = randomBytes(6).toString('hex');
  #last = 0;

  /** The number of the next record. */
  next(): number {
    return ++this.#last;
  }
}

/** A text as JSON, shortened and without secrets. */
export function printText(text: string, redact: Redact, most = NAME): string {
  return printPiece(text.slice(0, most + MARGIN), text.length <= most + MARGIN, most, redact);
}

/**
 * Prints the beginning of a text. If the piece is not the whole text, it may end in the middle of a secret, which would
 * not be recognized. So its last `MARGIN` characters are not printed.
 */
function printPiece(piece: string, isWhole: boolean, most: number, redact: Redact): string {
  const clean = redact(piece);
  const end = Math.max(0, Math.min(most, isWhole ? clean.length : clean.length - MARGIN));
  return escapeOthers(JSON.stringify(clean.length > end ? `${clean.slice(0, end)}…` : clean));
}

/**
 * Escapes everything but ASCII. No character can then control a terminal or change the writing direction, and a line
 * has as many bytes as characters.
 */
function escapeOthers(json: string): string {
  return json.replace(/[^ -~]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

export function printCaller({ agent, principal, door, revision }: RecordedCaller, redact: Redact): string {
  const text = (key: string, value: string | null) => (value === null ? '' : `,"${key}":${printText(value, redact)}`);
  return (
    text('agent', agent) +
    text('principal', principal === agent ? null : principal) +
    text('door', door) +
    text('protocol', revision)
  );
}

export function printEntry({ sourceKey, namespace, item, name }: Entry, redact: Redact): string {
  return printItem(sourceKey, namespace, item.name, name, redact);
}

/** Whether the entry alone identifies what was called. For a template it does not: the URI is needed too. */
export function isEntryItself({ name, entry }: RecordedCall): boolean {
  return name === entry.upstreamName || entry.sourceId === BUILT_IN;
}

/** Prints a call to one of the many URIs that match a template. */
export function printFilled({ entry, name, message, nameStart, nameEnd }: RecordedCall, redact: Redact): string {
  const upstream = JSON.parse(Buffer.from(name, 'latin1').toString()) as string;
  const asked = decodeString(message.bytes, nameStart, nameEnd);
  return printItem(entry.sourceKey, entry.namespace, upstream, asked, redact);
}

function printItem(server: string, namespace: string, tool: string, name: string, redact: Redact): string {
  const text = (value: string) => printText(value, redact);
  return `,"server":${text(server)},"namespace":${text(namespace)},"tool":${text(tool)},"name":${text(name)}`;
}

/** The client's request id, as it was written. */
export function printId({ bytes, idStart, idEnd }: Message, redact: Redact): string {
  if (idStart < 0) return 'null';
  const id = smallNumber(bytes, idStart, idEnd);
  if (id >= 0) return String(id);
  if (bytes[idStart] === 0x22) return printText(decodeString(bytes, idStart, idEnd), redact);
  const text = bytes.toString('latin1', idStart, idEnd);
  return text.length <= ID ? text : printText(text, redact);
}

/**
 * A number of up to nine digits; -1 for anything else. Parsed by hand, because nearly all ids are such numbers and
 * creating a string for each one is slow.
 */
export function smallNumber(bytes: Buffer, start: number, end: number): number {
  if (end - start > 9 || (bytes[start] === 0x30 && end - start > 1)) return -1;
  let value = 0;
  for (let at = start; at < end; at++) {
    const digit = bytes[at]! - 0x30;
    if (digit < 0 || digit > 9) return -1;
    value = value * 10 + digit;
  }
  return value;
}

/** Milliseconds with three decimals. Built from integers, which are several times faster to print. */
export function printMs(ms: number): string {
  const all = Math.round(ms * 1_000);
  const rest = all % 1_000;
  return `${(all - rest) / 1_000}.${rest < 10 ? '00' : rest < 100 ? '0' : ''}${rest}`;
}

/** The name or URI that a request asked for, if it can be read. */
export function printAsked(message: Message, redact: Redact): string {
  const name = askedName(message);
  return name === null ? '' : `,"tool":${printText(name, redact)}`;
}

/** Null if the request does not name anything. */
export function askedName(message: Message): string | null {
  const span = askedSpan(message);
  if (span === null || message.bytes[span.start] !== 0x22) return null;
  return decodeString(message.bytes, span.start, span.end);
}

/** The kinds of items that a request of this method may name. */
export function kindsOf(method: string): readonly Kind[] {
  if (method === 'tools/call' || method === 'tools/list') return ['tool'];
  if (method === 'prompts/get') return ['prompt'];
  return method === 'completion/complete' ? ['prompt', 'resource', 'template'] : ['resource', 'template'];
}

function askedSpan({ bytes, method, nameStart, nameEnd, uriStart, uriEnd, paramsStart, paramsEnd }: Message) {
  if (method === 'completion/complete') {
    const ref = paramsStart < 0 ? null : findMember(bytes, 'ref', paramsStart, paramsEnd);
    if (ref === null) return null;
    return findMember(bytes, 'name', ref.start, ref.end) ?? findMember(bytes, 'uri', ref.start, ref.end);
  }
  const [start, end] =
    method === 'resources/read' || method === READ_DIRECTORY ? [uriStart, uriEnd] : [nameStart, nameEnd];
  return start < 0 ? null : { start, end };
}

/** The tool with which the call was made, if it was not the tool itself. */
export function printThrough({ through }: RecordedCall): string {
  return through === null ? '' : `,"through":"${through}"`;
}

/** The line that was written before the call was sent, if there is one. */
export function printBegun({ begun }: RecordedCall): string {
  return begun === null ? '' : `,"begun":"${begun}"`;
}

export function printArguments(message: Message, most: number, redact: Redact): string {
  const span = argumentsSpan(message);
  return span === null ? '' : `,"arguments":${printValue(message.bytes.subarray(span.start, span.end), most, redact)}`;
}

export function printResult(result: Parts, most: number, redact: Redact): string {
  return `,"result":${printValue(sizeOf(result) > most + MARGIN ? firstOf(result, most + MARGIN) : join(result), most, redact)}`;
}

/** The beginning of a text, without secrets, for people to read. */
export function shownText(bytes: Buffer, most: number, redact: Redact): string {
  return JSON.parse(printValue(bytes, most, redact)) as string;
}

/** Prints JSON as a string: cut JSON is no longer valid JSON, but the line has to be. */
function printValue(bytes: Buffer, most: number, redact: Redact): string {
  const end = Math.min(bytes.length, most + MARGIN);
  return printPiece(bytes.toString('utf8', 0, end), end === bytes.length, most, redact);
}

function firstOf(bytes: Parts, most: number): Buffer {
  if (Buffer.isBuffer(bytes)) return bytes.subarray(0, most + 1);
  const first: Buffer[] = [];
  let size = 0;
  for (const part of bytes) {
    if (size > most) break;
    first.push(part);
    size += part.length;
  }
  return Buffer.concat(first);
}

/** The code in a server's error object. */
export function printErrorCode(error: Buffer): string {
  const code = findMember(error, 'code');
  const text = code === null ? '' : error.toString('latin1', code.start, code.end);
  return /^-?\d{1,10}$/.test(text) ? `,"error":${text}` : '';
}
