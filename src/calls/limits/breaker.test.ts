import { describe, expect, it, vi } from 'vitest';
import { GatewayError } from '../../base/errors.ts';
import { NoFault } from '../../sources/tickets.ts';
import { CANCELLED, ERROR, FAILED, OK, REFUSED, TIMEOUT, TOOL_ERROR } from '../outcome.ts';
import { Breaker } from './breaker.ts';

function create() {
  const reports: string[] = [];
  const breaker = new Breaker('s', {
    opened: ({ message }) => reports.push(message),
    closed: () => reports.push('closed'),
  });
  return { breaker, reports };
}

const broken = (details = {}) => new GatewayError('source_broken', 'It broke.', { details });
const late = () => new GatewayError('source_timeout', 'Too late.');

function failing(breaker: Breaker, times: number, make: () => GatewayError = broken): void {
  for (let i = 0; i < times; i++) {
    const call = {};
    breaker.pass(call);
    const error = make();
    breaker.over(call, 'a', error.code === 'source_timeout' ? TIMEOUT : FAILED, error, true);
  }
}

describe('a circuit breaker', () => {
  it('opens after the fifth failure in a row, not earlier', () => {
    const { breaker, reports } = create();
    failing(breaker, 4);
    expect([breaker.refusal('a'), reports]).toEqual([null, []]);
    failing(breaker, 1, late);
    expect(breaker.refusal('a')?.message).toBe(
      'Server "s" failed 5 times in a row and is not called for now; it is tried again in 1 s. The last error: Too late.',
    );
    expect(breaker.refusal('a')?.details).toEqual({ retryAfter: 1 });
    expect(reports).toHaveLength(1);
    expect(breaker.state()).toEqual({ state: 'open', failures: 5, until: expect.any(String) });
  });

  it.each([
    ['a result', OK],
    ['a tool that failed', TOOL_ERROR],
    ['an error of the protocol', ERROR],
  ])('starts counting from zero again after %s', (_, outcome) => {
    const { breaker } = create();
    failing(breaker, 4);
    breaker.over({}, 'a', outcome, null, true);
    failing(breaker, 4);
    expect(breaker.isClosed).toBe(true);
  });

  it.each([
    ['was cancelled', CANCELLED],
    ['was refused', REFUSED],
  ])('goes on counting after a call that %s', (_, outcome) => {
    const { breaker } = create();
    failing(breaker, 4);
    breaker.over({}, 'a', outcome, null, true);
    failing(breaker, 1);
    expect(breaker.refusal('a')).not.toBeNull();
  });

  it('does not count errors that say nothing about the server', () => {
    const { breaker } = create();
    failing(breaker, 4);
    breaker.over({}, 'a', CANCELLED, null, true);
    breaker.over({}, 'a', FAILED, new GatewayError('source_busy', 'x'), true);
    breaker.over({}, 'a', FAILED, broken({ status: 404 }), true);
    breaker.over({}, 'a', TIMEOUT, late(), false);
    expect(breaker.isClosed).toBe(true);
    breaker.over({}, 'a', FAILED, broken({ status: 503 }), true);
    expect(breaker.isClosed).toBe(false);
  });

  it('does not count calls that were never sent, or that ended because of our own decision', () => {
    const { breaker } = create();
    failing(breaker, 100, () => new NoFault('source_unavailable', 'It is restarting.'));
    expect([breaker.isClosed, breaker.failures]).toEqual([true, 0]);
  });

  it('keeps only the agent whose calls failed from calling, until those of another one fail too', () => {
    const { breaker } = create();
    failing(breaker, 5);
    expect(breaker.refusal('a')).not.toBeNull();
    expect(breaker.refusal('b')).toBeNull();
    breaker.over({}, 'b', FAILED, broken(), true);
    expect(breaker.refusal('a')).not.toBeNull();
    expect(breaker.refusal('b')).not.toBeNull();
    expect(breaker.refusal('c')).not.toBeNull();
  });

  it('closes for all agents when a call of one of them is answered', () => {
    const { breaker } = create();
    failing(breaker, 5);
    breaker.over({}, 'b', OK, null, true);
    expect(breaker.refusal('a')).toBeNull();
  });

  it('counts one failure if many calls end with the same error', () => {
    const { breaker } = create();
    const error = broken();
    for (let i = 0; i < 100; i++) breaker.over({}, 'a', FAILED, error, true);
    expect([breaker.isClosed, breaker.failures]).toEqual([true, 1]);
  });

  it('lets one call try the server after a pause, and doubles the pause each time that fails', () => {
    vi.useFakeTimers({ toFake: ['performance', 'Date'] });
    try {
      const { breaker, reports } = create();
      failing(breaker, 5);
      const pauses: number[] = [];
      for (let i = 0; i < 10; i++) {
        let pause = 0;
        for (; breaker.refusal('a') !== null; pause += 10) vi.advanceTimersByTime(10);
        pauses.push(pause);
        const probe = {};
        breaker.pass(probe);
        expect(breaker.state().state).toBe('trying');
        expect(breaker.refusal('a')?.message).toContain('it is being tried again right now');
        breaker.over(probe, 'a', TIMEOUT, late(), true);
      }
      pauses.forEach((pause, i) => {
        const expected = Math.min(250 * 2 ** i, 30_000);
        expect(pause).toBeGreaterThanOrEqual(expected * 0.75);
        expect(pause).toBeLessThanOrEqual(expected * 1.25 + 10);
      });
      // Reported once when it opens and once when it closes, not for each attempt.
      expect(reports).toHaveLength(1);
      vi.advanceTimersByTime(40_000);
      const probe = {};
      breaker.pass(probe);
      breaker.over(probe, 'a', OK, null, true);
      expect([breaker.isClosed, breaker.refusal('a'), reports.at(-1)]).toEqual([true, null, 'closed']);
      failing(breaker, 4);
      expect(breaker.isClosed).toBe(true);
    } finally {
      vi.useRealTimers();
    }
  });

  it('lets the next call try the server if the call that tried it was cancelled', () => {
    const { breaker } = create();
    failing(breaker, 5);
    breaker.restarted();
    const probe = {};
    expect(breaker.refusal('a')).toBeNull();
    breaker.pass(probe);
    expect(breaker.refusal('a')).not.toBeNull();
    breaker.over(probe, 'a', CANCELLED, null, true);
    expect(breaker.refusal('a')).toBeNull();
  });

  it('closes when a call that was already running is answered', () => {
    const { breaker } = create();
    failing(breaker, 5);
    breaker.over({}, 'a', OK, null, true);
    expect(breaker.isClosed).toBe(true);
  });
});
