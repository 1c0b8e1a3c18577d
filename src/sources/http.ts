/** A connection to a server over Streamable HTTP: every message is a POST of its own. */
import { GatewayError, toGatewayError } from '../base/errors.ts';
import type { Launch } from '../config/launch.ts';
import type { SourceRequest, Ticket } from '../protocol/contract.ts';
import { join } from '../protocol/parts.ts';
import type { Era } from '../protocol/revisions.ts';
import type { Wire } from '../protocol/rewrite.ts';
import type { Connection, ConnectionEvents, ListenRequest } from './connection.ts';
import {
  createHttpClient,
  type HttpClient,
  type HttpRequest,
  headerLines,
  type ResponseHandler,
  requestHead,
} from './http-client.ts';
import { createConnector } from './http-connector.ts';
import { type ExchangeEvents, UpstreamExchange } from './http-exchange.ts';
import {
  failureReason,
  isUnderstood,
  isUnreachable,
  NO_SUCH_PATH,
  NOBODY_THERE,
  NOT_HERE,
  statusReason,
  TooLarge,
} from './http-failure.ts';
import { HttpStream } from './http-stream.ts';
import { askToLogIn, canBeSent } from './login-question.ts';
import type { CloseReason, PendingRequest } from './pending.ts';
import { type ConnectionOptions, cancelMessage, RpcConnection } from './rpc-connection.ts';
import { helpsLogin, loginReason, type ServerLogin } from './server-login.ts';
import type { StreamedAnswer } from './streamed-answer.ts';
import { failRequest } from './tickets.ts';

export type HttpLaunch = Extract<Launch, { kind: 'http' }>;

/** Each call uses a socket of its own. Calls with slow readers, or that wait for a person, hold it for long. */
const MOST_CALLS = 1_024;
const MOST_MESSAGES = 8;
/** How long we wait before we resume the stream of a reply, and how often in a row. */
const RESUME = 1_000;
const MOST_RESUMES = 5;
/** How long the server has to take the end of a session. */
const END_SESSION = 500;
const LISTEN_HEADERS = ['mcp-method', 'subscriptions/listen'];
/** How often a message is sent again after the server refused our login. */
const MOST_REFUSALS = 3;

export async function openHttp(
  launch: HttpLaunch,
  login: ServerLogin | null,
  options: HttpConnectionOptions,
  events: ConnectionEvents,
): Promise<Connection> {
  const connector = await createConnector(new URL(launch.url), launch.tls, hostIn(launch));
  const calls = createHttpClient(connector, MOST_CALLS);
  const messages = createHttpClient(connector, MOST_MESSAGES);
  return new HttpConnection(launch, login, { calls, messages }, options, events);
}

interface HttpConnectionOptions extends ConnectionOptions {
  /** Whether the server has asked something outside the replies to requests, on any of its connections. */
  asksAnywhere(): boolean;
}

interface HttpClients {
  readonly calls: HttpClient;
  /** For messages without an answer. All sockets of `calls` may be held by calls that wait for such a message. */
  readonly messages: HttpClient;
}

/** Request line and headers for each method. */
interface RequestHeads {
  readonly POST: string;
  readonly GET: string;
  readonly DELETE: string;
}

/** The header `Host` in the configuration; null if there is none. */
function hostIn({ headers }: HttpLaunch): string | null {
  return Object.entries(headers).find(([name]) => name.toLowerCase() === 'host')?.[1] ?? null;
}

class HttpConnection extends RpcConnection implements ExchangeEvents {
  protected override readonly channel: HttpStream;
  readonly #launch: HttpLaunch;
  readonly #clients: HttpClients;
  readonly #path: string;
  readonly #login: ServerLogin | null;
  readonly #asksLogins: boolean;
  /** The header `Authorization` that is part of `#heads`. */
  #authorization: string | null = null;
  #session: string | null = null;
  #revision: string | null = null;
  /** Built once per change: all calls have the same headers. An error: a configured header cannot be sent. */
  #heads!: RequestHeads | Error;
  readonly #asksAnywhere: () => boolean;

  constructor(
    launch: HttpLaunch,
    login: ServerLogin | null,
    clients: HttpClients,
    options: HttpConnectionOptions,
    events: ConnectionEvents,
  ) {
    super(options, events);
    this.#login = login;
    this.#asksLogins = options.asksLogins === true;
    this.#asksAnywhere = options.asksAnywhere;
    const { pathname, search } = new URL(launch.url);
    this.#launch = launch;
    this.#clients = clients;
    this.#path = `${pathname}${search}`;
    this.#setHeaders();
    this.channel = new HttpStream(options.maxMessage, {
      dispatch: (body, handler) => {
        this.#takeToken();
        if (body === null) this.#dispatch(clients.calls, 'GET', null, null, handler);
        else this.#dispatch(clients.calls, 'POST', LISTEN_HEADERS, body, handler);
      },
      receive: (data) => this.received(null, data),
      forgotten: () => this.#forgotten(null),
      unreachable: (reason) => this.end(reason),
      missed: events.missed,
    });
  }

  #setHeaders(): void {
    this.#heads = this.#buildHeads();
  }

  #buildHeads(): RequestHeads | Error {
    const { url, headers } = this.#launch;
    const own = Object.entries(headers).filter(([name]) => name.toLowerCase() !== 'host');
    const all = [
      ...['accept', 'application/json, text/event-stream'],
      ...['accept-encoding', 'identity'],
      ...['content-type', 'application/json'],
      ...own.flat(),
      ...(this.#authorization === null ? [] : ['authorization', this.#authorization]),
      ...(this.#session === null ? [] : ['mcp-session-id', this.#session]),
      ...(this.#revision === null ? [] : ['mcp-protocol-version', this.#revision]),
    ];
    const host = hostIn(this.#launch) ?? new URL(url).host;
    const head = (method: string) => requestHead(method, this.#path, host, all);
    try {
      return { POST: head('POST'), GET: head('GET'), DELETE: head('DELETE') };
    } catch (error) {
      return error as Error;
    }
  }

  /** The login may have been renewed, here or by another process. */
  #takeToken(): void {
    if (this.#login === null) return;
    const { header } = this.#login;
    if (header === this.#authorization) return;
    this.#authorization = header;
    this.loginClean = this.#login.clean;
    this.#setHeaders();
  }

  /** Sends at once, unless the token needs a proof with every request. `more`: further headers. */
  #dispatch(
    client: HttpClient,
    method: keyof RequestHeads,
    more: readonly string[] | null,
    body: Wire | null,
    handler: ResponseHandler,
  ): void {
    if (this.#login?.isBound !== true) {
      this.#send(client, method, more, body, handler);
      return;
    }
    this.#login.proof(method).then(
      (proof) => this.#send(client, method, [...(more ?? []), ...proof], body, handler),
      // The key in the store is not one. The server refuses the request then.
      () => this.#send(client, method, more, body, handler),
    );
  }

  #send(
    client: HttpClient,
    method: keyof RequestHeads,
    more: readonly string[] | null,
    body: Wire | null,
    handler: ResponseHandler,
  ): void {
    const heads = this.#heads;
    let head: string;
    try {
      if (heads instanceof Error) throw heads;
      head = more === null ? heads[method] : heads[method] + headerLines(more);
    } catch (error) {
      queueMicrotask(() => handler.failed(null, error as Error));
      return;
    }
    client.send(head, body, handler);
  }

  get mirrors(): boolean {
    return this.pending.era === 'modern';
  }

  // Most servers ask in the reply to the request that the question is about.
  override get asking(): number {
    return this.#asksAnywhere() ? super.asking : 0;
  }

  override get askable(): number {
    return this.#asksAnywhere() ? super.askable : 0;
  }

  override get atWork(): number {
    return this.#asksAnywhere() ? super.atWork : 0;
  }

  speak(era: Era, revision: string | null): void {
    this.pending.era = era;
    this.#revision = revision;
    this.#setHeaders();
  }

  listen(request: ListenRequest | null): void {
    this.channel.listen(request, request !== null || this.pending.era === 'legacy');
  }

  request(request: SourceRequest): Ticket {
    if (this.ended) {
      const text = `Server "${this.source}" cannot be reached. Try again in a moment.`;
      return failRequest(request, new GatewayError('source_unavailable', text));
    }
    const pending = this.pending.add(request);
    const unsettled = this.#login?.settle() ?? null;
    if (unsettled === null) this.#postRequest(pending, 0);
    else void unsettled.then(() => this.#postRequest(pending, 0));
    return pending;
  }

  /** `refusals`: how often the server refused it because of our login. */
  #postRequest(pending: PendingRequest, refusals: number): void {
    const { id, request } = pending;
    // It may have ended while it waited for a token.
    if (this.ended || this.pending.get(id) === undefined) return;
    const { era } = this.pending;
    const message = request.encode(id, era);
    // A modern server that is slow to answer is asked in both eras, and wants the header with every request.
    const mirrored = era === 'modern' || request.method === 'initialize' ? request.headers() : null;
    const trace = request.trace ?? null;
    const more = trace === null ? mirrored : trace.concat(mirrored ?? []);
    this.#post(message, pending, more, this.#clients.calls, refusals);
  }

  notify(message: Wire): void {
    if (this.maySend()) this.#post(message, null, null, this.#clients.calls);
  }

  protected reply(answer: Buffer): void {
    if (this.maySend()) this.#post(answer, null, null, this.#clients.messages);
  }

  protected abandoned({ id, carrier }: PendingRequest, reason: string): void {
    carrier?.abort(new Error('cancelled'));
    // For a modern server, aborting the request is enough.
    if (this.pending.era === 'legacy' && this.maySend())
      this.#post(cancelMessage(id, reason), null, null, this.#clients.messages);
  }

  /** `pending` is the request in the message, if there is one. */
  #post(
    body: Wire,
    pending: PendingRequest | null,
    more: readonly string[] | null,
    client: HttpClient,
    refusals = 0,
  ): void {
    this.#takeToken();
    const exchange = new UpstreamExchange(this, pending, this.maxMessage);
    exchange.authorization = this.#authorization;
    exchange.refusals = refusals;
    if (pending === null) {
      exchange.size = body.length;
      if (this.#authorization !== null) exchange.body = body;
      this.waits(body.length, 1);
    }
    this.#dispatch(client, 'POST', more, body, exchange);
  }

  /** The server refused our login. Renews it if that is possible, and sends the message again. False: it is not about that. */
  #renewLogin(login: ServerLogin, exchange: UpstreamExchange, status: number): boolean {
    const { pending, authorization, refusals, challenge, nonce, body } = exchange;
    if (refusals >= MOST_REFUSALS || !login.concerns(status, challenge)) return false;
    login.refused(authorization, status, challenge, nonce).then(
      () => {
        if (pending !== null) this.#postRequest(pending, refusals + 1);
        else if (body !== null && this.maySend()) this.#post(body, null, null, this.#clients.messages, refusals + 1);
      },
      (error: unknown) => {
        const mayAsk =
          pending !== null && (this.#asksLogins || login.hasPage) && helpsLogin(error) && canBeSent(pending.request);
        if (!mayAsk) {
          this.#notLoggedIn(pending, status, error);
          return;
        }
        // The request stays open, so that the connection does too, and its clock stands still.
        const resume = pending.pause();
        askToLogIn(pending.request, login, {
          goOn: () => {
            resume();
            this.#postRequest(pending, refusals + 1);
          },
          giveUp: (failure) => {
            resume();
            this.#notLoggedIn(pending, status, failure);
          },
        });
      },
    );
    return true;
  }

  #notLoggedIn(pending: PendingRequest | null, status: number, error: unknown): void {
    if (pending !== null) this.pending.fail(pending.id, toGatewayError(error));
    const reason = loginReason(error);
    // Every other call would be refused as well. The next connection waits until somebody logs in.
    if (reason !== null && status === 401) this.end(reason, { status, login: (error as GatewayError).details.login });
  }

  started(pending: PendingRequest, sent: HttpRequest): void {
    // A call may have been cancelled while it waited for a free socket.
    if (this.pending.get(pending.id) !== undefined) pending.carrier = sent;
    else sent.abort(new Error('cancelled'));
  }

  session(id: string): void {
    if (this.#session !== null || this.pending.era === 'modern') return;
    this.#session = id;
    this.#setHeaders();
  }

  received(pending: PendingRequest | null, message: Buffer): void {
    this.heard++;
    this.receive(message, pending?.id ?? null);
  }

  begun(pending: PendingRequest, parts: readonly Buffer[], length: number): StreamedAnswer | null {
    this.heard++;
    return this.follow(parts, pending.id, length);
  }

  replied(exchange: UpstreamExchange, status: number, parts: readonly Buffer[]): void {
    const { pending } = exchange;
    if (pending === null) this.waits(exchange.size, -1);
    if (!NOBODY_THERE.includes(status)) this.heard++;
    const { nonce } = exchange;
    if (nonce !== null && this.#login !== null) this.#login.nonce = nonce;
    const isRefused = (status === 401 || status === 403) && this.#login !== null;
    if (isRefused && this.#renewLogin(this.#login!, exchange, status)) return;
    if (this.#isForgotten(status, parts)) {
      this.#forgotten(pending);
    } else if (status >= 300) {
      // The body may be a JSON-RPC error for this request, perhaps without its id. That says more than the status, unless
      // nothing at this path takes `initialize`.
      if (pending !== null && !isWrongPath(status, pending, parts)) this.settleReply(join(parts), pending.id);
      this.#fail(pending, statusReason(status), status);
    } else {
      if (parts.length > 0) this.receiveParts(parts, pending?.id ?? null);
      if (!this.#resume(exchange)) this.#fail(pending, 'ended its reply without an answer');
    }
  }

  broken(exchange: UpstreamExchange, error: Error): void {
    if (exchange.pending === null) this.waits(exchange.size, -1);
    if (!(error instanceof TooLarge) && this.#resume(exchange)) return;
    const reason = failureReason(error);
    this.#fail(exchange.pending, reason);
    if (isUnreachable(error)) this.end(reason);
  }

  #fail(pending: PendingRequest | null, reason: string, status?: number): void {
    // Called after every reply. Nearly always the request has its answer by then, so the error is built only if needed.
    if (pending === null || this.pending.get(pending.id) === undefined) return;
    const text = this.redact(`Server "${this.source}" ${reason}.`);
    const details = status === undefined ? {} : { status };
    this.pending.fail(pending.id, new GatewayError('source_broken', text, { details }));
  }

  /** A legacy server may close the stream of a reply before the answer, and expects us to resume it. */
  #resume({ pending, events, resumes }: UpstreamExchange): boolean {
    if (pending === null || !events?.lastId || this.pending.era === 'modern') return false;
    const isWanted = () => !this.ended && this.pending.get(pending.id) !== undefined;
    if (resumes > MOST_RESUMES || !isWanted()) return false;
    const { lastId, retry } = events;
    setTimeout(() => {
      if (!isWanted()) return;
      const next = new UpstreamExchange(this, pending, this.maxMessage, resumes + 1);
      this.#takeToken();
      this.#dispatch(this.#clients.calls, 'GET', ['last-event-id', lastId], null, next);
    }, retry ?? RESUME);
    return true;
  }

  /** If its stream has ended and it now refuses a message, the server may have restarted and forgotten us. */
  #isForgotten(status: number, parts: readonly Buffer[]): boolean {
    if (status === 404 && this.#session !== null) return true;
    return this.channel.isSpeaking === false && NOT_HERE.includes(status) && !isUnderstood(join(parts));
  }

  /** The server did not process the request that it refused, so the request can be sent again in a new session. */
  #forgotten(pending: PendingRequest | null): void {
    this.ended = true;
    this.channel.stop();
    const refused = pending !== null && this.pending.withdraw(pending.id) ? pending : null;
    const next = this.events.forgotten(refused?.request ?? null);
    if (refused === null) return;
    refused.next = next;
    if (next !== null) return;
    const text = `Server "${this.source}" has forgotten the session again. Try again later.`;
    refused.request.sink.fail(new GatewayError('source_broken', text));
  }

  async close(reason?: CloseReason): Promise<void> {
    const { calls, messages } = this.#clients;
    if (!this.ended) {
      this.shut(reason);
      if (this.#session !== null) await this.#endSession();
    }
    calls.destroy();
    messages.destroy();
  }

  /** Tells the server that the session is over. Failures do not matter. */
  async #endSession(): Promise<void> {
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, END_SESSION);
      const done = () => {
        clearTimeout(timer);
        resolve();
      };
      const handler = { started() {}, head() {}, data() {}, ended: done, failed: done };
      this.#dispatch(this.#clients.calls, 'DELETE', null, null, handler);
    });
  }
}

function isWrongPath(status: number, { request }: PendingRequest, parts: readonly Buffer[]): boolean {
  return NO_SUCH_PATH.includes(status) && request.method === 'initialize' && !isUnderstood(join(parts));
}
