/** A connection to a server over Streamable HTTP: every request is a POST of its own. */
import type { Dispatcher } from 'undici';
import type { Launch } from '../config/config.ts';
import { GatewayError, messageOf } from '../errors.ts';
import { toBytes } from '../protocol/json.ts';
import { LONG, readLongAnswer } from '../protocol/long.ts';
import { isRequest, isResponse, type Message } from '../protocol/message.ts';
import { join } from '../protocol/parts.ts';
import { readMessage } from '../protocol/read.ts';
import { type Wire, wireBytes } from '../protocol/rewrite.ts';
import { notificationMessage } from '../protocol/rpc.ts';
import { createSseReader, type SseReader } from '../protocol/sse.ts';
import { readUsualAnswer, usual } from '../protocol/usual.ts';
import type { Connection, ConnectionEvents, ListenRequest, Request, Ticket } from './connection.ts';
import { isListenAnswer } from './greeting.ts';
import { Exchange, type Link, TooLarge } from './http-exchange.ts';
import { isUnderstood, isUnreachable, NOT_HERE, reach, statusHint } from './http-refusal.ts';
import { keepListening, type Listening } from './listening.ts';
import { createPending, type Waiting } from './pending.ts';
import { createQuestions } from './questions.ts';

export type HttpLaunch = Extract<Launch, { kind: 'http' }>;

export interface HttpOptions {
  readonly source: string;
  readonly maxMessage: number;
}

export async function openHttp(
  launch: HttpLaunch,
  options: HttpOptions,
  events: ConnectionEvents,
): Promise<Connection> {
  // Loaded here, because most gateways have only servers on pipes and should not wait for it at start.
  const { Pool } = await import('undici');
  const { source, maxMessage } = options;
  const url = new URL(launch.url);
  const pool = new Pool(url.origin, {
    connections: 64,
    headersTimeout: 0,
    bodyTimeout: 0,
    connect: { timeout: 10_000 },
  });
  const path = `${url.pathname}${url.search}`;
  let session: string | null = null;
  let revision: string | null = null;
  let ended = false;
  let listening: Listening | null = null;
  let listened: ListenRequest | null = null;
  let stream: Dispatcher.DispatchController | null = null;
  /** Whether the server speaks on it; null as long as it never has. */
  let isSpeaking: boolean | null = null;

  const pending = createPending(source, {
    abandoned({ id, carrier }, reason) {
      carrier?.abort(new Error('cancelled'));
      // To a modern server the end of the reply says it all.
      if (pending.era === 'legacy')
        post(notificationMessage('notifications/cancelled', toBytes({ requestId: id, reason })), null);
    },
    refused: events.refused,
  });

  const questions = createQuestions(pending, (message) => post(message, null), events.asked);

  // Made once a change: the headers of a call are the same for every call.
  let headers: string[] = [];
  const setHeaders = () => {
    headers = [
      'accept',
      'application/json, text/event-stream',
      'accept-encoding',
      'identity',
      'content-type',
      'application/json',
    ];
    for (const [name, value] of Object.entries(launch.headers)) headers.push(name, value);
    if (session !== null) headers.push('mcp-session-id', session);
    if (revision !== null) headers.push('mcp-protocol-version', revision);
  };
  setHeaders();

  const end = (reason: string) => {
    if (ended) return;
    shut();
    pending.failAll(new GatewayError('source_broken', `Server "${source}" ${reason} before it answered. Try again.`));
    events.closed(reason);
  };

  /** The server has not looked at what it refuses for this, so that can be asked again in a new session. */
  const forgotten = (waiting: Waiting | null) => {
    shut();
    const refused = waiting !== null && pending.withdraw(waiting.id) ? waiting : null;
    const next = events.forgotten(refused?.request ?? null);
    if (refused === null) return;
    refused.next = next;
    if (next === null)
      refused.request.sink.fail(
        new GatewayError('source_broken', `Server "${source}" has forgotten the session again. Try again later.`),
      );
  };

  /** What a server refuses whose stream has ended may be meant for the one that was there before. */
  const isForgotten = (status: number, parts: readonly Buffer[]) =>
    (status === 404 && session !== null) ||
    (isSpeaking === false && NOT_HERE.includes(status) && !isUnderstood(join(parts)));

  const shut = () => {
    ended = true;
    listening?.stop();
    stream?.abort(new Error('closed'));
  };

  const receive = (waiting: Waiting | null, bytes: Buffer) => {
    if (bytes.length > LONG) receiveLong(waiting, [bytes]);
    else if (readUsualAnswer(bytes)) pending.deliver(usual.id, bytes.subarray(usual.start, usual.end));
    else receiveStrictly(waiting, bytes);
  };

  const receiveLong = (waiting: Waiting | null, parts: readonly Buffer[]) => {
    const answer = readLongAnswer(parts);
    if (answer === null) receiveStrictly(waiting, join(parts));
    else pending.deliver(answer.id, answer.result);
  };

  const receiveStrictly = (waiting: Waiting | null, bytes: Buffer) => {
    let message: Message;
    try {
      message = readMessage(bytes);
    } catch (error) {
      events.note(`sent what is not a JSON-RPC message (${messageOf(error)})`);
      return;
    }
    if (isResponse(message)) settle(message);
    else if (isRequest(message)) questions.receive(message, waiting?.id ?? null);
    else if (message.method === 'notifications/message') pending.log(message, waiting?.id ?? null);
    else if (!pending.hear(message, waiting?.id ?? null)) events.notification(message);
  };

  const settle = (message: Message) => {
    if (listened === null || !isListenAnswer(message, listened.id)) pending.settle(message);
    else if (message.errorStart >= 0) {
      // It will not do better the next time.
      listening?.stop();
      isSpeaking = null;
    }
  };

  const broken = (waiting: Waiting | null, text: string, status = 0) => {
    // Asked after every reply, and nearly always answered by then: no error is made before it is needed.
    if (waiting === null || !pending.has(waiting.id)) return;
    const error = new GatewayError('source_broken', `Server "${source}" ${text}.`, { details: { status } });
    pending.fail(waiting.id, error);
  };

  /** Sends one message; `waiting` is the request in it, if it is one. */
  function post(message: Wire, waiting: Waiting | null, mirrored: readonly string[] | null = null): void {
    const all = mirrored === null ? headers : headers.concat(mirrored);
    const exchange = new Exchange(link, waiting, maxMessage);
    pool.dispatch({ path, method: 'POST', headers: all, body: wireBytes(message) }, exchange);
  }

  const link: Link = {
    begun(waiting, controller) {
      // A call may have been cancelled while it waited for a free socket.
      if (pending.has(waiting.id)) waiting.carrier = controller;
      else controller.abort(new Error('cancelled'));
    },
    greeted(id) {
      if (session !== null || pending.era === 'modern') return;
      session = id;
      setHeaders();
    },
    receive,
    answered(exchange, status, parts) {
      const { waiting } = exchange;
      if (isForgotten(status, parts)) {
        forgotten(waiting);
      } else if (status >= 300) {
        // The body may hold a JSON-RPC error for this very request, which says more than the status.
        if (waiting !== null) settleQuietly(waiting, join(parts));
        broken(waiting, `answered with HTTP status ${status}${statusHint(status)}`, status);
      } else {
        if (parts.length === 1) receive(waiting, parts[0]!);
        else if (parts.length > 1) receiveLong(waiting, parts);
        if (!comeBack(exchange)) broken(waiting, 'ended its reply without an answer');
      }
    },
    broken(exchange, error) {
      if (!(error instanceof TooLarge) && comeBack(exchange)) return;
      const { waiting } = exchange;
      const reason = error instanceof TooLarge ? error.message : reach(error);
      broken(waiting, reason);
      if (isUnreachable(error)) end(reason);
    },
  };

  /** A server of the earlier revisions may close the stream of an answer before that is there, and wants to be asked again. */
  function comeBack({ waiting, events, returns }: Exchange): boolean {
    if (waiting === null || !events?.lastId || pending.era === 'modern') return false;
    if (ended || returns > MOST_RETURNS || !pending.has(waiting.id)) return false;
    const { lastId, retry } = events;
    setTimeout(() => {
      if (ended || !pending.has(waiting.id)) return;
      const next = new Exchange(link, waiting, maxMessage, returns + 1);
      pool.dispatch({ path, method: 'GET', headers: [...headers, 'last-event-id', lastId] }, next);
    }, retry ?? RETURN);
    return true;
  }

  function settleQuietly(waiting: Waiting, answer: Buffer): void {
    try {
      const message = readMessage(answer);
      // An error may lack the id, because the request was not read that far; the reply says whose it is.
      if (isResponse(message)) pending.settle(message, waiting.id);
    } catch {
      // Not a JSON-RPC message after all: the status speaks for itself.
    }
  }

  /** The stream on which a server may speak unasked. Those without one answer with another status, or with no stream. */
  function openStream(request: ListenRequest | null): void {
    let reader: SseReader | null = null;
    let mayReturn = false;
    // Another one may have taken its place.
    const isCurrent = () => listened === request;
    const silence = () => {
      if (!isCurrent()) return;
      stream = null;
      if (isSpeaking) isSpeaking = false;
    };
    const asked =
      request === null
        ? { path, method: 'GET' as const, headers }
        : { path, method: 'POST' as const, headers: headers.concat(LISTEN_HEADERS), body: request.message };
    pool.dispatch(asked, {
      onRequestStart(controller) {
        // Replaced before it began, when there was nothing to stop yet: everything would be heard twice.
        if (isCurrent()) stream = controller;
        else controller.abort(new Error('replaced'));
      },
      onResponseStart(controller, status, responseHeaders) {
        if (status === 200 && String(responseHeaders['content-type'] ?? '').startsWith('text/event-stream')) {
          isSpeaking = true;
          mayReturn = true;
          listening?.taken();
          const tooLong = () => controller.abort(new TooLarge(maxMessage));
          reader = createSseReader(maxMessage, (data) => data.length > 0 && receive(null, data), tooLong);
        } else if (isSpeaking !== null && !ended) {
          // Without a stream before, it only says that there is none.
          if (NOT_HERE.includes(status)) forgotten(null);
          else mayReturn = true;
        }
      },
      onResponseData(_controller, chunk) {
        reader?.push(chunk);
      },
      onResponseEnd() {
        silence();
        if (mayReturn && isCurrent()) listening?.lost();
      },
      onResponseError(_controller, error) {
        silence();
        if (ended || !isCurrent()) return;
        if (isUnreachable(error)) end(reach(error));
        else listening?.lost();
      },
    });
  }

  return {
    pid: null,
    get mirrors() {
      return pending.era === 'modern';
    },
    get inFlight() {
      return pending.size;
    },
    // Each question comes with the reply to its own request.
    asking: 0,
    askable: 0,
    speak(era, agreed) {
      pending.era = era;
      revision = agreed;
      setHeaders();
    },
    listen(request) {
      const before = stream;
      listening?.stop();
      listened = request;
      const needless = request === null && pending.era === 'modern';
      listening = needless ? null : keepListening(() => openStream(request), events.missed);
      before?.abort(new Error('replaced'));
    },
    notify: (message) => post(message, null),
    request(request: Request): Ticket {
      const waiting = pending.add(request);
      if (ended) {
        const error = new GatewayError(
          'source_unavailable',
          `Server "${source}" cannot be reached. Try again in a moment.`,
        );
        queueMicrotask(() => pending.fail(waiting.id, error));
      } else {
        const { era } = pending;
        post(request.encode(waiting.id, era), waiting, era === 'modern' ? request.headers() : null);
      }
      return waiting;
    },
    async close() {
      if (!ended) {
        shut();
        pending.failAll(new GatewayError('source_unavailable', `Server "${source}" is being stopped.`));
        if (session !== null) await forget();
      }
      await pool.destroy();
    },
  };

  /** Tells the server that the session is over; it may not care. */
  async function forget(): Promise<void> {
    const gone = pool.request({ path, method: 'DELETE', headers, headersTimeout: 500, bodyTimeout: 500 });
    await gone.then((response) => response.body.dump()).catch(() => {});
  }
}

/** How long after the end of a stream it is asked for again, and how often in a row. */
const RETURN = 1_000;
const MOST_RETURNS = 5;
const LISTEN_HEADERS = ['mcp-method', 'subscriptions/listen'];
