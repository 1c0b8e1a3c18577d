/** Asks servers to report changes, and asks again after growing delays whenever that ends. */
import { idText, type Message, parseParams } from '../protocol/message.ts';
import { SUBSCRIPTION_ID } from '../protocol/meta.ts';
import { requestMessage } from '../protocol/rpc.ts';
import { ownParams } from './ask.ts';
import type { ListenRequest } from './connection.ts';

export const ACKNOWLEDGED = 'notifications/subscriptions/acknowledged';

let lastId = 0;

/**
 * The request that asks a modern server to report what `filter` names, and changes in these resources; null if there is
 * nothing to ask for.
 */
export function listenRequest(
  filter: Readonly<Record<string, true>>,
  uris: readonly string[],
  outcome: Pick<ListenRequest, 'taken' | 'refused'> = { taken() {}, refused() {} },
): ListenRequest | null {
  const notifications = { ...filter, ...(uris.length > 0 && { resourceSubscriptions: uris }) };
  if (Object.keys(notifications).length === 0) return null;
  // Calls have numbers for ids, so the two cannot be confused.
  const id = `listen-${++lastId}`;
  const message = requestMessage(id, 'subscriptions/listen', ownParams({ notifications }, 'modern'));
  return { id, message, ...outcome };
}

/** The listen request of one connection. `Carrier` is what it takes to end an earlier one: its id, or its stream. */
export class ListenRequests<Carrier> {
  request: ListenRequest | null = null;
  readonly #end: (carrier: Carrier) => void;
  /** Earlier requests, which report changes until the server accepts the current one. */
  readonly #replaced: Carrier[] = [];
  #retries: Listening | null = null;

  constructor(end: (carrier: Carrier) => void) {
    this.#end = end;
  }

  /** `carrier` belongs to the request so far. `open` sends the new one, also after each loss; null to send none. */
  replace(request: ListenRequest | null, carrier: Carrier | null, open: (() => void) | null, missed: () => void): void {
    this.#retries?.stop();
    if (carrier !== null) this.#replaced.push(carrier);
    this.request = request;
    this.#retries = open === null ? null : keepListening(open, missed);
    if (request === null) this.endReplaced();
  }

  endReplaced(): void {
    for (const carrier of this.#replaced.splice(0)) this.#end(carrier);
  }

  /** The channel is open. */
  opened(): void {
    this.#retries?.taken();
  }

  lost(): void {
    this.#retries?.lost();
  }

  /** Not tried again: a server that answers with an error would do so again. */
  refused(): void {
    this.#retries?.stop();
    this.request?.refused();
  }

  stop(): void {
    this.#retries?.stop();
  }

  /** Whether the message acknowledges the current request; then the earlier ones are ended. */
  acknowledge(message: Message): boolean {
    const { request } = this;
    const { _meta, notifications } = parseParams(message) as {
      _meta?: Record<string, unknown>;
      notifications?: { resourceSubscriptions?: unknown } | null;
    };
    if (request === null || (_meta?.[SUBSCRIPTION_ID] ?? request.id) !== request.id) return false;
    const uris: unknown = notifications?.resourceSubscriptions ?? [];
    request.taken(notifications == null || !Array.isArray(uris) ? null : uris.map(String));
    this.endReplaced();
    return true;
  }

  /** Whether the response ends the current request. */
  isEndedBy(response: Message): boolean {
    return this.request !== null && response.idStart >= 0 && idText(response) === `"${this.request.id}"`;
  }
}

export interface Listening {
  /** The server has accepted the request. */
  taken(): void;
  /** The request has ended. */
  lost(): void;
  stop(): void;
}

const DELAY = { first: 1_000, most: 30_000 };
/** After this long the next loss counts as the first again. */
const STEADY = 60_000;

/** `missed`: listening was interrupted for a while and has resumed. */
export function keepListening(open: () => void, missed: () => void): Listening {
  let timer: NodeJS.Timeout | undefined;
  let stopped = false;
  let delay = DELAY.first;
  let openedAt = performance.now();
  let isRetry = false;

  function retry(): void {
    timer = undefined;
    openedAt = performance.now();
    isRetry = true;
    open();
  }

  open();
  return {
    taken() {
      if (isRetry) missed();
    },
    lost() {
      if (stopped || timer !== undefined) return;
      if (performance.now() - openedAt > STEADY) delay = DELAY.first;
      timer = setTimeout(retry, delay);
      timer.unref();
      delay = Math.min(delay * 2, DELAY.most);
    },
    stop() {
      stopped = true;
      clearTimeout(timer);
    },
  };
}
