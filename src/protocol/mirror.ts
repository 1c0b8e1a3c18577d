/**
 * HTTP headers that repeat parts of a modern request, so that what stands between client and server can route by them:
 * `Mcp-Method`, `Mcp-Name`, and `Mcp-Param-*` for the arguments that a tool marks in its schema with `x-mcp-header`.
 */
import { GatewayError } from '../errors.ts';
import { decodeString } from './json.ts';
import type { Message } from './message.ts';

/** An argument that travels in a header too. */
export interface MirroredArgument {
  /** In lower case, with the prefix. */
  readonly header: string;
  readonly path: readonly string[];
  readonly integer: boolean;
}

export const MARK = 'x-mcp-header';

const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
const TYPES = ['string', 'integer', 'boolean'];

type Json = Record<string, unknown>;

function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The marked arguments of an input schema, or why the marks are not valid. */
export function findMirrored(schema: unknown): readonly MirroredArgument[] | string {
  const found: MirroredArgument[] = [];
  const problem = visit(schema, [], found);
  if (problem !== null) return problem;
  // A mark that is reached in no other way than by its name stands where no header can be made from it.
  return countMarks(schema) === found.length
    ? found
    : `"${MARK}" stands below something other than nested "properties"`;
}

function visit(schema: unknown, path: readonly string[], found: MirroredArgument[]): string | null {
  if (!isObject(schema)) return null;
  const where = path.join('.');
  if (path.length > 0 && MARK in schema) {
    const mark = schema[MARK];
    if (typeof mark !== 'string' || !TOKEN.test(mark)) return `"${MARK}" of ${where} is no name for a header`;
    if (!TYPES.includes(String(schema.type)))
      return `"${MARK}" of ${where} stands at a type other than ${TYPES.join(', ')}`;
    const header = `mcp-param-${mark.toLowerCase()}`;
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

/** Where a schema holds values instead of schemas, the word means nothing. */
const VALUES = new Set(['default', 'examples', 'enum', 'const']);

function countMarks(schema: unknown, named = false): number {
  if (Array.isArray(schema)) return schema.reduce<number>((sum, part) => sum + countMarks(part), 0);
  if (!isObject(schema)) return 0;
  let count = 0;
  for (const [key, value] of Object.entries(schema)) {
    // Below `properties` and the like keys are names that the author chose.
    if (named) count += countMarks(value);
    else if (key === MARK) count++;
    else if (!VALUES.has(key)) count += countMarks(value, MAPS.has(key));
  }
  return count;
}

const MAPS = new Set(['properties', 'patternProperties', 'dependentSchemas', '$defs', 'definitions']);

/** The arguments of a `tools/call` that travel in headers, each with its value; those without one are left out. */
function mirroredValues(message: Message, mirrored: readonly MirroredArgument[]): [MirroredArgument, unknown][] {
  const { bytes, argumentsStart, argumentsEnd } = message;
  if (argumentsStart < 0) return [];
  const root: unknown = JSON.parse(bytes.toString('utf8', argumentsStart, argumentsEnd));
  return mirrored.flatMap((argument) => {
    let value: unknown = root;
    for (const key of argument.path) value = isObject(value) && Object.hasOwn(value, key) ? value[key] : undefined;
    return value === undefined || value === null ? [] : [[argument, value] as [MirroredArgument, unknown]];
  });
}

/** Null for what has no place in a header: checking its type is the server's business. */
function headerText(value: unknown): string | null {
  if (typeof value === 'string') return value;
  if (typeof value === 'boolean') return String(value);
  return typeof value === 'number' && (!Number.isInteger(value) || Number.isSafeInteger(value)) ? String(value) : null;
}

const PREFIX = '=?base64?';
const SUFFIX = '?=';
const PLAIN = /^[\x20-\x7e\t]+$/;
const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;

function isEncoded(text: string): boolean {
  return text.startsWith(PREFIX) && text.endsWith(SUFFIX) && text.length >= PREFIX.length + SUFFIX.length;
}

export function encodeHeader(text: string): string {
  if (PLAIN.test(text) && text.trim() === text && !isEncoded(text)) return text;
  return `${PREFIX}${Buffer.from(text).toString('base64')}${SUFFIX}`;
}

/** Null where the encoding is broken. */
export function decodeHeader(text: string): string | null {
  if (!isEncoded(text)) return text;
  const encoded = text.slice(PREFIX.length, -SUFFIX.length);
  if (!BASE64.test(encoded)) return null;
  const bytes = Buffer.from(encoded, 'base64');
  const decoded = bytes.toString();
  return Buffer.from(decoded).equals(bytes) ? decoded : null;
}

const NAMED = new Set(['tools/call', 'resources/read', 'prompts/get']);

/** The headers of a request for what its server calls `name` (as JSON, one character a byte): names and values in turn. */
export function mirrorHeaders(
  message: Message,
  name: string,
  mirrored: readonly MirroredArgument[] | null,
): readonly string[] {
  const headers = ['mcp-method', message.method];
  if (NAMED.has(message.method)) {
    const bytes = Buffer.from(name, 'latin1');
    headers.push('mcp-name', encodeHeader(decodeString(bytes, 0, bytes.length)));
  }
  if (mirrored === null) return headers;
  for (const [{ header }, value] of mirroredValues(message, mirrored)) {
    const text = headerText(value);
    if (text !== null) headers.push(header, encodeHeader(text));
  }
  return headers;
}

export type Headers = Readonly<Record<string, string | string[] | undefined>>;

/** Throws unless the headers say what the body says: nothing may be routed by a header that the body contradicts. */
export function checkMethodHeader(headers: Headers, method: string): void {
  const header = headers['mcp-method'];
  if (header === method) return;
  throw mismatch(
    header === undefined ? 'the header Mcp-Method is missing' : `Mcp-Method does not name the method "${method}"`,
  );
}

/** `start` and `end` are where the name or URI stands in the body. */
export function checkNameHeader(headers: Headers, { bytes }: Message, start: number, end: number): void {
  if (start < 0 || bytes[start] !== 0x22) return;
  const header = headers['mcp-name'];
  if (typeof header !== 'string') throw mismatch('the header Mcp-Name is missing');
  const name = decodeString(bytes, start, end);
  if (header === name && !header.startsWith(PREFIX)) return;
  const decoded = decodeHeader(header);
  if (decoded === null) throw mismatch('Mcp-Name is not valid Base64');
  if (decoded !== name) throw mismatch('Mcp-Name names something else than the body');
}

export function checkParamHeaders(headers: Headers, message: Message, mirrored: readonly MirroredArgument[]): void {
  for (const [{ header, path, integer }, value] of mirroredValues(message, mirrored)) {
    const text = headerText(value);
    if (text === null) continue;
    const given = headers[header];
    if (typeof given !== 'string')
      throw mismatch(`the header ${header} is missing for the argument "${path.join('.')}"`);
    const decoded = decodeHeader(given);
    if (decoded === null) throw mismatch(`${header} is not valid Base64`);
    const same = decoded === text || (integer && typeof value === 'number' && isEqualNumber(decoded, value));
    if (!same) throw mismatch(`${header} is not the value of the argument "${path.join('.')}"`);
  }
}

function isEqualNumber(text: string, value: number): boolean {
  return /^-?\d+(\.\d+)?$/.test(text) && Number(text) === value;
}

export function mismatch(what: string): GatewayError {
  return new GatewayError('header_mismatch', `Headers and body of the request do not agree: ${what}.`);
}
