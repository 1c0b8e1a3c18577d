/**
 * Results and errors from one era as the other wants them. A result stays the bytes that the server sent: what an era
 * asks for is written in front, what it does not know is cut out.
 */
import { type ErrorCode, GatewayError } from '../base/errors.ts';
import { findClosingBracket } from './bracket-scan.ts';
import { WRAPPER } from './definition.ts';
import {
  decodeString,
  findMember,
  JsonError,
  type JsonMember,
  skipSpace,
  skipString,
  skipValue,
  splice,
} from './json.ts';
import { LONG } from './long-answer.ts';
import { SERVER_INFO } from './meta.ts';
import { join, type Parts, sizeOf } from './parts.ts';
import { errorObject, type Reply } from './rpc.ts';

/** Results that a modern client may keep say for how long and for whom. Earlier servers do not say: not at all. */
const KEEPABLE = new Set([
  'server/discover',
  'tools/list',
  'prompts/list',
  'resources/list',
  'resources/templates/list',
  'resources/read',
]);

const COMPLETE = '"resultType":"complete"';
const NOT_KEPT = `${COMPLETE},"ttlMs":0,"cacheScope":"private"`;
const CLOSE_BRACE = 0x7d;

// The same object every time, so it is printed once.
const signatures = new WeakMap<object, string>();

function signatureOf(identity: object): string {
  const known = signatures.get(identity) ?? `,"_meta":{"${SERVER_INFO}":${JSON.stringify(identity)}}`;
  signatures.set(identity, known);
  return known;
}

/** The answer with a result of the earlier revisions, for a modern client. One of our own, which has no `_meta`, is signed by who we are. */
export function modernReply(id: string, method: string, result: Parts, identity: object | null = null): Reply {
  const isOwn = identity !== null;
  const fields = (KEEPABLE.has(method) ? NOT_KEPT : COMPLETE) + (isOwn ? signatureOf(identity) : '');
  const parts = Buffer.isBuffer(result) ? [result] : result;
  if (!isOwn && sizeOf(result) > LONG && hasMember(parts[0]!)) return longReply(id, fields, parts);
  const whole = join(result);
  const bytes = isOwn || !mayHaveStrays(whole) ? whole : withoutStrays(whole);
  const at = skipSpace(bytes, 1, bytes.length);
  const head = `{"jsonrpc":"2.0","result":{${fields}${bytes[at] === CLOSE_BRACE ? '' : ','}`;
  return { head, body: bytes.subarray(at), tail: `,"id":${id}}` };
}

/** Whether the object that begins so has a member, and is not just long for its spaces. */
function hasMember(first: Buffer): boolean {
  return first[skipSpace(first, 1, first.length)] === 0x22;
}

/** What is long is not looked into: our fields come last, because what stands last counts. */
function longReply(id: string, fields: string, parts: readonly Buffer[]): Reply {
  const last = parts.at(-1)!;
  const body = [...parts.slice(0, -1), last.subarray(0, last.lastIndexOf(CLOSE_BRACE))];
  return { head: '{"jsonrpc":"2.0","result":', body, tail: `,${fields}},"id":${id}}` };
}

/** Whether one of our fields can stand in it, be it in escapes. */
function mayHaveStrays(result: Buffer): boolean {
  return STRAY.test(result.toString('latin1'));
}

const STRAY = /resultType|ttlMs|cacheScope|\\u/;

const MODERN_FIELDS = ['resultType', 'ttlMs', 'cacheScope'];

function isModernField({ key }: JsonMember): boolean {
  return MODERN_FIELDS.includes(key);
}

/** Members that earlier revisions give no meaning to are cut out where the modern one does: they would stand there twice. */
function withoutStrays(result: Buffer): Buffer {
  try {
    const members = readLongMembers(result);
    if (!members.some(isModernField)) return result;
    return writeObject(
      members.filter((member) => !isModernField(member)).map(({ keyStart, end }) => [result.subarray(keyStart, end)]),
    );
  } catch (error) {
    // What is wrong inside a long result is the caller's to find.
    if (!(error instanceof JsonError)) throw error;
    return result;
  }
}

/** Said of a result that is none yet: the server asks something first. */
export const ASKS = 'asks';

/**
 * A result for a client of the earlier revisions, or why there is none. `wraps` says
 * that the tool's output schema was wrapped for it.
 */
export function legacyResult(parts: Parts, wraps: boolean): Buffer | GatewayError | typeof ASKS {
  try {
    return withoutModernFields(join(parts), wraps);
  } catch (error) {
    // Long results are not looked into on their way here.
    if (!(error instanceof JsonError)) throw error;
    return new GatewayError('source_broken', `The server answered with invalid JSON: ${error.message}.`);
  }
}

function withoutModernFields(result: Buffer, wraps: boolean): Buffer | GatewayError | typeof ASKS {
  const members = readLongMembers(result);
  const kinds = members.filter(({ key }) => key === 'resultType').map((member) => textOf(result, member));
  if (kinds.includes('input_required')) return ASKS;
  const unknown = kinds.find((kind) => kind !== 'complete');
  if (unknown !== undefined)
    return new GatewayError(
      'source_broken',
      `The server answered with a "${unknown}", which this client does not know.`,
    );
  const kept = members.filter((member) => !isModernField(member));
  const isWrapped = ({ key, start }: JsonMember) => key === STRUCTURED && (wraps || result[start] !== 0x7b);
  if (kept.length === members.length && !kept.some(isWrapped)) return result;
  return writeObject(
    kept.map((member) =>
      isWrapped(member)
        ? [WRAP, result.subarray(member.start, member.end), CLOSE]
        : [result.subarray(member.keyStart, member.end)],
    ),
  );
}

function textOf(result: Buffer, { start, end }: JsonMember): string {
  return result[start] === 0x22 ? decodeString(result, start, end) : result.toString('utf8', start, end);
}

/** An object of members, each in the parts it is made of. */
export function writeObject(members: readonly (readonly Buffer[])[]): Buffer {
  return Buffer.concat([OPEN, ...members.flatMap((parts, index) => (index > 0 ? [COMMA, ...parts] : parts)), CLOSE]);
}

const STRUCTURED = 'structuredContent';
const WRAP = Buffer.from(`"${STRUCTURED}":{"${WRAPPER}":`);

const OPEN = Buffer.from('{');
const COMMA = Buffer.from(',');
const CLOSE = Buffer.from('}');

/** Values shorter than this are as fast read as stepped over. */
const SHORT = 512;

/** The members of the object that `bytes` are. What is inside them has been read before, or is taken on trust. */
export function readLongMembers(bytes: Buffer): JsonMember[] {
  const members: JsonMember[] = [];
  const { length } = bytes;
  let at = skipSpace(bytes, 1, length);
  while (bytes[at] !== CLOSE_BRACE) {
    const keyEnd = skipString(bytes, at, length);
    const start = skipSpace(bytes, skipSpace(bytes, keyEnd, length) + 1, length);
    const end = longValueEnd(bytes, start);
    members.push({ key: decodeString(bytes, at, keyEnd), keyStart: at, start, end });
    const next = skipSpace(bytes, end, length);
    if (bytes[next] === CLOSE_BRACE) break;
    at = skipSpace(bytes, next + 1, length);
  }
  return members;
}

/** Where the value at this place ends. What is inside of a long one is taken on trust. */
export function longValueEnd(bytes: Buffer, start: number): number {
  const { length } = bytes;
  return length - start > SHORT && isNested(bytes[start]!) ? nestedEnd(bytes, start) : skipValue(bytes, start, length);
}

function isNested(first: number): boolean {
  return first === 0x7b || first === 0x5b;
}

/** Looks at the near end first: all that follows is copied to be looked at, and must not be for each of many short values. */
function nestedEnd(bytes: Buffer, at: number): number {
  const near = findClosingBracket([bytes.subarray(at, at + SHORT)]);
  return at + (near >= 0 ? near : findClosingBracket([bytes.subarray(at)]));
}

/** Codes that the modern revision replaced, or keeps for itself: there they would mean something else. */
const RESOURCE_NOT_FOUND = -32_002;
const INVALID_PARAMS = -32_602;
const INTERNAL = -32_603;
const INVALID_REQUEST = -32_600;

/** An error of a server of the earlier revisions, for a modern client; `other` is the code for what has none there. */
export function modernError(error: Buffer, other = INTERNAL): Buffer {
  const code = findMember(error, 'code');
  if (code === null) return error;
  const value = Number(error.toString('latin1', code.start, code.end));
  const replaced = modernCode(value, other);
  return replaced === value ? error : splice(error, code, Buffer.from(String(replaced)));
}

function modernCode(code: number, other: number): number {
  if (code === RESOURCE_NOT_FOUND) return INVALID_PARAMS;
  return code <= -32_000 && code >= -32_099 ? other : code;
}

const DEFINED: readonly ErrorCode[] = ['header_mismatch', 'capability_missing', 'revision_unsupported'];

/** An error of Toolgate's own, for a modern client. */
export function modernErrorObject(error: GatewayError): Buffer {
  const bytes = errorObject(error);
  if (DEFINED.includes(error.code)) return bytes;
  return modernError(bytes, error.httpStatus < 500 ? INVALID_REQUEST : INTERNAL);
}
