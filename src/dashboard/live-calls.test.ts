import { describe, expect, it } from 'vitest';
import { GatewayError } from '../base/errors.ts';
import type { Call } from '../calls/call.ts';
import { FAILED, OK } from '../calls/outcome.ts';
import { readMessage } from '../protocol/read.ts';
import { LiveCalls, MOST_CALLS } from './live-calls.ts';

/** As much of a call as those who watch it read. */
function callOf(name: string, text = 'tea'): Call {
  const request = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: { text } } };
  return {
    by: { agent: 'ann', door: 'http', own: { traits: { title: 'unknown', sent: null } } },
    message: readMessage(Buffer.from(JSON.stringify(request))),
    entry: { kind: 'tool', name, sourceKey: 'files' },
    isFound: true,
    through: null,
    traceContext: null,
    limiter: null,
  } as unknown as Call;
}

function open(values = false): LiveCalls {
  const live = new LiveCalls({
    redact: (text) => text,
    recording: () => ({ arguments: values, results: values, by: null, until: null }),
    inFlight: () => 0,
  });
  live.showNews(() => {});
  return live;
}

function make(live: LiveCalls, name: string, text?: string): void {
  const watch = live.begin(callOf(name, text));
  watch.found();
  const sent = performance.now();
  watch.sent(sent);
  watch.stopped();
  watch.ended(OK, null, null, 10, sent + 2);
}

function fail(live: LiveCalls, name: string): void {
  const watch = live.begin(callOf(name));
  watch.ended(FAILED, new GatewayError('source_unavailable', 'It is down.'), null, 0, 0);
}

const named = (rows: readonly { readonly name: string }[]) => rows.map(({ name }) => name);
const numbers = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, i) => `t${from + i}`);

describe('the calls that somebody looks at', () => {
  it('keeps the last ones, and says how many it dropped', () => {
    const live = open();
    for (const name of numbers(1, MOST_CALLS + 5)) make(live, name);
    expect(named(live.recent(3))).toEqual([`t${MOST_CALLS + 5}`, `t${MOST_CALLS + 4}`, `t${MOST_CALLS + 3}`]);
    expect(named(live.recent(2 * MOST_CALLS)).at(-1)).toBe('t6');
    expect(live.dropped).toBe(5);
    expect(live.find(5)).toBe(null);
    expect(live.find(6)?.name).toBe('t6');
    expect(live.find(MOST_CALLS + 5)?.outcome).toBe('ok');
  });

  it('shows the last calls that went well and all others, if there are more than anyone can read', () => {
    const live = open();
    fail(live, 'first');
    for (const name of numbers(1, 120)) make(live, name);
    fail(live, 'middle');
    for (const name of numbers(121, 125)) make(live, name);
    const { calls, skipped, ended } = live.news();
    expect(ended).toBe(127);
    expect(live.endedCount).toBe(127);
    expect(named(calls)).toEqual(['first', ...numbers(6, 120), 'middle', ...numbers(121, 125)]);
    expect(skipped).toBe(5);
    expect(live.recent(200)).toHaveLength(127);
    expect(live.news()).toEqual({ calls: [], skipped: 0, ended: 127 });
    // Calls that go on coming as fast have less room, also in smaller batches.
    live.tick(0);
    for (const name of numbers(1, 60)) make(live, name);
    expect(named(live.news().calls)).toEqual(numbers(11, 60));
    fail(live, 'last');
    for (const name of numbers(61, 70)) make(live, name);
    expect(live.news()).toMatchObject({ calls: [{ name: 'last' }], skipped: 10 });
  });

  it('tells at once of each call, but not while more come than anyone can read', () => {
    const live = open();
    let told = 0;
    live.showNews(() => told++);
    make(live, 'one');
    expect(told).toBe(2);
    for (const name of numbers(1, 100)) make(live, name);
    live.tick(0);
    told = 0;
    for (const name of numbers(1, 10)) make(live, name);
    expect(told).toBe(0);
    live.tick(1);
    make(live, 'alone');
    expect(told).toBe(2);
  });

  it('shows a slow call before it ends, and again when it has ended', async () => {
    const live = open();
    const watch = live.begin(callOf('slow'));
    make(live, 'quick');
    expect(named(live.news().calls)).toEqual(['quick']);
    expect(live.isAwaited).toBe(true);
    await expect.poll(() => live.news().calls).toMatchObject([{ name: 'slow', outcome: 'running' }]);
    expect(live.isAwaited).toBe(false);
    watch.ended(OK, null, null, 10, performance.now());
    expect(live.news().calls).toMatchObject([{ name: 'slow', outcome: 'ok' }]);
  });

  it('knows which calls are under way, in whatever order they end', () => {
    const live = open();
    const held = Array.from({ length: 5 }, (_, i) => live.begin(callOf(`held${i}`)));
    for (const i of [1, 4, 0]) held[i]!.ended(OK, null, null, 10, performance.now());
    const running = () => named(live.recent(9).filter(({ outcome }) => outcome === 'running'));
    expect(running()).toEqual(['held3', 'held2']);
    for (const i of [2, 3]) held[i]!.ended(OK, null, null, 10, performance.now());
    expect(running()).toEqual([]);
    expect(live.recent(9)).toHaveLength(5);
  });

  it('has no news for those who come later', () => {
    const live = open();
    live.showNews(null);
    make(live, 'before');
    live.showNews(() => {});
    make(live, 'after');
    expect(named(live.news().calls)).toEqual(['after']);
    expect(named(live.recent(10))).toEqual(['after', 'before']);
  });

  it('measures a call by the clock that its pipeline has read, and a wait by its own', () => {
    const live = open();
    const before = Date.now();
    make(live, 'quick');
    const { at, steps, ms } = live.find(1)!;
    expect(at).toBeGreaterThanOrEqual(before - 1);
    expect(at).toBeLessThanOrEqual(Date.now() + 1);
    expect(steps.map(({ step }) => step)).toEqual(['lookup', 'server']);
    expect(steps[1]!.to - steps[1]!.from).toBeCloseTo(2, 1);
    expect(ms).toBe(steps[1]!.to);
    const watch = live.begin(callOf('held'));
    watch.found();
    watch.stopped();
    const waited = performance.now();
    watch.resumed('approval');
    watch.sent(performance.now());
    watch.stopped();
    watch.ended(OK, null, null, 10, waited + 50);
    expect(live.find(2)!.steps.map(({ step }) => step)).toEqual(['lookup', 'wait', 'server']);
  });

  it('drops the oldest calls when their arguments take more memory than allowed', () => {
    const live = open(true);
    const text = 'x'.repeat(15_000);
    for (const name of numbers(1, 1_500)) make(live, name, text);
    const kept = live.recent(MOST_CALLS).length;
    expect(kept).toBeGreaterThan(1_000);
    expect(kept).toBeLessThan(1_200);
    expect(live.dropped).toBe(1_500 - kept);
    expect(live.find(1_500)?.arguments).toBe(JSON.stringify({ text }));
    live.forgetValues();
    expect(live.find(1_500)?.arguments).toBe(null);
    for (const name of numbers(1, MOST_CALLS)) make(live, name);
    expect(live.recent(MOST_CALLS)).toHaveLength(MOST_CALLS);
  });
});
