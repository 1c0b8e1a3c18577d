/** A connection to a server over Streamable HTTP, in the revisions with sessions: every request is a POST of its own. */
import type { Dispatcher } from 'undici';
import type { Launch } from '../config/config.ts';
import { GatewayError, messageOf } from '../errors.ts';
import { toBytes } from '../protocol/json.ts';
import { LONG, readLongAnswer } from '../protocol/long.ts';
import { isRequest, isResponse, type Message, readMessage } from '../protocol/message.ts';
import { join } from '../protocol/parts.ts';
import { type Wire, wireBytes } from '../protocol/rewrite.ts';
import { notificationMessage } from '../protocol/rpc.ts';
import { createSseReader, type SseReader } from '../protocol/sse.ts';
import { readUsualAnswer, usual } from '../protocol/usual.ts';
import { answerServer } from './answer.ts';
import type { Connection, ConnectionEvents, Request, Ticket } from './connection.ts';
import { Exchange, type Link, TooLarge } from './http-exchange.ts';
import { createPending, type Waiting } from './pending.ts';

type HttpLaunch = Extract<Launch, { kind: 'http' }>;

export interface HttpOptions {
  readonly source: string;
  readonly maxMessage: number;
}

const RETRY_STREAM = { first: 1_000, most: 30_000 };

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
  let retry = RETRY_STREAM.first;
  let retryTimer: NodeJS.Timeout | undefined;
  let stream: Dispatcher.DispatchController | null = null;
  /** Whether there ever was one. */
  let streamed = false;

  const pending = createPending(source, ({ id, carrier }, reason) => {
    carrier?.abort(new Error('cancelled'));
    post(notificationMessage('notifications/cancelled', toBytes({ requestId: id, reason })), null);
  });

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

  const shut = () => {
    ended = true;
    clearTimeout(retryTimer);
    stream?.abort(new Error('closed'));
  };

  const receive = (...parts: Buffer[]) => {
    const bytes = parts[0]!;
    if (parts.length > 1 || bytes.length > LONG) {
      const answer = readLongAnswer(parts);
      if (answer !== null) {
        pending.deliver(answer.id, answer.result);
        return;
      }
    } else if (readUsualAnswer(bytes)) {
      pending.deliver(usual.id, bytes.subarray(usual.start, usual.end));
      return;
    }
    let message: Message;
    try {
      message = readMessage(join(parts));
    } catch (error) {
      events.note(`sent what is not a JSON-RPC message (${messageOf(error)})`);
      return;
    }
    if (isResponse(message)) pending.settle(message);
    else if (isRequest(message)) post(answerServer(message), null);
    else if (message.method === 'notifications/progress') pending.progress(message);
    else events.notification(message);
  };

  const broken = (waiting: Waiting | null, text: string) => {
    // Asked after every reply, and nearly always answered by then: no error is made before it is needed.
    if (waiting === null || !pending.has(waiting.id)) return;
    pending.fail(waiting.id, new GatewayError('source_broken', `Server "${source}" ${text}.`));
  };

  /** Sends one message; `waiting` is the request in it, if it is one. */
  function post(message: Wire, waiting: Waiting | null): void {
    const body = wireBytes(message);
    pool.dispatch({ path, method: 'POST', headers, body }, new Exchange(link, waiting, maxMessage));
  }

  const link: Link = {
    begun(waiting, controller) {
      // A call may have been cancelled while it waited for a free socket.
      if (pending.has(waiting.id)) waiting.carrier = controller;
      else controller.abort(new Error('cancelled'));
    },
    greeted(id) {
      if (session !== null) return;
      session = id;
      setHeaders();
    },
    receive,
    answered(waiting, status, parts) {
      if (status === 404 && session !== null) {
        forgotten(waiting);
      } else if (status >= 300) {
        // The body may hold a JSON-RPC error for this very request, which says more than the status.
        if (waiting !== null) settleQuietly(join(parts));
        broken(waiting, `answered with HTTP status ${status}${statusHint(status)}`);
      } else {
        if (parts.length > 0) receive(...parts);
        broken(waiting, 'ended its reply without an answer');
      }
    },
    broken(waiting, error) {
      const reason = error instanceof TooLarge ? error.message : reach(error);
      broken(waiting, reason);
      if (isUnreachable(error)) end(reason);
    },
  };

  function settleQuietly(answer: Buffer): void {
    try {
      pending.settle(readMessage(answer));
    } catch {
      // Not a JSON-RPC message after all: the status speaks for itself.
    }
  }

  /** The stream on which a server may speak unasked. Servers without one answer 405. */
  function listen(): void {
    let reader: SseReader | null = null;
    const again = () => {
      stream = null;
      if (ended) return;
      retryTimer = setTimeout(listen, retry);
      retryTimer.unref();
      retry = Math.min(retry * 2, RETRY_STREAM.most);
    };
    pool.dispatch(
      { path, method: 'GET', headers },
      {
        onRequestStart(controller) {
          stream = controller;
        },
        onResponseStart(controller, status, responseHeaders) {
          if (status === 200 && String(responseHeaders['content-type'] ?? '').startsWith('text/event-stream')) {
            retry = RETRY_STREAM.first;
            streamed = true;
            reader = createSseReader(maxMessage, receive, () => controller.abort(new TooLarge(maxMessage)));
          } else if (status === 404 && streamed && !ended) {
            // Without a stream before, it only says that there is none.
            forgotten(null);
          }
        },
        onResponseData(_controller, chunk) {
          reader?.push(chunk);
        },
        onResponseEnd() {
          stream = null;
          if (reader !== null) again();
        },
        onResponseError(_controller, error) {
          if (ended) return;
          if (isUnreachable(error)) end(reach(error));
          else again();
        },
      },
    );
  }

  return {
    pid: null,
    get inFlight() {
      return pending.size;
    },
    agreed(agreedRevision) {
      revision = agreedRevision;
      setHeaders();
      listen();
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
        post(request.encode(waiting.id), waiting);
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

const UNREACHABLE = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'EAI_AGAIN',
  'UND_ERR_CONNECT_TIMEOUT',
]);

function codeOf(error: unknown): string {
  return String((error as NodeJS.ErrnoException).code ?? '');
}

function isUnreachable(error: unknown): boolean {
  return UNREACHABLE.has(codeOf(error));
}

function reach(error: unknown): string {
  const code = codeOf(error);
  if (code === 'ECONNREFUSED') return 'refused the connection; is it running?';
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN') return 'has a host name that cannot be found';
  return `broke the connection (${code || messageOf(error)})`;
}

function statusHint(status: number): string {
  if (status === 401 || status === 403) return '; check the headers in its configuration';
  if (status === 404 || status === 405) return '; check the path of its url';
  if (status < 400) return '; redirects are not followed, use the final url';
  return '';
}
