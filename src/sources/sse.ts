/**
 * A connection over HTTP+SSE, the transport of the first revision: one stream on which the server sends everything, and
 * a URL for POSTs that the server names in the first event.
 */
import type { Pool } from 'undici';
import { GatewayError, toGatewayError } from '../base/errors.ts';
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

/** How often a message is sent again after the server refused our login. */
const MOST_REFUSALS = 3;

/** What a server wants proofs to repeat; null if it does not say. */
function nonceIn(headers: Readonly<Record<string, string | string[] | undefined>>): string | null {
  const nonce = headers['dpop-nonce'];
  return typeof nonce === 'string' ? nonce : null;
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
  #refusals = 0;

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
    const path = `${this.#url.pathname}${this.#url.search}`;
    const headers = this.#headersNow('accept', 'text/event-stream');
    this.#prove('GET', path, (proof) => {
      if (!this.ended) this.#openStream(path, headers.concat(proof));
    });
  }

  /** Goes on at once, unless the token needs a proof with every request. */
  #prove(method: string, path: string, goOn: (proof: readonly string[]) => void): void {
    if (this.#login?.isBound !== true) goOn([]);
    // The key in the store is not one. The server refuses the request then.
    else this.#login.proof(method, new URL(path, this.#url).href).then(goOn, () => goOn([]));
  }

  #openStream(path: string, headers: string[]): void {
    let reader: SseReader | null = null;
    this.#pool.dispatch(
      { path, method: 'GET', headers },
      {
        onRequestStart: (controller) => {
          this.#abort = () => controller.abort(new Error('closed'));
        },
        onResponseStart: (controller, status, headers) => {
          if (status !== 200 || !String(headers['content-type'] ?? '').startsWith('text/event-stream')) {
            controller.abort(new Error('no stream'));
            this.#refused(status, String(headers['www-authenticate'] ?? ''), nonceIn(headers));
            return;
          }
          this.#heardNonce(nonceIn(headers));
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

  /** What the next proof has to repeat. */
  #heardNonce(nonce: string | null): void {
    if (nonce !== null && this.#login !== null) this.#login.nonce = nonce;
  }

  /** There is no stream. After a refusal of our login it is opened again, if the login can be renewed. */
  #refused(status: number, challenge: string, nonce: string | null): void {
    const login = this.#login;
    this.#isRefused = true;
    if (status !== 401 || login === null || this.#refusals >= MOST_REFUSALS || !login.concerns(status, challenge)) {
      this.end(statusReason(status), { status });
      return;
    }
    this.#refusals++;
    login.refused(login.header, status, challenge, nonce).then(
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
    const send = () => this.#post(request.encode(pending.id, 'legacy'), pending, request.trace ?? null);
    const unsettled = this.#login?.settle() ?? null;
    if (unsettled === null) send();
    else void unsettled.then(() => this.#isOpen(pending) && send());
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

  /** Whether its caller still waits. */
  #isOpen(pending: PendingRequest): boolean {
    return !this.ended && this.pending.get(pending.id) !== undefined;
  }

  #send(body: ReturnType<typeof wireBytes>, pending: PendingRequest | null, trace: readonly string[] | null): void {
    const taken = () => {
      if (pending === null) this.waits(body.length, -1);
    };
    this.#sendWithLogin(body, pending, trace, 0)
      .catch((error: unknown) => this.#fail(pending, failureReason(error)))
      .finally(taken);
  }

  /** `refusals`: how often the server refused it because of our login. */
  async #sendWithLogin(
    body: ReturnType<typeof wireBytes>,
    pending: PendingRequest | null,
    trace: readonly string[] | null,
    refusals: number,
  ): Promise<void> {
    const path = this.#endpoint!;
    const login = this.#login;
    const headers = this.#headersNow('content-type', 'application/json', ...(trace ?? []));
    const used = login?.header ?? null;
    const proof = await new Promise<readonly string[]>((resolve) => this.#prove('POST', path, resolve));
    const answer = await this.#pool.request({ path, method: 'POST', headers: headers.concat(proof), body });
    await answer.body.dump();
    const { statusCode: status } = answer;
    const nonce = nonceIn(answer.headers);
    this.#heardNonce(nonce);
    if (status < 300) return;
    const challenge = String(answer.headers['www-authenticate'] ?? '');
    const isAboutLogin = (status === 401 || status === 403) && login?.concerns(status, challenge) === true;
    if (!isAboutLogin || refusals >= MOST_REFUSALS) return this.#fail(pending, statusReason(status));
    try {
      await login.refused(used, status, challenge, nonce);
    } catch (error) {
      if (pending !== null) this.pending.fail(pending.id, toGatewayError(error));
      const reason = loginReason(error);
      // Every other call would be refused as well. The next connection waits until somebody logs in.
      if (reason !== null && status === 401) this.end(reason, { status, login: toGatewayError(error).details.login });
      return;
    }
    if (pending === null ? !this.ended : this.#isOpen(pending))
      await this.#sendWithLogin(body, pending, trace, refusals + 1);
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
