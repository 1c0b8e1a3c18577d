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

const open = (values = false) =>
  new LiveCalls({
    redact: (text) => text,
    recording: () => ({ arguments: values, results: values, by: null, until: null }),
    inFlight: () => 0,
  });

function make(live: LiveCalls, name: string, text?: string): void {
  const watch = live.begin(callOf(name, text));
  watch.found();
  watch.sent();
  watch.ended(OK, null, null, 10);
}

function fail(live: LiveCalls, name: string): void {
  const watch = live.begin(callOf(name));
  watch.ended(FAILED, new GatewayError('source_unavailable', 'It is down.'), null, 0);
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
    for (const name of numbers(1, 50)) make(live, name);
    fail(live, 'middle');
    for (const name of numbers(51, 60)) make(live, name);
    const { calls, skipped } = live.news();
    expect(named(calls)).toEqual(['first', ...numbers(21, 50), 'middle', ...numbers(51, 60)]);
    expect(skipped).toBe(20);
    expect(live.recent(100)).toHaveLength(62);
    expect(live.news()).toEqual({ calls: [], skipped: 0 });
  });

  it('sends no endless batch if everything fails', () => {
    const live = open();
    for (const name of numbers(1, 3_000)) fail(live, name);
    const { calls, skipped } = live.news();
    expect(calls).toHaveLength(200);
    expect(skipped).toBe(2_800);
  });

  it('has no news for those who come later', () => {
    const live = open();
    make(live, 'before');
    live.forgetNews();
    make(live, 'after');
    expect(named(live.news().calls)).toEqual(['after']);
    expect(named(live.recent(10))).toEqual(['after', 'before']);
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
