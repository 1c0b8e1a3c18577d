/**
 * Further processes of a server that asks things of its clients, or connections to it, so that every question has one
 * addressee: a call whose caller can be asked has one to itself, those whose callers cannot share one.
 */
import { GatewayError } from '../base/errors.ts';
import type { Sink, SourceRequest, Ticket } from '../protocol/contract.ts';
import { isAskable } from '../protocol/question.ts';
import type { Connection } from './connection.ts';
import { deferRequest } from './tickets.ts';

export interface Leases {
  /** Sends the request where no other call could be meant by a question. */
  request(primary: Connection, request: SourceRequest): Ticket;
  /** The server has forgotten the session of this connection. */
  forgotten(connection: Connection): void;
  readonly inFlight: number;
  close(): Promise<void>;
}

/** With the first one: as many as a server may have. Over HTTP they are no processes. */
const MOST = { stdio: 4, http: 16 };
const IDLE = 60_000;
/** How long somebody who was asked has, in any case, to come back with the answer. */
const PATIENCE = 5_000;

/** `open` gives a new, greeted connection; `lost` is called by it when the connection breaks. */
export function createLeases(
  source: string,
  kind: keyof typeof MOST,
  open: (lost: (which: Connection) => void) => Promise<Connection>,
): Leases {
  const most = MOST[kind];
  const extras = new Set<Connection>();
  /** Whom each of them works for, or did last. */
  const sinks = new WeakMap<Connection, Sink>();
  let opening = 0;
  /** One being opened for all calls whose callers cannot be asked. */
  let shared: Promise<Connection> | null = null;

  function drop(connection: Connection): void {
    extras.delete(connection);
  }

  async function add(): Promise<Connection> {
    opening++;
    try {
      const connection = await open(drop);
      extras.add(connection);
      endWhenIdle(connection);
      return connection;
    } finally {
      opening--;
    }
  }

  function endWhenIdle(connection: Connection): void {
    const timer = setInterval(() => {
      if (extras.has(connection) && (connection.inFlight > 0 || connection.awaited)) return;
      clearInterval(timer);
      drop(connection);
      void connection.close();
    }, IDLE);
    timer.unref();
  }

  const hasRoom = () => extras.size + opening + 1 < most;

  /**
   * Ends one that is only busy with what was given up; or the one whose caller was asked something longest ago and went
   * away, because it may never come back, and until then others would wait.
   */
  function makeRoom(): boolean {
    const since = (connection: Connection) => sinks.get(connection)?.awaySince ?? Number.POSITIVE_INFINITY;
    const idle = [...extras].find(({ inFlight, awaited }) => inFlight === 0 && !awaited);
    const [longest] = [...extras].sort((a, b) => since(a) - since(b));
    const left = idle ?? longest;
    if (left === undefined || (idle === undefined && Date.now() - since(left) < PATIENCE)) return false;
    drop(left);
    void left.close();
    return true;
  }

  function lease(connection: Connection, request: SourceRequest): Ticket {
    sinks.set(connection, request.sink);
    return connection.request(request);
  }

  function requestOn(opened: Promise<Connection>, request: SourceRequest): Ticket {
    return deferRequest(request, opened, (connection) => lease(connection, request));
  }

  /** For a call whose caller cannot be asked: where nobody is who can. */
  function requestShared(primary: Connection, request: SourceRequest): Ticket {
    const calm = [primary, ...extras].find(({ askable }) => askable === 0);
    if (calm !== undefined) return calm.request(request);
    if (shared === null && hasRoom())
      shared = add().finally(() => {
        shared = null;
      });
    // Without room, questions there become uncertain and are refused; the call itself can still be made.
    return shared === null ? primary.request(request) : requestOn(shared, request);
  }

  return {
    request(primary, request) {
      if (!isAskable(request.sink)) return requestShared(primary, request);
      const free = [primary, ...extras].find(({ asking }) => asking === 0);
      if (free !== undefined) return lease(free, request);
      if (hasRoom() || makeRoom()) return requestOn(add(), request);
      const text = `Server "${source}" is busy with ${most} calls that may ask something back. Try again later.`;
      queueMicrotask(() => request.sink.fail(new GatewayError('source_busy', text)));
      return { cancel() {} };
    },
    // Its answers may still come; it is closed when it is looked after the next time.
    forgotten: drop,
    get inFlight() {
      let sum = opening;
      for (const { inFlight } of extras) sum += inFlight;
      return sum;
    },
    async close() {
      const all = [...extras];
      extras.clear();
      await Promise.allSettled(all.map((connection) => connection.close()));
    },
  };
}
