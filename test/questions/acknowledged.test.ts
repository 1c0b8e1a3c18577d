/** A resource subscription is acknowledged to the client only after the server has confirmed it. */
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { patient } from '../support/patience.ts';
import { waitFor } from '../support/processes.ts';
import { callModern, jsonOf } from '../support/questions.ts';
import { onePart } from '../support/wide.ts';
import { CLIENTS, expectHeard, listen, listenModern, start } from './hearers.ts';

const SERVERS = onePart(2, ['modern stdio', 'modern http'] as const);

describe.each(CLIENTS.flatMap((client) => SERVERS.map((upstream) => [client, upstream] as const)))(
  'a subscription of a %s client to a server called %s',
  (client, upstream) => {
    it('waits for the server to confirm it, and misses no update afterwards', async () => {
      const { gateway, touch, one, two } = await start(upstream, ['--ack-after', '400']);
      const started = performance.now();
      const first = await listen(client, gateway, one);
      expect(performance.now() - started).toBeGreaterThan(390);
      await touch(one);
      await waitFor(() => first.heard().length === 1);
      // While another subscription is pending at the server, updates of the existing one still arrive.
      const listening = listen(client, gateway, one, two);
      await sleep(150);
      await touch(one);
      await expectHeard([first], [one, one]);
      const second = await listening;
      await touch(two);
      await waitFor(() => second.heard().includes(two));
      expect(first.heard()).toEqual([one, one]);
      const { result } = await callModern(gateway, 'x_listening');
      expect(jsonOf(result)).toEqual([one, two]);
    });

    it('waits for the confirmation even if another client subscribed first', async () => {
      const { gateway, touch, one } = await start(upstream, ['--ack-after', '400']);
      const hearers = await Promise.all([listen(client, gateway, one), listen(client, gateway, one)]);
      await touch(one);
      await waitFor(() => hearers.every(({ heard }) => heard().length === 1));
    });

    it('excludes what the server does not confirm', async () => {
      const { gateway, touch, one, two } = await start(upstream, ['--honour', 'modern://one']);
      if (client === 'legacy') await expect(listen(client, gateway, two)).rejects.toThrow('does not report');
      else expect((await listenModern(gateway, two, one)).honoured).toEqual({ resourceSubscriptions: [one] });
      const hearer = await listen(client, gateway, one);
      await touch(two);
      await touch(one);
      await expectHeard([hearer], [one]);
    });

    it('fails after the timeout of the server if that never confirms it', async () => {
      const { gateway, one } = await start(upstream, ['--deaf'], 'timeout = "700ms"\n');
      const started = performance.now();
      if (client === 'legacy') await expect(listen(client, gateway, one)).rejects.toThrow('0.7 s');
      else expect((await listenModern(gateway, one)).honoured).toEqual({ resourceSubscriptions: [] });
      // Without that timeout it would wait for minutes.
      expect(performance.now() - started).toBeLessThan(patient(20_000));
    });
  },
);
