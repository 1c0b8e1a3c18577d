/**
 * Connects standard input and output to a remote gateway. Messages of both eras are forwarded unchanged. While the
 * gateway is unreachable, requests wait. If it no longer knows the session, a new one is opened with the client's
 * original `initialize` parameters, and the client is told that its lists may have changed. Requests that were in
 * progress when the connection broke are not repeated: each fails with an error that says so.
 */
import type { Writable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { claimedRevision } from '../../protocol/envelope.ts';
import { oneLine, toBytes } from '../../protocol/json.ts';
import { createLineReader } from '../../protocol/lines.ts';
import { claimsRevision, idText, isRequest, isResponse, type Message, parseParams } from '../../protocol/message.ts';
import { readBatch, readMessage } from '../../protocol/read.ts';
import { requestMessage } from '../../protocol/rpc.ts';
import { arrive, type ExchangeOutcome, exchange, LONGEST, SHORTEST } from './exchange.ts';
import { keepNews } from './keep-listening.ts';
import {
  errorLine,
  errorText,
  headersFor,
  INITIALIZED,
  LISTS,
  listChanged,
  lostText,
  type Marks,
  NO_PARAMS,
  noteMarks,
  statusText,
  unreachableText,
} from './words.ts';

/** Which gateway to connect to, and how. */
export interface RemoteOptions {
  readonly url: string;
  /** Called for each request, because the token may be replaced. */
  headers(): Record<string, string>;
  /** Milliseconds that a request waits for an unreachable gateway. */
  readonly patience: number;
  note(message: string): void;
}

/** A stdio client that is connected to a remote gateway. */
export interface RemoteDoor {
  /** Resolves when the client has closed its end. */
  readonly ended: Promise<void>;
  close(): Promise<void>;
}

interface OpenRequest {
  readonly abort: AbortController;
  readonly method: string;
  answered: boolean;
}

const NEWLINE = Buffer.from('\n');
const MOST_LINE = 256 * 1024 * 1024;
const LISTEN = 'subscriptions/listen';

/** Connects a client on a pair of streams to a gateway over HTTP, as `toolgate connect` does. */
export function openRemoteDoor(options: RemoteOptions, input: NodeJS.ReadableStream, output: Writable): RemoteDoor {
  const { url, patience, note } = options;
  const closing = new AbortController();
  const open = new Map<string, OpenRequest>();
  const subscribed = new Set<string>();
  const marks: Marks = new Map();
  let session: string | null = null;
  let revision: string | null = null;
  /**
   * The client's `initialize` parameters, needed to open a new session, and the lists whose changes it was promised.
   */
  let handshake: Buffer | null = null;
  let lists: string[] = [];
  let level: unknown = null;
  let opening: Promise<void> | null = null;
  let isOpened = false;
  let serial = 0;
  let renewing: Promise<void> | null = null;
  let listening: AbortController | null = null;

  function write(message: Buffer): void {
    if (output.writable) output.write(Buffer.concat([oneLine(message), NEWLINE]));
  }

  function common(): Record<string, string> {
    return {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      ...options.headers(),
      ...(session !== null && { 'mcp-session-id': session }),
      ...(revision !== null && { 'mcp-protocol-version': revision }),
    };
  }

  const send = (
    body: Buffer,
    headers: Record<string, string>,
    signal: AbortSignal,
    heard: (message: Buffer) => void,
    started?: (status: number, named: string | null) => void,
  ) => exchange(url, { method: 'POST', headers, body, signal, ...(started && { started }) }, output, heard);

  /** Stores the session id before the body is read, because the client may send its next message at once. */
  function enter(status: number, named: string | null): void {
    if (status === 200) session = named;
  }

  /** Handles a message that the gateway sends on a client's request. */
  function hear(bytes: Buffer): void {
    const message = readMessage(bytes);
    const entry = isResponse(message) && message.idStart >= 0 ? open.get(idText(message)) : undefined;
    if (entry !== undefined) {
      entry.answered = true;
      if (entry.method === 'tools/list') noteMarks(marks, bytes.subarray(message.resultStart, message.resultEnd));
      if (entry.method === 'initialize') greeted(message);
    }
    write(bytes);
  }

  function greeted({ bytes, resultStart, resultEnd }: Message): void {
    if (resultStart < 0) return;
    const result = JSON.parse(bytes.toString('utf8', resultStart, resultEnd)) as {
      protocolVersion?: unknown;
      capabilities?: Record<string, { listChanged?: unknown } | undefined>;
    };
    revision = typeof result.protocolVersion === 'string' ? result.protocolVersion : null;
    lists = LISTS.filter((kind) => result.capabilities?.[kind]?.listChanged === true);
  }

  /** Forwards a client's request, with or without a session. */
  async function forward(message: Message): Promise<void> {
    const id = idText(message);
    const entry = track(id, message.method);
    const { signal } = entry.abort;
    const isModern = claimsRevision(message);
    const until = Date.now() + patience;
    remember(message);
    if (!isModern && message.method !== 'initialize') await opened();
    let outcome: ExchangeOutcome;
    let reason = '';
    for (let tries = 0; ; tries++) {
      const used = session;
      const headers = isModern
        ? { ...common(), ...headersFor(message, claimedRevision(message)!, marks) }
        : message.method === 'initialize'
          ? withoutSession(common())
          : common();
      const held: Buffer[] = [];
      // A 404 for an expired session is not passed to the client: the request is repeated in a new session.
      const isLost = (status: number) =>
        status === 404 && !isModern && used !== null && message.method !== 'initialize';
      const started = message.method === 'initialize' ? enter : undefined;
      const attempt = () => send(message.bytes, headers, signal, (bytes) => receive(bytes, held), started);
      outcome = await arrive(attempt, signal, until);
      if (outcome.kind === 'answered' && isLost(outcome.status) && tries < 3 && !signal.aborted) {
        await renew(used);
        continue;
      }
      for (const bytes of held) {
        const told = readMessage(bytes);
        if (told.idStart >= 0 && open.has(idText(told))) hear(bytes);
        else reason = errorText(told);
      }
      break;
    }
    open.delete(id);
    if (entry.answered || signal.aborted) return;
    write(errorLine(id, failure(outcome, reason)));
  }

  /**
   * Holds errors back. One may say that the session is lost, or carry no id; which applies is known only once the
   * exchange has ended.
   */
  function receive(bytes: Buffer, held: Buffer[]): void {
    const message = readMessage(bytes);
    if (message.errorStart < 0) hear(bytes);
    else held.push(bytes);
  }

  function failure(outcome: ExchangeOutcome, reason = ''): string {
    if (outcome.kind === 'unreachable') return unreachableText(url, outcome.reason);
    if (outcome.kind === 'broken') return lostText(url, outcome.reason);
    return outcome.status === 200 ? lostText(url, 'the answer ended early') : statusText(url, outcome.status, reason);
  }

  function track(id: string, method: string): OpenRequest {
    const entry = { abort: new AbortController(), method, answered: false };
    open.set(id, entry);
    return entry;
  }

  /** Remembers what has to be repeated in a new session. */
  function remember(message: Message): void {
    const { method, bytes, paramsStart, paramsEnd } = message;
    if (method === 'initialize') handshake = paramsStart < 0 ? NO_PARAMS : bytes.subarray(paramsStart, paramsEnd);
    else if (method === 'logging/setLevel') level = parseParams(message).level;
    else if (method === 'resources/subscribe') subscribed.add(String(parseParams(message).uri));
    else if (method === 'resources/unsubscribe') subscribed.delete(String(parseParams(message).uri));
  }

  /** Replaces a session that the gateway no longer knows. Requests that notice at the same time share one renewal. */
  function renew(stale: string | null): Promise<void> {
    if (session !== stale || handshake === null) return Promise.resolve();
    renewing ??= greetAgain().finally(() => {
      renewing = null;
    });
    return renewing;
  }

  async function greetAgain(): Promise<void> {
    const { signal } = closing;
    const id = `toolgate-connect-${++serial}`;
    const hello = requestMessage(id, 'initialize', handshake!);
    const greet = () => send(hello, withoutSession(common()), signal, (bytes) => greeted(readMessage(bytes)), enter);
    const outcome = await arrive(greet, signal, Number.POSITIVE_INFINITY);
    if (outcome.kind !== 'answered' || outcome.status !== 200) return;
    const say = (message: Buffer) => send(message, common(), signal, () => {});
    await say(INITIALIZED);
    for (const uri of subscribed) await say(requestMessage(id, 'resources/subscribe', toBytes({ uri })));
    if (level !== null) await say(requestMessage(id, 'logging/setLevel', toBytes({ level })));
    note('the gateway was away, or has forgotten the session: a new one is open');
    listen();
    for (const line of listChanged(lists, null)) write(line);
  }

  /** Opens the session's stream for messages that the gateway sends on its own. */
  function listen(): void {
    listening?.abort();
    const mine = new AbortController();
    listening = mine;
    void follow(mine.signal).catch((error: unknown) => note(String(error)));
  }

  async function follow(signal: AbortSignal): Promise<void> {
    let lastId = '';
    for (let pause = SHORTEST; !signal.aborted; ) {
      const used = session;
      const headers = { ...common(), ...(lastId !== '' && { 'last-event-id': lastId }) };
      const began = Date.now();
      const outcome = await exchange(url, { method: 'GET', headers, signal }, output, write);
      if (signal.aborted) return;
      if (outcome.kind !== 'unreachable' && outcome.lastId !== '') lastId = outcome.lastId;
      if (outcome.kind === 'answered' && outcome.status === 404) {
        await renew(used);
        return;
      }
      if (outcome.kind === 'answered' && [400, 401, 403, 405].includes(outcome.status)) return;
      pause = Date.now() - began > LONGEST ? SHORTEST : Math.min(pause * 2, LONGEST);
      await sleep(pause, undefined, { signal }).catch(() => {});
    }
  }

  async function forwardListen(message: Message): Promise<void> {
    const id = idText(message);
    const { signal } = track(id, LISTEN).abort;
    const headers = () => ({ ...common(), ...headersFor(message, claimedRevision(message)!, marks) });
    const post = (heard: (bytes: Buffer) => void) => send(message.bytes, headers(), signal, heard);
    await keepNews(message, post, signal, write, (outcome) => errorLine(id, failure(outcome)));
    open.delete(id);
  }

  /** Forwards a message that gets no answer. */
  async function pass(bytes: Buffer, method: string): Promise<void> {
    const until = Date.now() + patience;
    const sent = arrive(() => send(bytes, common(), closing.signal, write), closing.signal, until);
    if (method !== 'notifications/initialized') return;
    opening = sent.then((outcome) => {
      isOpened = outcome.kind === 'answered' && outcome.status < 300;
      if (isOpened) listen();
    });
  }

  /**
   * Waits for `notifications/initialized` to arrive. Requests travel on other connections and must not overtake it, and
   * if it failed it is sent again.
   */
  async function opened(): Promise<void> {
    await opening;
    if (!isOpened && opening !== null) await pass(INITIALIZED, 'notifications/initialized').then(() => opening);
  }

  function cancel(message: Message): boolean {
    const { requestId } = parseParams(message);
    const entry = open.get(JSON.stringify(requestId));
    // Without a session, closing the stream cancels the request.
    if (entry === undefined || session !== null) return false;
    entry.abort.abort();
    return true;
  }

  async function receiveLine(bytes: Buffer): Promise<void> {
    const batch = readBatch(bytes);
    const message = batch === null ? readMessage(bytes) : null;
    if (message === null) {
      await send(bytes, common(), closing.signal, write);
    } else if (isRequest(message)) {
      if (handshake !== null && session === null && !claimsRevision(message)) await renewing;
      await (message.method === LISTEN ? forwardListen(message) : forward(message));
    } else if (message.method !== 'notifications/cancelled' || !cancel(message)) {
      await pass(bytes, message.method);
    }
  }

  const reader = createLineReader(MOST_LINE, {
    line: receiveNow,
    parts: (parts) => receiveNow(Buffer.concat(parts)),
    tooLong: (limit) => note(`a message of the client has more than ${limit} bytes and is passed over`),
  });

  function receiveNow(line: Buffer): void {
    // Copied, because the reader may reuse its buffer.
    receiveLine(Buffer.from(line)).catch((error: unknown) =>
      note(`what the client sent cannot be passed on: ${error instanceof Error ? error.message : String(error)}`),
    );
  }

  input.on('data', (chunk: Buffer) => reader.push(chunk));
  const ended = new Promise<void>((resolve) => {
    input.once('end', resolve);
    input.once('close', resolve);
    output.once('error', () => resolve());
  });

  return {
    ended,
    async close() {
      closing.abort();
      listening?.abort();
      for (const { abort } of open.values()) abort.abort();
      if (session === null) return;
      const signal = AbortSignal.timeout(1_000);
      await exchange(url, { method: 'DELETE', headers: common(), signal }, output, () => {});
    },
  };
}

function withoutSession({ 'mcp-session-id': _, 'mcp-protocol-version': __, ...headers }: Record<string, string>) {
  return headers;
}
