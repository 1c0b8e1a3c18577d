/** A long list of which only windows are asked for. It starts again when what it depends on changes. */
import { useEffect, useRef, useState } from 'preact/hooks';

const WINDOW = 100;

export interface Paged<Row, Answer> {
  readonly rows: readonly (Row | undefined)[];
  /** The last answer, for what it says besides the rows. */
  readonly last: Answer | undefined;
  readonly error: Error | null;
  readonly range: (from: number, until: number) => void;
  readonly again: () => void;
}

export function usePaged<Row, Answer extends { readonly total: number; readonly offset: number }>(
  ask: (offset: number, limit: number, signal: AbortSignal) => Promise<Answer>,
  rowsOf: (answer: Answer) => readonly Row[],
  depends: readonly unknown[],
  /** What the rows stay in place for while they are asked for again, such as a new catalog. */
  renewedBy: unknown = 0,
): Paged<Row, Answer> {
  const [, draw] = useState(0);
  const [round, setRound] = useState(0);
  const now = useRef({
    rows: [] as (Row | undefined)[],
    asked: new Set<number>(),
    last: undefined as Answer | undefined,
    error: null as Error | null,
    gone: new AbortController(),
    seen: [0, WINDOW] as [number, number],
  });
  const latest = useRef({ ask, rowsOf });
  latest.current = { ask, rowsOf };

  const load = async (page: number) => {
    const state = now.current;
    const { gone } = state;
    if (state.asked.has(page)) return;
    state.asked.add(page);
    try {
      const answer = await latest.current.ask(page * WINDOW, WINDOW, gone.signal);
      if (gone.signal.aborted) return;
      const rows = state.rows.slice(0, answer.total);
      rows.length = answer.total;
      latest.current.rowsOf(answer).forEach((row, index) => {
        rows[answer.offset + index] = row;
      });
      // Holes are made real, because `map` would leave them out.
      state.rows = Array.from(rows);
      state.last = answer;
      state.error = null;
    } catch (error) {
      if (gone.signal.aborted) return;
      state.error = error as Error;
    }
    draw((old) => old + 1);
  };
  const range = useRef((from: number, until: number) => {
    // An empty table sees nothing, and still wants its first rows.
    now.current.seen = [from, Math.max(until, from + 1)];
    for (let page = Math.floor(from / WINDOW); page * WINDOW < Math.max(until, from + 1); page += 1) void load(page);
  });

  const before = useRef<readonly unknown[]>([]);
  useEffect(() => {
    const state = now.current;
    const isOther = depends.some((one, index) => one !== before.current[index]);
    before.current = depends;
    state.gone.abort();
    state.gone = new AbortController();
    state.asked = new Set();
    if (isOther) state.seen = [0, WINDOW];
    range.current(...state.seen);
    if (state.seen[0] > 0) void load(0);
  }, [...depends, renewedBy, round]);
  useEffect(() => () => now.current.gone.abort(), []);

  const { rows, last, error } = now.current;
  return { rows, last, error, range: range.current, again: () => setRound((old) => old + 1) };
}
