/**
 * One JSON-RPC message as the bytes it came in, with the places of the few parts a gateway has to see: id, method, the
 * name or uri inside the parameters, the progress token, the envelope. Everything else stays unparsed.
 */

export interface Message {
  readonly bytes: Buffer;
  /** Empty for a response. */
  readonly method: string;
  /** Positions; -1 where the part is absent. */
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
  /** The state under which a request comes back with answers. */
  readonly stateStart: number;
  readonly stateEnd: number;
  /** The wish that a call be run as a task, in the revision that has it. */
  readonly taskStart: number;
  readonly taskEnd: number;
  /** The task that a request is about. */
  readonly taskIdStart: number;
  readonly taskIdEnd: number;
  readonly metaStart: number;
  readonly metaEnd: number;
  /** Members of `_meta` that are neither the progress token nor of the envelope. */
  readonly metaOthers: number;
  /** Whether one of those says which task it belongs to. */
  readonly hasRelated: boolean;
  readonly tokenStart: number;
  readonly tokenEnd: number;
  readonly resultStart: number;
  readonly resultEnd: number;
  readonly errorStart: number;
  readonly errorEnd: number;
  /** Null where `_meta` has nothing of it. */
  readonly envelope: Envelope | null;
}

/**
 * Where the parts of the envelope stand that each request carries since 2026-07-28, counted from the start of `_meta`; -1
 * where one is absent. Messages with the same `_meta` may share it.
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

/** Whether it says which revision it is written in; then it is not part of a session. */
export function claimsRevision(message: Message): boolean {
  return message.envelope !== null && message.envelope.versionStart >= 0;
}

/** The progress token as it was written; null where no progress is wanted. */
export function tokenOf({ bytes, tokenStart, tokenEnd }: Message): Buffer | null {
  return tokenStart < 0 ? null : bytes.subarray(tokenStart, tokenEnd);
}

/** The decoded parameters, for the methods that are not on the path of a call. */
export function parseParams(message: Message): Record<string, unknown> {
  const { bytes, paramsStart, paramsEnd } = message;
  const value: unknown = paramsStart < 0 ? {} : JSON.parse(bytes.toString('utf8', paramsStart, paramsEnd));
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : {};
}
