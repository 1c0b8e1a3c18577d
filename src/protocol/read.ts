/**
 * Reads a message in one pass over its bytes. Keys that only look like the ones we route by (`Name`, `ſ` for s, a key
 * twice) are refused. Otherwise a server with a laxer parser could act on another name than the one checked here.
 */
import { isUtf8 } from 'node:buffer';
import { GatewayError } from '../base/errors.ts';
import {
  DepthError,
  decodeString,
  JsonError,
  MAX_DEPTH,
  readElements,
  repeatedKey,
  type Span,
  skipSpace,
  skipString,
  skipValue,
} from './json.ts';
import type { Envelope, Message } from './message.ts';
import { CLIENT_CAPABILITIES, CLIENT_INFO, LOG_LEVEL, PROTOCOL_VERSION, RELATED_TASK } from './meta.ts';
import { cachedMeta, cacheMeta } from './meta-cache.ts';

type Mutable<T> = { -readonly [K in keyof T]: T[K] };
type MutableMessage = Mutable<Message>;

/** Reads one message. Throws a GatewayError `parse` or `request_invalid` that may be shown to the sender. */
export function readMessage(bytes: Buffer, maxDepth = MAX_DEPTH): Message {
  try {
    if (!isUtf8(bytes)) throw new JsonError('not UTF-8');
    return scan(bytes, maxDepth);
  } catch (error) {
    if (error instanceof DepthError) {
      throw new GatewayError(
        'parse',
        `The message is nested deeper than ${maxDepth} levels; limits.depth allows no more.`,
      );
    }
    throw toParseError(error);
  }
}

/**
 * Throws if the parameters of a client's message have a key twice in one object: servers differ in which of the two they
 * take, and the policy looks at one. Inside the `arguments` of a tool or prompt it may be.
 */
export function requireUniqueKeys({ bytes, method, paramsStart, paramsEnd, argumentsStart, isPlain }: Message): void {
  const isFree = method === 'tools/call' || method === 'prompts/get';
  if (isPlain && (isFree || argumentsStart < 0)) return;
  const twice = twiceIn(bytes, paramsStart, paramsEnd, isFree ? argumentsStart : -1);
  if (twice !== null) invalid(`it has "${twice}" twice in its parameters`);
}

function twiceIn(bytes: Buffer, start: number, end: number, except: number): string | null {
  try {
    return repeatedKey(bytes, start, end, except);
  } catch (error) {
    throw toParseError(error);
  }
}

/** The unread messages of a batch, at most so many; null if the bytes are not an array. Throws like `readMessage`. */
export function readBatch(bytes: Buffer, most: number): Buffer[] | null {
  let elements: Span[] | null;
  try {
    elements = readElements(bytes, 0, bytes.length);
  } catch (error) {
    throw toParseError(error);
  }
  if (elements?.length === 0) invalid('the batch is empty');
  if (elements !== null && elements.length > most)
    throw new GatewayError('too_large', `The batch has ${elements.length} messages; limits.batch allows ${most}.`);
  return elements?.map(({ start, end }) => bytes.subarray(start, end)) ?? null;
}

export function toParseError(error: unknown, what = 'The message'): unknown {
  if (!(error instanceof JsonError)) return error;
  return new GatewayError('parse', `${what} is not valid JSON: ${error.message}.`);
}

/** A message whose parts are all absent. */
export function emptyMessage(bytes: Buffer): Message {
  return {
    bytes,
    method: '',
    idStart: -1,
    idEnd: -1,
    paramsStart: -1,
    paramsEnd: -1,
    nameStart: -1,
    nameEnd: -1,
    uriStart: -1,
    uriEnd: -1,
    argumentsStart: -1,
    argumentsEnd: -1,
    stateStart: -1,
    stateEnd: -1,
    taskStart: -1,
    taskEnd: -1,
    taskIdStart: -1,
    taskIdEnd: -1,
    metaStart: -1,
    metaEnd: -1,
    metaOthers: 0,
    hasRelated: false,
    isPlain: true,
    tokenStart: -1,
    tokenEnd: -1,
    resultStart: -1,
    resultEnd: -1,
    errorStart: -1,
    errorEnd: -1,
    envelope: null,
  };
}

function scan(bytes: Buffer, maxDepth: number): Message {
  const found: MutableMessage = emptyMessage(bytes);
  const end = bytes.length;
  const at = skipSpace(bytes, 0, end);
  if (bytes[at] === 0x5b) invalid('a batch is not accepted here');
  if (bytes[at] !== 0x7b) {
    if (skipSpace(bytes, skipValue(bytes, at, end), end) !== end) throw new JsonError('text after the value');
    invalid('a JSON-RPC message is an object');
  }
  const stop = scanObject(bytes, at, end, maxDepth, found, TOP_KEYS, topLevel);
  if (skipSpace(bytes, stop, end) !== end) throw new JsonError(`text after the message at byte ${stop}`);
  if (found.method !== '' && found.idStart >= 0 && !isId(bytes[found.idStart]!))
    invalid('"id" must be a string or a number');
  if (found.method === '' && found.resultStart < 0 && found.errorStart < 0)
    invalid('it has no method, no result and no error');
  return found;
}

function isNested(first: number): boolean {
  return first === 0x7b || first === 0x5b;
}

/** A string, or a number with or without a sign. */
function isId(first: number): boolean {
  return first === 0x22 || first === 0x2d || (first >= 0x30 && first <= 0x39);
}

/** The usual keys are recognised in place, because a new string for each key of each message costs measurable time. */
const TOP_KEYS = ['id', 'jsonrpc', 'method', 'params', 'result', 'error'];
const PARAMS_KEYS = ['name', 'arguments', '_meta', 'uri', 'requestState', 'task', 'taskId'];
const META_KEYS = ['progressToken', PROTOCOL_VERSION, CLIENT_INFO, CLIENT_CAPABILITIES, LOG_LEVEL];
const METHODS = ['tools/call', 'notifications/progress', 'resources/read', 'tools/list'];
const VERSIONS = ['2.0'];
const META_LOOKALIKES = [...META_KEYS, RELATED_TASK].map((key) => key.toUpperCase());

function readWord(bytes: Buffer, start: number, end: number, words: readonly string[]): string {
  const length = end - start - 2;
  for (const word of words) {
    if (word.length !== length) continue;
    let i = 0;
    while (i < length && bytes[start + 1 + i] === word.charCodeAt(i)) i++;
    if (i === length) return word;
  }
  return decodeString(bytes, start, end);
}

/** More than a message, its parameters or its `_meta` have. */
const MOST_MEMBERS = 10_000;

/** Handles one member whose value starts at `start`. Returns where the value ends. */
type Visit = (
  bytes: Buffer,
  key: string,
  start: number,
  end: number,
  maxDepth: number,
  found: MutableMessage,
) => number;

function scanObject(
  bytes: Buffer,
  at: number,
  end: number,
  maxDepth: number,
  found: MutableMessage,
  keys: readonly string[],
  visit: Visit,
): number {
  let i = skipSpace(bytes, at + 1, end);
  if (bytes[i] === 0x7d) return i + 1;
  for (let count = 1; ; count++) {
    if (count > MOST_MEMBERS) invalid(`an object has more than ${MOST_MEMBERS} members`);
    const keyEnd = skipString(bytes, i, end);
    const key = readWord(bytes, i, keyEnd, keys);
    i = skipSpace(bytes, keyEnd, end);
    if (i >= end || bytes[i] !== 0x3a) throw new JsonError(`expected a colon at byte ${i}`);
    i = skipSpace(bytes, i + 1, end);
    i = skipSpace(bytes, visit(bytes, key, i, end, maxDepth, found), end);
    if (i < end && bytes[i] === 0x7d) return i + 1;
    if (i >= end || bytes[i] !== 0x2c) throw new JsonError(`expected a comma or the end at byte ${i}`);
    i = skipSpace(bytes, i + 1, end);
  }
}

const topLevel: Visit = (bytes, key, start, end, maxDepth, found) => {
  if (key === 'params' && bytes[start] === 0x7b) {
    once(found.paramsStart, key);
    found.paramsStart = start;
    found.paramsEnd = scanObject(bytes, start, end, maxDepth, found, PARAMS_KEYS, inParams);
    return found.paramsEnd;
  }
  const stop = skipValue(bytes, start, end, maxDepth - 1);
  switch (key) {
    case 'jsonrpc':
      if (bytes[start] !== 0x22 || readWord(bytes, start, stop, VERSIONS) !== '2.0') invalid('"jsonrpc" must be "2.0"');
      return stop;
    case 'id':
      once(found.idStart, key);
      found.idStart = start;
      found.idEnd = stop;
      return stop;
    case 'method':
      if (found.method !== '') invalid('it has "method" twice');
      // An empty method would count as absent, and a second one could follow.
      if (bytes[start] !== 0x22 || stop === start + 2) invalid('"method" must be a string that is not empty');
      found.method = readWord(bytes, start, stop, METHODS);
      return stop;
    case 'params':
      once(found.paramsStart, key);
      found.paramsStart = start;
      found.paramsEnd = stop;
      return stop;
    case 'result':
      once(found.resultStart, key);
      found.resultStart = start;
      found.resultEnd = stop;
      return stop;
    case 'error':
      once(found.errorStart, key);
      found.errorStart = start;
      found.errorEnd = stop;
      return stop;
    default:
      refuseLookalike(key, 'JSONRPC', 'ID', 'METHOD', 'PARAMS', 'RESULT', 'ERROR');
      return stop;
  }
};

const inParams: Visit = (bytes, key, start, end, maxDepth, found) => {
  if (key === '_meta' && bytes[start] === 0x7b) {
    once(found.metaStart, key);
    found.metaStart = start;
    const known = cachedMeta(bytes, start, end, maxDepth);
    if (known !== null) {
      found.envelope = known.envelope;
      found.metaOthers = known.others;
      found.metaEnd = start + known.bytes.length;
      return found.metaEnd;
    }
    found.metaEnd = scanObject(bytes, start, end, maxDepth - 1, found, META_KEYS, inMeta);
    if (found.envelope !== null && found.tokenStart < 0 && !found.hasRelated)
      cacheMeta(bytes.subarray(start, found.metaEnd), maxDepth, found.envelope, found.metaOthers);
    return found.metaEnd;
  }
  const stop = skipValue(bytes, start, end, maxDepth - 2);
  if (key !== 'arguments' && isNested(bytes[start]!)) found.isPlain = false;
  switch (key) {
    case 'name':
      once(found.nameStart, key);
      found.nameStart = start;
      found.nameEnd = stop;
      return stop;
    case 'uri':
      once(found.uriStart, key);
      found.uriStart = start;
      found.uriEnd = stop;
      return stop;
    case 'arguments':
      once(found.argumentsStart, key);
      found.argumentsStart = start;
      found.argumentsEnd = stop;
      return stop;
    case 'requestState':
      once(found.stateStart, key);
      found.stateStart = start;
      found.stateEnd = stop;
      return stop;
    case 'task':
      once(found.taskStart, key);
      found.taskStart = start;
      found.taskEnd = stop;
      return stop;
    case 'taskId':
      once(found.taskIdStart, key);
      found.taskIdStart = start;
      found.taskIdEnd = stop;
      return stop;
    case '_meta':
      once(found.metaStart, key);
      found.metaStart = start;
      found.metaEnd = stop;
      return stop;
    case 'ref':
      found.isPlain = false;
      return stop;
    default:
      found.isPlain = false;
      refuseLookalike(key, 'NAME', 'URI', 'ARGUMENTS', '_META', 'TASK', 'TASKID', 'REF');
      return stop;
  }
};

const inMeta: Visit = (bytes, key, start, end, maxDepth, found) => {
  const stop = skipValue(bytes, start, end, maxDepth - 2);
  if (key !== 'progressToken' || isNested(bytes[start]!)) found.isPlain = false;
  switch (key) {
    case 'progressToken':
      once(found.tokenStart, key);
      found.tokenStart = start;
      found.tokenEnd = stop;
      return stop;
    case PROTOCOL_VERSION: {
      const envelope = envelopeOf(found);
      once(envelope.versionStart, key);
      envelope.versionStart = start - found.metaStart;
      envelope.versionEnd = stop - found.metaStart;
      return stop;
    }
    case CLIENT_CAPABILITIES: {
      const envelope = envelopeOf(found);
      once(envelope.capabilitiesStart, key);
      envelope.capabilitiesStart = start - found.metaStart;
      envelope.capabilitiesEnd = stop - found.metaStart;
      return stop;
    }
    case CLIENT_INFO: {
      const envelope = envelopeOf(found);
      once(envelope.clientStart, key);
      envelope.clientStart = start - found.metaStart;
      envelope.clientEnd = stop - found.metaStart;
      return stop;
    }
    case LOG_LEVEL: {
      const envelope = envelopeOf(found);
      once(envelope.levelStart, key);
      envelope.levelStart = start - found.metaStart;
      envelope.levelEnd = stop - found.metaStart;
      return stop;
    }
    case RELATED_TASK:
      found.hasRelated = true;
      found.metaOthers++;
      return stop;
    default:
      // A laxer server could read it as the progress token, and send progress to another caller.
      refuseLookalike(key, ...META_LOOKALIKES);
      found.metaOthers++;
      return stop;
  }
};

function envelopeOf(found: MutableMessage): Mutable<Envelope> {
  const envelope = found.envelope ?? emptyEnvelope();
  found.envelope = envelope;
  return envelope;
}

function emptyEnvelope(): Mutable<Envelope> {
  return {
    versionStart: -1,
    versionEnd: -1,
    capabilitiesStart: -1,
    capabilitiesEnd: -1,
    clientStart: -1,
    clientEnd: -1,
    levelStart: -1,
    levelEnd: -1,
  };
}

function once(position: number, key: string): void {
  if (position >= 0) invalid(`it has "${key}" twice`);
}

/** The same for keys that a lax parser takes for each other. */
export function foldKey(key: string): string {
  return key.toLowerCase().toUpperCase();
}

function refuseLookalike(key: string, ...known: string[]): void {
  const folded = foldKey(key);
  if (known.includes(folded)) invalid(`the key ${JSON.stringify(key)} could be taken for "${folded.toLowerCase()}"`);
}

function invalid(what: string): never {
  throw new GatewayError('request_invalid', `Not a valid JSON-RPC message: ${what}.`);
}
