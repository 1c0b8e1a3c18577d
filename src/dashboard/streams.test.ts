import type { ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import type { Call } from '../calls/call.ts';
import { OK } from '../calls/outcome.ts';
import type { Gateway } from '../gateway/gateway.ts';
import { readMessage } from '../protocol/read.ts';
import type { StreamEvents } from './api-types.ts';
import { LiveCalls, MOST_CALLS } from './live-calls.ts';
import { createStreams } from './streams.ts';

const CALL = {
  by: { agent: 'ann', door: 'http', own: { traits: { title: 'unknown', sent: null } } },
  message: readMessage(Buffer.from('{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo"}}')),
  entry: { kind: 'tool', name: 'echo', sourceKey: 'files' },
  isFound: true,
} as unknown as Call;

/** A page that looks at calls: when something was written to it, and the calls in that. */
function openPage() {
  const live = new LiveCalls({
    redact: (text) => text,
    recording: () => ({ arguments: false, results: false, by: null, until: null }),
    inFlight: () => 0,
  });
  const gateway = {
    lookOn: () => () => {},
    events: { listen: () => () => {} },
    statuses: () => [],
    clients: () => [],
    replica: null,
  } as unknown as Gateway;
  const streams = createStreams({ gateway, calls: live, isValid: async () => true });
  const writes: { at: number; calls: StreamEvents['calls'][]; text: string }[] = [];
  const response = {
    writableLength: 0,
    writeHead() {},
    once() {},
    end() {},
    write(text: string) {
      const found = [...text.matchAll(/^event: calls\ndata: (.*)$/gm)];
      writes.push({ at: performance.now(), calls: found.map(([, data]) => JSON.parse(data!)), text });
    },
  } as unknown as ServerResponse;
  const session = { who: 'operator', expires: Number.POSITIVE_INFINITY } as const;
  streams.open(response, [], ['ticks', 'calls'], session as never);
  writes.length = 0;
  return { live, writes, close: () => streams.close() };
}

function make(live: LiveCalls): void {
  const watch = live.begin(CALL);
  const sent = performance.now();
  watch.sent(sent);
  watch.ended(OK, null, null, 10, sent + 1);
}

describe('what is written to a page that looks at calls', () => {
  it('a call alone comes soon, and nothing but the tick comes when nothing happens', async () => {
    const { live, writes, close } = openPage();
    await sleep(50);
    const before = performance.now();
    make(live);
    await expect.poll(() => writes.find(({ calls }) => calls.length > 0)).toMatchObject({ calls: [{ ended: 1 }] });
    // A batch in a second would be 900 ms later. A busy machine may be slow.
    expect(writes.find(({ calls }) => calls.length > 0)!.at - before).toBeLessThan(700);
    writes.length = 0;
    await expect.poll(() => writes.length, { timeout: 20_000 }).toBeGreaterThan(0);
    for (const { text, calls } of writes) {
      expect(text).toMatch(/^event: ticks\n/);
      expect(calls).toEqual([]);
    }
    close();
  });

  it('the calls after a burst are shown, at the latest at the end of the second', async () => {
    const { live, writes, close } = openPage();
    for (let i = 0; i < 150; i++) make(live);
    const rows = () => writes.flatMap(({ calls }) => calls.flatMap((batch) => batch.calls));
    await expect.poll(() => rows().length, { timeout: 20_000 }).toBe(120);
    make(live);
    await expect.poll(() => rows().at(-1)?.id, { timeout: 20_000 }).toBe(151);
    close();
  });

  it('at 500 calls a second there is one write in a second, and all that it leaves out is counted and kept', async () => {
    const { live, writes, close } = openPage();
    let made = 0;
    const calling = setInterval(() => {
      for (let i = 0; i < 10; i++, made++) make(live);
    }, 20);
    const ticks = () => writes.filter(({ text }) => text.includes('event: ticks\n')).length;
    // In the first second nobody knows yet how many will come.
    await expect.poll(ticks, { timeout: 20_000 }).toBeGreaterThan(0);
    const first = writes.findIndex(({ text }) => text.includes('event: ticks\n'));
    expect(first).toBeLessThan(10);
    await expect.poll(ticks, { timeout: 20_000 }).toBeGreaterThan(3);
    clearInterval(calling);
    for (const { text } of writes.slice(first)) expect(text).toContain('event: ticks\n');
    const last = ticks();
    await expect.poll(ticks, { timeout: 20_000 }).toBeGreaterThan(last);
    const batches = writes.flatMap(({ calls }) => calls);
    const shown = batches.reduce((sum, { calls }) => sum + calls.length, 0);
    const skipped = batches.reduce((sum, one) => sum + one.skipped, 0);
    expect(shown + skipped).toBe(made);
    expect(shown).toBeLessThan(500);
    // What a filter or a pause asks for.
    const kept = live.recent(MOST_CALLS).map(({ id }) => id);
    expect(kept).toEqual(Array.from({ length: Math.min(made, MOST_CALLS) }, (_, i) => made - i));
    close();
  });
});
