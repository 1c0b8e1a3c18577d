/** What callers want of a server beside calls: how much it logs, which resources to tell of. A new connection is told again. */
import type { LogLevel } from '../protocol/levels.ts';
import { ask } from './ask.ts';
import type { Connection, Request, Ticket } from './connection.ts';
import { type Greeting, listenRequest } from './greeting.ts';
import { later } from './later.ts';
import { createSubscriptions, type Subscriptions } from './subscriptions.ts';

export interface Wishes {
  readonly subscriptions: Subscriptions;
  setLogLevel(level: LogLevel): void;
  /** A call while the server is being told how much to log waits for that: over HTTP it could be there first. Null otherwise. */
  hold(request: Request, go: (request: Request) => Ticket): Ticket | null;
  renew(): void;
}

/** How long a call waits at most. */
const TELLING = 1_000;

/** The connection in charge, and what its server can do. */
export interface Line {
  readonly connection: Connection;
  readonly greeting: Greeting;
  readonly timeout: number;
}

export function createWishes(line: () => Line | null): Wishes {
  let logLevel: LogLevel | null = null;
  let telling: Promise<void> | null = null;

  function tell(method: string, params: object): Promise<unknown> | null {
    const current = line();
    return current === null ? null : ask(current.connection, method, params, current.timeout);
  }

  /** For servers that take it once for all callers. Everybody hears from `info` on who has not said otherwise. */
  function tellLevel(): void {
    const current = line();
    if (logLevel === null || current?.greeting.levels !== true) return;
    const asked = ask(current.connection, 'logging/setLevel', { level: logLevel }, Math.min(TELLING, current.timeout));
    const told: Promise<void> = asked
      .catch(() => {})
      .then(() => {
        if (telling === told) telling = null;
      });
    telling = told;
  }

  const subscriptions = createSubscriptions({
    // Earlier servers are told of each resource by itself, modern ones of all at once.
    tell: (method, uri) => (line()?.greeting.era === 'legacy' ? tell(method, { uri }) : null),
    tellAll(uris) {
      const current = line();
      if (current?.greeting.era === 'modern') current.connection.listen(listenRequest(current.greeting, uris));
    },
  });

  return {
    subscriptions,
    setLogLevel(level) {
      if (logLevel === 'debug' || (logLevel !== null && level !== 'debug')) return;
      logLevel = level === 'debug' ? 'debug' : 'info';
      tellLevel();
    },
    hold: (request, go) =>
      telling === null ? null : later(telling, () => go(request), request.sink.fail.bind(request.sink)),
    renew() {
      tellLevel();
      subscriptions.renew();
    },
  };
}
