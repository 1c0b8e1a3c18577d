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
import { makePrivateFolder } from '../base/socket-folder.ts';
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
import { type FileProblem, problemText, readProblem } from './last-good.ts';
import { closedError, type PendingRequest, PendingRequests, TIMED_OUT } from './pending.ts';
import type { ConnectionOptions } from './rpc-connection.ts';
import type { Spawn } from './spawn.ts';
import { failRequest, unsentRequest } from './tickets.ts';
import { askFor } from './tool-questions.ts';
import {
  connectTo,
  memoryExceeded,
  startWorkerProcess,
  type WorkerProcess,
  type WorkerProcessLaunch,
} from './worker-process.ts';
import { deliverFault, guessId, printRequest, readAnswer, readLong, type WorkerAnswer } from './worker-wire.ts';

/** How a worker is started, and where it listens. */
export interface WorkerLaunch extends WorkerProcessLaunch {
  readonly namespace: string;
  /** The folder of the sockets, and the path of this one. */
  readonly socketFolder: string;
  readonly socket: string;
}

export interface WorkerOptions extends Omit<ConnectionOptions, 'client'> {
  /** Milliseconds until the worker has to be ready. */
  readonly startTimeout: number;
  readonly spawn: Spawn;
  /** Whether the worker is no longer wanted. */
  isClosed(): boolean;
  /** Receives what the worker and its tools write to their standard output and error. */
  stderr(chunk: Buffer): void;
}

/**
 * Milliseconds for a worker to report that a tool exceeded its own timeout, and to show that it is not blocked; to
 * release a timed-out call, to end, and to report how it ended. Then it is killed.
 */
const GRACE = { own: 500, blocked: 1_000, cancel: 2_000, end: 2_000, report: 1_000 };
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
  readonly problems: readonly FileProblem[];
  readonly contextual: ReadonlySet<string>;
  /** The tools' own timeouts in milliseconds, by name; null if no tool has one. */
  readonly timeouts: ReadonlyMap<string, number> | null;
  readonly prompts: readonly unknown[];
  readonly resources: readonly unknown[];
  readonly templates: readonly unknown[];
  /** Whether it proposes values for arguments. */
  readonly completes: boolean;
}

/** A message of a worker that is not the result of a call. */
interface WorkerMessage {
  readonly id?: unknown;
  readonly op?: unknown;
  readonly ok?: unknown;
  readonly error?: object;
  /** The tool is still running, though its call has been answered. */
  readonly busy?: unknown;
  readonly failed?: readonly unknown[];
  readonly timeouts?: Readonly<Record<string, unknown>>;
  /** The tools that want to know who calls. */
  readonly contextual?: readonly string[];
  readonly prompts?: readonly unknown[];
  readonly resources?: readonly unknown[];
  readonly templates?: readonly unknown[];
  readonly completes?: unknown;
  /** A question of a tool, by a number of the host. */
  readonly ask?: unknown;
  readonly method?: unknown;
  readonly params?: unknown;
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
  await worker.connect();
  for (const problem of worker.problems) events.note(problemText(problem));
  return worker;
}

class WorkerConnection implements Connection {
  readonly pid: number | null;
  heard = 0;
  // These are for servers whose questions do not name their call. Those of our hosts do.
  readonly asking = 0;
  readonly askable = 0;
  readonly atWork = 0;
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
  /** Withdraws each open question, by the host's number. A question ends with its call. */
  readonly #questions = new Map<unknown, () => void>();
  #onReady: () => void = () => {};
  #onEnded: () => void = () => {};

  constructor(launch: WorkerLaunch, options: WorkerOptions, events: ConnectionEvents) {
    this.#launch = launch;
    this.#options = options;
    this.#events = events;
    this.ended = new Promise((resolve) => {
      this.#onEnded = resolve;
    });
    const abandoned = (pending: PendingRequest, reason: string) => this.#abandoned(pending, reason);
    this.#pending = new PendingRequests(options.source, { abandoned }, 'execution_timeout');
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

  get problems(): readonly FileProblem[] {
    return this.#ready?.problems ?? [];
  }

  async connect(): Promise<void> {
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
    if (this.#ready !== null && this.#reason === null) return;
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
    if (this.#reason !== null || this.#fault !== null) return unsentRequest(request, source, this.ended, this.#events);
    if (this.#socket!.writableLength > MAX_UNREAD)
      return failRequest(request, closedError(source, 'does not read its requests'));
    const pending = this.#pending.add(request);
    const limit = this.#ready!.timeouts?.get(request.item?.name ?? '');
    if (limit !== undefined) pending.limit(limit, GRACE.own);
    const own = this.#ownAnswer(request);
    if (own === null) this.#write(printRequest(pending.id, request, this.#isContextual(request)));
    else queueMicrotask(() => this.#pending.deliver(pending.id, own));
    return pending;
  }

  #isContextual({ item }: SourceRequest): boolean {
    const { contextual } = this.#ready!;
    return contextual.size > 0 && item !== undefined && contextual.has(item.name);
  }

  /** Our own answer to requests that a worker need not see; null for any other. */
  #ownAnswer({ method }: SourceRequest): Buffer | null {
    const ready = this.#ready!;
    switch (method) {
      case 'initialize':
        return toBytes({
          protocolVersion: LATEST_REVISION,
          capabilities: {
            tools: {},
            logging: {},
            ...(ready.prompts.length > 0 && { prompts: {} }),
            ...(ready.resources.length + ready.templates.length > 0 && { resources: {} }),
            ...(ready.completes && { completions: {} }),
          },
          serverInfo: { name: this.#launch.namespace, version: '1' },
        });
      case 'tools/list':
        return Buffer.concat([Buffer.from('{"tools":'), ready.tools, Buffer.from('}')]);
      case 'prompts/list':
        return toBytes({ prompts: ready.prompts });
      case 'resources/list':
        return toBytes({ resources: ready.resources });
      case 'resources/templates/list':
        return toBytes({ resourceTemplates: ready.templates });
      case 'logging/setLevel':
        return EMPTY;
      default:
        return null;
    }
  }

  #write(message: Wire): void {
    this.#writer?.write(message);
    // Requests are refused before. A tool that asks without end and takes no answers is not.
    if (this.#socket !== null && this.#socket.writableLength > 2 * MAX_UNREAD) this.#kill('does not read our messages');
  }

  #abandoned({ id, request, isOverOwn }: PendingRequest, reason: string): void {
    this.#write(`{"op":"cancel","id":"${id}"}`);
    if (request.method !== 'tools/call') return;
    // A cancelled call may run for as long as its timeout. A host that did not even report that a tool exceeded its
    // own timeout is blocked, and so are the other tools.
    const isTimeout = reason === TIMED_OUT;
    this.#awaitReturn(id, isTimeout && isOverOwn ? GRACE.blocked : isTimeout ? GRACE.cancel : request.timeout);
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
    const {
      op,
      id,
      failed = [],
      timeouts = {},
      contextual = [],
      prompts = [],
      resources = [],
      templates = [],
    } = message;
    if (id === SHUTDOWN_ID) return;
    const number = typeof id === 'string' ? Number(id) : Number.NaN;
    if (op === undefined) this.#settle(number, message, line);
    else if (op === 'ready') {
      const tools = findMember(line, 'tools');
      this.#ready = {
        tools: tools === null ? Buffer.from('[]') : line.subarray(tools.start, tools.end),
        problems: failed.map(readProblem),
        timeouts: readTimeouts(timeouts),
        contextual: new Set(contextual),
        prompts,
        resources,
        templates,
        completes: message.completes === true,
      };
      this.#onReady();
    } else if (op === 'free') this.#returned(number);
    else if (op === 'ask') this.#ask(number, message);
    else if (op === 'withdraw') this.#questions.get(message.ask)?.();
    else if (op === 'progress' || op === 'log') this.#pass(op, number, message as Record<string, unknown>);
    else throw new Error('no such op');
  }

  #ask(call: number, { ask, method, params }: WorkerMessage): void {
    if (typeof ask !== 'number' || typeof method !== 'string') throw new Error('it is not a question');
    let isDone = false;
    const withdraw = askFor(this.#pending.get(call), this.#launch.namespace, method, params, (outcome) => {
      isDone = true;
      this.#questions.delete(ask);
      this.#write(toBytes({ op: 'answer', id: String(call), ask, ok: 'result' in outcome, ...outcome }));
    });
    if (isDone) return;
    this.#questions.set(ask, () => {
      this.#questions.delete(ask);
      withdraw();
    });
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
    if (!ok) deliverFault(this.#pending, id, redacted(error ?? {}, this.#options.redact) as object);
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

function readTimeouts(given: Readonly<Record<string, unknown>>): ReadonlyMap<string, number> | null {
  const timeouts = Object.entries(given).filter(
    (entry): entry is [string, number] => typeof entry[1] === 'number' && entry[1] > 0,
  );
  return timeouts.length === 0 ? null : new Map(timeouts);
}
