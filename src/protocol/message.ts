/**
 * One JSON-RPC message as the bytes it came in, with the positions of the few parts that a gateway has to see: id,
 * method, the name or URI in the parameters, the progress token, the envelope. Everything else stays unparsed.
 */
import { toObject } from '../base/objects.ts';
import { decodeString, findMember, type Span } from './json.ts';

export interface Message {
  readonly bytes: Buffer;
  /** Empty for a response. */
  readonly method: string;
  /** Positions; -1 if the part is absent. */
  readonly idStart: number;
  readonly idEnd: number;
  readonly paramsStart: number;
  readonly paramsEnd: number;
  readonly nameStart: number;
  readonly nameEnd: number;
  readonly uriStart: number;
  readonly uriEnd: number;
  readonly argumentsStart: number;
  readonly argumentsEnd: number;
  /** The state of an earlier attempt, in a request that is sent again with answers to the server's questions. */
  readonly stateStart: number;
  readonly stateEnd: number;
  /** The request to run a call as an MCP task, in the revision that has it. */
  readonly taskStart: number;
  readonly taskEnd: number;
  /** The MCP task that a request is about. */
  readonly taskIdStart: number;
  readonly taskIdEnd: number;
  readonly metaStart: number;
  readonly metaEnd: number;
  /** How many members of `_meta` are neither the progress token nor part of the envelope. */
  readonly metaOthers: number;
  /** Whether one of those members names the MCP task that the message belongs to. */
  readonly hasRelated: boolean;
  /** Whether its parameters have only members that are known to be there once, and no object apart from `arguments`. */
  readonly isPlain: boolean;
  readonly tokenStart: number;
  readonly tokenEnd: number;
  readonly resultStart: number;
  readonly resultEnd: number;
  readonly errorStart: number;
  readonly errorEnd: number;
  /** Null if `_meta` has no part of it. */
  readonly envelope: Envelope | null;
}

/**
 * The positions of the parts of the envelope that every modern request has, counted from the start of `_meta`; -1 if a
 * part is absent. Messages with equal `_meta` may share it.
 */
export interface Envelope {
  readonly versionStart: number;
  readonly versionEnd: number;
  readonly capabilitiesStart: number;
  readonly capabilitiesEnd: number;
  readonly clientStart: number;
  readonly clientEnd: number;
  readonly levelStart: number;
  readonly levelEnd: number;
}

/** A response has no method. */
export function isResponse(message: Message): boolean {
  return message.method === '';
}

/** A request carries an id; a notification does not. */
export function isRequest(message: Message): boolean {
  return message.method !== '' && message.idStart >= 0;
}

/** The id exactly as it was written: `7` and `"7"` are different ids. */
export function idText(message: Message): string {
  return message.bytes.toString('latin1', message.idStart, message.idEnd);
}

/** Whether it names its revision. Then it is modern, and not part of a session. */
export function claimsRevision(message: Message): boolean {
  return message.envelope !== null && message.envelope.versionStart >= 0;
}

/** The progress token as it was written; null if no progress is wanted. */
export function tokenOf({ bytes, tokenStart, tokenEnd }: Message): Buffer | null {
  return tokenStart < 0 ? null : bytes.subarray(tokenStart, tokenEnd);
}

/** The parsed parameters, for methods that are not on the path of a call. */
export function parseParams(message: Message): Record<string, unknown> {
  const { bytes, paramsStart, paramsEnd } = message;
  return paramsStart < 0 ? {} : toObject(JSON.parse(bytes.toString('utf8', paramsStart, paramsEnd)));
}

export interface ProgressToken extends Span {
  readonly token: number;
}

/** Longer than any of our tokens. */
const LONGEST_TOKEN = 20;

/**
 * The token of a server's progress notification, and its position; null if it cannot be one of ours. Our tokens are
 * numbers, which some servers send back as strings.
 */
export function readProgress({ bytes, paramsStart, paramsEnd }: Message): ProgressToken | null {
  const member = paramsStart < 0 ? null : findMember(bytes, 'progressToken', paramsStart, paramsEnd);
  if (member === null || member.end - member.start > LONGEST_TOKEN) return null;
  const { start, end } = member;
  const text = bytes[start] === 0x22 ? decodeString(bytes, start, end) : bytes.toString('latin1', start, end);
  return { start, end, token: Number(text) };
}
