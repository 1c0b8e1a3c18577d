/** The call of a tool as a message, made of its name and of the bytes of its arguments. */
import { isUtf8 } from 'node:buffer';
import { GatewayError } from '../base/errors.ts';
import { DepthError, JsonError, skipSpace, skipValue } from './json.ts';
import type { Message } from './message.ts';
import { emptyMessage, toParseError } from './read.ts';

const HEAD = '{"jsonrpc":"2.0","id":';
const NAME = ',"method":"tools/call","params":{"name":';
const ARGUMENTS = ',"arguments":';
const TAIL = '}}';
/** Levels around the arguments. */
const AROUND = 2;
const NONE = Buffer.from('{}');
const SHORT = 16_384;
const PLAIN = /^[ -~]*$/;

/** A name as it stands in a message, one character a byte. */
export function namedInCall(name: string): string {
  const named = JSON.stringify(name);
  return PLAIN.test(named) ? named : Buffer.from(named).toString('latin1');
}

/** `id` is JSON, and `named` comes from `namedInCall`. Throws where the arguments are no object; no bytes at all are an empty one. */
export function toolCall(id: string, named: string, args: Buffer, maxDepth: number): Message {
  const given = args.length === 0 ? NONE : args;
  const start = requireObject(given, maxDepth - AROUND);
  const before = `${HEAD}${id}${NAME}${named}${ARGUMENTS}`;
  const size = before.length;
  // One character a byte: for short ones that is the cheaper form.
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

/** Where it begins. */
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
  throw new GatewayError('arguments_invalid', 'The arguments of a tool are a JSON object, such as {"path": "."}.');
}
