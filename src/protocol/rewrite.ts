/** Rewrites a caller's request for a server: our id, progress token and envelope, and the server's own name. */
import { type ClientAbilities, legacyMeta, modernMeta } from './envelope.ts';
import { CLOSE, oneLine } from './json.ts';
import type { Message } from './message.ts';
import type { Era } from './revisions.ts';

/** An outgoing message. A string has one character per byte (latin1), which is cheaper for short messages. */
export type Wire = string | Buffer;

const SHORT = 16_384;

/** The span of the name or URI in the caller's message, and the JSON string to put there. */
export interface Target {
  readonly nameStart: number;
  readonly nameEnd: number;
  readonly name: string;
}

/** `token` is the progress token. All bytes that are not replaced stay as they are. */
export function rewriteRequest(
  message: Message,
  target: Target,
  abilities: ClientAbilities,
  id: number,
  era: Era,
  token = id,
): Wire {
  const { metaStart, metaEnd, tokenStart, tokenEnd, paramsStart } = message;
  const head = `{"jsonrpc":"2.0","id":${id},"method":"${message.method}","params":`;
  if (era === 'modern') {
    const meta = modernMeta(message, abilities, id);
    if (metaStart >= 0) return replaceTwo(message, head, target, metaStart, metaEnd, meta);
    return replaceTwo(message, head, target, paramsStart + 1, paramsStart + 1, `"_meta":${meta},`);
  }
  if (message.envelope !== null) return replaceTwo(message, head, target, metaStart, metaEnd, legacyMeta(message, id));
  if (tokenStart >= 0) return replaceTwo(message, head, target, tokenStart, tokenEnd, String(token));
  return replaceTwo(message, head, target, target.nameEnd, target.nameEnd, '');
}

/** The parameters with the target and one more part replaced, between `head` and a closing brace. */
function replaceTwo(message: Message, head: string, target: Target, start: number, end: number, text: string): Wire {
  const { bytes, paramsStart, paramsEnd } = message;
  const first = start < target.nameStart;
  const before = first
    ? `${head}${bytes.toString('latin1', paramsStart, start)}${text}${bytes.toString('latin1', end, target.nameStart)}${target.name}`
    : `${head}${bytes.toString('latin1', paramsStart, target.nameStart)}${target.name}`;
  const middle = first || text === '' ? before : `${before}${bytes.toString('latin1', target.nameEnd, start)}${text}`;
  const rest = first || text === '' ? target.nameEnd : end;
  if (paramsEnd - rest < SHORT) {
    return onOneLine(`${middle}${bytes.toString('latin1', rest, paramsEnd)}}`);
  }
  return oneLine(Buffer.concat([Buffer.from(middle, 'latin1'), bytes.subarray(rest, paramsEnd), CLOSE]));
}

/** The name and the arguments of a call, after `head`. */
export function rewriteToolCall({ bytes, argumentsStart, argumentsEnd }: Message, head: string, name: string): Wire {
  const before = `${head}${name},"arguments":`;
  if (argumentsStart < 0) return `${before}{}}`;
  if (argumentsEnd - argumentsStart < SHORT) {
    return onOneLine(`${before}${bytes.toString('latin1', argumentsStart, argumentsEnd)}}`);
  }
  return oneLine(Buffer.concat([Buffer.from(before, 'latin1'), bytes.subarray(argumentsStart, argumentsEnd), CLOSE]));
}

/** Line breaks in JSON can only be between tokens, where a space means the same. */
function onOneLine(text: string): string {
  return text.includes('\n') || text.includes('\r') ? text.replace(/[\n\r]/g, ' ') : text;
}

export function wireBytes(wire: Wire): Buffer {
  return typeof wire === 'string' ? Buffer.from(wire, 'latin1') : wire;
}
