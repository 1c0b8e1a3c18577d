/**
 * Results and errors from one era as the other wants them. A result stays the bytes that the server sent: what an era
 * asks for is written in front, what it does not know is cut out.
 */
import { type ErrorCode, GatewayError } from '../errors.ts';
import { IDENTITY } from '../version.ts';
import { WRAPPER } from './definition.ts';
import { decodeString, findMember, JsonError, type Span, skipSpace, skipString, skipValue, splice } from './json.ts';
import { LONG } from './long.ts';
import { SERVER_INFO } from './meta.ts';
import { join, type Parts } from './parts.ts';
import { errorObject, type Reply } from './rpc.ts';
import { skeletonEnd } from './skeleton.ts';

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

const SIGNATURE = `,"_meta":{"${SERVER_INFO}":${JSON.stringify(IDENTITY)}}`;

/** The answer with a result of the earlier revisions, for a modern client. One of our own, which has no `_meta`, is signed. */
export function modernReply(id: string, method: string, result: Parts, isOwn = false): Reply {
  const first = Buffer.isBuffer(result) ? result : result[0]!;
  const at = skipSpace(first, 1, first.length);
  const fields = (KEEPABLE.has(method) ? NOT_KEPT : COMPLETE) + (isOwn ? SIGNATURE : '');
  const head = `{"jsonrpc":"2.0","result":{${fields}${first[at] === CLOSE_BRACE ? '' : ','}`;
  const rest = first.subarray(at);
  return { head, body: Buffer.isBuffer(result) ? rest : [rest, ...result.slice(1)], tail: `,"id":${id}}` };
}

const MODERN_FIELDS = ['resultType', 'ttlMs', 'cacheScope'];

/**
 * A result for a client of the earlier revisions, or why there is none: such a client cannot be asked back. `wraps` says
 * that the tool's output schema was wrapped for it.
 */
export function legacyResult(parts: Parts, wraps: boolean): Buffer | GatewayError {
  try {
    return withoutModernFields(join(parts), wraps);
  } catch (error) {
    // Long results are not looked into on their way here.
    if (!(error instanceof JsonError)) throw error;
    return new GatewayError('source_broken', `The server answered with invalid JSON: ${error.message}.`);
  }
}

function withoutModernFields(result: Buffer, wraps: boolean): Buffer | GatewayError {
  const members = readSegments(result);
  const type = members.find(({ key }) => key === 'resultType');
  if (type !== undefined && result.toString('latin1', type.value, type.end) !== '"complete"') {
    return new GatewayError(
      'capability_missing',
      'The server needs an answer from the user or the model first, and cannot ask this client for it.',
    );
  }
  const kept = members.filter(({ key }) => !MODERN_FIELDS.includes(key));
  const toWrap = kept.find(({ key, value }) => key === STRUCTURED && (wraps || result[value] !== 0x7b));
  if (kept.length === members.length && toWrap === undefined) return result;
  const texts = kept.map((member) =>
    member === toWrap
      ? [WRAP, result.subarray(member.value, member.end), CLOSE]
      : [result.subarray(member.start, member.end)],
  );
  return Buffer.concat([OPEN, ...texts.flatMap((text, index) => (index > 0 ? [COMMA, ...text] : text)), CLOSE]);
}

const STRUCTURED = 'structuredContent';
const WRAP = Buffer.from(`"${STRUCTURED}":{"${WRAPPER}":`);

const OPEN = Buffer.from('{');
const COMMA = Buffer.from(',');
const CLOSE = Buffer.from('}');

interface Segment extends Span {
  readonly key: string;
  /** Where the value starts; `start` is where the key does. */
  readonly value: number;
}

/** The members of the object that `bytes` are. Long values are stepped over by their brackets. */
function readSegments(bytes: Buffer): Segment[] {
  const segments: Segment[] = [];
  const { length } = bytes;
  let at = skipSpace(bytes, 1, length);
  while (bytes[at] !== CLOSE_BRACE) {
    const keyEnd = skipString(bytes, at, length);
    const value = skipSpace(bytes, skipSpace(bytes, keyEnd, length) + 1, length);
    const end =
      length - value > LONG && isNested(bytes[value]!) ? nestedEnd(bytes, value) : skipValue(bytes, value, length);
    segments.push({ key: decodeString(bytes, at, keyEnd), start: at, value, end });
    const next = skipSpace(bytes, end, length);
    if (bytes[next] === CLOSE_BRACE) break;
    at = skipSpace(bytes, next + 1, length);
  }
  return segments;
}

function isNested(first: number): boolean {
  return first === 0x7b || first === 0x5b;
}

function nestedEnd(bytes: Buffer, at: number): number {
  return at + skeletonEnd([bytes.subarray(at)]);
}

/** Codes that the modern revision replaced, or keeps for itself: there they would mean something else. */
const RESOURCE_NOT_FOUND = -32_002;
const INVALID_PARAMS = -32_602;
const INTERNAL = -32_603;

/** An error of a server of the earlier revisions, for a modern client. */
export function modernError(error: Buffer): Buffer {
  const code = findMember(error, 'code');
  if (code === null) return error;
  const value = Number(error.toString('latin1', code.start, code.end));
  const replaced = modernCode(value);
  return replaced === value ? error : splice(error, code, Buffer.from(String(replaced)));
}

function modernCode(code: number): number {
  if (code === RESOURCE_NOT_FOUND) return INVALID_PARAMS;
  return code <= -32_000 && code >= -32_099 ? INTERNAL : code;
}

const DEFINED: readonly ErrorCode[] = ['header_mismatch', 'capability_missing', 'revision_unsupported'];

/** An error of Toolgate's own, for a modern client. */
export function modernErrorObject(error: GatewayError): Buffer {
  const bytes = errorObject(error);
  return DEFINED.includes(error.code) ? bytes : modernError(bytes);
}
