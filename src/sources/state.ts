/** The state of a server: which one, since when and why, and the last few before it. */
import type { EventSink } from '../base/events.ts';
import type { StderrTail } from './stderr-tail.ts';

/**
 * `asleep`: not running, but listed and started by the next call. `down`: failed, tried again after a pause. `crash_loop`:
 * ended time after time, tried again after a long one. `locked`: not started, because it needs a secret that is not set.
 */
export type SourceState = 'starting' | 'up' | 'asleep' | 'down' | 'crash_loop' | 'locked' | 'closed';

export interface Transition {
  /** When, as ISO 8601. */
  readonly time: string;
  readonly state: SourceState;
  readonly detail: string;
}

export interface StateHistory {
  readonly state: SourceState;
  readonly detail: string;
  moved(next: SourceState, why: string): void;
  /** The end, of which nobody is told. */
  close(): void;
  report(): Report;
}

export interface Report {
  readonly state: SourceState;
  /** Why it is down, or what it calls itself when it is up. */
  readonly detail: string;
  /** When it came into its state, as ISO 8601. */
  readonly since: string;
  /** The last states that it was in, the present one at the end. A failure that only repeats itself stands there once. */
  readonly history: readonly Transition[];
}

const MOST = 20;
/** Characters of what a server said. */
const SHOWN = 300;

export function createStateHistory(
  { events, redact, changed }: { readonly events: EventSink; redact(text: string): string; changed(): void },
  key: () => string,
  stderr: StderrTail,
): StateHistory {
  let state: SourceState = 'starting';
  let detail = '';
  let since = new Date().toISOString();
  let history: readonly Transition[] = [{ time: since, state, detail }];

  return {
    get state() {
      return state;
    },
    get detail() {
      return detail;
    },
    moved(next, said) {
      const why = redact(said);
      const time = new Date().toISOString();
      if (state !== next) since = time;
      if (state !== next || detail !== why) history = [...history, { time, state: next, detail: why }].slice(-MOST);
      state = next;
      detail = why;
      // What the server said last is for the operator's log only: it may hold anything, and callers read `detail`.
      // Cut only when it is clean: half of a secret would not be known for one.
      const line = next === 'down' || next === 'crash_loop' ? redact(stderr.lastLine()).slice(0, SHOWN) : '';
      events.emit('source', { source: key(), state, detail: line === '' ? why : `${why} (it said: ${line})` });
      changed();
    },
    close() {
      state = 'closed';
    },
    report: () => ({ state, detail, since, history }),
  };
}
