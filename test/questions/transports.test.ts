/** Questions and resource updates over every transport of a legacy server. */
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { connectModernHttp } from '../support/modern.ts';
import { waitFor } from '../support/processes.ts';
import { answersTo, askedIn, callModern, jsonOf, openLegacy, openLegacyPipe } from '../support/questions.ts';
import { configOf, placeOf, SHARED_OVER, startPersonal } from './personal.ts';

const said = (word: string) => ({ action: 'accept', content: { word: `re ${word}` } });

describe.each(SHARED_OVER)('a server over %s with share = "%s"', (over, share) => {
  const more = `share = "${share}"\n`;

  // Stray: the server does not say which call its question belongs to. Over HTTP it then arrives on the GET stream.
  it.each([false, true])('asks clients with a session and stateless ones (stray: %s)', async (stray) => {
    const { gateway } = await startPersonal(over, more);
    const { client, questions } = await openLegacy(gateway);
    const call = (word: string) => client.callTool({ name: 'ask', arguments: { word, stray } });
    expect(jsonOf(await call('a'))).toEqual(said('a'));
    expect(jsonOf(await call('b'))).toEqual(said('b'));
    expect(questions).toEqual(['a', 'b']);
    const asked = await callModern(gateway, 'ask', { word: 'c', stray });
    expect(askedIn(asked)).toEqual(['c']);
    const { result } = await callModern(gateway, 'ask', { word: 'c', stray }, answersTo(asked));
    expect(jsonOf(result)).toEqual({ action: 'accept', content: { word: 'yes' } });
    const sdk = await connectModernHttp(gateway.url, {}, { elicitation: {} });
    sdk.client.setRequestHandler('elicitation/create', () => ({ action: 'accept' as const, content: { word: 's' } }));
    const final = await sdk.client.callTool({ name: 'ask', arguments: { word: 'd', stray } });
    expect(jsonOf(final)).toEqual({ action: 'accept', content: { word: 's' } });
  });

  it('asks a client on stdio', async () => {
    const { client, questions } = await openLegacyPipe(configOf(await placeOf(over), more));
    expect(jsonOf(await client.callTool({ name: 'ask', arguments: { word: 'p' } }))).toEqual(said('p'));
    expect(questions).toEqual(['p']);
  });

  it('asks several clients at once, each about its own call', { timeout: 30_000 }, async () => {
    const { gateway } = await startPersonal(over, more);
    const clients = await Promise.all([0, 1, 2].map(() => openLegacy(gateway)));
    // Before its first question, the gateway does not know that the server asks.
    await clients[0]!.client.callTool({ name: 'ask', arguments: { word: 'first', stray: true } });
    const answers = await Promise.all(
      clients.map(({ client }, index) =>
        client.callTool({ name: 'ask', arguments: { word: `w${index}`, stray: true } }),
      ),
    );
    expect(answers.map(jsonOf)).toEqual(clients.map((_, index) => said(`w${index}`)));
    expect(clients.map(({ questions }) => questions.at(-1))).toEqual(['w0', 'w1', 'w2']);
  });

  // A call that came while another one is worked on would otherwise go to the same connection.
  it('asks each about its own call, also if the server works for a while before it asks', async () => {
    const { gateway } = await startPersonal(over, more);
    const clients = await Promise.all([0, 1, 2].map(() => openLegacy(gateway)));
    await clients[0]!.client.callTool({ name: 'ask', arguments: { word: 'first', stray: true } });
    const calls = [];
    for (const [index, { client }] of clients.entries()) {
      calls.push(client.callTool({ name: 'ask', arguments: { word: `w${index}`, stray: true, after: 900 } }));
      await sleep(300);
    }
    expect((await Promise.all(calls)).map(jsonOf)).toEqual(clients.map((_, index) => said(`w${index}`)));
    expect(clients.map(({ questions }) => questions.at(-1))).toEqual(['w0', 'w1', 'w2']);
  });

  it('notifies every subscriber that a resource has changed', async () => {
    const { gateway } = await startPersonal(over, more);
    const legacy = await gateway.connect();
    const none = await gateway.connect();
    await legacy.client.subscribeResource({ uri: 'personal://it' });
    const modern = await connectModernHttp(gateway.url);
    const heard: string[] = [];
    modern.client.setNotificationHandler('notifications/resources/updated', ({ params }) => {
      heard.push(params.uri);
    });
    const { honoredFilter } = await modern.client.listen({ resourceSubscriptions: ['personal://it'] });
    expect(honoredFilter.resourceSubscriptions).toEqual(['personal://it']);
    await legacy.client.callTool({ name: 'touch' });
    const updates = ({ notifications }: typeof legacy) =>
      notifications.filter(({ method }) => method === 'notifications/resources/updated').length;
    await waitFor(() => updates(legacy) === 1);
    if (share === 'session') await modern.client.callTool({ name: 'touch' });
    await waitFor(() => heard.length === 1);
    expect([updates(legacy), updates(none), heard]).toEqual([1, 0, ['personal://it']]);
    await legacy.client.unsubscribeResource({ uri: 'personal://it' });
    const { content } = await legacy.client.callTool({ name: 'touch' });
    // The other client is still subscribed if they share the server.
    expect(content).toMatchObject([{ text: String(share === 'project') }]);
  });
});
