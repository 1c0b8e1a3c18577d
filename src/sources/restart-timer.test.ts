import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { RestartTimer } from './restart-timer.ts';

describe('a server that keeps ending', () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  /** Waits for the next attempt, lets it run for `upFor`, and ends it. Returns the state and the seconds waited. */
  function cycle(timer: RestartTimer, upFor = 0): [string, number] {
    const start = Date.now();
    const [state] = timer.schedule('exited');
    vi.advanceTimersToNextTimer();
    const delay = Date.now() - start;
    timer.works();
    vi.advanceTimersByTime(upFor);
    timer.failed(true);
    return [state, Math.round(delay / 1000)];
  }

  it('is restarted after ever longer delays, up to minutes', () => {
    const timer = new RestartTimer(() => {}, true);
    timer.failed(true);
    const seen = Array.from({ length: 10 }, () => cycle(timer));
    expect(seen.slice(0, 4).map(([state]) => state)).toEqual(['down', 'down', 'down', 'down']);
    expect(seen.slice(4)).toEqual([30, 60, 120, 240, 300, 300].map((delay) => ['crash_loop', delay]));
  });

  it('is not in a loop if it works for minutes in between, or if something changed', () => {
    const timer = new RestartTimer(() => {}, true);
    timer.failed(true);
    expect(Array.from({ length: 10 }, () => cycle(timer, 61_000)[0])).toEqual(Array(10).fill('down'));
    for (let n = 0; n < 5; n++) timer.failed(true);
    expect(cycle(timer)[0]).toBe('crash_loop');
    expect(cycle(timer, 61_000)[0]).toBe('crash_loop');
    expect(cycle(timer)[0]).toBe('down');
    for (let n = 0; n < 5; n++) timer.failed(true);
    expect(cycle(timer)[0]).toBe('crash_loop');
    expect(timer.revive()).toBe(true);
    expect(timer.revive()).toBe(false);
    expect(cycle(timer)[0]).toBe('down');
  });

  it('is not in a loop if nothing ended, or if loops are not looked for', () => {
    const timer = new RestartTimer(() => {}, true);
    for (let n = 0; n < 20; n++) timer.failed(false);
    expect(timer.schedule('its dependencies are missing')).toEqual(['down', 'its dependencies are missing']);
    const plain = new RestartTimer(() => {}, false);
    for (let n = 0; n < 20; n++) plain.failed(true);
    expect(plain.schedule('exited')[0]).toBe('down');
  });
});
