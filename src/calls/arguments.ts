/** The arguments of a call, and the same call with others: every other byte stays. */
import { GatewayError } from '../base/errors.ts';
import { findMember, type Span, splice, toBytes } from '../protocol/json.ts';
import type { Message } from '../protocol/message.ts';
import { readMessage } from '../protocol/read.ts';
import type { Call } from './call.ts';

export function readArguments({ message }: Call): unknown {
  const span = argumentsSpan(message);
  return span === null ? undefined : (JSON.parse(message.bytes.toString('utf8', span.start, span.end)) as unknown);
}

export function withArguments(call: Call, args: object): Call {
  const { message, start, end } = call;
  if (message.method === 'resources/read')
    throw new GatewayError('params_invalid', 'A resource is read without arguments; there are none to change.');
  const found = argumentsSpan(message);
  const at = message.paramsStart + 1;
  const span = found ?? { start: at, end: at };
  const bytes = toBytes(args);
  const text = found === null ? Buffer.concat([Buffer.from('"arguments":'), bytes, Buffer.from(',')]) : bytes;
  const moved = start >= span.end ? text.length - (span.end - span.start) : 0;
  return call.as(readMessage(splice(message.bytes, span, text)), start + moved, end + moved);
}

export function argumentsSpan({
  bytes,
  method,
  argumentsStart,
  argumentsEnd,
  paramsStart,
  paramsEnd,
}: Message): Span | null {
  // What is to be completed is a member of another name.
  if (method === 'completion/complete') return findMember(bytes, 'argument', paramsStart, paramsEnd);
  return argumentsStart < 0 ? null : { start: argumentsStart, end: argumentsEnd };
}
