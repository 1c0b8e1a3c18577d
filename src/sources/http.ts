/** A connection to a server over Streamable HTTP: every message is a POST of its own. */
import type { Dispatcher, Pool } from 'undici';
import { GatewayError } from '../base/errors.ts';
import type { Launch } from '../config/launch.ts';
import type { SourceRequest, Ticket } from '../protocol/contract.ts';
import type { Message } from '../protocol/message.ts';
import { join } from '../protocol/parts.ts';
import type { Era } from '../protocol/revisions.ts';
import { type Wire, wireBytes } from '../protocol/rewrite.ts';
import type { Connection, ConnectionEvents, ListenRequest } from './connection.ts';
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
import type { CloseReason, PendingRequest } from './pending.ts';
import { poolOptions } from './pool-options.ts';
import { type ConnectionOptions, cancelMessage, RpcConnection } from './rpc-connection.ts';
import { failRequest } from './tickets.ts';

export type HttpLaunch = Extract<Launch, { kind: 'http' }>;

/** Each call uses a socket of its own. Calls with slow readers, or that wait for a person, hold it for long. */
const MOST_CALLS = 1_024;
const MOST_MESSAGES = 8;
/** How long we wait before we resume the stream of a reply, and how often in a row. */
const RESUME = 1_000;
const MOST_RESUMES = 5;
const LISTEN_HEADERS = ['mcp-method', 'subscriptions/listen'];

export async function openHttp(
  launch: HttpLaunch,
  options: ConnectionOptions,
  events: ConnectionEvents,
): Promise<Connection> {
  // Loaded here: most gateways have only servers on pipes, and should not wait for it at start.
  const { Pool } = await import('undici');
  const { origin } = new URL(launch.url);
  const pool = await poolOptions(launch);
  const calls = new Pool(origin, { ...pool, connections: MOST_CALLS });
  const messages = new Pool(origin, { ...pool, connections: MOST_MESSAGES });
  return new HttpConnection(launch, { calls, messages }, options, events);
}

interface HttpPools {
  readonly calls: Pool;
  /** For messages without an answer. All sockets of `calls` may be held by calls that wait for such a message. */
  readonly messages: Pool;
}

class HttpConnection extends RpcConnection implements ExchangeEvents {
  protected override readonly channel: HttpStream;
  readonly #launch: HttpLaunch;
  readonly #pools: HttpPools;
  readonly #path: string;
  #session: string | null = null;
  #revision: string | null = null;
  /** Built once per change: all calls have the same headers. */
  #headers: string[] = [];
  /** Whether the server has asked something outside the replies to requests. */
  #asksAnywhere = false;

  constructor(launch: HttpLaunch, pools: HttpPools, options: ConnectionOptions, events: ConnectionEvents) {
    super(options, events);
    const { pathname, search } = new URL(launch.url);
    this.#launch = launch;
    this.#pools = pools;
    this.#path = `${pathname}${search}`;
    this.#setHeaders();
    this.channel = new HttpStream(options.maxMessage, {
      dispatch: (what, handler) => {
        const headers = what.method === 'GET' ? this.#headers : this.#headers.concat(LISTEN_HEADERS);
        pools.calls.dispatch({ path: this.#path, headers: headers, ...what }, handler);
      },
      receive: (data) => this.received(null, data),
      forgotten: () => this.#forgotten(null),
      unreachable: (reason) => this.end(reason),
      missed: events.missed,
    });
  }

  #setHeaders(): void {
    this.#headers = [
      ...['accept', 'application/json, text/event-stream'],
      ...['accept-encoding', 'identity'],
      ...['content-type', 'application/json'],
      ...Object.entries(this.#launch.headers).flat(),
      ...(this.#session === null ? [] : ['mcp-session-id', this.#session]),
      ...(this.#revision === null ? [] : ['mcp-protocol-version', this.#revision]),
    ];
  }

  get mirrors(): boolean {
    return this.pending.era === 'modern';
  }

  // Most servers ask in the reply to the request that the question is about.
  override get asking(): number {
    return this.#asksAnywhere ? super.asking : 0;
  }

  override get askable(): number {
    return this.#asksAnywhere ? super.askable : 0;
  }

  override get atWork(): number {
    return this.#asksAnywhere ? super.atWork : 0;
  }

  protected override asked(message: Message, id: number | null): void {
    this.#asksAnywhere ||= id === null;
    super.asked(message, id);
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
    const { era } = this.pending;
    const message = request.encode(pending.id, era);
    const mirrored = era === 'modern' ? request.headers() : null;
    const trace = request.trace ?? null;
    this.#post(message, pending, trace === null ? mirrored : trace.concat(mirrored ?? []), this.#pools.calls);
    return pending;
  }

  notify(message: Wire): void {
    if (this.maySend()) this.#post(message, null, null, this.#pools.calls);
  }

  protected reply(answer: Buffer): void {
    if (this.maySend()) this.#post(answer, null, null, this.#pools.messages);
  }

  protected abandoned({ id, carrier }: PendingRequest, reason: string): void {
    carrier?.abort(new Error('cancelled'));
    // For a modern server, aborting the request is enough.
    if (this.pending.era === 'legacy' && this.maySend())
      this.#post(cancelMessage(id, reason), null, null, this.#pools.messages);
  }

  /** `pending` is the request in the message, if there is one. */
  #post(message: Wire, pending: PendingRequest | null, more: readonly string[] | null, pool: Pool): void {
    const headers = more === null ? this.#headers : this.#headers.concat(more);
    const body = wireBytes(message);
    const exchange = new UpstreamExchange(this, pending, this.maxMessage);
    if (pending === null) {
      exchange.size = body.length;
      this.waits(body.length, 1);
    }
    pool.dispatch({ path: this.#path, method: 'POST', headers: headers, body }, exchange);
  }

  started(pending: PendingRequest, controller: Dispatcher.DispatchController): void {
    // A call may have been cancelled while it waited for a free socket.
    if (this.pending.get(pending.id) !== undefined) pending.carrier = controller;
    else controller.abort(new Error('cancelled'));
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

  replied(exchange: UpstreamExchange, status: number, parts: readonly Buffer[]): void {
    const { pending } = exchange;
    if (pending === null) this.waits(exchange.size, -1);
    if (!NOBODY_THERE.includes(status)) this.heard++;
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
      const headers = [...this.#headers, 'last-event-id', lastId];
      this.#pools.calls.dispatch({ path: this.#path, method: 'GET', headers }, next);
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
    const { calls, messages } = this.#pools;
    if (!this.ended) {
      this.shut(reason);
      if (this.#session !== null) await this.#endSession();
    }
    await Promise.all([calls.destroy(), messages.destroy()]);
  }

  /** Tells the server that the session is over. Failures do not matter. */
  async #endSession(): Promise<void> {
    const limits = { headersTimeout: 500, bodyTimeout: 500 };
    const headers = this.#headers;
    const ended = this.#pools.calls.request({ path: this.#path, method: 'DELETE', headers, ...limits });
    await ended.then((response) => response.body.dump()).catch(() => {});
  }
}

function isWrongPath(status: number, { request }: PendingRequest, parts: readonly Buffer[]): boolean {
  return NO_SUCH_PATH.includes(status) && request.method === 'initialize' && !isUnderstood(join(parts));
}
