/** A connection to a server that runs as a child process and exchanges lines of JSON on its pipes. */
import { GatewayError } from '../base/errors.ts';
import { countBuffer } from '../base/external-memory.ts';
import { LineWriter } from '../base/line-writer.ts';
import type { SourceRequest, Ticket } from '../protocol/contract.ts';
import { createLineReader } from '../protocol/lines.ts';
import type { Message } from '../protocol/message.ts';
import type { Era } from '../protocol/revisions.ts';
import type { Wire } from '../protocol/rewrite.ts';
import type { Connection, ConnectionEvents, ListenRequest } from './connection.ts';
import { ListenRequests } from './listening.ts';
import { type CloseReason, closedError, type PendingRequest } from './pending.ts';
import { type ConnectionOptions, cancelMessage, type ListenChannel, RpcConnection } from './rpc-connection.ts';
import type { ServerProcess } from './spawn.ts';
import { failRequest, unsentRequest } from './tickets.ts';

/** How long a server has after its input is closed, and then after SIGTERM, before the next step. */
const GRACE = { input: 400, term: 1200 };
/** How long a server may keep running after it closed one of its pipes. Most are about to exit. */
const WITHOUT_PIPES = 1000;
/** How long the pipes of a server that exited are read to their end. */
const LAST_OUTPUT = 500;
/** The most bytes that may wait in a pipe that the server does not read. */
const MAX_UNREAD = 64 * 1024 * 1024;
/** A server that leaves this much of our messages unread is not read either, and is ended if that lasts so long. */
const UNREAD = { bytes: 8 * 1024 * 1024, ms: 60_000 };
/** This many invalid lines are reported. A server that logs to its stdout must not flood our log. */
const MAX_NOTES = 20;

/** Bytes of a chunk that belongs to a large result. */
const LARGE = 16_384;

export interface StdioOptions extends ConnectionOptions {
  /** Receives everything that the server writes to its standard error. */
  stderr(chunk: Buffer): void;
}

export function openStdio(child: ServerProcess, options: StdioOptions, events: ConnectionEvents): Connection {
  return new StdioConnection(child, options, events);
}

class StdioConnection extends RpcConnection {
  override readonly pid: number | null;
  readonly #child: ServerProcess;
  readonly #writer: LineWriter;
  protected override readonly channel: StdioChannel;
  readonly #exited: Promise<void>;
  #onExited: () => void = () => {};
  #reason = '';
  #lastOutput: NodeJS.Timeout | undefined;
  #unpiped: NodeJS.Timeout | undefined;
  #notes = 0;
  /** Ends a server that does not read. */
  #unread: NodeJS.Timeout | undefined;
  #isCutOff = false;

  constructor(child: ServerProcess, options: StdioOptions, events: ConnectionEvents) {
    super(options, events);
    this.#child = child;
    this.pid = child.pid;
    this.#writer = new LineWriter(child.stdin);
    this.channel = new StdioChannel((message) => this.#send(message), events.missed);
    this.#exited = new Promise((resolve) => {
      this.#onExited = resolve;
    });
    this.#read(options.stderr);
    child.watch({
      failed: (problem) => this.#exit(`could not be started: ${problem}`),
      exited: (code, signal) => this.#exiting(signal === null ? `exited with code ${code}` : `was ended by ${signal}`),
      closed: () => this.#exit(this.#reason),
    });
  }

  #read(stderr: (chunk: Buffer) => void): void {
    const { stdin, stdout, stderr: errors } = this.#child;
    const reader = createLineReader(this.maxMessage, {
      line: (line) => this.receive(line, null),
      parts: (parts) => this.receiveParts(parts, null),
      long: (parts) => this.follow(parts, null, -1),
      tooLong: (limit, head) => this.#tooLong(limit, head),
    });
    stdout.on('data', (chunk: Buffer) => {
      this.heard++;
      reader.push(chunk);
      if (chunk.length >= LARGE) countBuffer(chunk.length);
    });
    stdout.on('error', () => {});
    stdout.on('end', () => this.#pipeClosed());
    errors.on('data', stderr);
    errors.on('error', () => {});
    stdin.on('error', () => this.#pipeClosed());
  }

  /** Without its pipes a server cannot be used, but its process may keep running. It is ended, and then restarted. */
  #pipeClosed(): void {
    if (!this.#child.isRunning || this.isClosing) return;
    this.#unpiped ??= setTimeout(this.#child.kill, WITHOUT_PIPES, 'SIGKILL');
  }

  #exiting(reason: string): void {
    clearTimeout(this.#unpiped);
    // What it wrote before its end is read, also if it did not read.
    this.#child.stdout.resume();
    this.#reason = reason;
    // A timer may be late on a busy machine and then comes before the pipes are read. They are read between two turns.
    const end = () => this.#exit(reason);
    this.#lastOutput = setTimeout(() => setImmediate(() => setImmediate(end)), LAST_OUTPUT);
  }

  #exit(reason: string): void {
    clearTimeout(this.#lastOutput);
    clearTimeout(this.#unread);
    this.#onExited();
    this.end(reason);
  }

  request(request: SourceRequest): Ticket {
    const { stdin } = this.#child;
    if (this.ended || !stdin.writable) return unsentRequest(request, this.source, this.#exited, this.events);
    if (stdin.writableLength > MAX_UNREAD)
      return failRequest(
        request,
        new GatewayError('source_busy', `Server "${this.source}" does not read its input. Try again later.`),
      );
    const pending = this.pending.add(request);
    this.#writer.write(request.encode(pending.id, this.pending.era));
    return pending;
  }

  notify(message: Wire): void {
    this.#send(message);
  }

  protected reply(answer: Buffer): void {
    this.#send(answer);
  }

  protected abandoned({ id }: PendingRequest, reason: string): void {
    this.#send(cancelMessage(id, reason));
  }

  /** Sends anything but a request. Nothing limits the number of these. */
  #send(message: Wire): void {
    const { stdin, stdout } = this.#child;
    if (stdin.writableLength > MAX_UNREAD) {
      this.#cutOff();
      return;
    }
    this.#writer.write(message);
    if (this.#unread !== undefined || stdin.writableLength <= UNREAD.bytes) return;
    // Reads nothing more from a server that does not read what we answer: it could ask without end.
    stdout.pause();
    this.#unread = setTimeout(() => this.#cutOff(), UNREAD.ms);
    this.#unread.unref();
    stdin.once('drain', () => {
      clearTimeout(this.#unread);
      this.#unread = undefined;
      stdout.resume();
    });
  }

  #cutOff(): void {
    if (this.#isCutOff || !this.#child.isRunning) return;
    this.#isCutOff = true;
    this.events.note('does not read its input, and is ended');
    this.#child.kill('SIGKILL');
  }

  speak(era: Era): void {
    this.pending.era = era;
  }

  listen(request: ListenRequest | null): void {
    this.channel.listen(request);
  }

  async close(reason?: CloseReason): Promise<void> {
    this.isClosing = true;
    this.channel.stop();
    if (this.ended) return;
    if (reason !== undefined) this.pending.failAll(closedError(this.source, reason));
    const { stdin, kill } = this.#child;
    setImmediate(() => stdin.end());
    const toTerm = setTimeout(kill, GRACE.input, 'SIGTERM');
    const toKill = setTimeout(kill, GRACE.input + GRACE.term, 'SIGKILL');
    await this.#exited;
    clearTimeout(toTerm);
    clearTimeout(toKill);
  }

  /** A broken answer ends its call now, not at its timeout. The ids are ours, so a fragment can identify the call. */
  protected override invalid(line: Buffer, problem: string): void {
    // Shortened after redaction, because half a secret would not be recognised.
    const preview = JSON.stringify(this.redact(line.toString('utf8', 0, 4_096)).slice(0, 120));
    this.#note(`wrote a line that is not a JSON-RPC message: ${preview} (${problem})`);
    const ends = `${line.toString('latin1', 0, 200)} ${line.toString('latin1', Math.max(0, line.length - 64))}`;
    const id = /"id":\s*(\d+)/.exec(ends)?.[1];
    // A log line may also contain an id.
    if (id === undefined || ends.includes('"method"') || !ends.includes('"jsonrpc"')) return;
    const text = this.redact(`Server "${this.source}" answered with invalid JSON. ${problem}`);
    this.pending.fail(Number(id), new GatewayError('source_broken', text));
  }

  #tooLong(limit: number, head: Buffer): void {
    const text = `Server "${this.source}" sent a message of more than ${limit} bytes. Raise limits.message to allow it.`;
    this.#note(text);
    const error = new GatewayError('source_broken', text);
    const start = head.toString('latin1', 0, 200);
    const id = /"id":\s*(\d+)\s*,\s*"(?:result|error)"/.exec(start)?.[1];
    if (id !== undefined) this.pending.fail(Number(id), error);
    // Without its id, it may have been the answer to any of them.
    else if (start.startsWith('{') && !start.includes('"method"')) this.pending.failAll(error);
  }

  #note(text: string): void {
    this.#notes++;
    if (this.#notes <= MAX_NOTES)
      this.events.note(this.#notes < MAX_NOTES ? text : `${text} Further ones are not reported.`);
  }
}

/** The listen request of a modern server on its pipe. An earlier one is cancelled by its id. */
class StdioChannel implements ListenChannel {
  readonly #write: (message: Buffer) => void;
  readonly #missed: () => void;
  readonly #listener: ListenRequests<string>;

  constructor(write: (message: Buffer) => void, missed: () => void) {
    this.#write = write;
    this.#missed = missed;
    this.#listener = new ListenRequests((id) => write(cancelMessage(id)));
  }

  listen(request: ListenRequest | null): void {
    const open = request === null ? null : () => this.#write(request.message);
    this.#listener.replace(request, this.#listener.request?.id ?? null, open, this.#missed);
  }

  acknowledged(message: Message): void {
    if (this.#listener.acknowledge(message)) this.#listener.opened();
  }

  settle(message: Message): boolean {
    if (!this.#listener.isEndedBy(message)) return false;
    if (message.errorStart < 0) this.#listener.lost();
    else this.#listener.refused();
    return true;
  }

  stop(): void {
    this.#listener.stop();
  }
}
