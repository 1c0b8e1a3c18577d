/**
 * Translates results and errors between the eras. A result stays the bytes that the server sent: fields that an era
 * requires are added, and fields that it does not know are cut out.
 */
import { type ErrorCode, GatewayError } from '../base/errors.ts';
import { memo } from '../base/memo.ts';
import { WRAPPER } from './definition.ts';
import {
  CLOSE,
  decodeString,
  findMember,
  JsonError,
  type JsonMember,
  readLongMembers,
  skipSpace,
  splice,
  writeObject,
} from './json.ts';
import { LONG } from './long-answer.ts';
import { READ_DIRECTORY, SERVER_INFO } from './meta.ts';
import { join, type Parts, sizeOf } from './parts.ts';
import { errorObject, type Reply } from './rpc.ts';

/** Results that a modern client may cache must say for how long. Legacy servers do not say, so we forbid it. */
const CACHEABLE = new Set([
  'server/discover',
  'tools/list',
  'prompts/list',
  'resources/list',
  'resources/templates/list',
  'resources/read',
  READ_DIRECTORY,
  'skills/list',
  'skills/get',
]);

const COMPLETE = '"resultType":"complete"';
const NOT_CACHED = `${COMPLETE},"ttlMs":0,"cacheScope":"private"`;
const CLOSE_BRACE = 0x7d;

/** Names the server in `_meta`. Printed once: the identity is the same object every time. */
const signatureOf = memo((identity: object) => `,"_meta":{"${SERVER_INFO}":${JSON.stringify(identity)}}`);

/** A reply for a modern client with a legacy result. `identity` is for results of our own, which have no `_meta`. */
export function modernReply(id: string, method: string, result: Parts, identity: object | null = null): Reply {
  const isOwn = identity !== null;
  const fields = (CACHEABLE.has(method) ? NOT_CACHED : COMPLETE) + (isOwn ? signatureOf(identity) : '');
  const parts = Buffer.isBuffer(result) ? [result] : result;
  if (!isOwn && sizeOf(result) > LONG && hasMember(parts[0]!)) return longReply(id, fields, parts);
  const joined = join(result);
  const bytes = isOwn || !mayHaveModernFields(joined) ? joined : withoutStrayFields(joined);
  const at = skipSpace(bytes, 1, bytes.length);
  const head = `{"jsonrpc":"2.0","result":{${fields}${bytes[at] === CLOSE_BRACE ? '' : ','}`;
  return { head, body: bytes.subarray(at), tail: `,"id":${id}}` };
}

/** Whether the object that starts here has a member. Spaces alone can make an empty object long. */
function hasMember(first: Buffer): boolean {
  return first[skipSpace(first, 1, first.length)] === 0x22;
}

/** Long results are not searched for our fields. Ours come last, because the last of two equal keys counts. */
function longReply(id: string, fields: string, parts: readonly Buffer[]): Reply {
  const last = parts.at(-1)!;
  const body = [...parts.slice(0, -1), last.subarray(0, last.lastIndexOf(CLOSE_BRACE))];
  return { head: '{"jsonrpc":"2.0","result":', body, tail: `,${fields}},"id":${id}}` };
}

/** A quick check that may report too much: a key may be written with escapes. */
function mayHaveModernFields(result: Buffer): boolean {
  return MODERN_FIELD.test(result.toString('latin1'));
}

const MODERN_FIELD = /resultType|ttlMs|cacheScope|\\u/;

const MODERN_FIELDS = ['resultType', 'ttlMs', 'cacheScope'];

function isModernField({ key }: JsonMember): boolean {
  return MODERN_FIELDS.includes(key);
}

/** Cuts out members that have a meaning only in the modern era. We add our own, and a key must not appear twice. */
function withoutStrayFields(result: Buffer): Buffer {
  try {
    const members = readLongMembers(result);
    if (!members.some(isModernField)) return result;
    return writeObject(
      members.filter((member) => !isModernField(member)).map(({ keyStart, end }) => [result.subarray(keyStart, end)]),
    );
  } catch (error) {
    // Long results are not checked on their way here. The caller's parser will report what is wrong.
    if (!(error instanceof JsonError)) throw error;
    return result;
  }
}

/** Returned instead of a result if the server asks something first. */
export const ASKS = 'asks';

/** A result for a legacy client, or why it has none. `wraps`: the tool's output schema was wrapped for the client. */
export function legacyResult(parts: Parts, wraps: boolean): Buffer | GatewayError | typeof ASKS {
  try {
    return withoutModernFields(join(parts), wraps);
  } catch (error) {
    // Long results are not checked on their way here.
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
      `The server answered with a result of type "${unknown}", which this client does not know.`,
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

const STRUCTURED = 'structuredContent';
const WRAP = Buffer.from(`"${STRUCTURED}":{"${WRAPPER}":`);

/** Codes that the modern revision replaced, or reserves for other errors. */
const RESOURCE_NOT_FOUND = -32_002;
const INVALID_PARAMS = -32_602;
const INTERNAL = -32_603;
const INVALID_REQUEST = -32_600;

/** An error of a legacy server for a modern client. `other` replaces codes that the modern era does not have. */
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

/** An error of Toolgate's own for a modern client. */
export function modernErrorObject(error: GatewayError): Buffer {
  const bytes = errorObject(error);
  if (DEFINED.includes(error.code)) return bytes;
  return modernError(bytes, error.httpStatus < 500 ? INVALID_REQUEST : INTERNAL);
}
