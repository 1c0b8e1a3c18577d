/**
 * HTTP headers that repeat parts of a modern request, so that proxies can route by them: `Mcp-Method`, `Mcp-Name`, and
 * `Mcp-Param-*` for the arguments that a tool marks in its schema with `x-mcp-header`.
 */
import { BoundedMap } from '../base/bounded-map.ts';
import { GatewayError } from '../base/errors.ts';
import { getOrMake } from '../base/memo.ts';
import { isObject } from '../base/objects.ts';
import { schemaChildren } from '../base/schema-children.ts';
import { decodeString, isAt, readMembers, type Span } from './json.ts';
import type { Message } from './message.ts';

/** An argument that is also sent in a header. */
export interface MirroredArgument {
  /** In lower case, with the prefix. */
  readonly header: string;
  readonly path: readonly string[];
  readonly integer: boolean;
}

export const MARK = 'x-mcp-header';

const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
const PARAM = 'mcp-param-';

/** Whether a header, in lower case, repeats an argument of a tool. */
export function isParamHeader(name: string): boolean {
  return name.startsWith(PARAM) && TOKEN.test(name.slice(PARAM.length));
}

const TYPES = ['string', 'integer', 'boolean'];

/** The marked arguments of an input schema, or why the marks are not valid. */
export function findMirrored(schema: unknown): readonly MirroredArgument[] | string {
  const found: MirroredArgument[] = [];
  const problem = visit(schema, [], found);
  if (problem !== null) return problem;
  // A mark that `visit` did not reach is in a place that no header can be made from.
  return countMarks(schema) === found.length ? found : `"${MARK}" is below something other than nested "properties"`;
}

function visit(schema: unknown, path: readonly string[], found: MirroredArgument[]): string | null {
  if (!isObject(schema)) return null;
  const where = path.join('.');
  if (path.length > 0 && MARK in schema) {
    const mark = schema[MARK];
    if (typeof mark !== 'string' || !TOKEN.test(mark)) return `"${MARK}" of ${where} is not a valid header name`;
    if (typeof schema.type !== 'string' || !TYPES.includes(schema.type))
      return `"${MARK}" of ${where} is on a type other than ${TYPES.join(', ')}`;
    const header = PARAM + mark.toLowerCase();
    if (found.some((other) => other.header === header)) return `"${MARK}" is "${mark}" twice`;
    found.push({ header, path, integer: schema.type === 'integer' });
  }
  if (!isObject(schema.properties)) return null;
  for (const [key, property] of Object.entries(schema.properties)) {
    const problem = visit(property, [...path, key], found);
    if (problem !== null) return problem;
  }
  return null;
}

/** How many marks there are anywhere in the schema. */
function countMarks(schema: unknown): number {
  if (!isObject(schema)) return 0;
  const own = Object.hasOwn(schema, MARK) ? 1 : 0;
  return schemaChildren(schema).reduce<number>((sum, child) => sum + countMarks(child), own);
}

/** For an argument that is given twice: some parsers take the first, others the last. */
const TWICE = Symbol('twice');

/** An argument of a `tools/call`; null if it is absent, an object or an array, which no header can hold. */
function argumentAt({ bytes, argumentsStart, argumentsEnd }: Message, path: readonly string[]): unknown {
  let at: Span = { start: argumentsStart, end: argumentsEnd };
  if (argumentsStart < 0) return null;
  for (const key of path) {
    const [found, ...more] = readMembers(bytes, at.start, at.end)?.filter((member) => member.key === key) ?? [];
    if (more.length > 0) return TWICE;
    if (found === undefined) return null;
    at = found;
  }
  const first = bytes[at.start];
  if (first === 0x22) return decodeString(bytes, at.start, at.end);
  return first === 0x7b || first === 0x5b ? null : JSON.parse(bytes.toString('latin1', at.start, at.end));
}

/** Null for what no header can hold. Checking types is up to the server. */
function headerText(value: unknown): string | null {
  if (typeof value === 'string') return value;
  if (typeof value === 'boolean') return String(value);
  return typeof value === 'number' && (!Number.isInteger(value) || Number.isSafeInteger(value)) ? String(value) : null;
}

const PREFIX = '=?base64?';
const SUFFIX = '?=';
const PLAIN = /^[\x20-\x7e\t]*$/;
const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;

function isEncoded(text: string): boolean {
  return text.startsWith(PREFIX) && text.endsWith(SUFFIX) && text.length >= PREFIX.length + SUFFIX.length;
}

export function encodeHeader(text: string): string {
  if (text !== '' && PLAIN.test(text) && text.trim() === text && !isEncoded(text)) return text;
  return `${PREFIX}${Buffer.from(text).toString('base64')}${SUFFIX}`;
}

/** Null if the encoding is broken, or if the text needs an encoding and has none. */
export function decodeHeader(text: string): string | null {
  if (!isEncoded(text)) return PLAIN.test(text) ? text : null;
  const encoded = text.slice(PREFIX.length, -SUFFIX.length);
  if (!BASE64.test(encoded)) return null;
  const bytes = Buffer.from(encoded, 'base64');
  const decoded = bytes.toString();
  return Buffer.from(decoded).equals(bytes) ? decoded : null;
}

/** The same few names are called over and over, so each is encoded once. */
const nameHeaders = new BoundedMap<string, string>(1_000);

function nameHeader(name: string): string {
  return getOrMake(nameHeaders, name, encodeName);
}

function encodeName(name: string): string {
  const bytes = Buffer.from(name, 'latin1');
  return encodeHeader(decodeString(bytes, 0, bytes.length));
}

const NAMED = new Set(['tools/call', 'resources/read', 'prompts/get']);

/** The headers of a request: names and values alternate. `name` is the server's own, as latin1 JSON. */
export function mirrorHeaders(
  message: Message,
  name: string,
  mirrored: readonly MirroredArgument[] | null,
): readonly string[] {
  const headers = ['mcp-method', message.method];
  if (NAMED.has(message.method)) {
    headers.push('mcp-name', nameHeader(name));
  }
  if (mirrored === null) return headers;
  for (const { header, path } of mirrored) {
    const text = headerText(argumentAt(message, path));
    if (text !== null) headers.push(header, encodeHeader(text));
  }
  return headers;
}

export type Headers = Readonly<Record<string, string | string[] | undefined>>;

/** Throws unless the header agrees with the body. A proxy may have routed the request by the header. */
export function checkMethodHeader(headers: Headers, method: string): void {
  const header = headers['mcp-method'];
  if (header === method) return;
  throw mismatch(
    header === undefined ? 'the header Mcp-Method is missing' : `Mcp-Method does not name the method "${method}"`,
  );
}

/** `start` and `end` are those of the name or URI in the body. */
export function checkNameHeader(headers: Headers, { bytes }: Message, start: number, end: number): void {
  const header = headers['mcp-name'];
  if (typeof header !== 'string') throw mismatch('the header Mcp-Name is missing');
  if (isWrittenAlike(bytes, start, end, header)) return;
  const name = decodeHeader(header);
  if (name === null) throw mismatch('Mcp-Name is not validly encoded');
  const isSame = start >= 0 && bytes[start] === 0x22 && decodeString(bytes, start, end) === name;
  if (!isSame) throw mismatch('Mcp-Name and the body name different things');
}

const SAFE = /^[\w./:-]+$/;

/** The usual case, without a new string: the same plain characters in both. */
function isWrittenAlike(bytes: Buffer, start: number, end: number, header: string): boolean {
  if (start < 0 || bytes[start] !== 0x22 || end - start - 2 !== header.length) return false;
  return isAt(bytes, start + 1, header) && SAFE.test(header);
}

export function checkParamHeaders(headers: Headers, message: Message, mirrored: readonly MirroredArgument[]): void {
  for (const { header, path, integer } of mirrored) {
    const value = argumentAt(message, path);
    const argument = `the argument "${path.join('.')}"`;
    if (value === TWICE) throw mismatch(`${argument} is given twice`);
    const text = headerText(value);
    const given = headers[header];
    if (given === undefined && text === null) continue;
    if (typeof given !== 'string') throw mismatch(`the header ${header} is missing for ${argument}`);
    const decoded = decodeHeader(given);
    if (decoded === null) throw mismatch(`${header} is not validly encoded`);
    const same = decoded === text || (integer && typeof value === 'number' && isEqualNumber(decoded, value));
    if (!same) throw mismatch(`${header} is not the value of ${argument}`);
  }
}

function isEqualNumber(text: string, value: number): boolean {
  return /^-?\d+(\.\d+)?$/.test(text) && Number(text) === value;
}

export function mismatch(what: string): GatewayError {
  return new GatewayError('header_mismatch', `Headers and body of the request do not agree: ${what}.`);
}
