/**
 * Asks a silent server whether it still answers. A server that does not is hung. For its callers that is as bad as a
 * crash, and only a restart helps.
 */
import { withJitter } from '../base/backoff.ts';
import { kindWords } from '../catalog/item.ts';
import type { ServerConfig } from '../config/servers.ts';
import { MAX_DURATION } from '../config/units.ts';
import { type OwnRequest, startAsking } from './ask.ts';
import type { Connection } from './connection.ts';
import type { LiveConnection } from './handshake.ts';

/** How often a server was asked, and how often it did not answer. */
export interface Checks {
  readonly asked: number;
  readonly missed: number;
}

export interface HealthOptions {
  /** The connection that takes calls; null while there is none. */
  live(): LiveConnection | null;
  config(): ServerConfig;
  /** Running calls. */
  calls(): number;
  /** Whether the server may be waiting for a client's answer, during which a call's timeout is paused. */
  asks(): boolean;
  /** The server does not answer. */
  hung(connection: Connection): void;
}

/** The reason for the end of a hung server. */
export const HUNG = 'does not answer';
/** The error that its calls get. */
export const RESTARTED = 'does not answer and is being restarted';

/** How long an answer may take, unless calls may take less. */
const ANSWER = 10_000;
/** After this time a server that did not answer is asked again. */
const SOON = 2_000;

export class Health {
  readonly checks = { asked: 0, missed: 0 };
  readonly #options: HealthOptions;
  #timer: NodeJS.Timeout | undefined;
  #question: OwnRequest | null = null;
  /** The value of `heard` at the last look. */
  #heard = 0;
  #misses = 0;
  /** When it was first found silent with running calls; null if it is not. */
  #busySince: number | null = null;

  constructor(options: HealthOptions) {
    this.#options = options;
  }

  /** Whether a health check of ours is in progress. It does not count as use of the server. */
  get isAsking(): boolean {
    return this.#question !== null;
  }

  /** Starts to watch the current connection. Called again when the interval changes. */
  arm(): void {
    this.disarm();
    this.#heard = this.#options.live()?.connection.heard ?? 0;
    this.#misses = 0;
    this.#busySince = null;
    this.#schedule(this.#interval);
  }

  disarm(): void {
    clearTimeout(this.#timer);
    this.#question?.ticket.cancel('no longer of interest');
    this.#question = null;
  }

  get #interval(): number {
    return this.#options.config().healthInterval;
  }

  /** With jitter, so that servers that started together are not all asked at once. */
  #schedule(delay: number): void {
    if (this.#interval === 0 || this.#options.live() === null) return;
    this.#timer = setTimeout(() => this.#look(), Math.min(withJitter(delay), MAX_DURATION));
    this.#timer.unref();
  }

  #look(): void {
    const live = this.#options.live();
    if (live === null) return;
    if (this.#hasSpoken(live.connection) || this.#isExcused()) this.#schedule(this.#interval);
    else this.#ask(live);
  }

  /** Whether anything arrived since the last look. */
  #hasSpoken({ heard }: Connection): boolean {
    if (heard === this.#heard) return false;
    this.#heard = heard;
    this.#misses = 0;
    this.#busySince = null;
    return true;
  }

  /** Many servers do one thing at a time, so a running call excuses silence, unless it began after a missed answer. */
  #isExcused(): boolean {
    if (this.#misses > 0 || this.#options.calls() === 0) {
      this.#busySince = null;
      return false;
    }
    this.#busySince ??= performance.now();
    const { timeout, totalTimeout } = this.#options.config();
    return performance.now() - this.#busySince < (this.#options.asks() ? totalTimeout : timeout);
  }

  #ask(live: LiveConnection): void {
    const { connection } = live;
    const timeout = Math.min(ANSWER, this.#options.config().timeout);
    const question = startAsking(connection, this.#questionFor(live), {}, timeout);
    this.#question = question;
    this.checks.asked++;
    // Any answer will do, an error included: what counts is whether something arrived.
    const done = () => {
      if (this.#question !== question) return;
      this.#question = null;
      if (this.#hasSpoken(connection)) {
        this.#schedule(this.#interval);
        return;
      }
      this.checks.missed++;
      if (++this.#misses > 1) this.#options.hung(connection);
      else this.#schedule(Math.min(this.#interval, SOON));
    };
    question.answer.then(done, done);
  }

  /** The second question is one that the server has answered before, because a few servers ignore pings. */
  #questionFor({ handshake: { era, kinds } }: LiveConnection): string {
    if (era === 'modern') return 'server/discover';
    return this.#misses === 0 || kinds.length === 0 ? 'ping' : kindWords[kinds[0]!].method;
  }
}
