/** The connection with the gateway: one JSON object per line, requests in, answers and events out. */
import type { Socket } from 'node:net';
import { isObject } from '../src/base/objects.ts';
import type { LogLevel } from '../src/protocol/levels.ts';
import { createLineReader } from '../src/protocol/lines.ts';
import { fault, type ToolFault } from '../src/tools/fault.ts';
import { ItemTable, RUNNING } from '../src/tools/item-table.ts';
import type { RunnableItem } from '../src/tools/read-tool.ts';
import { type AskOutcome, type RunCaller, type RunSink, ToolRun } from '../src/tools/tool-run.ts';
import type { FolderItems } from './load.ts';

const MOST_UNREAD = 8 * 1024 * 1024;
/** Node fires a longer timer at once. */
const LONGEST_TIMER = 2 ** 31 - 1;

export interface HostOptions {
  readonly namespace: string;
  readonly folder: string;
  /** The most bytes of a request, and of a result. */
  readonly maxLine: number;
}

type WorkerRequest = Record<string, unknown>;

export class HostConnection implements RunSink {
  readonly namespace: string;
  readonly folder: string;
  readonly maxLine: number;
  private readonly socket: Socket;
  private readonly table: ItemTable;
  /** As JSON. */
  private readonly definitions: string;
  private readonly exit: () => void;
  private readonly runs = new Map<string | number, ToolRun>();
  /** Open questions of tools. */
  private readonly asked = new Map<number, (outcome: AskOutcome) => void>();
  private lastAsk = 0;
  /** Lines to be written at the end of this turn. */
  private unsent = '';

  constructor(socket: Socket, { items, failed }: FolderItems, options: HostOptions, exit: () => void) {
    this.namespace = options.namespace;
    this.folder = options.folder;
    this.maxLine = options.maxLine;
    this.socket = socket;
    this.table = new ItemTable(items);
    this.definitions = JSON.stringify(this.table.definitions('tool'));
    this.exit = exit;
    const reader = createLineReader(this.maxLine, {
      line: (line) => this.receive(line.toString()),
      parts: (parts) => this.receive(Buffer.concat(parts).toString()),
      tooLong: (limit, head) => this.refuseLong(limit, head.toString()),
    });
    socket.on('data', (chunk: Buffer) => reader.push(chunk));
    socket.on('close', () => {
      for (const run of this.runs.values()) run.end(fault('cancelled', 'The connection ended.'));
    });
    const { table, namespace } = this;
    const more = JSON.stringify({
      failed,
      contextual: items.filter((item) => item.kind === 'tool' && mayUseContext(item)).map(({ name }) => name),
      // The gateway has to know the timeouts: a tool that blocks this process also blocks our timers.
      timeouts: Object.fromEntries(
        items
          .filter(({ kind, timeoutMs }) => kind === 'tool' && timeoutMs > 0)
          .map(({ name, timeoutMs }) => [name, timeoutMs]),
      ),
      prompts: table.definitions('prompt'),
      resources: table.definitions('resource'),
      templates: table.definitions('template'),
      completes: table.completes,
    });
    this.send(`{"op":"ready","namespace":${JSON.stringify(namespace)},"tools":${this.definitions},${more.slice(1)}`);
  }

  // Messages of runs.

  succeed({ id }: ToolRun, json: string, ms: number): void {
    this.runs.delete(id);
    this.send(`{"id":${JSON.stringify(id)},"ok":true,"result":${json},"latency_ms":${Math.round(ms)}}`);
  }

  fail({ id }: ToolRun, why: ToolFault): void {
    this.runs.delete(id);
    this.sendFault(id, why);
  }

  progress({ id }: ToolRun, progress: number, total?: number, message?: string): void {
    this.send(JSON.stringify({ op: 'progress', id, progress, total, message }));
  }

  log({ id, tool }: ToolRun, level: string, data: unknown): void {
    this.send(logEvent(id, level, tool.file, data));
  }

  ask({ id }: ToolRun, method: string, params: object, done: (outcome: AskOutcome) => void): () => void {
    const ask = ++this.lastAsk;
    this.asked.set(ask, done);
    this.send(JSON.stringify({ op: 'ask', id, ask, method, params }));
    return () => {
      if (this.asked.delete(ask)) this.send(JSON.stringify({ op: 'withdraw', id, ask }));
    };
  }

  private answered({ ask, ok, result, error }: WorkerRequest): void {
    const done = this.asked.get(ask as number);
    this.asked.delete(ask as number);
    done?.(ok === true ? { result } : { error: String(error) });
  }

  threw({ tool }: ToolRun, error: unknown): void {
    console.error(`${tool.name}:`, error);
  }

  /** Logs something that belongs to no call. */
  logGeneral(level: LogLevel, data: unknown): void {
    this.send(logEvent(null, level, this.namespace, data));
  }

  // Requests.

  private receive(line: string): void {
    let request: unknown;
    try {
      request = JSON.parse(line);
    } catch {}
    if (isObject(request)) this.handle(request);
    else this.refuse(null, 'A line has to be a JSON object.');
  }

  private refuseLong(limit: number, head: string): void {
    // The id comes first, so the beginning of the line is enough.
    const id = /^\s*\{\s*"id"\s*:\s*("(?:[^"\\]|\\.)*"|\d+)/.exec(head)?.[1] ?? 'null';
    this.sendFault(JSON.parse(id), fault('too_large', `The request has more than ${limit} bytes.`, { limit }));
  }

  private handle(request: WorkerRequest): void {
    const { id = null, op } = request;
    if (RUNNING.has(op)) {
      this.run(request);
      return;
    }
    switch (op) {
      case 'cancel':
        this.runs.get(id as string)?.end(fault('cancelled', 'The call was cancelled.'));
        break;
      case 'answer':
        this.answered(request);
        break;
      case 'ping':
        this.answer(id, '{}');
        break;
      case 'tools.list':
        this.answer(id, `{"tools":${this.definitions}}`);
        break;
      case 'tools.get_schema': {
        const asked = this.table.find({ tool: request.tool }, this.namespace);
        if ('code' in asked) this.sendFault(id, asked);
        else this.answer(id, JSON.stringify(asked.item.definition));
        break;
      }
      case 'shutdown':
        this.answer(id, '{}');
        this.flush();
        this.socket.end(this.exit);
        break;
      default:
        this.refuse(id, `There is no op ${JSON.stringify(op)}.`);
    }
  }

  private run(request: WorkerRequest): void {
    const { id, progress, caller, timeout_ms: timeout } = request;
    if (typeof id !== 'string' && typeof id !== 'number') {
      this.refuse(null, 'A call needs an id.');
      return;
    }
    if (this.runs.has(id)) {
      this.refuse(id, 'Another call with this id is running.');
      return;
    }
    const asked = this.table.find(request, this.namespace);
    if ('code' in asked) {
      this.sendFault(id, asked);
      return;
    }
    const { item, input } = asked;
    const timeoutMs = shorterTimeout(item.timeoutMs, typeof timeout === 'number' ? timeout : 0);
    const run = new ToolRun(this, id, item, progress === true, timeoutMs, readCaller(caller));
    this.runs.set(id, run);
    run.run(input);
  }

  // Outgoing lines.

  private answer(id: unknown, json: string): void {
    this.send(`{"id":${JSON.stringify(id)},"ok":true,"result":${json}}`);
  }

  private refuse(id: unknown, message: string): void {
    this.sendFault(id, fault('invalid_arguments', message));
  }

  private sendFault(id: unknown, error: ToolFault): void {
    this.send(JSON.stringify({ id, ok: false, error }));
  }

  /** Lines of one turn of the event loop are written together. */
  private send(json: string): void {
    if (this.unsent === '') setImmediate(() => this.flush());
    this.unsent += `${json}\n`;
  }

  private flush(): void {
    const { socket, unsent } = this;
    this.unsent = '';
    if (socket.destroyed || unsent === '') return;
    // Backpressure: as long as the gateway does not read answers, no further calls are read.
    if (!socket.write(unsent) && socket.writableLength > MOST_UNREAD) {
      socket.pause();
      socket.once('drain', () => socket.resume());
    }
  }
}

/** False only if the function surely ignores its second argument. */
function mayUseContext({ self: { execute } }: RunnableItem): boolean {
  const text = Function.prototype.toString.call(execute);
  return execute.length > 1 || /\barguments\b|\.\.\.|\[native code\]|,\s*[\w$]+\s*=[^>=]/.test(text);
}

function readCaller(given: unknown): RunCaller | null {
  if (!isObject(given)) return null;
  return { agent: given.agent as string, sessionId: given.session_id as string };
}

function logEvent(id: string | number | null, level: string, logger: string, data: unknown): string {
  try {
    return JSON.stringify({ op: 'log', id, level, logger, data: data === undefined ? null : data });
  } catch (error) {
    return JSON.stringify({ op: 'log', id, level, logger, data: `(${(error as Error).message})` });
  }
}

/** 0 means no timeout. */
function shorterTimeout(a: number, b: number): number {
  const both = a > 0 && b > 0 ? Math.min(a, b) : Math.max(a, b);
  return Math.min(both, LONGEST_TIMER);
}
