import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { createBackoff } from './backoff.ts';

describe('a server that only ever ends', () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  /** Ends it, and waits until it is tried again; the seconds that took. */
  function cycle(retry: ReturnType<typeof createBackoff>, upFor = 0): [string, number] {
    const start = Date.now();
    const [state] = retry.later('exited');
    vi.advanceTimersToNextTimer();
    const pause = Date.now() - start;
    retry.works();
    vi.advanceTimersByTime(upFor);
    retry.failed(true);
    return [state, Math.round(pause / 1000)];
  }

  it('is left alone for longer and longer, up to minutes', () => {
    const retry = createBackoff(() => {}, true);
    retry.failed(true);
    const seen = Array.from({ length: 10 }, () => cycle(retry));
    expect(seen.slice(0, 4).map(([state]) => state)).toEqual(['down', 'down', 'down', 'down']);
    expect(seen.slice(4)).toEqual([30, 60, 120, 240, 300, 300].map((pause) => ['crash_loop', pause]));
  });

  it('is no loop where it works for minutes in between, or after something has changed', () => {
    const retry = createBackoff(() => {}, true);
    retry.failed(true);
    expect(Array.from({ length: 10 }, () => cycle(retry, 61_000)[0])).toEqual(Array(10).fill('down'));
    for (let n = 0; n < 5; n++) retry.failed(true);
    expect(cycle(retry)[0]).toBe('crash_loop');
    expect(cycle(retry, 61_000)[0]).toBe('crash_loop');
    expect(cycle(retry)[0]).toBe('down');
    for (let n = 0; n < 5; n++) retry.failed(true);
    expect(cycle(retry)[0]).toBe('crash_loop');
    expect(retry.revive()).toBe(true);
    expect(retry.revive()).toBe(false);
    expect(cycle(retry)[0]).toBe('down');
  });

  it('is no loop where nothing ended, or where nobody tells loops apart', () => {
    const retry = createBackoff(() => {}, true);
    for (let n = 0; n < 20; n++) retry.failed(false);
    expect(retry.later('its dependencies are not there')).toEqual(['down', 'its dependencies are not there']);
    const plain = createBackoff(() => {}, false);
    for (let n = 0; n < 20; n++) plain.failed(true);
    expect(plain.later('exited')[0]).toBe('down');
  });
});
