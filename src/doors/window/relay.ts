/**
 * A window: standard input and output of a client, attached to a shared gateway. Lines pass unread, apart from their ids.
 * If the gateway ends, the window finds or starts another one and opens the client's session there again, unseen. A call
 * that the gateway had taken is not repeated: it fails with an error that says so.
 */
import type { Socket } from 'node:net';
import type { Writable } from 'node:stream';
import { GatewayError, messageOf } from '../../base/errors.ts';
import { toObject } from '../../base/objects.ts';
import { toBytes } from '../../protocol/json.ts';
import { createLineReader } from '../../protocol/lines.ts';
import { claimsRevision, idText, isRequest, isResponse, type Message, parseParams } from '../../protocol/message.ts';
import { READ_DIRECTORY, SUBSCRIPTION_ID } from '../../protocol/meta.ts';
import { readBatch, readMessage } from '../../protocol/read.ts';
import { errorObject, errorResult, notificationMessage, requestMessage } from '../../protocol/rpc.ts';
import { LISTS, listChanged } from '../remote/words.ts';
import { ASIDE, type Aside } from './hello.ts';

export interface WindowOptions {
  /** Finds or starts a gateway. `before` is the number of gateways that the window had, `kept` what the last one told it to keep. */
  attach(before: number, kept: unknown): Promise<Socket>;
  /** A line of the gateway's log. */
  log(line: string): void;
  /** Something that the user should know. */
  note(message: string): void;
}

export interface Window {
  /** Resolves when the client has closed its end and has all its answers. */
  readonly ended: Promise<void>;
  close(): void;
}

/** `socket` is that of the first gateway. */
export function openWindow(
  socket: Socket,
  options: WindowOptions,
  input: NodeJS.ReadableStream,
  output: Writable,
): Window {
  const relay = new Relay(options, input, output);
  relay.adopt(socket);
  return { ended: relay.ended, close: () => relay.close() };
}

/** A request of the client that has no answer yet. */
interface OpenLine {
  readonly method: string;
  readonly line: Buffer;
  readonly isModern: boolean;
  isSent: boolean;
  /** Whether the client knows that its subscription is open. */
  isAcknowledged: boolean;
}

interface WaitingLine {
  readonly line: Buffer;
  readonly requests: readonly OpenLine[];
}

/** Generous: the gateway has limits of its own. */
const MOST_LINE = 256 * 1024 * 1024;
const NEWLINE = Buffer.from('\n');
const LISTEN = 'subscriptions/listen';
const ACKNOWLEDGED = 'notifications/subscriptions/acknowledged';
const OWN = '"toolgate-window-';

/** Requests that only read, or that have the same effect when they are repeated. */
const REPEATABLE = new Set([
  'initialize',
  'ping',
  'server/discover',
  'tools/list',
  'resources/list',
  'resources/templates/list',
  'resources/read',
  READ_DIRECTORY,
  'skills/list',
  'skills/get',
  'resources/subscribe',
  'resources/unsubscribe',
  'prompts/list',
  'prompts/get',
  'completion/complete',
  'logging/setLevel',
  'tasks/get',
  'tasks/list',
  'tasks/result',
  'tasks/cancel',
  LISTEN,
]);

/** How every answer and question of the gateway begins, and where the next key is. */
const HEAD = Buffer.from('{"jsonrpc":"2.0","');
const ID_KEY = Buffer.from(',"id":');
const METHOD_KEY = Buffer.from(',"method"');
const [R, E, I, M] = [...Buffer.from('reim')];

const LOST =
  'The gateway ended during this call. The call may or may not have been carried out: check before you repeat it.';

class Relay {
  readonly ended: Promise<void>;
  readonly #options: WindowOptions;
  readonly #input: NodeJS.ReadableStream;
  readonly #output: Writable;
  #socket: Socket | null = null;
  #isAttaching = false;
  /** The gateway has said that it ends. Another one is found when the client sends something. */
  #isEnding = false;
  #isInputOver = false;
  #finish = () => {};
  /** The client's requests that have no answer yet, by id. */
  readonly #open = new Map<string, OpenLine>();
  /** Lines that no gateway has been sent. */
  #waiting: WaitingLine[] = [];
  /** The ids of the gateway's questions that the client has not answered yet. */
  readonly #questions = new Set<string>();
  /** The beginning of a line whose end has not arrived. */
  #partial: Buffer[] = [];
  /** What a new gateway is told of the client's session. */
  #greeting: Buffer | null = null;
  #isGreeted = false;
  #isInitialized = false;
  #logLevel: Buffer | null = null;
  readonly #subscribed = new Map<string, Buffer>();
  #ownRequests = 0;
  #gateways = 0;
  #kept: unknown = null;
  /** The fingerprints of the lists as the client knew them with its last gateway. */
  #knownBefore: Record<string, unknown> = {};

  constructor(options: WindowOptions, input: NodeJS.ReadableStream, output: Writable) {
    this.#options = options;
    this.#input = input;
    this.#output = output;
    this.ended = new Promise((resolve) => {
      this.#finish = resolve;
    });
    const reader = createLineReader(MOST_LINE, {
      line: (line) => this.#receive(line),
      parts: (parts) => this.#receive(Buffer.concat(parts)),
      tooLong: (limit) => options.note(`a message from the client has more than ${limit} bytes and was skipped`),
    });
    input.on('data', (chunk: Buffer) => {
      reader.push(chunk);
      this.#flush();
    });
    input.once('end', () => {
      // The last line may lack its newline.
      reader.push(NEWLINE);
      this.#isInputOver = true;
      this.#flush();
      this.#endIfDone();
    });
    input.once('error', () => this.close());
    output.once('error', () => this.close());
  }

  /** Serves the client with this gateway from now on. */
  adopt(socket: Socket): void {
    this.#socket = socket;
    this.#isEnding = false;
    const isAgain = this.#gateways++ > 0;
    socket.on('data', (chunk: Buffer) => this.#pass(chunk));
    socket.on('drain', () => this.#flush());
    // A gateway that ends its side serves nobody any more.
    socket.once('end', () => this.#lost(socket));
    socket.once('close', () => this.#lost(socket));
    if (isAgain) this.#greetAgain();
    this.#flush();
    socket.resume();
  }

  /** Ends at once. */
  close(): void {
    this.#isInputOver = true;
    this.#open.clear();
    this.#waiting = [];
    this.#socket?.end();
    this.#finish();
  }

  // From the client.

  #receive(line: Buffer): void {
    this.#waiting.push({ line, requests: this.#read(line) });
  }

  /** Sends what waits, if the gateway takes it. */
  #flush(): void {
    const socket = this.#socket;
    const lines = this.#waiting;
    if (socket === null && lines.length > 0) this.#attach();
    if (socket === null) return;
    if (lines.length > 0 && !socket.writableNeedDrain) {
      this.#waiting = [];
      socket.cork();
      for (const { line } of lines) {
        socket.write(line);
        socket.write(NEWLINE);
      }
      socket.uncork();
      // A write that fails at once has sent nothing: the next gateway gets these.
      const isSent = socket.errored === null && !socket.destroyed;
      for (const { requests } of lines) for (const request of requests) request.isSent = isSent;
      if (!isSent) this.#waiting = lines;
    }
    if (socket.writableNeedDrain) this.#input.pause();
    else if (this.#isInputOver) this.#endIfDone();
    else this.#input.resume();
  }

  /** Notes what a line of the client asks for. What cannot be read goes to the gateway all the same, which says why. */
  #read(line: Buffer): OpenLine[] {
    try {
      if (line[0] !== 0x5b) return this.#note(readMessage(line));
      return (readBatch(line, Number.POSITIVE_INFINITY) ?? []).flatMap((part) => this.#note(readMessage(part)));
    } catch {
      return [];
    }
  }

  #note(message: Message): OpenLine[] {
    if (isRequest(message)) {
      const { method, bytes } = message;
      const isModern = claimsRevision(message);
      const request = { method, line: bytes, isModern, isSent: false, isAcknowledged: false };
      this.#open.set(idText(message), request);
      if (method !== 'tools/call') this.#remember(message);
      return [request];
    }
    if (isResponse(message)) {
      if (message.idStart >= 0) this.#questions.delete(idText(message));
    } else if (message.method === 'notifications/initialized') this.#isInitialized = true;
    else if (message.method === 'notifications/cancelled')
      this.#open.delete(JSON.stringify(parseParams(message).requestId));
    return [];
  }

  /** Remembers what a new gateway has to be told. */
  #remember(message: Message): void {
    const { method, bytes, paramsStart, paramsEnd } = message;
    if (claimsRevision(message) || paramsStart < 0) return;
    const params = bytes.subarray(paramsStart, paramsEnd);
    if (method === 'initialize') this.#greeting = params;
    else if (method === 'logging/setLevel') this.#logLevel = params;
    else if (method === 'resources/subscribe') this.#subscribed.set(String(parseParams(message).uri), params);
    else if (method === 'resources/unsubscribe') this.#subscribed.delete(String(parseParams(message).uri));
  }

  // From the gateway.

  /** Passes on whole lines only: a gateway that is killed may leave half of one. */
  #pass(chunk: Buffer): void {
    const output = this.#output;
    output.cork();
    let start = 0;
    if (this.#partial.length > 0) {
      const end = chunk.indexOf(0x0a);
      if (end < 0) {
        this.#partial.push(chunk);
        output.uncork();
        return;
      }
      const line = Buffer.concat([...this.#partial, chunk.subarray(0, end + 1)]);
      this.#partial = [];
      start = end + 1;
      if (this.#isForClient(line, 0, line.length - 1)) output.write(line);
    }
    // Lines that go to the client leave together.
    let from = start;
    for (let end = chunk.indexOf(0x0a, start); end >= 0; end = chunk.indexOf(0x0a, start)) {
      if (!this.#isForClient(chunk, start, end)) {
        if (from < start) output.write(chunk.subarray(from, start));
        from = end + 1;
      }
      start = end + 1;
    }
    if (from < start) output.write(chunk.subarray(from, start));
    if (start < chunk.length) this.#partial.push(chunk.subarray(start));
    output.uncork();
    this.#slowDown();
  }

  #slowDown(): void {
    const socket = this.#socket;
    if (!this.#output.writableNeedDrain || socket === null || socket.isPaused()) return;
    socket.pause();
    this.#output.once('drain', () => socket.resume());
  }

  #isForClient(bytes: Buffer, start: number, end: number): boolean {
    if (bytes[start] === ASIDE) {
      this.#hear(JSON.parse(bytes.toString('utf8', start + 1, end)) as Aside);
      return false;
    }
    const at = start + HEAD.length;
    if (end <= at || bytes.compare(HEAD, 0, HEAD.length, start, at) !== 0) return true;
    const next = bytes[at];
    if (next === R || next === E) return this.#isAnswerForClient(bytes, start, end, next === R);
    if (next === I) this.#questions.add(bytes.toString('latin1', at + 4, bytes.indexOf(METHOD_KEY, at)));
    return next !== M || this.#isNewsForClient(bytes, start, end);
  }

  /** The id is the last member of every answer, and its key cannot occur inside a string. */
  #isAnswerForClient(bytes: Buffer, start: number, end: number, isResult: boolean): boolean {
    const key = bytes.lastIndexOf(ID_KEY, end);
    if (key < start) return true;
    const id = bytes.toString('latin1', key + ID_KEY.length, end - 1);
    const request = this.#open.get(id);
    if (request === undefined) {
      if (!id.startsWith(OWN)) return true;
      if (!isResult) this.#options.note('the new gateway did not take over everything of the client: start it again');
      return false;
    }
    // A gateway that ends as it should closes subscriptions. The next one opens them again.
    if (this.#isEnding && request.method === LISTEN) return false;
    if (request.method === 'initialize') this.#isGreeted = isResult;
    this.#open.delete(id);
    if (this.#isInputOver) setImmediate(() => this.#endIfDone());
    return true;
  }

  #isNewsForClient(bytes: Buffer, start: number, end: number): boolean {
    const text = bytes.toString('latin1', start, Math.min(end, start + 120));
    if (this.#questions.size > 0 && text.includes('"notifications/cancelled"')) {
      const { requestId } = toObject(toObject(JSON.parse(bytes.toString('utf8', start, end))).params);
      this.#questions.delete(JSON.stringify(requestId));
    }
    if (!text.includes(ACKNOWLEDGED)) return true;
    const meta = toObject(toObject(toObject(JSON.parse(bytes.toString('utf8', start, end))).params)._meta);
    const request = this.#open.get(JSON.stringify(meta[SUBSCRIPTION_ID]));
    if (request === undefined || request.isAcknowledged) return false;
    request.isAcknowledged = true;
    return true;
  }

  #hear(aside: Aside): void {
    if ('log' in aside) this.#options.log(aside.log);
    else if ('keep' in aside) {
      this.#kept = aside.keep;
      this.#compareLists();
    } else this.#isEnding = true;
  }

  /** Tells the client which lists differ from those of its last gateway. */
  #compareLists(): void {
    const known = toObject(toObject(this.#kept).known);
    for (const kind of LISTS) {
      const before = this.#knownBefore[kind];
      if (typeof before !== 'string' || typeof known[kind] !== 'string') continue;
      delete this.#knownBefore[kind];
      if (before !== known[kind]) this.#announce(kind);
    }
  }

  #announce(kind: (typeof LISTS)[number]): void {
    if (this.#isGreeted) this.#write(...listChanged([kind], null));
    for (const [id, { method, line }] of this.#open) {
      if (method !== LISTEN) continue;
      const { notifications } = parseParams(readMessage(line));
      if (toObject(notifications)[`${kind}ListChanged`] === true) this.#write(...listChanged([kind], id));
    }
  }

  #write(...lines: readonly Buffer[]): void {
    for (const line of lines) this.#output.write(Buffer.concat([line, NEWLINE]));
  }

  // Without a gateway.

  #lost(socket: Socket): void {
    if (this.#socket !== socket) return;
    this.#socket = null;
    this.#partial = [];
    const isOurEnd = socket.writableEnded;
    socket.destroy();
    if (isOurEnd) {
      this.#finish();
      return;
    }
    const known = toObject(toObject(this.#kept).known);
    this.#knownBefore = { ...this.#knownBefore, ...known };
    const again: WaitingLine[] = [];
    for (const [id, request] of this.#open) {
      if (!request.isSent) continue;
      if (REPEATABLE.has(request.method)) again.push({ line: request.line, requests: [request] });
      else this.#fail(id, request, new GatewayError('source_unavailable', LOST));
    }
    this.#waiting.unshift(...again);
    for (const id of this.#questions) {
      const params = toBytes({ requestId: JSON.parse(id) as unknown, reason: 'the gateway ended' });
      this.#write(notificationMessage('notifications/cancelled', params));
    }
    this.#questions.clear();
    if (this.#isInputOver && this.#waiting.length === 0) this.#finish();
    else if (!this.#isEnding || again.some(({ requests }) => requests[0]!.method !== LISTEN)) this.#attach();
    else this.#input.resume();
  }

  #attach(): void {
    if (this.#isAttaching) return;
    this.#isAttaching = true;
    this.#input.pause();
    this.#options.attach(this.#gateways, this.#kept).then(
      (socket) => {
        this.#isAttaching = false;
        this.#options.note('the gateway ended: another one has taken its place');
        this.adopt(socket);
      },
      (error: unknown) => {
        this.#isAttaching = false;
        this.#giveUp(messageOf(error));
      },
    );
  }

  /** There is no gateway now. The next message of the client is another reason to try. */
  #giveUp(reason: string): void {
    this.#options.note(`the gateway ended and could not be started again: ${reason}`);
    const text = `The gateway ended and could not be started again: ${reason}`;
    // A subscription stays wanted.
    for (const [id, request] of this.#open)
      if (request.method !== LISTEN) this.#fail(id, request, new GatewayError('source_unavailable', text));
    this.#waiting = this.#waiting.filter(({ requests: [first] }) => first?.method === LISTEN);
    if (this.#isInputOver) this.#finish();
    else this.#input.resume();
  }

  #fail(id: string, { method, isModern }: OpenLine, error: GatewayError): void {
    this.#open.delete(id);
    const isCall = method === 'tools/call';
    const result = errorResult(error).toString();
    const body = isCall
      ? `"result":${isModern ? `{"resultType":"complete",${result.slice(1)}` : result}`
      : `"error":${errorObject(error)}`;
    // The id goes back as the bytes it came in.
    this.#output.write(
      Buffer.concat([Buffer.from(`{"jsonrpc":"2.0",${body},"id":`), Buffer.from(id, 'latin1'), Buffer.from('}\n')]),
    );
  }

  /** Opens the client's session in another gateway: its introduction, its log level, its subscriptions. */
  #greetAgain(): void {
    if (this.#greeting === null || !this.#isGreeted) return;
    const ask = (method: string, params: Buffer) => {
      this.#socket!.write(requestMessage(`toolgate-window-${++this.#ownRequests}`, method, params));
      this.#socket!.write(NEWLINE);
    };
    ask('initialize', this.#greeting);
    if (this.#isInitialized) {
      this.#socket!.write(notificationMessage('notifications/initialized'));
      this.#socket!.write(NEWLINE);
    }
    if (this.#logLevel !== null) ask('logging/setLevel', this.#logLevel);
    for (const params of this.#subscribed.values()) ask('resources/subscribe', params);
  }

  #endIfDone(): void {
    if (!this.#isInputOver || this.#waiting.length > 0) return;
    if (this.#socket === null && !this.#isAttaching) this.#finish();
    else this.#socket?.end();
  }
}
