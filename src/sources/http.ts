/** A connection to a server over Streamable HTTP: every request is a POST of its own. */

import { GatewayError, messageOf } from '../base/errors.ts';
import type { Launch } from '../config/config.ts';
import type { ClientChannel, SourceRequest, Ticket } from '../protocol/contract.ts';
import { fastAnswer, readFastAnswer } from '../protocol/fast-answer.ts';
import { toBytes } from '../protocol/json.ts';
import { LONG, readLongAnswer } from '../protocol/long-answer.ts';
import { isRequest, isResponse, type Message } from '../protocol/message.ts';
import { join } from '../protocol/parts.ts';
import { readMessage } from '../protocol/read.ts';
import { type Wire, wireBytes } from '../protocol/rewrite.ts';
import { notificationMessage } from '../protocol/rpc.ts';
import type { Clean } from '../secrets/clean.ts';
import type { Connection, ConnectionEvents } from './connection.ts';
import { ACKNOWLEDGED } from './handshake.ts';
import { Exchange, type Link, TooLarge } from './http-exchange.ts';
import { isUnderstood, isUnreachable, NOBODY_THERE, NOT_HERE, reach, statusHint } from './http-refusal.ts';
import { createHttpStream } from './http-stream.ts';
import { createPending, failing, type Waiting } from './pending.ts';
import { createQuestions } from './questions.ts';

export type HttpLaunch = Extract<Launch, { kind: 'http' }>;

export interface HttpOptions {
  readonly source: string;
  readonly maxMessage: number;
  /** Takes secrets out of what goes into errors. */
  readonly redact: (text: string) => string;
  /** Takes the secrets that it was given out of a message; null where there are none. */
  readonly clean: Clean | null;
  /** Whose connection it is; null where it is everybody's. */
  readonly client: ClientChannel | null;
}

export async function openHttp(
  launch: HttpLaunch,
  options: HttpOptions,
  events: ConnectionEvents,
): Promise<Connection> {
  // Loaded here, because most gateways have only servers on pipes and should not wait for it at start.
  const { Pool } = await import('undici');
  const { source, maxMessage, redact, clean } = options;
  const url = new URL(launch.url);
  const settings = { headersTimeout: 0, bodyTimeout: 0, connect: { timeout: 10_000 } };
  const pool = new Pool(url.origin, { ...settings, connections: MOST_CALLS });
  // For what has no answer. Calls that wait for a person keep their connections, and what that person says must not wait for one.
  const side = new Pool(url.origin, { ...settings, connections: 8 });
  const path = `${url.pathname}${url.search}`;
  let session: string | null = null;
  let revision: string | null = null;
  let ended = false;
  let heard = 0;

  const pending = createPending(source, {
    abandoned({ id, carrier }, reason) {
      carrier?.abort(new Error('cancelled'));
      // To a modern server the end of the reply says it all.
      if (pending.era === 'legacy')
        post(notificationMessage('notifications/cancelled', toBytes({ requestId: id, reason })), null, null, side);
    },
    refused: events.refused,
  });

  const questions = createQuestions(pending, (message) => post(message, null, null, side), events, options.client);
  /** Whether it has asked something without saying in the course of which request. */
  let asksAnywhere = false;

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
    questions.close('the server is gone');
    const text = redact(`Server "${source}" ${reason} before it answered. Try again.`);
    pending.failAll(new GatewayError('source_broken', text));
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
    (stream.isSpeaking === false && NOT_HERE.includes(status) && !isUnderstood(join(parts)));

  const shut = () => {
    ended = true;
    stream.stop();
  };

  const receive = (waiting: Waiting | null, said: Buffer) => {
    const bytes = clean === null ? said : clean(said);
    heard++;
    if (bytes.length > LONG) receiveLong(waiting, [bytes]);
    else if (readFastAnswer(bytes)) pending.deliver(fastAnswer.id, bytes.subarray(fastAnswer.start, fastAnswer.end));
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
    if (isResponse(message)) {
      if (!stream.settle(message)) pending.settle(message);
    } else if (isRequest(message)) {
      asksAnywhere ||= waiting === null;
      questions.receive(message, waiting?.id ?? null);
    } else if (message.method === 'notifications/message') pending.log(message, waiting?.id ?? null);
    else if (pending.hear(message, waiting?.id ?? null)) return;
    else if (message.method === ACKNOWLEDGED) stream.acknowledged(message);
    else if (!questions.hear(message)) events.notification(message);
  };

  const broken = (waiting: Waiting | null, text: string, status = 0) => {
    // Asked after every reply, and nearly always answered by then: no error is made before it is needed.
    if (waiting === null || !pending.has(waiting.id)) return;
    const error = new GatewayError('source_broken', redact(`Server "${source}" ${text}.`), { details: { status } });
    pending.fail(waiting.id, error);
  };

  /** Sends one message; `waiting` is the request in it, if it is one. */
  function post(message: Wire, waiting: Waiting | null, mirrored: readonly string[] | null = null, way = pool): void {
    const all = mirrored === null ? headers : headers.concat(mirrored);
    const exchange = new Exchange(link, waiting, maxMessage);
    way.dispatch({ path, method: 'POST', headers: all, body: wireBytes(message) }, exchange);
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
      if (!NOBODY_THERE.includes(status)) heard++;
      if (isForgotten(status, parts)) {
        forgotten(waiting);
      } else if (status >= 300) {
        // The body may hold a JSON-RPC error for this very request, which says more than the status.
        if (waiting !== null) settleQuietly(waiting, clean === null ? join(parts) : clean(join(parts)));
        broken(waiting, `answered with HTTP status ${status}${statusHint(status)}`, status);
      } else {
        if (parts.length === 1 || (parts.length > 1 && clean !== null)) receive(waiting, join(parts));
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

  const stream = createHttpStream(
    (what, handler) => {
      const all = what.method === 'GET' ? headers : headers.concat(LISTEN_HEADERS);
      pool.dispatch({ path, headers: all, ...what }, handler);
    },
    maxMessage,
    {
      receive: (data) => receive(null, data),
      forgotten: () => forgotten(null),
      unreachable: end,
      missed: events.missed,
    },
  );

  return {
    pid: null,
    get heard() {
      return heard;
    },
    get mirrors() {
      return pending.era === 'modern';
    },
    get inFlight() {
      return pending.size;
    },
    // Most servers ask with the reply to the request that the question is about.
    get asking() {
      return asksAnywhere ? pending.asking : 0;
    },
    get askable() {
      return asksAnywhere ? pending.askable : 0;
    },
    get awaited() {
      return pending.elicitations.open;
    },
    speak(era, agreed) {
      pending.era = era;
      revision = agreed;
      setHeaders();
    },
    listen: (request) => stream.listen(request, request !== null || pending.era === 'legacy'),
    notify: (message) => post(message, null),
    request(request: SourceRequest): Ticket {
      const waiting = pending.add(request);
      if (ended) {
        const error = new GatewayError(
          'source_unavailable',
          `Server "${source}" cannot be reached. Try again in a moment.`,
        );
        queueMicrotask(() => pending.fail(waiting.id, error));
      } else {
        const { era } = pending;
        const message = request.encode(waiting.id, era);
        const trace = request.trace ?? null;
        const mirrored = era === 'modern' ? request.headers() : null;
        post(message, waiting, trace === null ? mirrored : trace.concat(mirrored ?? []));
      }
      return waiting;
    },
    async close(reason) {
      if (!ended) {
        shut();
        questions.close('the server is being stopped');
        pending.failAll(failing(source, reason));
        if (session !== null) await forget();
      }
      await Promise.all([pool.destroy(), side.destroy()]);
    },
  };

  /** Tells the server that the session is over; it may not care. */
  async function forget(): Promise<void> {
    const gone = pool.request({ path, method: 'DELETE', headers, headersTimeout: 500, bodyTimeout: 500 });
    await gone.then((response) => response.body.dump()).catch(() => {});
  }
}

/** Each has a connection to itself. Those of slow readers, and of people who are asked something, keep theirs for long. */
const MOST_CALLS = 1_024;
/** How long after the end of a stream it is asked for again, and how often in a row. */
const RETURN = 1_000;
const MOST_RETURNS = 5;
const LISTEN_HEADERS = ['mcp-method', 'subscriptions/listen'];
