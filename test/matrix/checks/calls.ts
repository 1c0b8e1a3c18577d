/** Calls, with progress, log messages and cancellation. */
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'vitest';
import { waitFor } from '../../support/processes.ts';
import type { MatrixClient } from '../clients.ts';

/** Long enough for a message to arrive that should not. */
export const QUIET = 80;

/** The text of a successful result, parsed as JSON. */
export async function callJson(subject: MatrixClient, tool: string, args?: object): Promise<unknown> {
  const { content, isError } = await subject.call(tool, args);
  expect(isError ?? false, content[0]?.text).toBe(false);
  return JSON.parse(content[0]!.text);
}

export async function call(subject: MatrixClient): Promise<void> {
  const args = { text: 'ü☃', number: 1.5, list: [null, { deep: true }] };
  const { content, isError } = await subject.call('echo', args);
  expect([content, isError ?? false]).toEqual([[{ type: 'text', text: JSON.stringify(args) }], false]);
}

export async function structured(subject: MatrixClient): Promise<void> {
  const { content, structuredContent } = await subject.call('add', { a: 2, b: 40 });
  expect(structuredContent).toEqual({ sum: 42 });
  expect(content).toEqual([{ type: 'text', text: '{"sum":42}' }]);
}

export async function toolError(subject: MatrixClient): Promise<void> {
  const { content, isError } = await subject.call('fail');
  expect([isError, content]).toEqual([true, [{ type: 'text', text: 'It fails on purpose.' }]]);
}

export async function protocolError(subject: MatrixClient): Promise<void> {
  await expect(subject.call('refuse')).rejects.toMatchObject({
    code: 1234,
    message: expect.stringContaining('It refuses on purpose.'),
    data: { why: 'a test' },
  });
}

export async function progress(subject: MatrixClient): Promise<void> {
  const from = subject.messages.length;
  await subject.call('steps', { count: 20 }, { meta: { progressToken: 'mine' } });
  await sleep(QUIET);
  const got = subject.messages.slice(from).flatMap((message): unknown[] => {
    if ('result' in message) return ['result'];
    return 'method' in message && message.method === 'notifications/progress' ? [message.params] : [];
  });
  const steps = Array.from({ length: 20 }, (_, n) => ({ progressToken: 'mine', progress: n + 1, total: 20 }));
  expect(got).toEqual([...steps, 'result']);
}

export async function cancellation(subject: MatrixClient): Promise<void> {
  const before = Number(await callJson(subject, 'aborted'));
  const abort = new AbortController();
  const from = subject.notifications.length;
  const waiting = subject.call('wait', {}, { signal: abort.signal, meta: { progressToken: 'waiting' } });
  const ended = expect(waiting).rejects.toThrow();
  // Only a call that has started can be cancelled.
  await waitFor(() => subject.notifications.slice(from).some(({ params }) => params?.progressToken === 'waiting'));
  abort.abort();
  await ended;
  await waitFor(async () => (await callJson(subject, 'aborted')) === before + 1);
  // Until then the server may send messages about the cancelled call, so its messages to others are held back.
  await sleep(1_100);
}

export async function logging(subject: MatrixClient): Promise<void> {
  const from = subject.notifications.length;
  for (const level of ['error', 'debug', 'info']) await subject.callAt(level, 'speak');
  await sleep(QUIET);
  const heard = subject.notifications.slice(from).filter(({ method }) => method === 'notifications/message');
  const expected = ['error', 'debug', 'info', 'error', 'info', 'error'];
  expect(heard.map(({ params }) => params)).toEqual(
    expected.map((level) => ({ level, logger: 'whole', data: `said at ${level}` })),
  );
}

export async function ping(subject: MatrixClient): Promise<void> {
  expect(await subject.request('ping')).toEqual({});
}
