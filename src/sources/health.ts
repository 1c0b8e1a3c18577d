/**
 * Asks a server that is up and says nothing whether it still answers. One that does not is hung: to its callers that is no
 * better than dead, and only a restart helps.
 */

import { withJitter } from '../base/backoff.ts';
import { kindWords } from '../catalog/item.ts';
import type { ServerConfig } from '../config/servers.ts';
import { MAX_DURATION } from '../config/units.ts';
import { type OwnRequest, startAsking } from './ask.ts';
import type { Connection } from './connection.ts';
import type { Line } from './interests.ts';

export interface Health {
  /** Looks after the connection in charge from now on; also when the interval has changed. */
  arm(): void;
  disarm(): void;
  /** Whether a question of its own is under way, which is no use of the server. */
  readonly isAsking: boolean;
  /** How often it was asked, and did not answer. */
  readonly checks: Checks;
}

export interface Checks {
  readonly asked: number;
  readonly missed: number;
}

export interface HealthOptions {
  /** The connection in charge; null while there is none. */
  line(): Line | null;
  config(): ServerConfig;
  /** Calls under way. */
  calls(): number;
  /** Whether it may be asking somebody something, while the clock of a call stands still. */
  asks(): boolean;
  /** It does not answer. */
  hung(connection: Connection): void;
}

/** What a hung server is said to do. */
export const HUNG = 'does not answer';
/** What its calls are told. */
export const RESTARTED = 'does not answer and is being restarted';

/** How long an answer may take, where calls may not take less. */
const ANSWER = 10_000;
/** When it is asked again that has not answered. */
const SOON = 2_000;

export function createHealth({ line, config, calls, asks, hung }: HealthOptions): Health {
  let timer: NodeJS.Timeout | undefined;
  let open: OwnRequest | null = null;
  /** What had been heard of it at the last look. */
  let heard = 0;
  let misses = 0;
  const checks = { asked: 0, missed: 0 };
  /** Since when it has had calls under way without a word. */
  let busySince: number | null = null;
  const interval = () => config().healthInterval;

  function arm(): void {
    disarm();
    heard = line()?.connection.heard ?? 0;
    misses = 0;
    busySince = null;
    schedule(interval());
  }

  function disarm(): void {
    clearTimeout(timer);
    open?.ticket.cancel('no longer of interest');
    open = null;
  }

  /** Never at the same time as others that started together. */
  function schedule(pause: number): void {
    if (interval() === 0 || line() === null) return;
    timer = setTimeout(look, Math.min(withJitter(pause), MAX_DURATION));
    timer.unref();
  }

  function look(): void {
    const current = line();
    if (current === null) return;
    if (isHeard(current.connection) || isExcused()) schedule(interval());
    else ask(current);
  }

  function isHeard({ heard: now }: Connection): boolean {
    if (now === heard) return false;
    heard = now;
    misses = 0;
    busySince = null;
    return true;
  }

  /** Many servers do one thing at a time. A call that came after an unanswered question is no excuse for that one. */
  function isExcused(): boolean {
    if (misses > 0 || calls() === 0) {
      busySince = null;
      return false;
    }
    busySince ??= performance.now();
    const { timeout, totalTimeout } = config();
    return performance.now() - busySince < (asks() ? totalTimeout : timeout);
  }

  function ask(current: Line): void {
    const { connection, timeout } = current;
    const question = startAsking(connection, questionFor(current), {}, Math.min(ANSWER, timeout));
    open = question;
    checks.asked++;
    // Whatever comes of it, all that counts is whether anything was heard.
    const done = () => {
      if (open !== question) return;
      open = null;
      if (isHeard(connection)) schedule(interval());
      else {
        checks.missed++;
        if (++misses > 1) hung(connection);
        else schedule(Math.min(interval(), SOON));
      }
    };
    question.answer.then(done, done);
  }

  /** The second time it is something that the server has answered before: a few leave a ping alone. */
  function questionFor({ handshake: { era, kinds } }: Line): string {
    if (era === 'modern') return 'server/discover';
    return misses === 0 || kinds.length === 0 ? 'ping' : kindWords[kinds[0]!].method;
  }

  return {
    arm,
    disarm,
    checks,
    get isAsking() {
      return open !== null;
    },
  };
}
