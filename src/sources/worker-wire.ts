/** The wire format of workers: a line of JSON for each message, requests out, answers and events in. */
import { isUtf8 } from 'node:buffer';
import { findClosingBracket } from '../protocol/bracket-scan.ts';
import type { SourceRequest } from '../protocol/contract.ts';
import { digitsEnd, isAt, JsonError, readDigits, skipValue, toBytes } from '../protocol/json.ts';
import { LONG } from '../protocol/long-answer.ts';
import { type Parts, sizeOf } from '../protocol/parts.ts';
import { readMessage } from '../protocol/read.ts';
import { type Wire, wireBytes } from '../protocol/rewrite.ts';
import type { PendingRequests } from './pending.ts';

const EMPTY = toBytes({});

/** A request under its id. `tellsCaller`: the tool wants to know who calls. */
export function printRequest(id: number, request: SourceRequest, tellsCaller = false): Wire {
  if (request.method === 'ping') return `{"id":"${id}","op":"ping"}`;
  if (request.method !== 'tools/call') return printOther(id, request);
  const caller = tellsCaller ? callerMember(request) : '';
  const head = `{"id":"${id}","op":"tools.call"${request.token === null ? '' : ',"progress":true'}${caller},"tool":`;
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

/** A request about a prompt or a resource. */
function printOther(id: number, request: SourceRequest): Wire {
  const { method, agent, sessionId } = request;
  const { params } = JSON.parse(wireBytes(request.encode(id, 'legacy')).toString()) as { params: CallParams };
  const { name, uri, arguments: given, ref, argument, context } = params;
  const about =
    method === 'prompts/get'
      ? { op: 'prompts.get', prompt: name, arguments: given ?? {} }
      : method === 'resources/read'
        ? { op: 'resources.read', uri }
        : {
            op: 'complete',
            ...(ref?.type === 'ref/prompt' ? { prompt: ref.name } : { template: ref?.uri }),
            argument: argument?.name,
            value: argument?.value,
            given: context?.arguments ?? {},
          };
  const caller = { agent, session_id: sessionId };
  return toBytes({ id: String(id), ...about, ...(request.token !== null && { progress: true }), caller });
}

interface CallParams {
  readonly name?: string;
  readonly uri?: string;
  readonly arguments?: object;
  readonly ref?: { readonly type?: string; readonly name?: string; readonly uri?: string };
  readonly argument?: { readonly name?: string; readonly value?: string };
  readonly context?: { readonly arguments?: object };
}

function callerMember({ agent, sessionId }: SourceRequest): string {
  const json = JSON.stringify({ agent, session_id: sessionId });
  // The head of a request has one byte per character.
  return `,"caller":${json.replace(/[^ -~]/g, (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, '0')}`)}`;
}

/** The result of a call. */
export interface WorkerAnswer {
  readonly id: number;
  readonly result: Parts;
}

const HEAD = '{"id":"';
const MIDDLE = '","ok":true,"result":{';
const TAIL = ',"latency_ms":';
const BRACE = 0x7d;
/** How many bytes at the end are searched for the tail. */
const LONGEST_TAIL = 48;

/** The result of a call, in a line as both hosts write it; null for any other line. */
export function readAnswer(line: Buffer): WorkerAnswer | null {
  const idEnd = endOfId(line);
  if (idEnd < 0) return null;
  if (line.length > LONG) return readLong([line]);
  const start = idEnd + MIDDLE.length - 1;
  try {
    const end = isUtf8(line) ? skipValue(line, start, line.length) : -1;
    return end < 0 || !isTail(line, end)
      ? null
      : { id: readDigits(line, HEAD.length, idEnd), result: line.subarray(start, end) };
  } catch (error) {
    if (error instanceof JsonError) return null;
    throw error;
  }
}

/** The same for a line that came in parts. It is passed on in parts, and only its brackets are checked. */
export function readLong(parts: readonly Buffer[]): WorkerAnswer | null {
  const first = parts[0]!;
  const last = parts.at(-1)!;
  const idEnd = endOfId(first);
  if (idEnd < 0 || last.length < LONGEST_TAIL) return null;
  const text = last.toString('latin1', last.length - LONGEST_TAIL);
  const tail = /\}(?:,"latency_ms":[\d.]{1,20})?\}$/.exec(text);
  if (tail === null) return null;
  const result = [...parts];
  result[0] = first.subarray(idEnd + MIDDLE.length - 1);
  const end = result.pop()!;
  result.push(end.subarray(0, end.length - tail[0].length + 1));
  return findClosingBracket(result) === sizeOf(result) ? { id: readDigits(first, HEAD.length, idEnd), result } : null;
}

/** The end of the id if the line begins like the result of a call; otherwise -1. */
function endOfId(line: Buffer): number {
  if (!isAt(line, 0, HEAD)) return -1;
  const at = digitsEnd(line, HEAD.length);
  return at === HEAD.length || at > HEAD.length + 15 || !isAt(line, at, MIDDLE) ? -1 : at;
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

/** An error of a tool, or about its call, as a result that the model reads. */
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

/** The same for an item that is not a tool: a JSON-RPC error. */
function errorObject(error: { code?: unknown; message?: unknown; details?: unknown }): Buffer {
  const { code, message, details } = error;
  return toBytes({
    code: RPC_CODES[String(code)] ?? -32_603,
    message: String(message ?? 'It failed without a message.'),
    data: { code: String(code ?? 'internal_error'), ...(details !== undefined && { details }) },
  });
}

const RPC_CODES: Readonly<Record<string, number>> = {
  invalid_arguments: -32_602,
  prompt_not_found: -32_602,
  resource_not_found: -32_002,
};

/** Delivers the error of a tool as a result that the model reads, and that of another item as an error object. */
export function deliverFault(requests: PendingRequests, id: number, fault: object): void {
  if (requests.get(id)?.request.method === 'tools/call') requests.deliver(id, errorResult(fault));
  else requests.refuse(id, errorObject(fault));
}

/** The call that a broken line may have been the answer to. */
export function guessId(line: Buffer): number | null {
  const id = /"id":\s*"(\d{1,15})",\s*"ok"/.exec(line.toString('latin1', 0, 4_096))?.[1];
  return id === undefined ? null : Number(id);
}
