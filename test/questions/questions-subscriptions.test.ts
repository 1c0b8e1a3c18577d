/** Resource subscriptions by clients of either era, on servers of either era. */
import { describe, expect, it } from 'vitest';
import { startHttp } from '../support/gateway.ts';
import { killServer } from '../support/in-process-server.ts';
import { waitFor } from '../support/processes.ts';
import { callModern, jsonOf } from '../support/questions.ts';
import { server } from '../support/server.ts';
import { onePart } from '../support/wide.ts';
import { CLIENTS, expectHeard, listen, listenLegacy, listenModern, start, UPSTREAMS } from './hearers.ts';

// One part has both kinds of clients and all kinds of servers.
const pairs = onePart(
  2,
  CLIENTS.flatMap((client) => UPSTREAMS.map((upstream) => [client, upstream] as const)),
);

describe.each(pairs)('subscriptions of a %s client to a server called %s', (client, upstream) => {
  it('notify exactly the subscribers, and subscribe at the server once', async () => {
    const { gateway, touch, told, one, two } = await start(upstream);
    const first = await listen(client, gateway, one);
    const second = await listen(client, gateway, one, two);
    const none = await listenLegacy(gateway);
    await touch(one);
    await touch(two);
    await expectHeard([first, second, none], [one], [one, two], []);
    await first.leave();
    await touch(one);
    await expectHeard([first, second], [one], [one, two, one]);
    await second.leave();
    await touch(one);
    expect(second.heard()).toEqual([one, two, one]);
    if (upstream === 'legacy stdio') {
      await waitFor(() => told().length >= 4);
      expect(told().sort()).toEqual([`+${one}`, `+${two}`, `-${one}`, `-${two}`]);
    } else {
      expect(told().filter(Boolean).slice(0, 2)).toEqual([one, `${one},${two}`]);
      // The last subscriber has left, which closes the stream.
      const listening = async () => jsonOf((await callModern(gateway, 'x_listening')).result) as string[];
      await waitFor(async () => (await listening()).length === 0);
    }
  });

  it('notify once for each of several resources that were subscribed to together', async () => {
    const { gateway, touch, one, two } = await start(upstream);
    const hearer = await listen(client, gateway, one, two);
    await touch(two);
    await touch(one);
    await expectHeard([hearer], [two, one]);
  });

  // Over HTTP there is no process of the gateway's own to restart.
  if (upstream !== 'modern http')
    it.each([
      ['without a policy', ''],
      ['under a policy', '[exposed_tools]\nx = ["*"]\n'],
    ])('keep working after the server was restarted, %s', async (_, policy) => {
      const { gateway, touch, told, processes, one } = await start(upstream, [], policy);
      const hearer = await listen(client, gateway, one);
      await touch(one);
      const killed = processes();
      expect(killed).not.toEqual([]);
      for (const pid of killed) killServer(pid);
      await waitFor(() => !processes().some((pid) => killed.includes(pid)));
      await waitFor(async () => (await touch(one))?.isError !== true && hearer.heard().length > 1);
      expect(new Set(hearer.heard())).toEqual(new Set([one]));
      expect(told().filter((text) => text.includes(one)).length).toBe(2);
    });
});

describe('a resource that cannot be subscribed to', () => {
  it('is refused to a client with a session, and left out for a stateless one', async () => {
    const { gateway, one } = await start('legacy stdio');
    const { client } = await gateway.connect();
    await expect(client.subscribeResource({ uri: 'nobody://knows' })).rejects.toThrow();
    expect((await listenModern(gateway, 'nobody://knows', one)).honoured).toEqual({ resourceSubscriptions: [one] });
  });

  it('is refused as often as its server refuses it', async () => {
    const { gateway, told, one, two } = await start('legacy stdio', ['--refuse', 'asking://one']);
    const { client } = await gateway.connect();
    for (let i = 0; i < 2; i++) await expect(client.subscribeResource({ uri: one })).rejects.toThrow('No news');
    await client.subscribeResource({ uri: two });
    expect(told()).toEqual([`+${one}`, `+${one}`, `+${two}`]);
  });

  it('includes every resource of a server without subscriptions', async () => {
    const command = JSON.stringify(server('basic', '--resources', 'note://1'));
    const gateway = await startHttp({ config: `controls = []\n[[servers]]\nnamespace = ""\ncommand = ${command}\n` });
    const { client } = await gateway.connect();
    await expect(client.subscribeResource({ uri: 'note://1' })).rejects.toThrow('does not announce');
    expect((await listenModern(gateway, 'note://1')).honoured).toEqual({ resourceSubscriptions: [] });
  });
});

it('a session that ends is unsubscribed at the server', async () => {
  const { gateway, touch, told, one } = await start('legacy stdio');
  const { client, transport } = await gateway.connect();
  await client.subscribeResource({ uri: one });
  // A duplicate subscription counts once.
  await client.subscribeResource({ uri: one });
  expect(jsonOf(await touch(one))).toEqual([one]);
  await transport.terminateSession();
  await waitFor(() => told().includes(`-${one}`));
  expect(told()).toEqual([`+${one}`, `-${one}`]);
});
