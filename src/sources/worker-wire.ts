/** The wire format of workers: a line of JSON for each message, requests out, answers and events in. */
import { isUtf8 } from 'node:buffer';
import { findClosingBracket } from '../protocol/bracket-scan.ts';
import type { SourceRequest } from '../protocol/contract.ts';
import { JsonError, skipValue, toBytes } from '../protocol/json.ts';
import { LONG } from '../protocol/long-answer.ts';
import { type Parts, sizeOf } from '../protocol/parts.ts';
import { readMessage } from '../protocol/read.ts';
import type { Wire } from '../protocol/rewrite.ts';

const EMPTY = toBytes({});

/** A request under its id. */
export function printRequest(id: number, request: SourceRequest): Wire {
  if (request.method === 'ping') return `{"id":"${id}","op":"ping"}`;
  const head = `{"id":"${id}","op":"tools.call"${request.token === null ? '' : ',"progress":true'},"tool":`;
  if (request.encodeTool !== undefined) return request.encodeTool(head);
  const wire = request.encode(id, 'legacy');
  const message = readMessage(typeof wire === 'string' ? Buffer.from(wire, 'latin1') : wire);
  const { bytes, nameStart, nameEnd, argumentsStart, argumentsEnd } = message;
  return Buffer.concat([
    Buffer.from(head),
    bytes.subarray(nameStart, nameEnd),
    Buffer.from(',"arguments":'),
    argumentsStart < 0 ? EMPTY : bytes.subarray(argumentsStart, argumentsEnd),
    Buffer.from('}'),
  ]);
}

/** What `readAnswer` found. One object for all answers: each is processed before the next is read. */
export const workerAnswer: { id: number; result: Parts } = { id: 0, result: EMPTY };

const HEAD = '{"id":"';
const MIDDLE = '","ok":true,"result":{';
const TAIL = ',"latency_ms":';
const BRACE = 0x7d;
/** Bytes of the end that are searched for the longest recognised tail. */
const LONGEST_TAIL = 48;

/** Whether the line is the result of a call as both hosts write it. If so, `workerAnswer` holds its id and result. */
export function readAnswer(line: Buffer): boolean {
  const start = readHead(line);
  if (start < 0) return false;
  if (line.length > LONG) return readLong([line]);
  try {
    const end = isUtf8(line) ? skipValue(line, start, line.length) : -1;
    if (end < 0 || !isTail(line, end)) return false;
    workerAnswer.result = line.subarray(start, end);
    return true;
  } catch (error) {
    if (error instanceof JsonError) return false;
    throw error;
  }
}

/** The same for a line that came in parts. It is passed on in them, and only its brackets are checked. */
export function readLong(parts: readonly Buffer[]): boolean {
  const first = parts[0]!;
  const last = parts.at(-1)!;
  const start = readHead(first);
  if (start < 0 || last.length < LONGEST_TAIL) return false;
  const text = last.toString('latin1', last.length - LONGEST_TAIL);
  const tail = /\}(?:,"latency_ms":[\d.]{1,20})?\}$/.exec(text);
  if (tail === null) return false;
  const result = [...parts];
  result[0] = first.subarray(start);
  const end = result.pop()!;
  result.push(end.subarray(0, end.length - tail[0].length + 1));
  if (findClosingBracket(result) !== sizeOf(result)) return false;
  workerAnswer.result = result;
  return true;
}

/** Where the result begins; -1 if the line is no such answer. */
function readHead(line: Buffer): number {
  if (!isAt(line, 0, HEAD)) return -1;
  let at = HEAD.length;
  let id = 0;
  for (let c = line[at]!; c >= 0x30 && c <= 0x39; c = line[++at]!) id = id * 10 + (c - 0x30);
  if (at === HEAD.length || at > HEAD.length + 15 || !isAt(line, at, MIDDLE)) return -1;
  workerAnswer.id = id;
  return at + MIDDLE.length - 1;
}

function isTail(line: Buffer, at: number): boolean {
  const last = line.length - 1;
  if (line[last] !== BRACE) return false;
  if (at === last) return true;
  if (!isAt(line, at, TAIL)) return false;
  for (let i = at + TAIL.length; i < last; i++) {
    const c = line[i]!;
    if (c !== 0x2e && (c < 0x30 || c > 0x39)) return false;
  }
  return true;
}

function isAt(bytes: Buffer, at: number, text: string): boolean {
  for (let i = 0; i < text.length; i++) if (bytes[at + i] !== text.charCodeAt(i)) return false;
  return true;
}

/** An error of a tool or about its call, as a result for the model. */
export function errorResult(error: { code?: unknown; message?: unknown; details?: unknown }): Buffer {
  const { code, message, details } = error;
  const body = {
    success: false,
    result: null,
    code: String(code ?? 'internal_error'),
    message: String(message ?? 'The tool failed without a message.'),
    ...(details !== undefined && { details }),
  };
  return toBytes({ content: [{ type: 'text', text: JSON.stringify(body) }], isError: true });
}

/** The call that a broken line may have been the answer to. */
export function guessId(line: Buffer): number | null {
  const id = /"id":\s*"(\d{1,15})",\s*"ok"/.exec(line.toString('latin1', 0, 4_096))?.[1];
  return id === undefined ? null : Number(id);
}
