/**
 * A connection over HTTP+SSE, the transport of the first revision: one stream on which the server says everything, and an
 * address to POST to that it names in its first event.
 */
import { GatewayError, messageOf } from '../base/errors.ts';
import { fastAnswer, readFastAnswer } from '../protocol/fast-answer.ts';
import { toBytes } from '../protocol/json.ts';
import { LONG, readLongAnswer } from '../protocol/long-answer.ts';
import { isRequest, isResponse, type Message } from '../protocol/message.ts';
import { readMessage } from '../protocol/read.ts';
import { type Wire, wireBytes } from '../protocol/rewrite.ts';
import { notificationMessage } from '../protocol/rpc.ts';
import { createSseReader, type SseReader } from '../protocol/sse.ts';
import type { Connection, ConnectionEvents } from './connection.ts';
import type { HttpLaunch, HttpOptions } from './http.ts';
import { TooLarge } from './http-exchange.ts';
import { reach, statusHint } from './http-refusal.ts';
import { createPending, failing, type Waiting } from './pending.ts';
import { createQuestions } from './questions.ts';

export async function openSse(launch: HttpLaunch, options: HttpOptions, events: ConnectionEvents): Promise<Connection> {
  const { Pool } = await import('undici');
  const { source, maxMessage, redact, clean } = options;
  const url = new URL(launch.url);
  const pool = new Pool(url.origin, { headersTimeout: 0, bodyTimeout: 0, connect: { timeout: 10_000 } });
  const own = Object.entries(launch.headers).flat();
  const postHeaders = [...own, 'content-type', 'application/json'];
  let endpoint: string | null = null;
  /** What is to be sent as soon as there is an address. */
  const early: (() => void)[] = [];
  let ended = false;
  let heard = 0;
  let abort: () => void = () => {};

  const pending = createPending(source, {
    abandoned({ id }, reason) {
      if (endpoint === null) events.note('has not said on its stream where to send messages to');
      else post(notificationMessage('notifications/cancelled', toBytes({ requestId: id, reason })), null);
    },
    refused: events.refused,
  });

  const questions = createQuestions(pending, (message) => post(message, null), events, options.client);

  function post(message: Wire, waiting: Waiting | null, trace: readonly string[] | null = null): void {
    if (endpoint === null) {
      early.push(() => post(message, waiting, trace));
      return;
    }
    const headers = trace === null ? postHeaders : postHeaders.concat(trace);
    pool.request({ path: endpoint, method: 'POST', headers, body: wireBytes(message) }).then(
      async ({ statusCode, body }) => {
        await body.dump();
        if (statusCode >= 300) broken(waiting, `answered with HTTP status ${statusCode}${statusHint(statusCode)}`);
      },
      (error: unknown) => broken(waiting, reach(error)),
    );
  }

  function broken(waiting: Waiting | null, text: string): void {
    if (waiting === null) return;
    pending.fail(waiting.id, new GatewayError('source_broken', redact(`Server "${source}" ${text}.`)));
  }

  const receive = (said: Buffer) => {
    const bytes = clean === null ? said : clean(said);
    heard++;
    const long = bytes.length > LONG ? readLongAnswer([bytes]) : null;
    if (long !== null) pending.deliver(long.id, long.result);
    else if (bytes.length <= LONG && readFastAnswer(bytes))
      pending.deliver(fastAnswer.id, bytes.subarray(fastAnswer.start, fastAnswer.end));
    else receiveStrictly(bytes);
  };

  const receiveStrictly = (bytes: Buffer) => {
    let message: Message;
    try {
      message = readMessage(bytes);
    } catch (error) {
      events.note(`sent what is not a JSON-RPC message (${messageOf(error)})`);
      return;
    }
    if (isResponse(message)) pending.settle(message);
    else if (isRequest(message)) questions.receive(message, null);
    else if (message.method === 'notifications/message') pending.log(message, null);
    else if (!pending.hear(message, null) && !questions.hear(message)) events.notification(message);
  };

  const end = (reason: string, status = 0) => {
    if (ended) return;
    ended = true;
    const text = redact(`Server "${source}" ${reason} before it answered. Try again.`);
    questions.close('the server is gone');
    pending.failAll(new GatewayError('source_broken', text, { details: { status } }));
    events.closed(reason);
  };

  const named = (address: string) => {
    if (endpoint !== null) return;
    endpoint = samePlace(address, url);
    if (endpoint === null) end('names an address on another host to send messages to; that is refused');
    else for (const send of early.splice(0)) send();
  };

  function open(): void {
    let reader: SseReader | null = null;
    const path = `${url.pathname}${url.search}`;
    pool.dispatch(
      { path, method: 'GET', headers: [...own, 'accept', 'text/event-stream'] },
      {
        onRequestStart(controller) {
          abort = () => controller.abort(new Error('closed'));
        },
        onResponseStart(controller, status, headers) {
          if (status !== 200 || !String(headers['content-type'] ?? '').startsWith('text/event-stream')) {
            end(`answered with HTTP status ${status}${statusHint(status)}`, status);
            controller.abort(new Error('no stream'));
            return;
          }
          const receiveEvent = (data: Buffer, name: string) =>
            name === 'endpoint' ? named(data.toString()) : receive(data);
          reader = createSseReader(maxMessage, receiveEvent, () => controller.abort(new TooLarge(maxMessage)));
        },
        onResponseData(_controller, chunk) {
          reader?.push(chunk);
        },
        onResponseEnd: () => end('closed its stream'),
        onResponseError: (_controller, error) => end(error instanceof TooLarge ? error.message : reach(error)),
      },
    );
  }

  open();
  return {
    pid: null,
    mirrors: false,
    get heard() {
      return heard;
    },
    get inFlight() {
      return pending.size;
    },
    get asking() {
      return pending.asking;
    },
    get askable() {
      return pending.askable;
    },
    get awaited() {
      return pending.elicitations.open;
    },
    speak() {},
    listen() {},
    notify: (message) => post(message, null),
    request(request) {
      const waiting = pending.add(request);
      if (ended) {
        const error = new GatewayError(
          'source_unavailable',
          `Server "${source}" cannot be reached. Try again in a moment.`,
        );
        queueMicrotask(() => pending.fail(waiting.id, error));
      } else {
        post(request.encode(waiting.id, 'legacy'), waiting, request.trace ?? null);
      }
      return waiting;
    },
    async close(reason) {
      if (!ended) {
        ended = true;
        questions.close('the server is being stopped');
        pending.failAll(failing(source, reason));
      }
      abort();
      await pool.destroy();
    },
  };
}

/** The path to POST to; null on another origin, which would get the headers of this one, and with them its credentials. */
function samePlace(endpoint: string, url: URL): string | null {
  const target = URL.canParse(endpoint, url.href) ? new URL(endpoint, url.href) : null;
  return target?.origin === url.origin ? `${target.pathname}${target.search}` : null;
}
