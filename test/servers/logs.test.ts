/** Log messages of servers reach only the caller whose call they belong to. */
import { setTimeout as sleep } from 'node:timers/promises';
import { beforeAll, describe, expect, it } from 'vitest';
import type { HttpConnection } from '../support/connection.ts';
import { startHttp } from '../support/gateway.ts';
import type { ModernConnection } from '../support/modern.ts';
import { stdioServer } from '../support/modern-servers.ts';
import { legacyMethods, type Method, modernMethods, startServer, text } from '../support/plain-http-server.ts';
import { waitFor } from '../support/processes.ts';
import { callText, toml } from '../support/running-gateway.ts';

const LOG = 'notifications/message';

/** Logs what it is told to, then delays its answer. */
const say: Method = async ({ arguments: args }, { notify }) => {
  const { level, data, wait = 0 } = args as { level: string; data: string; wait?: number };
  notify(LOG, { level, logger: 'up', data });
  await sleep(wait);
  return { resultType: 'complete', ...text('said') };
};

let one: HttpConnection;
let two: HttpConnection;
let modern: ModernConnection;

beforeAll(async () => {
  const upstreams = {
    modern: await startServer(modernMethods({ 'tools/call': say })),
    legacy: await startServer(legacyMethods({ 'tools/call': say })),
  };
  const config = toml(
    [
      { namespace: 'modern-http', url: upstreams.modern.url },
      { namespace: 'legacy-http', url: upstreams.legacy.url },
      { namespace: 'modern-stdio', command: stdioServer(), timeout: '1s' },
      { namespace: 'legacy-stdio', command: stdioServer('--discover', 'error'), timeout: '1s' },
    ],
    { controls: [] },
  );
  const gateway = await startHttp({ config });
  [one, two, modern] = [await gateway.connect(), await gateway.connect(), await gateway.connectModern()];
});

/** What a client has received since the last check. */
function heard({ notifications }: { notifications: HttpConnection['notifications'] }): unknown[] {
  const messages = notifications.splice(0).filter(({ method }) => method === LOG);
  return messages.map(({ params }) => (params as { data: unknown }).data);
}

const wanting = (level: string) => ({ 'io.modelcontextprotocol/logLevel': level });

describe.each(['modern', 'legacy'])('log messages of a %s server over HTTP', (era) => {
  const name = `${era}-http_echo`;

  it('reach only the caller of each call, also during concurrent calls', async () => {
    const at = (data: string) => ({ level: 'info', data, wait: 100 });
    await Promise.all([
      callText(one.client, name, at('for one')),
      callText(two.client, name, at('for two')),
      modern.client.callTool({ name, arguments: at('for modern'), _meta: wanting('info') }),
      callText(one.client, name, at('for one again')),
    ]);
    expect(heard(one).sort()).toEqual(['for one', 'for one again']);
    expect(heard(two)).toEqual(['for two']);
    expect(heard(modern)).toEqual(['for modern']);
  });

  it('are filtered by the level of the caller', async () => {
    await one.client.setLoggingLevel('error');
    for (const level of ['debug', 'info', 'error', 'emergency']) {
      await callText(one.client, name, { level, data: level });
      await callText(two.client, name, { level, data: level });
      await modern.client.callTool({ name, arguments: { level, data: level }, _meta: wanting('emergency') });
      await modern.client.callTool({ name, arguments: { level, data: `${level} unwanted` } });
    }
    expect(heard(one)).toEqual(['error', 'emergency']);
    expect(heard(two)).toEqual(['info', 'error', 'emergency']);
    expect(heard(modern)).toEqual(['emergency']);
    await one.client.setLoggingLevel('info');
  });
});

describe.each(['modern', 'legacy'])('log messages of a %s server on stdio, which do not name their call', (era) => {
  const ns = `${era}-stdio`;
  const tell = (data: string) => ({ methods: [LOG], params: { level: 'info', data } });

  it('reach the caller only if it is the only one, with one running call or several', async () => {
    await callText(one.client, `${ns}_tell`, tell('alone'));
    expect(heard(one)).toEqual(['alone']);
    await modern.client.callTool({ name: `${ns}_tell`, arguments: tell('modern'), _meta: wanting('info') });
    expect(heard(modern)).toEqual(['modern']);
    const hanging = one.client.callTool({ name: `${ns}_hang` }).catch(() => {});
    await callText(one.client, `${ns}_tell`, tell('with another'));
    // It may arrive with the other call, which is not answered for a while.
    await waitFor(() => one.notifications.length > 0);
    expect(heard(one)).toEqual(['with another']);
    // During this call a message may belong to either caller, so it is dropped.
    await callText(two.client, `${ns}_tell`, tell('whose'));
    await hanging;
    // Without sessions, the gateway cannot tell whether two calls come from the same client.
    const strange = modern.client.callTool({ name: `${ns}_hang`, _meta: wanting('info') });
    await modern.client.callTool({ name: `${ns}_tell`, arguments: tell('whose'), _meta: wanting('info') });
    await strange;
    // The call timed out, but the server may go on logging about it for as long again.
    await sleep(1100);
    await callText(two.client, `${ns}_tell`, tell('last'));
    expect(heard(two)).toEqual(['last']);
    expect(heard(one)).toEqual([]);
    expect(heard(modern)).toEqual([]);
  });
});

describe('a server that is slow to answer logging/setLevel', () => {
  /** Logs from the level that it was told last. */
  async function open() {
    let level = 'info';
    const slow = await startServer({
      ...legacyMethods({
        'tools/call': (_, { notify }) => {
          notify(LOG, { level, data: level });
          return text('said');
        },
      }),
      initialize: () => ({ protocolVersion: '2025-11-25', capabilities: { tools: {}, logging: {} }, serverInfo }),
      'logging/setLevel': async (params) => {
        await sleep(200);
        level = params.level as string;
        return {};
      },
    });
    return startHttp({ config: toml([{ namespace: 'slow', url: slow.url }], { controls: [] }) });
  }
  const serverInfo = { name: 'slow', version: '1' };

  it('receives the next call only after it, from clients of either era', async () => {
    const legacy = await (await open()).connect();
    await legacy.client.setLoggingLevel('debug');
    await callText(legacy.client, 'slow_echo', {});
    expect(heard(legacy)).toEqual(['debug']);
    const { client, notifications } = await (await open()).connectModern();
    await client.callTool({ name: 'slow_echo', arguments: {}, _meta: wanting('debug') });
    expect(heard({ notifications })).toEqual(['debug']);
  });
});
