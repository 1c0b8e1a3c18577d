/**
 * A connection to a worker: a process that serves the tool files of one folder, in one language, over a Unix socket. It is
 * asked in words of its own; towards the gateway it looks like any other server.
 */
import { unlink } from 'node:fs/promises';
import type { Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { GatewayError, messageOf } from '../base/errors.ts';
import { redacted } from '../base/events.ts';
import type { SourceRequest } from '../protocol/contract.ts';
import { findMember, toBytes } from '../protocol/json.ts';
import { createLineReader } from '../protocol/lines.ts';
import { join } from '../protocol/parts.ts';
import { readMessage } from '../protocol/read.ts';
import { LATEST_REVISION } from '../protocol/revisions.ts';
import type { Wire } from '../protocol/rewrite.ts';
import { notificationMessage } from '../protocol/rpc.ts';
import type { Clean } from '../secrets/clean.ts';
import type { Connection, ConnectionEvents } from './connection.ts';
import { createPending, failing } from './pending.ts';
import { type FailedFile, failureText, type RegressionGuard } from './regression-guard.ts';
import { type ProcessLaunch, startWorkerProcess, tooMuch } from './worker-process.ts';
import { makeOwn, tryConnect } from './worker-socket.ts';
import { errorResult, found, guessId, printRequest, readAnswer, readLong } from './worker-wire.ts';

/** How a worker is started, and where it is spoken to. */
export interface WorkerLaunch extends ProcessLaunch {
  readonly namespace: string;
  /** The folder of the sockets, and this one's. */
  readonly socketFolder: string;
  readonly socket: string;
  /** Names what is served: a new worker for it must not do worse than the one before. */
  readonly served: string;
}

export interface WorkerOptions {
  readonly source: string;
  /** Bytes that one line may have. */
  readonly maxMessage: number;
  /** Milliseconds until it has to be there. */
  readonly startTimeout: number;
  readonly redact: (text: string) => string;
  readonly clean: Clean | null;
  /** Compares it with the worker that serves the same now. */
  readonly guard: RegressionGuard;
  /** Whether it is no longer wanted. */
  isClosed(): boolean;
  /** What the worker, and the tools in it, write to their standard output and error. */
  stderr(chunk: Buffer): void;
}

/** How long a worker has to let go of a call that timed out, to end, and to say how it ended; then it is ended. */
const GRACE = { cancel: 2_000, end: 2_000, word: 200 };
/** So many lines that make no sense are reported, and so many are borne. */
const SPOILT = { told: 10, most: 100 };
/** What may wait for a worker that does not read. */
const MAX_UNREAD = 64 * 1024 * 1024;
const EMPTY = toBytes({});
/** The id of the last request. */
const END = 'end';
const OPEN_BRACE = 0x7b;

/** What the worker said of itself when it was ready. */
interface Ready {
  readonly tools: Buffer;
  readonly failed: readonly FailedFile[];
}

/** A message of a worker that is not the result of a call. */
interface Said {
  readonly id?: unknown;
  readonly op?: unknown;
  readonly ok?: unknown;
  readonly error?: object;
  /** The tool goes on, though its call has been answered. */
  readonly busy?: unknown;
  readonly failed?: readonly FailedFile[];
}

/** Resolves when the worker is ready; rejects, with the reason, where it does not get there. */
export async function openWorker(
  launch: WorkerLaunch,
  options: WorkerOptions,
  events: ConnectionEvents,
): Promise<Connection> {
  const { source, redact, clean } = options;
  await makeOwn(launch.socketFolder);
  await unlink(launch.socket).catch(() => {});
  let reason: string | null = null;
  /** What it did wrong, where that is why it was ended. */
  let fault: string | null = null;
  let closing = false;
  let socket: Socket | null = null;
  let ready: Ready | null = null;
  let onReady = () => {};
  let onEnded = () => {};
  const ended = new Promise<void>((resolve) => {
    onEnded = resolve;
  });
  let heard = 0;
  let spoilt = 0;
  /** Tools that are to come back after their calls were given up, and when the worker is ended if they do not. */
  const holding = new Map<number, NodeJS.Timeout>();

  const pending = createPending(source, {
    abandoned({ id, request }, why) {
      write(`{"op":"cancel","id":"${id}"}`);
      // One that was cancelled has as long as it would have had.
      if (request.method === 'tools/call') hold(id, why === 'timed out' ? GRACE.cancel : request.timeout);
    },
    refused: events.refused,
  });

  const child = startWorkerProcess(launch, {
    printed: options.stderr,
    isBusy: () => pending.size > 0 || holding.size > 0,
    exceeded: () => give(tooMuch(launch.memory)),
    ended: end,
  });

  function end(how: string): void {
    if (reason !== null) return;
    reason = fault ?? (ready === null || !how.startsWith('exited') ? how : `${how} (a tool must not end its process)`);
    for (const timer of holding.values()) clearTimeout(timer);
    socket?.destroy();
    onEnded();
    onReady();
    void unlink(launch.socket).catch(() => {});
    const text = redact(`Server "${source}" ${reason} before it answered. Try again.`);
    pending.failAll(fault === null ? new GatewayError('source_broken', text) : failing(source, fault));
    if (ready !== null && !closing) events.closed(reason);
  }

  /** Ends it for what it did. */
  function give(why: string): void {
    if (reason !== null) return;
    fault ??= why;
    pending.failAll(failing(source, fault));
    child.kill();
  }

  /** A tool that does not come back holds a thread, or all of the worker: then another worker takes its place. */
  function hold(id: number, ms: number): void {
    if (!holding.has(id)) holding.set(id, setTimeout(give, ms, STUCK).unref());
  }

  function release(id: number): void {
    clearTimeout(holding.get(id));
    holding.delete(id);
  }

  // Messages of the same turn of the event loop leave in one write.
  let batch = '';
  function write(message: Wire): void {
    if (typeof message !== 'string') {
      flush();
      send(message);
      send('\n');
      return;
    }
    if (batch === '') setImmediate(flush);
    batch += `${message}\n`;
  }

  function flush(): void {
    if (batch !== '') send(batch);
    batch = '';
  }

  function send(text: Wire): void {
    if (socket?.writable !== true) return;
    if (typeof text === 'string') socket.write(text, 'latin1');
    else socket.write(text);
  }

  function deliver(): void {
    if (holding.size > 0) release(found.id);
    pending.deliver(found.id, found.result);
  }

  function receive(line: Buffer): void {
    if (readAnswer(line)) deliver();
    else receiveStrictly(line);
  }

  function receiveStrictly(line: Buffer): void {
    try {
      hear(JSON.parse(line.toString()) as Said, line);
    } catch (error) {
      spoil(line, messageOf(error));
    }
  }

  // The ids are our own, so a call whose answer is spoilt can be found, and need not wait for its time-out.
  function spoil(line: Buffer, why: string): void {
    spoilt++;
    const preview = JSON.stringify(redact(line.toString('utf8', 0, 4_096)).slice(0, 120));
    if (spoilt <= SPOILT.told) events.note(`${UNKNOWN}: ${preview} (${why})`);
    const id = guessId(line);
    if (id !== null)
      pending.fail(id, failing(source, 'has spoilt its answer: a tool wrote to the socket of its worker'));
    if (spoilt >= SPOILT.most) give(`${UNKNOWN}, ${spoilt} times; a tool must not write to the socket of its worker`);
  }

  function hear(said: Said, line: Buffer): void {
    const { op, id } = said;
    if (id === END) return;
    const number = typeof id === 'string' ? Number(id) : Number.NaN;
    if (op === undefined) settle(number, said, line);
    else if (op === 'ready') {
      const tools = findMember(line, 'tools');
      ready = {
        tools: tools === null ? Buffer.from('[]') : line.subarray(tools.start, tools.end),
        failed: said.failed ?? [],
      };
      onReady();
    } else if (op === 'free') release(number);
    else if (op === 'progress' || op === 'log') {
      const { id: _, op: __, ...params } = said as Record<string, unknown>;
      if (op === 'progress') {
        const told = notificationMessage('notifications/progress', toBytes({ ...params, progressToken: number }));
        pending.hear(readMessage(told), null);
      } else {
        const told = notificationMessage('notifications/message', toBytes(params));
        pending.log(readMessage(told), Number.isNaN(number) ? null : number);
      }
    } else throw new Error('no such op');
  }

  function settle(id: number, { ok, error, busy }: Said, line: Buffer): void {
    if (Number.isNaN(id) || (ok !== true && ok !== false)) throw new Error('it is neither an answer nor an event');
    if (busy === true) hold(id, GRACE.cancel);
    else release(id);
    const result = ok ? findMember(line, 'result') : null;
    // A tool that fails with its address, or prints its surroundings, tells what it was given.
    if (!ok) pending.deliver(id, errorResult(redacted(error ?? {}, redact) as object));
    else if (result !== null && line[result.start] === OPEN_BRACE)
      pending.deliver(id, line.subarray(result.start, result.end));
    else throw new Error('its result is no object');
  }

  const reader = createLineReader(options.maxMessage, {
    line: clean === null ? receive : (line) => receive(clean(line)),
    parts(parts) {
      if (clean !== null) receive(clean(join(parts)));
      else if (readLong(parts)) deliver();
      else receive(join(parts));
    },
    tooLong(limit, head) {
      const text = `Server "${source}" answered with more than ${limit} bytes. Raise limits.message to allow it.`;
      events.note(text);
      const id = guessId(head);
      if (id !== null) pending.fail(id, new GatewayError('source_broken', text));
    },
  });

  async function connect(): Promise<void> {
    const deadline = Date.now() + options.startTimeout;
    for (let pause = 5; reason === null && !options.isClosed(); pause = Math.min(pause * 1.5, 100)) {
      const opened = await tryConnect(launch.socket);
      if (opened !== null) {
        socket = opened;
        opened.on('data', (chunk: Buffer) => {
          heard++;
          reader.push(chunk);
        });
        opened.on('error', () => {});
        // A process that ends closes it too, and then says more.
        opened.on('close', () => setTimeout(give, GRACE.word, 'closed its connection').unref());
        const told = new Promise<void>((resolve) => {
          onReady = resolve;
        });
        await Promise.race([told, sleep(Math.max(1, deadline - Date.now()), undefined, { ref: false })]);
        break;
      }
      if (Date.now() > deadline) break;
      await sleep(pause);
    }
    if (ready !== null && reason === null) return;
    const hasEnded = reason !== null;
    const why =
      reason ?? `was not ready within ${options.startTimeout / 1000} s; look at what its files do when they are loaded`;
    await close();
    throw new GatewayError('source_unavailable', why, { details: { ended: hasEnded } });
  }

  function answerHere(request: SourceRequest): Buffer | null {
    if (request.method === 'initialize')
      return toBytes({
        protocolVersion: LATEST_REVISION,
        capabilities: { tools: {}, logging: {} },
        serverInfo: { name: launch.namespace, version: '1' },
      });
    if (request.method === 'tools/list')
      return Buffer.concat([Buffer.from('{"tools":'), ready!.tools, Buffer.from('}')]);
    return request.method === 'logging/setLevel' ? EMPTY : null;
  }

  async function close(why?: string): Promise<void> {
    closing ||= why === undefined;
    if (reason !== null || child.pid === null) return;
    if (why !== undefined) give(why);
    else write(`{"id":"${END}","op":"shutdown"}`);
    setTimeout(child.release, 20).unref();
    const kill = setTimeout(child.kill, GRACE.end);
    await ended;
    clearTimeout(kill);
  }

  await connect();
  const { failed } = ready!;
  const worse = options.guard.regressions(launch.served, failed);
  if (worse.length > 0) {
    await close();
    throw new GatewayError('source_unavailable', `keeps its last good version, because ${worse.join('; ')}`);
  }
  options.guard.accept(launch.served, failed, ended);
  for (const one of failed) events.note(failureText(one));

  return {
    pid: child.pid,
    mirrors: false,
    get heard() {
      return heard;
    },
    get inFlight() {
      return pending.size;
    },
    asking: 0,
    askable: 0,
    awaited: false,
    speak() {},
    listen() {},
    notify() {},
    request(request) {
      const entry = pending.add(request);
      const known = reason === null ? answerHere(request) : null;
      if (reason !== null) queueMicrotask(() => pending.fail(entry.id, failing(source, reason ?? undefined)));
      else if (socket!.writableLength > MAX_UNREAD)
        queueMicrotask(() => pending.fail(entry.id, failing(source, 'does not read what it is asked')));
      else if (known !== null) queueMicrotask(() => pending.deliver(entry.id, known));
      else write(printRequest(entry.id, request));
      return entry;
    },
    close,
  };
}

const STUCK = 'was busy with a call that did not end in time, and is being replaced';
const UNKNOWN = 'wrote a line that is not of the contract of workers';
