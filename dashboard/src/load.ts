/** Asks for something when a view opens and whenever what it depends on changes. What was there stays until the new answer. */
import { useEffect, useRef, useState } from 'preact/hooks';

export interface Loaded<T> {
  readonly value: T | undefined;
  readonly error: Error | null;
  readonly again: () => void;
}

export function useLoad<T>(work: (signal: AbortSignal) => Promise<T>, depends: readonly unknown[]): Loaded<T> {
  const [state, setState] = useState<{ value: T | undefined; error: Error | null }>({ value: undefined, error: null });
  const [round, setRound] = useState(0);
  const latest = useRef(work);
  latest.current = work;
  useEffect(() => {
    const gone = new AbortController();
    latest.current(gone.signal).then(
      (value) => gone.signal.aborted || setState({ value, error: null }),
      (error: Error) => gone.signal.aborted || setState((old) => ({ value: old.value, error })),
    );
    return () => gone.abort();
  }, [...depends, round]);
  return { ...state, again: () => setRound((old) => old + 1) };
}

/** The value, once it has stayed the same for a moment: so that typing does not ask for every letter. */
export function useSettled<T>(value: T, ms = 120): T {
  const [settled, setSettled] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), ms);
    return () => clearTimeout(timer);
  }, [value, ms]);
  return settled;
}
