/**
 * Connects standard input and output to a remote gateway. Messages of both eras are forwarded unchanged. While the
 * gateway is unreachable, requests wait. Requests that were in progress when the connection broke are not repeated:
 * each fails with an error that says so.
 */
import type { Writable } from 'node:stream';
import { messageOf } from '../../base/errors.ts';
import { claimedRevision } from '../../protocol/envelope.ts';
import { createLineReader } from '../../protocol/lines.ts';
import { claimsRevision, idText, isRequest, isResponse, type Message, parseParams } from '../../protocol/message.ts';
import { readBatch, readMessage } from '../../protocol/read.ts';
import { arrive, type ExchangeOutcome } from './exchange.ts';
import { keepListening } from './keep-listening.ts';
import { RemoteLink, type RemoteOptions } from './link.ts';
import { RemoteSession } from './session.ts';
import { errorLine, errorText, failureText, headersFor, type MirroredArguments, noteMirrored } from './words.ts';

/** A stdio client that is connected to a remote gateway. */
export interface RemoteDoor {
  /** Resolves when the client has closed its end. */
  readonly ended: Promise<void>;
  close(): Promise<void>;
}

interface OpenRequest {
  readonly abort: AbortController;
  readonly method: string;
  isAnswered: boolean;
}

/** The last attempt to deliver a request, and the error responses that came with it. */
interface Delivery {
  readonly outcome: ExchangeOutcome;
  readonly errors: readonly Buffer[];
}

const MOST_LINE = 256 * 1024 * 1024;
const MOST_RENEWALS = 3;
const LISTEN = 'subscriptions/listen';

/** Connects a client on a pair of streams to a gateway over HTTP, as `toolgate connect` does. */
export function openRemoteDoor(options: RemoteOptions, input: NodeJS.ReadableStream, output: Writable): RemoteDoor {
  const relay = new Relay(new RemoteLink(options, output));
  const reader = createLineReader(MOST_LINE, {
    line: (line) => relay.receive(line),
    parts: (parts) => relay.receive(Buffer.concat(parts)),
    tooLong: (limit) => options.note(`a message from the client has more than ${limit} bytes and was skipped`),
  });
  input.on('data', (chunk: Buffer) => reader.push(chunk));
  const ended = new Promise<void>((resolve) => {
    input.once('end', resolve);
    input.once('close', resolve);
    output.once('error', () => resolve());
  });
  return { ended, close: () => relay.close() };
}

class Relay {
  readonly #link: RemoteLink;
  readonly #session: RemoteSession;
  /** The client's requests that are in progress, by id. */
  readonly #open = new Map<string, OpenRequest>();
  readonly #mirrored: MirroredArguments = new Map();

  constructor(link: RemoteLink) {
    this.#link = link;
    this.#session = new RemoteSession(link);
  }

  /** Takes a line from the client. */
  receive(line: Buffer): void {
    // Copied, because the reader may reuse its buffer.
    this.#forwardLine(Buffer.from(line)).catch((error: unknown) =>
      this.#link.options.note(`a message from the client could not be forwarded: ${messageOf(error)}`),
    );
  }

  async #forwardLine(bytes: Buffer): Promise<void> {
    const message = readBatch(bytes, Number.POSITIVE_INFINITY) === null ? readMessage(bytes) : null;
    if (message === null) {
      const { closing, write } = this.#link;
      await this.#link.post(bytes, this.#session.headers(), closing.signal, write);
    } else if (isRequest(message)) {
      const { renewal } = this.#session;
      if (renewal !== null && !claimsRevision(message)) await renewal;
      await (message.method === LISTEN ? this.#forwardListen(message) : this.#forward(message));
    } else if (message.method === 'notifications/initialized') await this.#session.open(bytes);
    else if (message.method !== 'notifications/cancelled' || !this.#cancel(message)) await this.#session.notify(bytes);
  }

  /** Forwards a request, with or without a session, and makes sure that the client gets an answer. */
  async #forward(message: Message): Promise<void> {
    const id = idText(message);
    const request = this.#track(id, message.method);
    const { signal } = request.abort;
    const until = Date.now() + this.#link.options.patience;
    this.#session.remember(message);
    if (isInSession(message)) await this.#session.opened();
    const { outcome, errors } = await this.#deliver(message, signal, until);
    let reason = '';
    for (const bytes of errors) {
      const error = readMessage(bytes);
      if (error.idStart >= 0 && this.#open.has(idText(error))) this.#pass(bytes, error);
      else reason = errorText(error);
    }
    this.#open.delete(id);
    if (!request.isAnswered && !signal.aborted) this.#link.write(errorLine(id, this.#failure(outcome, reason)));
  }

  /** A 404 for an expired session is not passed to the client: the request is repeated in a new session. */
  async #deliver(message: Message, signal: AbortSignal, until: number): Promise<Delivery> {
    const session = this.#session;
    const started = message.method === 'initialize' ? session.enter : undefined;
    for (let renewals = 0; ; renewals++) {
      const used = session.id;
      const headers = this.#headersOf(message);
      const errors: Buffer[] = [];
      // An error may say that the session is lost, or have no id. Which one it is shows when the exchange has ended.
      const receive = (bytes: Buffer) => {
        const answer = readMessage(bytes);
        if (answer.errorStart < 0) this.#pass(bytes, answer);
        else errors.push(bytes);
      };
      const attempt = () => this.#link.post(message.bytes, headers, signal, receive, started);
      const outcome = await arrive(attempt, signal, until);
      const isLost = outcome.kind === 'answered' && outcome.status === 404 && used !== null && isInSession(message);
      if (!isLost || renewals >= MOST_RENEWALS || signal.aborted) return { outcome, errors };
      await session.renew(used);
    }
  }

  #headersOf(message: Message): Record<string, string> {
    if (claimsRevision(message))
      return { ...this.#session.headers(), ...headersFor(message, claimedRevision(message)!, this.#mirrored) };
    return isInSession(message) ? this.#session.headers() : this.#session.openingHeaders();
  }

  /** Passes a message from the gateway to the client. */
  #pass(bytes: Buffer, message: Message): void {
    const request = isResponse(message) && message.idStart >= 0 ? this.#open.get(idText(message)) : undefined;
    if (request !== undefined) {
      request.isAnswered = true;
      if (request.method === 'tools/list')
        noteMirrored(this.#mirrored, bytes.subarray(message.resultStart, message.resultEnd));
      if (request.method === 'initialize') this.#session.greeted(message);
    }
    this.#link.write(bytes);
  }

  async #forwardListen(message: Message): Promise<void> {
    const id = idText(message);
    const { signal } = this.#track(id, LISTEN).abort;
    const post = (heard: (bytes: Buffer) => void) =>
      this.#link.post(message.bytes, this.#headersOf(message), signal, heard);
    const failure = (outcome: ExchangeOutcome) => errorLine(id, this.#failure(outcome));
    await keepListening(message, post, signal, this.#link.write, failure);
    this.#open.delete(id);
  }

  /** Returns false if the gateway has to be told. Without a session, closing the stream cancels the request. */
  #cancel(message: Message): boolean {
    const { requestId } = parseParams(message);
    const request = this.#open.get(JSON.stringify(requestId));
    if (request === undefined || this.#session.id !== null) return false;
    request.abort.abort();
    return true;
  }

  #track(id: string, method: string): OpenRequest {
    const request = { abort: new AbortController(), method, isAnswered: false };
    this.#open.set(id, request);
    return request;
  }

  #failure(outcome: ExchangeOutcome, reason = ''): string {
    return failureText(this.#link.options.url, outcome, reason);
  }

  async close(): Promise<void> {
    this.#link.closing.abort();
    for (const { abort } of this.#open.values()) abort.abort();
    await this.#session.close();
  }
}

/** Whether a request needs an open session: it is of the older era, and does not open one itself. */
function isInSession(message: Message): boolean {
  return !claimsRevision(message) && message.method !== 'initialize';
}
