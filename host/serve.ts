/** The contract with the gateway over one connection: lines of JSON, read and answered. */
import type { Socket } from 'node:net';
import type { LogLevel } from '../src/tools/define-tool.ts';
import { type ToolFault, fault } from '../src/tools/fault.ts';
import { readLines } from './lines.ts';
import type { FolderTools } from './load.ts';
import { type RunSink, ToolRun } from '../src/tools/tool-run.ts';
import { isObject, type Json } from '../src/tools/schema.ts';
import type { RunnableTool } from '../src/tools/read-tool.ts';

const MOST_UNREAD = 8 * 1024 * 1024;

export interface HostOptions {
  readonly namespace: string;
  readonly folder: string;
  /** Bytes of a request, and of an answer. */
  readonly maxLine: number;
}

export interface Serving {
  /** Says something that belongs to no call. */
  log(level: LogLevel, data: unknown): void;
}

export function serve(socket: Socket, loaded: FolderTools, options: HostOptions, exit: () => void): Serving {
  const { tools, failed } = loaded;
  const running = new Map<string | number, ToolRun>();
  const definitions = JSON.stringify([...tools.values()].map(({ definition }) => definition));
  let waiting = '';

  const flush = () => {
    const lines = waiting;
    waiting = '';
    if (socket.destroyed || lines === '') return;
    // Who does not read answers gets no further calls done.
    if (!socket.write(lines) && socket.writableLength > MOST_UNREAD) {
      socket.pause();
      socket.once('drain', () => socket.resume());
    }
  };
  const send = (json: string) => {
    // Answers of one turn go out together.
    if (waiting === '') setImmediate(flush);
    waiting += `${json}\n`;
  };
  const line: RunSink = {
    ...options,
    succeed({ id }, json, ms) {
      running.delete(id);
      send(`{"id":${JSON.stringify(id)},"ok":true,"result":${json},"latency_ms":${Math.round(ms)}}`);
    },
    fail({ id }, why) {
      running.delete(id);
      send(faultAnswer(id, why));
    },
    progress: ({ id }, progress, total, message) =>
      send(JSON.stringify({ op: 'progress', id, progress, total, message })),
    log: ({ id, tool }, level, data) => send(logEvent(id, level, tool.file, data)),
    threw: ({ tool }, error) => console.error(`${tool.name}:`, error),
  };
  const succeed = (id: unknown, json: string) => send(`{"id":${JSON.stringify(id)},"ok":true,"result":${json}}`);

  const toolOf = (id: unknown, name: unknown): RunnableTool | null => {
    const tool = tools.get(name as string);
    if (tool === undefined)
      send(
        faultAnswer(id, fault('tool_not_found', `There is no tool ${JSON.stringify(name)} in "${options.namespace}".`)),
      );
    return tool ?? null;
  };
  const refuse = (id: unknown, message: string) => send(faultAnswer(id, fault('invalid_arguments', message)));

  const call = (request: Json) => {
    const { id, tool: name, arguments: given, progress, timeout_ms: limit } = request;
    if (typeof id !== 'string' && typeof id !== 'number') return refuse(null, 'A call has an id.');
    if (running.has(id)) return refuse(id, 'A call with this id is under way.');
    const tool = toolOf(id, name);
    if (tool === null) return;
    if (given !== undefined && given !== null && !isObject(given))
      return refuse(id, 'The arguments of a tool are a JSON object.');
    const timeout = shorter(tool.timeoutMs, typeof limit === 'number' ? limit : 0);
    const started = new ToolRun(line, id, tool, progress === true, timeout);
    running.set(id, started);
    started.run(given);
  };

  const handle = (request: Json) => {
    const { id = null, op } = request;
    switch (op) {
      case 'tools.call':
        return call(request);
      case 'cancel':
        return running.get(id as string)?.end(fault('cancelled', 'The call was cancelled.'));
      case 'ping':
        return succeed(id, '{}');
      case 'tools.list':
        return succeed(id, `{"tools":${definitions}}`);
      case 'tools.get_schema': {
        const tool = toolOf(id, request.tool);
        if (tool !== null) succeed(id, JSON.stringify(tool.definition));
        return;
      }
      case 'shutdown':
        succeed(id, '{}');
        flush();
        socket.end(exit);
        return;
      default:
        refuse(id, `There is no op ${JSON.stringify(op)}.`);
    }
  };

  const tooLong = (head: string, size: number) => {
    // The id comes first, so it is there though the rest is not.
    const id = /^\s*\{\s*"id"\s*:\s*("(?:[^"\\]|\\.)*"|\d+)/.exec(head)?.[1] ?? 'null';
    const text = `The request has ${size} bytes; ${options.maxLine} are allowed.`;
    send(faultAnswer(JSON.parse(id), fault('too_large', text, { size, limit: options.maxLine })));
  };
  const read = (text: string) => {
    let request: unknown;
    try {
      request = JSON.parse(text);
    } catch {}
    if (isObject(request)) handle(request);
    else refuse(null, 'A line has to be a JSON object.');
  };

  readLines(socket, options.maxLine, read, tooLong);
  socket.on('close', () => {
    for (const call of running.values()) call.end(fault('cancelled', 'The connection ended.'));
  });
  send(
    `{"op":"ready","namespace":${JSON.stringify(options.namespace)},"tools":${definitions},"failed":${JSON.stringify(failed)}}`,
  );
  return { log: (level, data) => send(logEvent(null, level, options.namespace, data)) };
}

function faultAnswer(id: unknown, why: ToolFault): string {
  return JSON.stringify({ id, ok: false, error: why });
}

function logEvent(id: string | number | null, level: string, logger: string, data: unknown): string {
  try {
    return JSON.stringify({ op: 'log', id, level, logger, data: data === undefined ? null : data });
  } catch (error) {
    return JSON.stringify({ op: 'log', id, level, logger, data: `(${(error as Error).message})` });
  }
}

function shorter(a: number, b: number): number {
  const both = a > 0 && b > 0 ? Math.min(a, b) : Math.max(a, b);
  // A timer with more would fire at once.
  return Math.min(both, 2 ** 31 - 1);
}
