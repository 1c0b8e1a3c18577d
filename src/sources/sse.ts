/**
 * A connection over HTTP+SSE, the transport of the first revision: one stream on which the server sends everything, and
 * a URL for POSTs that the server names in the first event.
 */
import type { Pool } from 'undici';
import { GatewayError } from '../base/errors.ts';
import type { SourceRequest, Ticket } from '../protocol/contract.ts';
import { type Wire, wireBytes } from '../protocol/rewrite.ts';
import { createSseReader, type SseReader } from '../protocol/sse.ts';
import type { Connection, ConnectionEvents } from './connection.ts';
import type { HttpLaunch } from './http.ts';
import { failureReason, statusReason, TooLarge } from './http-failure.ts';
import type { CloseReason, PendingRequest } from './pending.ts';
import { poolOptions } from './pool-options.ts';
import { type ConnectionOptions, cancelMessage, RpcConnection } from './rpc-connection.ts';
import { loginReason, type ServerLogin } from './server-login.ts';
import { failRequest } from './tickets.ts';

export async function openSse(
  launch: HttpLaunch,
  login: ServerLogin | null,
  options: ConnectionOptions,
  events: ConnectionEvents,
): Promise<Connection> {
  const { Pool } = await import('undici');
  const pool = new Pool(new URL(launch.url).origin, await poolOptions(launch));
  await login?.settle();
  return new SseConnection(launch, login, pool, options, events);
}

class SseConnection extends RpcConnection {
  readonly isSse = true;
  readonly #url: URL;
  readonly #pool: Pool;
  readonly #login: ServerLogin | null;
  readonly #headers: string[];
  /** The path for POSTs; null until the server has named it. */
  #endpoint: string | null = null;
  /** Messages that wait for the endpoint. */
  readonly #early: (() => void)[] = [];
  #abort: () => void = () => {};
  #isRefused = false;
  #renewed = false;

  constructor(
    launch: HttpLaunch,
    login: ServerLogin | null,
    pool: Pool,
    options: ConnectionOptions,
    events: ConnectionEvents,
  ) {
    super(options, events);
    this.#login = login;
    this.#url = new URL(launch.url);
    this.#pool = pool;
    this.#headers = Object.entries(launch.headers).flat();
    this.#open();
  }

  /** With the token that is valid now. */
  #headersNow(...more: string[]): string[] {
    const header = this.#login?.header ?? null;
    this.loginClean = this.#login?.clean ?? null;
    return [...this.#headers, ...(header === null ? [] : ['authorization', header]), ...more];
  }

  #open(): void {
    let reader: SseReader | null = null;
    const path = `${this.#url.pathname}${this.#url.search}`;
    this.#pool.dispatch(
      { path, method: 'GET', headers: this.#headersNow('accept', 'text/event-stream') },
      {
        onRequestStart: (controller) => {
          this.#abort = () => controller.abort(new Error('closed'));
        },
        onResponseStart: (controller, status, headers) => {
          if (status !== 200 || !String(headers['content-type'] ?? '').startsWith('text/event-stream')) {
            controller.abort(new Error('no stream'));
            this.#refused(status, String(headers['www-authenticate'] ?? ''));
            return;
          }
          reader = createSseReader(
            this.maxMessage,
            (data, event) => this.#received(data, event),
            () => controller.abort(new TooLarge(this.maxMessage)),
          );
        },
        onResponseData(_controller, chunk) {
          reader?.push(chunk);
        },
        onResponseEnd: () => this.end('closed its stream'),
        onResponseError: (_controller, error) => {
          if (!this.#isRefused) this.end(failureReason(error));
        },
      },
    );
  }

  /** There is no stream. After a refusal of our login it is opened once more, if the login can be renewed. */
  #refused(status: number, challenge: string): void {
    const login = this.#login;
    this.#isRefused = true;
    if (status !== 401 || login === null || this.#renewed || !login.concerns(status, challenge)) {
      this.end(statusReason(status), { status });
      return;
    }
    this.#renewed = true;
    login.refused(login.header, status, challenge, null).then(
      () => {
        this.#isRefused = false;
        if (!this.ended) this.#open();
      },
      (error: unknown) => {
        const { login: command } = (error as GatewayError).details ?? {};
        this.end(loginReason(error) ?? statusReason(status), {
          status,
          ...(command !== undefined && { login: command }),
        });
      },
    );
  }

  #received(data: Buffer, event: string): void {
    if (event === 'endpoint') {
      this.#named(data.toString());
      return;
    }
    this.heard++;
    this.receive(data, null);
  }

  #named(address: string): void {
    if (this.#endpoint !== null) return;
    this.#endpoint = pathAt(address, this.#url);
    if (this.#endpoint === null) this.end('named a URL for messages on another host, which is refused');
    else for (const send of this.#early.splice(0)) send();
  }

  request(request: SourceRequest): Ticket {
    if (this.ended) {
      const text = `Server "${this.source}" cannot be reached. Try again in a moment.`;
      return failRequest(request, new GatewayError('source_unavailable', text));
    }
    const pending = this.pending.add(request);
    this.#post(request.encode(pending.id, 'legacy'), pending, request.trace ?? null);
    return pending;
  }

  notify(message: Wire): void {
    if (this.maySend()) this.#post(message, null, null);
  }

  protected reply(answer: Buffer): void {
    if (this.maySend()) this.#post(answer, null, null);
  }

  protected abandoned({ id }: PendingRequest, reason: string): void {
    if (this.#endpoint === null) this.events.note('has not named the URL for messages on its stream');
    else if (this.maySend()) this.#post(cancelMessage(id, reason), null, null);
  }

  #post(message: Wire, pending: PendingRequest | null, trace: readonly string[] | null): void {
    const body = wireBytes(message);
    if (pending === null) this.waits(body.length, 1);
    const path = this.#endpoint;
    if (path === null) this.#early.push(() => this.#send(body, pending, trace));
    else this.#send(body, pending, trace);
  }

  #send(body: ReturnType<typeof wireBytes>, pending: PendingRequest | null, trace: readonly string[] | null): void {
    const path = this.#endpoint!;
    const taken = () => {
      if (pending === null) this.waits(body.length, -1);
    };
    const headers = this.#headersNow('content-type', 'application/json', ...(trace ?? []));
    this.#pool
      .request({ path, method: 'POST', headers, body })
      .then(
        async ({ statusCode, body: answer }) => {
          await answer.dump();
          if (statusCode >= 300) this.#fail(pending, statusReason(statusCode));
        },
        (error: unknown) => this.#fail(pending, failureReason(error)),
      )
      .finally(taken);
  }

  #fail(pending: PendingRequest | null, reason: string): void {
    if (pending === null) return;
    const text = this.redact(`Server "${this.source}" ${reason}.`);
    this.pending.fail(pending.id, new GatewayError('source_broken', text));
  }

  async close(reason?: CloseReason): Promise<void> {
    if (!this.ended) this.shut(reason);
    this.#abort();
    await this.#pool.destroy();
  }
}

/** The path for POSTs; null on another origin, which would get the headers of this one, including credentials. */
function pathAt(address: string, url: URL): string | null {
  const target = URL.canParse(address, url.href) ? new URL(address, url.href) : null;
  return target?.origin === url.origin ? `${target.pathname}${target.search}` : null;
}
