/** Builds a `tools/call` message from a name and the bytes of its arguments. */
import { isUtf8 } from 'node:buffer';
import { GatewayError } from '../base/errors.ts';
import { DepthError, JsonError, skipSpace, skipValue } from './json.ts';
import type { Message } from './message.ts';
import { emptyMessage, toParseError } from './read.ts';

const HEAD = '{"jsonrpc":"2.0","id":';
const NAME = ',"method":"tools/call","params":{"name":';
const ARGUMENTS = ',"arguments":';
const TAIL = '}}';
/** How many levels the message adds around the arguments. */
const AROUND = 2;
const NONE = Buffer.from('{}');
const SHORT = 16_384;
const PLAIN = /^[ -~]*$/;

/** A name as JSON with one character per byte. */
export function nameInCall(name: string): string {
  const named = JSON.stringify(name);
  return PLAIN.test(named) ? named : Buffer.from(named).toString('latin1');
}

/** `id` is JSON, `named` comes from `nameInCall`. Empty `args` mean no arguments. Throws if they are not an object. */
export function toolCallMessage(id: string, named: string, args: Buffer, maxDepth: number): Message {
  const given = args.length === 0 ? NONE : args;
  const start = requireObject(given, maxDepth - AROUND);
  const before = `${HEAD}${id}${NAME}${named}${ARGUMENTS}`;
  const size = before.length;
  // For short messages a latin1 string is cheaper than joining buffers.
  const bytes =
    given.length < SHORT
      ? Buffer.from(`${before}${given.toString('latin1', start)}${TAIL}`, 'latin1')
      : Buffer.concat([Buffer.from(before, 'latin1'), given.subarray(start), Buffer.from(TAIL)]);
  const message = emptyMessage(bytes) as { -readonly [K in keyof Message]: Message[K] };
  message.method = 'tools/call';
  message.idStart = HEAD.length;
  message.idEnd = HEAD.length + id.length;
  message.nameStart = message.idEnd + NAME.length;
  message.nameEnd = size - ARGUMENTS.length;
  message.paramsStart = message.nameStart - '{"name":'.length;
  message.paramsEnd = bytes.length - 1;
  message.argumentsStart = size;
  message.argumentsEnd = bytes.length - TAIL.length;
  return message;
}

/** Returns where the object begins. */
function requireObject(bytes: Buffer, maxDepth: number): number {
  const end = bytes.length;
  const start = skipSpace(bytes, 0, end);
  try {
    if (!isUtf8(bytes)) throw new JsonError('not UTF-8');
    const stop = skipValue(bytes, start, end, maxDepth);
    if (skipSpace(bytes, stop, end) !== end) throw new JsonError(`text after the value at byte ${stop}`);
  } catch (error) {
    if (error instanceof DepthError)
      throw new GatewayError(
        'parse',
        `The body is nested deeper than ${maxDepth} levels; limits.depth allows no more.`,
      );
    throw toParseError(error, 'The body');
  }
  if (bytes[start] === 0x7b) return start;
  throw new GatewayError('arguments_invalid', 'The arguments of a tool must be a JSON object, such as {"path": "."}.');
}
