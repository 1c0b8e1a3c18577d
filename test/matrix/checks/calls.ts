/** Calls, and what comes with them. */
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'vitest';
import { waitFor } from '../../support/processes.ts';
import type { Guest } from '../guests.ts';

/** Long enough for what should not come. */
export const QUIET = 80;

/** The text of a good result, as JSON. */
export async function callJson(guest: Guest, tool: string, args?: object): Promise<unknown> {
  const { content, isError } = await guest.call(tool, args);
  expect(isError ?? false, content[0]?.text).toBe(false);
  return JSON.parse(content[0]!.text);
}

export async function call(guest: Guest): Promise<void> {
  const args = { text: 'ü☃', number: 1.5, list: [null, { deep: true }] };
  const { content, isError } = await guest.call('echo', args);
  expect([content, isError ?? false]).toEqual([[{ type: 'text', text: JSON.stringify(args) }], false]);
}

export async function structured(guest: Guest): Promise<void> {
  const { content, structuredContent } = await guest.call('add', { a: 2, b: 40 });
  expect(structuredContent).toEqual({ sum: 42 });
  expect(content).toEqual([{ type: 'text', text: '{"sum":42}' }]);
}

export async function toolError(guest: Guest): Promise<void> {
  const { content, isError } = await guest.call('fail');
  expect([isError, content]).toEqual([true, [{ type: 'text', text: 'It fails on purpose.' }]]);
}

export async function protocolError(guest: Guest): Promise<void> {
  await expect(guest.call('refuse')).rejects.toMatchObject({
    code: 1234,
    message: expect.stringContaining('It refuses on purpose.'),
    data: { why: 'a test' },
  });
}

export async function progress(guest: Guest): Promise<void> {
  const from = guest.messages.length;
  await guest.call('steps', { count: 20 }, { meta: { progressToken: 'mine' } });
  await sleep(QUIET);
  const got = guest.messages.slice(from).flatMap((message): unknown[] => {
    if ('result' in message) return ['result'];
    return 'method' in message && message.method === 'notifications/progress' ? [message.params] : [];
  });
  const steps = Array.from({ length: 20 }, (_, n) => ({ progressToken: 'mine', progress: n + 1, total: 20 }));
  expect(got).toEqual([...steps, 'result']);
}

export async function cancellation(guest: Guest): Promise<void> {
  const before = Number(await callJson(guest, 'aborted'));
  const abort = new AbortController();
  const from = guest.notifications.length;
  const waiting = guest.call('wait', {}, { signal: abort.signal, meta: { progressToken: 'waiting' } });
  const ended = expect(waiting).rejects.toThrow();
  // Only what has begun can be stopped.
  await waitFor(() => guest.notifications.slice(from).some(({ params }) => params?.progressToken === 'waiting'));
  abort.abort();
  await ended;
  await waitFor(async () => (await callJson(guest, 'aborted')) === before + 1);
  // Until then the server may speak about the cancelled call, and what it says to others is kept back.
  await sleep(1_100);
}

export async function logging(guest: Guest): Promise<void> {
  const from = guest.notifications.length;
  for (const level of ['error', 'debug', 'info']) await guest.callAt(level, 'speak');
  await sleep(QUIET);
  const heard = guest.notifications.slice(from).filter(({ method }) => method === 'notifications/message');
  const expected = ['error', 'debug', 'info', 'error', 'info', 'error'];
  expect(heard.map(({ params }) => params)).toEqual(
    expected.map((level) => ({ level, logger: 'whole', data: `said at ${level}` })),
  );
}

export async function ping(guest: Guest): Promise<void> {
  expect(await guest.request('ping')).toEqual({});
}
