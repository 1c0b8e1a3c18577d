/** Cancelled calls that the server keeps working on. */
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { type HttpGateway, startHttp } from '../support/gateway.ts';
import { callsInFlight } from '../support/in-flight.ts';
import { errorOf, textOf } from '../support/modern-servers.ts';
import { type Asked, accept, openLegacy } from '../support/questions.ts';
import { toml } from '../support/running-gateway.ts';
import { server } from '../support/server.ts';
import { startUpstreams } from '../support/soak-servers.ts';

/** Calls, and cancels as soon as the call has been sent to its server. */
async function giveUp(
  gateway: HttpGateway,
  { client }: Pick<Asked, 'client'>,
  name: string,
  args: Record<string, unknown>,
): Promise<void> {
  const abort = new AbortController();
  const call = client.callTool({ name, arguments: args }, undefined, { signal: abort.signal });
  await callsInFlight(gateway);
  abort.abort();
  await call.catch(() => {});
}

const wordy = (...flags: string[]): Promise<HttpGateway> =>
  startHttp({ config: toml([{ namespace: '', command: server('wordy', ...flags), total_timeout: '1s' }]) });

it('a question about a cancelled call does not reach another client', async () => {
  const gateway = await wordy();
  const [one, other] = [await openLegacy(gateway), await openLegacy(gateway)];
  await giveUp(gateway, one, 'ask', { word: 'one', after: 500, stubborn: true });
  const result = await other.client.callTool({ name: 'say', arguments: { word: 'other', steps: 1, after: 800 } });
  expect(textOf(result)).toBe('{"word":"other"}');
  expect(other.questions).toEqual([]);
  // Once the server is known to ask, a call that may be asked something gets a process of its own.
  const asked = await other.client.callTool({ name: 'ask', arguments: { word: 'other' } });
  expect(textOf(asked)).toBe('{"word":"other","answers":["re other#1"]}');
});

it('a log message about a cancelled call does not reach another client', async () => {
  const gateway = await wordy();
  const [one, other] = [await gateway.connect(), await gateway.connect()];
  await giveUp(gateway, one, 'say', { word: 'one', steps: 8, after: 800 });
  await other.client.callTool({ name: 'say', arguments: { word: 'other', steps: 2, after: 900 } });
  const heard = other.notifications.filter(({ method }) => method === 'notifications/message');
  expect(heard.filter(({ params }) => params?.data !== 'other')).toEqual([]);
});

it('a client with a session that never answers a modern server is waited for until total_timeout', async () => {
  const gateway = await wordy('--era', 'modern');
  const { client, questions } = await openLegacy(gateway, () => new Promise(() => {}));
  const result = await client.callTool({ name: 'ask', arguments: { word: 'one' } });
  expect(errorOf(result)).toMatchObject({ code: 'question_unanswered', message: expect.stringContaining('in 1 s') });
  expect(questions).toEqual(['one#1']);
});

it('an HTTP server can ask questions in a hundred calls at once', async () => {
  // One after the other they would take 100 s.
  const { config } = await startUpstreams({ timeout: '45s' }, {});
  const gateway = await startHttp({ config });
  const { client } = await openLegacy(gateway, async (message) => {
    await sleep(1000);
    return accept(message);
  });
  const calls = Array.from({ length: 100 }, async (_, n) => {
    const result = await client.callTool({ name: 'http_ask', arguments: { word: `w${n}` } });
    return textOf(result) === `{"word":"w${n}","answers":["re w${n}#1"]}`;
  });
  expect(await Promise.all(calls)).not.toContain(false);
});
