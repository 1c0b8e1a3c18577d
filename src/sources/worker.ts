/**
 * A connection to a worker: a process that serves the tool files of one folder, in one language, over a Unix socket.
 * The wire format is our own. To the gateway it looks like any other server.
 */
import { unlink } from 'node:fs/promises';
import type { Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { GatewayError, messageOf } from '../base/errors.ts';
import { redacted } from '../base/events.ts';
import { LineWriter } from '../base/line-writer.ts';
import type { SourceRequest, Ticket } from '../protocol/contract.ts';
import { findMember, toBytes } from '../protocol/json.ts';
import { createLineReader } from '../protocol/lines.ts';
import { join } from '../protocol/parts.ts';
import { readMessage } from '../protocol/read.ts';
import { LATEST_REVISION } from '../protocol/revisions.ts';
import type { Wire } from '../protocol/rewrite.ts';
import { notificationMessage } from '../protocol/rpc.ts';
import { deliverLog, deliverNotification } from './attribution.ts';
import type { Connection, ConnectionEvents } from './connection.ts';
import { closedError, type PendingRequest, PendingRequests, TIMED_OUT } from './pending.ts';
import { type FailedFile, failureText, type RegressionGuard } from './regression-guard.ts';
import type { ConnectionOptions } from './rpc-connection.ts';
import type { Spawn } from './spawn.ts';
import { failRequest } from './tickets.ts';
import {
  connectTo,
  makePrivateFolder,
  memoryExceeded,
  startWorkerProcess,
  type WorkerProcess,
  type WorkerProcessLaunch,
} from './worker-process.ts';
import { errorResult, guessId, printRequest, readAnswer, readLong, type WorkerAnswer } from './worker-wire.ts';

/** How a worker is started, and where it listens. */
export interface WorkerLaunch extends WorkerProcessLaunch {
  readonly namespace: string;
  /** The folder of the sockets, and the path of this one. */
  readonly socketFolder: string;
  readonly socket: string;
  /** Identifies what is served. A new worker for the same must not load fewer files than the one before. */
  readonly served: string;
}

export interface WorkerOptions extends Omit<ConnectionOptions, 'client'> {
  /** Milliseconds until the worker has to be ready. */
  readonly startTimeout: number;
  /** Compares the worker with the current one for the same folder and language. */
  readonly guard: RegressionGuard;
  readonly spawn: Spawn;
  /** Whether the worker is no longer wanted. */
  isClosed(): boolean;
  /** Receives what the worker and its tools write to their standard output and error. */
  stderr(chunk: Buffer): void;
}

/** Milliseconds for a worker to release a timed-out call, to end, and to report how it ended. Then it is killed. */
const GRACE = { cancel: 2_000, end: 2_000, report: 200 };
/** This many invalid lines are reported, and this many are tolerated. */
const INVALID = { reported: 10, most: 100 };
/** The most bytes that may wait for a worker that does not read. */
const MAX_UNREAD = 64 * 1024 * 1024;
const EMPTY = toBytes({});
/** The id of the request to shut down. */
const SHUTDOWN_ID = 'end';
const OPEN_BRACE = 0x7b;

const STUCK = 'was busy with a call that did not end in time, and is being replaced';
const INVALID_LINE = 'wrote a line that does not follow the worker contract';

/** What the worker reported when it was ready. */
interface WorkerReady {
  readonly tools: Buffer;
  readonly failed: readonly FailedFile[];
}

/** A message of a worker that is not the result of a call. */
interface WorkerMessage {
  readonly id?: unknown;
  readonly op?: unknown;
  readonly ok?: unknown;
  readonly error?: object;
  /** The tool is still running, though its call has been answered. */
  readonly busy?: unknown;
  readonly failed?: readonly FailedFile[];
}

/** Resolves when the worker is ready. Rejects with the reason if it does not become ready. */
export async function openWorker(
  launch: WorkerLaunch,
  options: WorkerOptions,
  events: ConnectionEvents,
): Promise<Connection> {
  await makePrivateFolder(launch.socketFolder);
  await unlink(launch.socket).catch(() => {});
  const worker = new WorkerConnection(launch, options, events);
  const failed = await worker.connect();
  const regressions = options.guard.regressions(launch.served, failed);
  if (regressions.length > 0) {
    await worker.close();
    throw new GatewayError('source_unavailable', `keeps its last good version, because ${regressions.join('; ')}`);
  }
  options.guard.accept(launch.served, failed, worker.ended);
  for (const file of failed) events.note(failureText(file));
  return worker;
}

class WorkerConnection implements Connection {
  readonly pid: number | null;
  heard = 0;
  // Tools of a folder cannot ask anything.
  readonly asking = 0;
  readonly askable = 0;
  readonly awaited = false;
  readonly ended: Promise<void>;
  readonly #launch: WorkerLaunch;
  readonly #options: WorkerOptions;
  readonly #events: ConnectionEvents;
  readonly #process: WorkerProcess;
  readonly #pending: PendingRequests;
  #socket: Socket | null = null;
  #writer: LineWriter | null = null;
  #ready: WorkerReady | null = null;
  /** Why it ended; null while it runs. */
  #reason: string | null = null;
  /** What it did wrong, if that is why it was ended. */
  #fault: string | null = null;
  #isClosing = false;
  #invalidLines = 0;
  /** Abandoned calls whose tools still run, each with the timer that ends the worker if the tool does not return. */
  readonly #overdue = new Map<number, NodeJS.Timeout>();
  #onReady: () => void = () => {};
  #onEnded: () => void = () => {};

  constructor(launch: WorkerLaunch, options: WorkerOptions, events: ConnectionEvents) {
    this.#launch = launch;
    this.#options = options;
    this.#events = events;
    this.ended = new Promise((resolve) => {
      this.#onEnded = resolve;
    });
    this.#pending = new PendingRequests(options.source, {
      abandoned: (pending, reason) => this.#abandoned(pending, reason),
    });
    this.#process = startWorkerProcess(launch, options.spawn, {
      printed: options.stderr,
      isBusy: () => this.#pending.size > 0 || this.#overdue.size > 0,
      exceeded: () => this.#kill(memoryExceeded(launch.memory)),
      ended: (how) => this.#end(how),
    });
    this.pid = this.#process.pid;
  }

  get inFlight(): number {
    return this.#pending.size;
  }

  /** Resolves with the files that could not be loaded. */
  async connect(): Promise<readonly FailedFile[]> {
    const { startTimeout, isClosed } = this.#options;
    const deadline = Date.now() + startTimeout;
    for (let delay = 5; this.#reason === null && !isClosed(); delay = Math.min(delay * 1.5, 100)) {
      const socket = await connectTo(this.#launch.socket);
      if (socket !== null) {
        const ready = this.#attach(socket);
        await Promise.race([ready, sleep(Math.max(1, deadline - Date.now()), undefined, { ref: false })]);
        break;
      }
      if (Date.now() > deadline) break;
      await sleep(delay);
    }
    if (this.#ready !== null && this.#reason === null) return this.#ready.failed;
    const hasEnded = this.#reason !== null;
    const reason =
      this.#reason ?? `was not ready within ${startTimeout / 1000} s; look at what its files do when they are loaded`;
    await this.close();
    throw new GatewayError('source_unavailable', reason, { details: { ended: hasEnded } });
  }

  /** Resolves when the worker is ready, or has ended. */
  #attach(socket: Socket): Promise<void> {
    this.#socket = socket;
    this.#writer = new LineWriter(socket);
    const reader = this.#createReader();
    socket.on('data', (chunk: Buffer) => {
      this.heard++;
      reader.push(chunk);
    });
    socket.on('error', () => {});
    // A process that ends also closes its socket, and its exit says more about the reason.
    socket.on('close', () => setTimeout(() => this.#kill('closed its connection'), GRACE.report).unref());
    return new Promise((resolve) => {
      this.#onReady = resolve;
    });
  }

  #createReader() {
    const { clean, source, maxMessage } = this.#options;
    return createLineReader(maxMessage, {
      line: clean === null ? (line) => this.#receive(line) : (line) => this.#receive(clean(line)),
      parts: (parts) => {
        const answer = clean === null ? readLong(parts) : null;
        if (answer !== null) this.#deliver(answer);
        else this.#receive(clean === null ? join(parts) : clean(join(parts)));
      },
      tooLong: (limit, head) => {
        const text = `Server "${source}" answered with more than ${limit} bytes. Raise limits.message to allow it.`;
        this.#events.note(text);
        const id = guessId(head);
        if (id !== null) this.#pending.fail(id, new GatewayError('source_broken', text));
      },
    });
  }

  #end(how: string): void {
    if (this.#reason !== null) return;
    const { source, redact } = this.#options;
    const isExit = this.#ready !== null && how.startsWith('exited');
    this.#reason = this.#fault ?? (isExit ? `${how} (a tool must not end its process)` : how);
    for (const timer of this.#overdue.values()) clearTimeout(timer);
    this.#socket?.destroy();
    this.#onEnded();
    this.#onReady();
    void unlink(this.#launch.socket).catch(() => {});
    const text = redact(`Server "${source}" ${this.#reason} before it answered. Try again.`);
    this.#pending.failAll(
      this.#fault === null ? new GatewayError('source_broken', text) : closedError(source, this.#fault),
    );
    if (this.#ready !== null && !this.#isClosing) this.#events.closed(this.#reason);
  }

  /** Ends the worker because of a fault. */
  #kill(fault: string): void {
    if (this.#reason !== null) return;
    this.#fault ??= fault;
    this.#pending.failAll(closedError(this.#options.source, this.#fault));
    this.#process.kill();
  }

  async close(fault?: string): Promise<void> {
    this.#isClosing ||= fault === undefined;
    if (this.#reason !== null || this.pid === null) return;
    if (fault !== undefined) this.#kill(fault);
    else this.#write(`{"id":"${SHUTDOWN_ID}","op":"shutdown"}`);
    setTimeout(this.#process.release, 20).unref();
    const kill = setTimeout(this.#process.kill, GRACE.end);
    await this.ended;
    clearTimeout(kill);
  }

  request(request: SourceRequest): Ticket {
    const { source } = this.#options;
    if (this.#reason !== null) return failRequest(request, closedError(source, this.#reason));
    if (this.#socket!.writableLength > MAX_UNREAD)
      return failRequest(request, closedError(source, 'does not read its requests'));
    const pending = this.#pending.add(request);
    const own = this.#ownAnswer(request);
    if (own === null) this.#write(printRequest(pending.id, request));
    else queueMicrotask(() => this.#pending.deliver(pending.id, own));
    return pending;
  }

  /** Our own answer to requests that a worker need not see; null for any other. */
  #ownAnswer({ method }: SourceRequest): Buffer | null {
    if (method === 'initialize')
      return toBytes({
        protocolVersion: LATEST_REVISION,
        capabilities: { tools: {}, logging: {} },
        serverInfo: { name: this.#launch.namespace, version: '1' },
      });
    if (method === 'tools/list') return Buffer.concat([Buffer.from('{"tools":'), this.#ready!.tools, Buffer.from('}')]);
    return method === 'logging/setLevel' ? EMPTY : null;
  }

  #write(message: Wire): void {
    this.#writer?.write(message);
  }

  #abandoned({ id, request }: PendingRequest, reason: string): void {
    this.#write(`{"op":"cancel","id":"${id}"}`);
    // A cancelled call may run for as long as its timeout.
    if (request.method === 'tools/call') this.#awaitReturn(id, reason === TIMED_OUT ? GRACE.cancel : request.timeout);
  }

  /** A tool that does not return blocks a thread, or the whole worker. Then the worker is replaced. */
  #awaitReturn(id: number, ms: number): void {
    if (!this.#overdue.has(id)) this.#overdue.set(id, setTimeout(() => this.#kill(STUCK), ms).unref());
  }

  #returned(id: number): void {
    clearTimeout(this.#overdue.get(id));
    this.#overdue.delete(id);
  }

  #receive(line: Buffer): void {
    const answer = readAnswer(line);
    if (answer !== null) {
      this.#deliver(answer);
      return;
    }
    try {
      this.#take(JSON.parse(line.toString()) as WorkerMessage, line);
    } catch (error) {
      this.#invalid(line, messageOf(error));
    }
  }

  #deliver({ id, result }: WorkerAnswer): void {
    if (this.#overdue.size > 0) this.#returned(id);
    this.#pending.deliver(id, result);
  }

  #take(message: WorkerMessage, line: Buffer): void {
    const { op, id, failed = [] } = message;
    if (id === SHUTDOWN_ID) return;
    const number = typeof id === 'string' ? Number(id) : Number.NaN;
    if (op === undefined) this.#settle(number, message, line);
    else if (op === 'ready') {
      const tools = findMember(line, 'tools');
      this.#ready = { tools: tools === null ? Buffer.from('[]') : line.subarray(tools.start, tools.end), failed };
      this.#onReady();
    } else if (op === 'free') this.#returned(number);
    else if (op === 'progress' || op === 'log') this.#pass(op, number, message as Record<string, unknown>);
    else throw new Error('no such op');
  }

  #pass(op: 'progress' | 'log', call: number, { id: _id, op: _op, ...params }: Record<string, unknown>): void {
    if (op === 'progress') {
      const bytes = notificationMessage('notifications/progress', toBytes({ ...params, progressToken: call }));
      deliverNotification(this.#pending, readMessage(bytes), null);
    } else {
      const bytes = notificationMessage('notifications/message', toBytes(params));
      deliverLog(this.#pending, readMessage(bytes), Number.isNaN(call) ? null : call);
    }
  }

  #settle(id: number, { ok, error, busy }: WorkerMessage, line: Buffer): void {
    if (Number.isNaN(id) || (ok !== true && ok !== false)) throw new Error('it is neither an answer nor an event');
    if (busy === true) this.#awaitReturn(id, GRACE.cancel);
    else this.#returned(id);
    const result = ok ? findMember(line, 'result') : null;
    // The error of a tool may contain a URL or an environment with secrets.
    if (!ok) this.#pending.deliver(id, errorResult(redacted(error ?? {}, this.#options.redact) as object));
    else if (result !== null && line[result.start] === OPEN_BRACE)
      this.#pending.deliver(id, line.subarray(result.start, result.end));
    else throw new Error('its result is not an object');
  }

  /** The ids are ours, so a call whose answer is broken can be found, and fails before its timeout. */
  #invalid(line: Buffer, problem: string): void {
    this.#invalidLines++;
    const { redact, source } = this.#options;
    const preview = JSON.stringify(redact(line.toString('utf8', 0, 4_096)).slice(0, 120));
    if (this.#invalidLines <= INVALID.reported) this.#events.note(`${INVALID_LINE}: ${preview} (${problem})`);
    const id = guessId(line);
    if (id !== null)
      this.#pending.fail(id, closedError(source, 'sent a broken answer: a tool wrote to the socket of its worker'));
    if (this.#invalidLines >= INVALID.most)
      this.#kill(`${INVALID_LINE}, ${this.#invalidLines} times; a tool must not write to the socket of its worker`);
  }
}
