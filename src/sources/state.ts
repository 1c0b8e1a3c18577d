/** The state of a server, since when and why, and its last few states. */
import type { EventSink } from '../base/events.ts';
import type { StderrTail } from './stderr-tail.ts';

/**
 * `starting`: tried for the first time, and listed already if an earlier run knew it. `asleep`: not running, but listed,
 * and started by the next call. `down`: failed, and tried again after a delay. `crash_loop`: ended again and again, and
 * tried again after a long delay. `locked`: not started, because it needs a secret that is not set, or a login.
 * `broken`: not started, because its entry in the configuration has a mistake. `untrusted`: not started, because the
 * configuration was found in a project and nobody has trusted it yet.
 */
export type SourceState =
  | 'starting'
  | 'up'
  | 'asleep'
  | 'down'
  | 'crash_loop'
  | 'locked'
  | 'broken'
  | 'untrusted'
  | 'closed';

export interface Transition {
  /** When, as ISO 8601. */
  readonly time: string;
  readonly state: SourceState;
  readonly detail: string;
}

export interface StateReport {
  readonly state: SourceState;
  /** Why it is down, or its own name when it is up. */
  readonly detail: string;
  /** When it entered the state, as ISO 8601. */
  readonly since: string;
  /** Its last states, the current one at the end. A failure that only repeats itself is listed once. */
  readonly history: readonly Transition[];
}

export interface StateContext {
  readonly events: EventSink;
  redact(text: string): string;
  /** The state changed. */
  changed(): void;
}

const MOST = 20;
/** Characters of what a server wrote. */
const SHOWN = 300;

export class StateHistory {
  state: SourceState = 'starting';
  detail = '';
  readonly #context: StateContext;
  /** The name of the server. */
  readonly #key: () => string;
  readonly #stderr: StderrTail;
  /** Whether something has to be done before it can start. */
  isPreparing = false;
  since = new Date().toISOString();
  /** The failure that was logged last, since it was last up. */
  #lastFailure: string | null = null;
  #history: readonly Transition[] = [{ time: this.since, state: this.state, detail: this.detail }];

  constructor(context: StateContext, key: () => string, stderr: StderrTail) {
    this.#context = context;
    this.#key = key;
    this.#stderr = stderr;
  }

  get isClosed(): boolean {
    return this.state === 'closed';
  }

  /** `isLasting`: the reason will stay the same until somebody does something about it, so it is logged once. */
  enter(state: SourceState, reason: string, isLasting = false): void {
    this.#enter(state, reason, false, isLasting);
  }

  #enter(state: SourceState, reason: string, isPreparing: boolean, isLasting = false): void {
    const { events, redact, changed } = this.#context;
    this.isPreparing = isPreparing;
    const detail = redact(reason);
    const time = new Date().toISOString();
    if (this.state !== state) this.since = time;
    if (this.state !== state || this.detail !== detail)
      this.#history = [...this.#history, { time, state, detail }].slice(-MOST);
    this.state = state;
    this.detail = detail;
    // The server's last line is only for the operator's log, not for `detail`, which callers read: it may contain
    // anything. Shortened after redaction, because half a secret would not be recognised.
    const hasFailed = !isPreparing && (state === 'down' || state === 'crash_loop');
    const lastLine = hasFailed ? redact(this.#stderr.lastLine()).slice(0, SHOWN) : '';
    const logged = lastLine === '' ? detail : `${detail} (it said: ${lastLine})`;
    if (!isLasting || logged !== this.#lastFailure)
      events.emit('source', { source: this.#key(), state, detail: logged });
    if (hasFailed) this.#lastFailure = logged;
    else if (state === 'up') this.#lastFailure = null;
    changed();
  }

  /**
   * What has to be done before it can start, such as an install. Its state stays the same. In the history, later texts
   * replace earlier ones.
   */
  prepare(text: string): void {
    if (this.isClosed) return;
    if (this.isPreparing) this.#history = this.#history.slice(0, -1);
    this.#enter(this.state, text, true);
  }

  /** All of that is done. */
  prepared(): void {
    if (!this.isClosed && this.isPreparing) this.enter(this.state, 'its package is installed');
  }

  /** Enters the last state, without an event. */
  close(): void {
    this.state = 'closed';
  }

  report(): StateReport {
    return { state: this.state, detail: this.detail, since: this.since, history: this.#history };
  }
}
