/**
 * The trace that a request belongs to (W3C Trace Context): `traceparent` and `tracestate`, in `_meta` of the parameters
 * and, over HTTP, in headers. Everything else, such as `baggage`, stays as it is.
 */
import { decodeString, readMembers, splice } from './json.ts';
import type { Message } from './message.ts';
import { READ_DIRECTORY } from './meta.ts';
import type { Headers } from './param-headers.ts';
import { readMessage } from './read.ts';

/** A trace of W3C Trace Context. */
export interface TraceContext {
  readonly traceparent: string;
  /** Null if there is none. */
  readonly tracestate: string | null;
}

const PARENT = 'traceparent';
const STATE = 'tracestate';
/** The longest state that the specification asks to pass on. */
const LONGEST_STATE = 512;
const KNOWN = /^00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/;
const STATE_TEXT = /^[\x20-\x7e]*$/;

/** A malformed trace counts as absent: no call fails because of its trace. */
export function toTrace(traceparent: unknown, tracestate: unknown): TraceContext | null {
  if (typeof traceparent !== 'string' || !KNOWN.test(traceparent)) return null;
  const isState = typeof tracestate === 'string' && tracestate.length <= LONGEST_STATE && STATE_TEXT.test(tracestate);
  return { traceparent, tracestate: isState && tracestate !== '' ? tracestate : null };
}

/** The trace in the parameters of a request. */
export function readTrace(message: Message): TraceContext | null {
  const { bytes, metaOthers } = message;
  if (metaOthers === 0) return null;
  const text = (key: string) => {
    const member = metaMembers(message).find((one) => one.key === key);
    return member !== undefined && bytes[member.start] === QUOTE
      ? decodeString(bytes, member.start, member.end)
      : undefined;
  };
  return toTrace(text(PARENT), text(STATE));
}

/** The methods that are sent to a server. */
const CALLS = new Set(['tools/call', 'resources/read', 'prompts/get', 'completion/complete', READ_DIRECTORY]);

/** A request that came over HTTP, with the trace of its headers if its parameters have none. */
export function withHeaderTrace(message: Message, headers: Headers): Message {
  if (!CALLS.has(message.method) || message.idStart < 0) return message;
  const trace = toTrace(headers.traceparent, headers.tracestate);
  if (trace === null || metaMembers(message).some(({ key }) => key === PARENT)) return message;
  return withTrace(message, trace);
}

/** A copy of the request as part of this trace. */
export function withTrace(message: Message, trace: TraceContext): Message {
  const { bytes, paramsStart, paramsEnd, metaStart, metaEnd } = message;
  if (paramsStart < 0 || bytes[paramsStart] !== OPEN) return message;
  const members = membersOf(trace);
  if (metaStart < 0) {
    const isEmpty = (readMembers(bytes, paramsStart, paramsEnd)?.length ?? 0) === 0;
    const text = `"_meta":{${members.join(',')}}`;
    const moved = insert(message, paramsStart + 1, isEmpty ? text : `${text},`);
    const start = paramsStart + 1 + '"_meta":'.length;
    return {
      ...moved,
      metaStart: start,
      metaEnd: paramsStart + 1 + text.length,
      metaOthers: members.length,
      isPlain: false,
    };
  }
  if (bytes[metaStart] !== OPEN) return message;
  const present = metaMembers(message);
  const others = present.filter(({ key }) => key !== PARENT && key !== STATE);
  if (others.length === present.length) {
    const text = `${present.length === 0 ? '' : ','}${members.join(',')}`;
    return { ...insert(message, metaEnd - 1, text), metaOthers: message.metaOthers + members.length, isPlain: false };
  }
  const kept = others.map(({ keyStart, end }) => bytes.toString('latin1', keyStart, end));
  const meta = Buffer.from(`{${[...kept, ...members].join(',')}}`, 'latin1');
  return readMessage(splice(bytes, { start: metaStart, end: metaEnd }, meta));
}

/** Overwrites in place the parent that `withTrace` wrote, which has the same length. Nothing else may use the bytes. */
export function stampTrace(message: Message, traceparent: string): void {
  const { bytes } = message;
  const member = metaMembers(message).find(({ key }) => key === PARENT);
  if (member !== undefined && member.end - member.start === traceparent.length + 2)
    bytes.write(traceparent, member.start + 1, 'latin1');
}

/** The trace as HTTP headers: names and values alternate. */
export function traceHeaders({ traceparent, tracestate }: TraceContext): readonly string[] {
  return tracestate === null ? [PARENT, traceparent] : [PARENT, traceparent, STATE, tracestate];
}

const OPEN = 0x7b;
const QUOTE = 0x22;

function metaMembers({ bytes, metaStart, metaEnd }: Message) {
  return metaStart < 0 || bytes[metaStart] !== OPEN ? [] : (readMembers(bytes, metaStart, metaEnd) ?? []);
}

function membersOf({ traceparent, tracestate }: TraceContext): string[] {
  const parent = `"${PARENT}":"${traceparent}"`;
  return tracestate === null ? [parent] : [parent, `"${STATE}":${JSON.stringify(tracestate)}`];
}

const STARTS = ['id', 'params', 'name', 'uri', 'arguments', 'state', 'task', 'taskId', 'meta', 'token'] as const;

/** Inserts text into a request. Positions after it move; those of an envelope are counted from `_meta`, and stay. */
function insert(message: Message, at: number, text: string): Message {
  const { bytes } = message;
  const added = Buffer.from(text, 'latin1');
  const moved: Record<string, number> = {};
  for (const name of STARTS) {
    const start = message[`${name}Start`];
    const end = message[`${name}End`];
    if (start >= at) moved[`${name}Start`] = start + added.length;
    if (end > at) moved[`${name}End`] = end + added.length;
  }
  return { ...message, ...moved, bytes: Buffer.concat([bytes.subarray(0, at), added, bytes.subarray(at)]) };
}
