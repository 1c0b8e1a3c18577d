/** Reads and replaces the arguments of a call. Replacing leaves every other byte of the message unchanged. */
import { GatewayError } from '../base/errors.ts';
import { findMember, type Span, splice, toBytes } from '../protocol/json.ts';
import type { Message } from '../protocol/message.ts';
import { READ_DIRECTORY } from '../protocol/meta.ts';
import { readMessage } from '../protocol/read.ts';
import type { Call } from './call.ts';

export function readArguments(message: Message): unknown {
  const span = argumentsSpan(message);
  return span === null ? undefined : (JSON.parse(message.bytes.toString('utf8', span.start, span.end)) as unknown);
}

export function replaceArguments(call: Call, args: object): void {
  const { message, nameStart, nameEnd } = call;
  if (message.method === 'resources/read' || message.method === READ_DIRECTORY)
    throw new GatewayError('params_invalid', 'A resource is read without arguments, so there are none to change.');
  const found = argumentsSpan(message);
  const at = message.paramsStart + 1;
  const span = found ?? { start: at, end: at };
  const bytes = toBytes(args);
  const text = found === null ? Buffer.concat([Buffer.from('"arguments":'), bytes, Buffer.from(',')]) : bytes;
  const moved = nameStart >= span.end ? text.length - (span.end - span.start) : 0;
  call.message = readMessage(splice(message.bytes, span, text));
  call.nameStart = nameStart + moved;
  call.nameEnd = nameEnd + moved;
}

export function argumentsSpan(message: Message): Span | null {
  const { bytes, method, argumentsStart, argumentsEnd, paramsStart, paramsEnd } = message;
  // A completion has a single argument, in a member named `argument`.
  if (method === 'completion/complete') return findMember(bytes, 'argument', paramsStart, paramsEnd);
  return argumentsStart < 0 ? null : { start: argumentsStart, end: argumentsEnd };
}
