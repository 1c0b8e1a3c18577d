/**
 * The client's session with a remote gateway. If the gateway no longer knows it, a new one is opened with the client's
 * original `initialize` parameters, subscriptions and log level. The client is then told that its lists may have
 * changed.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { toBytes } from '../../protocol/json.ts';
import { type Message, parseParams } from '../../protocol/message.ts';
import { readMessage } from '../../protocol/read.ts';
import { requestMessage } from '../../protocol/rpc.ts';
import { arrive, LONGEST, SHORTEST } from './exchange.ts';
import type { RemoteLink } from './link.ts';
import { INITIALIZED, LISTS, listChanged, NO_PARAMS } from './words.ts';

export class RemoteSession {
  readonly #link: RemoteLink;
  #id: string | null = null;
  #revision: string | null = null;
  /** The client's `initialize` parameters. */
  #greeting: Buffer | null = null;
  /** The lists whose changes the gateway has promised to announce. */
  #lists: readonly string[] = [];
  #logLevel: unknown = null;
  readonly #subscribed = new Set<string>();
  /** Resolves when `notifications/initialized` has been sent. Null before the client sends it. */
  #opening: Promise<void> | null = null;
  #isOpened = false;
  #renewing: Promise<void> | null = null;
  #renewals = 0;
  #listening: AbortController | null = null;

  constructor(link: RemoteLink) {
    this.#link = link;
  }

  /** Null before `initialize`, and for a client without a session. */
  get id(): string | null {
    return this.#id;
  }

  /** The renewal that a request has to wait for; null if there is none. */
  get renewal(): Promise<void> | null {
    return this.#id === null ? this.#renewing : null;
  }

  /** The headers of a request in the session. */
  headers(): Record<string, string> {
    return {
      ...this.openingHeaders(),
      ...(this.#id !== null && { 'mcp-session-id': this.#id }),
      ...(this.#revision !== null && { 'mcp-protocol-version': this.#revision }),
    };
  }

  /** The headers of a request that opens a session. */
  openingHeaders(): Record<string, string> {
    return {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      ...this.#link.options.headers(),
    };
  }

  /** Takes the id from the response's headers: the client may send its next message before the body has been read. */
  readonly enter = (status: number, id: string | null): void => {
    if (status === 200) this.#id = id;
  };

  /** Takes the gateway's response to `initialize`. */
  greeted({ bytes, resultStart, resultEnd }: Message): void {
    if (resultStart < 0) return;
    const result = JSON.parse(bytes.toString('utf8', resultStart, resultEnd)) as {
      protocolVersion?: unknown;
      capabilities?: Record<string, { listChanged?: unknown } | undefined>;
    };
    this.#revision = typeof result.protocolVersion === 'string' ? result.protocolVersion : null;
    this.#lists = LISTS.filter((kind) => result.capabilities?.[kind]?.listChanged === true);
  }

  /** Remembers what has to be repeated in a new session. */
  remember(message: Message): void {
    const { method, bytes, paramsStart, paramsEnd } = message;
    if (method === 'initialize') this.#greeting = paramsStart < 0 ? NO_PARAMS : bytes.subarray(paramsStart, paramsEnd);
    else if (method === 'logging/setLevel') this.#logLevel = parseParams(message).level;
    else if (method === 'resources/subscribe') this.#subscribed.add(String(parseParams(message).uri));
    else if (method === 'resources/unsubscribe') this.#subscribed.delete(String(parseParams(message).uri));
  }

  /** Sends `notifications/initialized`, and then opens the session's stream. */
  open(initialized: Buffer): Promise<void> {
    this.#opening = this.notify(initialized).then((isAccepted) => {
      this.#isOpened = isAccepted;
      if (isAccepted) this.#listen();
    });
    return this.#opening;
  }

  /**
   * Waits for `notifications/initialized` to arrive. Requests travel on other connections and must not overtake it. If
   * it failed, it is sent again.
   */
  async opened(): Promise<void> {
    await this.#opening?.catch(() => {});
    if (!this.#isOpened && this.#opening !== null) await this.open(INITIALIZED);
  }

  /** Sends a message that gets no answer. Resolves to whether the gateway accepted it. */
  async notify(message: Buffer): Promise<boolean> {
    const { closing, options, write } = this.#link;
    const { signal } = closing;
    const send = () => this.#link.post(message, this.headers(), signal, write);
    const outcome = await arrive(send, signal, Date.now() + options.patience);
    return outcome.kind === 'answered' && outcome.status < 300;
  }

  /** Replaces a session that the gateway no longer knows. Requests that notice at the same time share one renewal. */
  renew(stale: string | null): Promise<void> {
    if (this.#id !== stale || this.#greeting === null) return Promise.resolve();
    this.#renewing ??= this.#greetAgain(this.#greeting).finally(() => {
      this.#renewing = null;
    });
    return this.#renewing;
  }

  async #greetAgain(greeting: Buffer): Promise<void> {
    const link = this.#link;
    const { signal } = link.closing;
    const id = `toolgate-connect-${++this.#renewals}`;
    const initialize = requestMessage(id, 'initialize', greeting);
    const receive = (bytes: Buffer) => this.greeted(readMessage(bytes));
    const greet = () => link.post(initialize, this.openingHeaders(), signal, receive, this.enter);
    const outcome = await arrive(greet, signal, Number.POSITIVE_INFINITY);
    if (outcome.kind !== 'answered' || outcome.status !== 200) return;
    const send = (message: Buffer) => link.post(message, this.headers(), signal, () => {});
    await send(INITIALIZED);
    for (const uri of this.#subscribed) await send(requestMessage(id, 'resources/subscribe', toBytes({ uri })));
    if (this.#logLevel !== null) await send(requestMessage(id, 'logging/setLevel', toBytes({ level: this.#logLevel })));
    link.options.note('the gateway restarted or dropped the session: a new session is open');
    this.#listen();
    for (const line of listChanged(this.#lists, null)) link.write(line);
  }

  /** Opens the session's stream for messages that the gateway sends on its own. */
  #listen(): void {
    this.#listening?.abort();
    this.#listening = new AbortController();
    this.#follow(this.#listening.signal).catch((error: unknown) => this.#link.options.note(String(error)));
  }

  async #follow(signal: AbortSignal): Promise<void> {
    const link = this.#link;
    let lastId = '';
    for (let pause = SHORTEST; !signal.aborted; ) {
      const used = this.#id;
      const headers = { ...this.headers(), ...(lastId !== '' && { 'last-event-id': lastId }) };
      const began = Date.now();
      const outcome = await link.request({ method: 'GET', headers, signal }, link.write);
      if (signal.aborted) return;
      if (outcome.kind !== 'unreachable' && outcome.lastId !== '') lastId = outcome.lastId;
      if (outcome.kind === 'answered' && outcome.status === 404) {
        await this.renew(used);
        return;
      }
      if (outcome.kind === 'answered' && [400, 401, 403, 405].includes(outcome.status)) return;
      pause = Date.now() - began > LONGEST ? SHORTEST : Math.min(pause * 2, LONGEST);
      await sleep(pause, undefined, { signal }).catch(() => {});
    }
  }

  /** Ends the session at the gateway. */
  async close(): Promise<void> {
    this.#listening?.abort();
    if (this.#id === null) return;
    const signal = AbortSignal.timeout(1_000);
    await this.#link.request({ method: 'DELETE', headers: this.headers(), signal }, () => {});
  }
}
