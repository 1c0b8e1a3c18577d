/** Servers of the official SDK (v2) over both transports and in both eras, used by clients of both eras. */
import { beforeAll, describe, expect, it } from 'vitest';
import type { HttpConnection } from '../support/connection.ts';
import { runDoctor } from '../support/doctor.ts';
import { type HttpGateway, startHttp } from '../support/gateway.ts';
import type { ModernConnection } from '../support/modern.ts';
import { errorOf, startModernFixture, textOf } from '../support/modern-servers.ts';
import { waitFor } from '../support/processes.ts';
import { type ServerEntry, timed, toml } from '../support/running-gateway.ts';
import { server } from '../support/server.ts';
import { onePart } from '../support/wide.ts';

const places = (['modern', 'legacy', 'both'] as const).flatMap((era) =>
  onePart(2, ['stdio', 'http'] as const).map((transport) => ({ era, transport, ns: `${transport}-${era}` })),
);

let config: string;
let gateway: HttpGateway;
let clients: { readonly legacy: HttpConnection; readonly modern: ModernConnection };
const clientEras = ['legacy', 'modern'] as const;

beforeAll(async () => {
  const entries = places.map(async ({ era, transport, ns }): Promise<ServerEntry> => {
    if (transport === 'stdio') return { namespace: ns, command: server('modern', '--era', era), timeout: '1s' };
    return { namespace: ns, url: (await startModernFixture('--era', era)).url, timeout: '1s' };
  });
  config = toml(await Promise.all(entries), { controls: [] });
  gateway = await startHttp({ config });
  clients = { legacy: await gateway.connect(), modern: await gateway.connectModern() };
});

it('speaks the modern revision to every server that knows it', async () => {
  const { findings } = await runDoctor(config);
  const found = new Map(findings.map(({ about, message }) => [about, /protocol (\S+)/.exec(message)?.[1]]));
  const protocols = places.map(({ ns }) => [ns, found.get(ns)]);
  expect(protocols).toEqual(places.map(({ era, ns }) => [ns, era === 'legacy' ? '2025-11-25' : '2026-07-28']));
});

const abortedOf = async (ns: string) => Number(textOf(await clients.legacy.client.callTool({ name: `${ns}_aborted` })));

it('cancels a call that takes too long, and tells the caller why', async () => {
  const before = await Promise.all(places.map(({ ns }) => abortedOf(ns)));
  const waits = places.flatMap(({ ns }) =>
    clientEras.map(async (era) => ({
      ns,
      ...(await timed<object>(clients[era].client.callTool({ name: `${ns}_wait` }))),
    })),
  );
  for (const { ns, value, ms } of await Promise.all(waits)) {
    expect(errorOf(value)).toMatchObject({
      code: 'source_timeout',
      message: `Server "${ns}" did not answer tools/call within 1 s and was told to stop. Try again, or raise its timeout in the configuration.`,
    });
    // Without the timeout it would never end.
    expect(ms).toBeLessThan(10_000);
  }
  await Promise.all(places.map(({ ns }, n) => waitFor(async () => (await abortedOf(ns)) === before[n]! + 2)));
});

describe.each(places)('a server of the era "$era" over $transport', ({ ns }) => {
  const own = (names: readonly string[]) =>
    names.filter((name) => name.startsWith(`${ns}_`)).map((name) => name.slice(ns.length + 1));

  describe.each(clientEras)('for a %s client', (era) => {
    it('lists items of all four kinds', async () => {
      const { client } = clients[era];
      const { tools } = await client.listTools();
      expect(own(tools.map(({ name }) => name))).toEqual(['echo', 'pid', 'steps', 'wait', 'aborted', 'toggle']);
      const { resources } = await client.listResources();
      expect(own(resources.map(({ uri }) => uri))).toEqual(['modern://first']);
      const { resourceTemplates } = await client.listResourceTemplates();
      expect(own(resourceTemplates.map(({ uriTemplate }) => uriTemplate))).toEqual(['modern://page/{n}']);
      const { prompts } = await client.listPrompts();
      expect(own(prompts.map(({ name }) => name))).toEqual(['first']);
    });

    it('serves items of all four kinds', async () => {
      const { client } = clients[era];
      const args = { text: 'ä', n: 1.5, deep: { list: [null] } };
      const echoed = textOf(await client.callTool({ name: `${ns}_echo`, arguments: args }));
      expect(JSON.parse(echoed)).toEqual(args);
      for (const uri of ['modern://first', 'modern://page/7']) {
        const { contents } = await client.readResource({ uri: `${ns}_${uri}` });
        expect(contents).toMatchObject([{ uri, text: `text of ${uri}` }]);
      }
      const { messages } = await client.getPrompt({ name: `${ns}_first`, arguments: { topic: 'rain' } });
      expect(messages).toEqual([{ role: 'user', content: { type: 'text', text: 'rain' } }]);
    });

    it('delivers all progress in order', async () => {
      const { client, notifications } = clients[era];
      notifications.length = 0;
      const asked = { name: `${ns}_steps`, arguments: { count: 5 }, _meta: { progressToken: `${ns} ${era}` } };
      expect(textOf(await client.callTool(asked))).toBe('5');
      const progress = notifications.filter(({ method }) => method === 'notifications/progress');
      const expected = [1, 2, 3, 4, 5].map((n) => ({ progressToken: `${ns} ${era}`, progress: n, total: 5 }));
      expect(progress.map(({ params }) => params)).toEqual(expected);
    });

    it('cancels the call at the server', async () => {
      const before = await abortedOf(ns);
      const controller = new AbortController();
      // The progress shows that the call is at the server.
      const onprogress = () => controller.abort();
      const cancelled = waiting(era, { signal: controller.signal, onprogress }).catch(() => 'cancelled');
      expect(await cancelled).toBe('cancelled');
      await waitFor(async () => (await abortedOf(ns)) === before + 1);
    });
  });

  const waiting = (
    era: (typeof clientEras)[number],
    options: { signal: AbortSignal; onprogress: () => void },
  ): Promise<unknown> =>
    era === 'legacy'
      ? clients.legacy.client.callTool({ name: `${ns}_wait` }, undefined, options)
      : clients.modern.client.callTool({ name: `${ns}_wait` }, options);

  it('refreshes the lists that the server says have changed', async () => {
    const { client } = clients.legacy;
    const before = clientEras.map((era) => clients[era].changes('tools'));
    await client.callTool({ name: `${ns}_toggle` });
    await waitFor(() => clientEras.every((era, n) => clients[era].changes('tools') > before[n]!));
    const offered = async () => [
      ...(await client.listTools()).tools.map(({ name }) => name),
      ...(await client.listResources()).resources.map(({ uri }) => uri),
      ...(await client.listPrompts()).prompts.map(({ name }) => `prompt ${name}`),
    ];
    const extras = [`${ns}_extra`, `${ns}_modern://extra`, `prompt ${ns}_extra`];
    await waitFor(async () => {
      const names = await offered();
      return extras.every((name) => names.includes(name));
    });
    expect(textOf(await clients.modern.client.callTool({ name: `${ns}_extra` }))).toBe('"extra"');
    await client.callTool({ name: `${ns}_toggle` });
    await waitFor(async () => !(await offered()).some((name) => extras.includes(name)));
  });
});
