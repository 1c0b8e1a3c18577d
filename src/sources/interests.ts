/** What callers want of a server beside calls: how much it logs, which resources to tell of. A new connection is told again. */
import { GatewayError } from '../base/errors.ts';
import type { SourceRequest, Ticket } from '../protocol/contract.ts';
import type { LogLevel } from '../protocol/levels.ts';
import { ask } from './ask.ts';
import type { Connection } from './connection.ts';
import type { Handshake } from './handshake.ts';
import { listenRequest } from './listening.ts';
import { createSubscriptions, type Subscriptions } from './subscriptions.ts';
import { deferRequest } from './tickets.ts';

export interface Interests {
  readonly subscriptions: Subscriptions;
  setLogLevel(level: LogLevel): void;
  /** A call while the server is being told how much to log waits for that: over HTTP it could be there first. Null otherwise. */
  hold(request: SourceRequest, go: (request: SourceRequest) => Ticket): Ticket | null;
  renew(): void;
  /** Tells another connection to the same server how much to log; null where there is nothing to say. */
  brief(line: Line): Promise<unknown> | null;
}

/** How long a call waits at most. */
const TELLING = 1_000;

/** The connection in charge, and what its server can do. */
export interface Line {
  readonly connection: Connection;
  readonly handshake: Handshake;
  readonly timeout: number;
}

export function createInterests(line: () => Line | null): Interests {
  let logLevel: LogLevel | null = null;
  let telling: Promise<void> | null = null;

  function tell(method: string, params: object): Promise<unknown> | null {
    const current = line();
    return current === null ? null : ask(current.connection, method, params, current.timeout);
  }

  /** For servers that take it once for all callers. Everybody hears from `info` on who has not said otherwise. */
  function tellLevel(): void {
    const current = line();
    const asked = current === null ? null : brief(current);
    if (asked === null) return;
    const told: Promise<void> = asked.then(() => {
      if (telling === told) telling = null;
    });
    telling = told;
  }

  function brief({ connection, handshake, timeout }: Line): Promise<unknown> | null {
    if (logLevel === null || !handshake.levels) return null;
    return ask(connection, 'logging/setLevel', { level: logLevel }, Math.min(TELLING, timeout)).catch(() => {});
  }

  const subscriptions = createSubscriptions({
    // Earlier servers are told of each resource by itself, modern ones of all at once.
    tell: (method, uri) => (line()?.handshake.era === 'legacy' ? tell(method, { uri }) : null),
    tellAll(uris) {
      const current = line();
      return current?.handshake.era === 'modern' ? listen(current, uris) : null;
    },
  });

  /** Ends the waiting for an answer to the last request to listen. */
  let follow: (next: Promise<ReadonlySet<string>>) => void = () => {};

  /** Resolves with those that the server tells of. One that is replaced before it was taken goes the way of its successor. */
  function listen({ connection, handshake, timeout }: Line, uris: readonly string[]): Promise<ReadonlySet<string>> {
    const before = follow;
    const heard = new Promise<ReadonlySet<string>>((resolve, reject) => {
      const late = setTimeout(() => {
        const text = `The server did not say within ${timeout / 1000} s that it tells of changes in resources.`;
        reject(new GatewayError('source_timeout', text));
      }, timeout);
      late.unref();
      const settle = (honoured: ReadonlySet<string> | Promise<ReadonlySet<string>>) => {
        clearTimeout(late);
        resolve(honoured);
      };
      follow = settle;
      const request = listenRequest(handshake.filter, uris, {
        taken: (honoured) => settle(new Set(honoured ?? uris)),
        refused: () => settle(new Set()),
      });
      connection.listen?.(request);
      if (request === null) settle(new Set());
    });
    before(heard);
    return heard;
  }

  return {
    subscriptions,
    brief,
    setLogLevel(level) {
      if (logLevel === 'debug' || (logLevel !== null && level !== 'debug')) return;
      logLevel = level === 'debug' ? 'debug' : 'info';
      tellLevel();
    },
    hold: (request, go) => (telling === null ? null : deferRequest(request, telling, () => go(request))),
    renew() {
      tellLevel();
      subscriptions.renew();
    },
  };
}
