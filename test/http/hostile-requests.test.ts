/** Requests that are within `limits.body` and would keep the gateway busy for seconds, or break it for others. */
import { beforeAll, describe, expect, it } from 'vitest';
import { type HttpGateway, startHttp } from '../support/gateway.ts';
import { callModern } from '../support/questions.ts';
import { timed, toml } from '../support/running-gateway.ts';
import { server } from '../support/server.ts';

const LONG = 3_400_000;
/** A busy machine needs less than a second. The defects took 3 to 17 s on an idle one. */
const QUICK = 8_000;

const config = toml(
  [
    { namespace: 's', command: server('basic', '--templates', 'x://{a}/{+b}', '--resources', 'x://one') },
    { namespace: 'h', command: server('half-names') },
    { namespace: 'q', command: server('asking') },
  ],
  { limits: { subscriptions: 1 } },
);

describe('a request of a client', () => {
  let gateway: HttpGateway;
  beforeAll(async () => {
    gateway = await startHttp({ config });
  }, 60_000);

  async function openSession(revision: string): Promise<Record<string, string>> {
    const params = { protocolVersion: revision, capabilities: {}, clientInfo: { name: 'x', version: '1' } };
    const opened = await gateway.post(JSON.stringify({ jsonrpc: '2.0', id: 0, method: 'initialize', params }));
    await opened.text();
    const headers = { 'mcp-session-id': opened.headers.get('mcp-session-id')! };
    await gateway.post('{"jsonrpc":"2.0","method":"notifications/initialized"}', headers);
    return headers;
  }

  it('with a batch of 90,000 pings is refused, and one of 100 is answered', async () => {
    const headers = await openSession('2025-03-26');
    const batch = (count: number) =>
      `[${Array.from({ length: count }, (_, id) => `{"jsonrpc":"2.0","id":${id},"method":"ping"}`).join()}]`;
    const { value, ms } = await timed(gateway.post(batch(90_000), headers));
    expect([value.status, await value.text()]).toEqual([413, expect.stringContaining('limits.batch allows 100')]);
    expect(ms).toBeLessThan(QUICK);
    const answered = await (await gateway.post(batch(100), headers)).text();
    expect(answered.match(/"result":\{\}/g)).toHaveLength(100);
  });

  it.each([
    ['resources/read', (uri: string) => ({ uri })],
    ['resources/subscribe', (uri: string) => ({ uri })],
    [
      'completion/complete',
      (uri: string) => ({ ref: { type: 'ref/resource', uri }, argument: { name: 'a', value: '' } }),
    ],
  ])('with a URI of megabytes is refused: %s', async (method, params) => {
    const headers = await openSession('2025-11-25');
    const body = { jsonrpc: '2.0', id: 1, method, params: params(`s_x://${'a/'.repeat(LONG / 2)}`) };
    const { value, ms } = await timed(gateway.post(JSON.stringify(body), headers));
    expect(await value.text()).toContain('Only a listed resource may have more than 8192');
    expect(ms).toBeLessThan(QUICK);
  });

  it('that subscribes to more resources than limits.subscriptions allows is refused', async () => {
    const { client } = await gateway.connect();
    await client.subscribeResource({ uri: 'q_asking://one' });
    const refused = client.subscribeResource({ uri: 'q_asking://two' });
    await expect(refused).rejects.toThrow('limits.subscriptions allows no more');
    await client.unsubscribeResource({ uri: 'q_asking://one' });
    await client.subscribeResource({ uri: 'q_asking://two' });
  });

  it('with a control character in a long string is refused at once, on every route', async () => {
    const long = `${'x'.repeat(700)}\u0001`;
    const call = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"s_echo","arguments":{"a":"${long}"}}}`;
    const headers = await openSession('2025-11-25');
    const { value, ms } = await timed(gateway.post(call, headers));
    expect([value.status, await value.text()]).toEqual([400, expect.stringContaining('control character in a string')]);
    // It waited for the timeout of five minutes.
    expect(ms).toBeLessThan(QUICK);
    const rest = await fetch(`${gateway.origin}/tools/s_echo`, {
      method: 'POST',
      body: `{"a":"${long}"}`,
      headers: { 'content-type': 'application/json' },
    });
    expect([rest.status, await rest.text()]).toEqual([400, expect.stringContaining('control character in a string')]);
  });

  it('gets documents of all tools, also if a server has a name that cannot be written in an address', async () => {
    for (const path of ['/openapi.json', '/docs']) {
      const reply = await fetch(`${gateway.origin}${path}`);
      expect([path, reply.status]).toEqual([path, 200]);
      const text = await reply.text();
      if (path === '/openapi.json') expect(text).toContain('h_ok');
    }
    expect((await callModern(gateway, 'h_ok')).result).toMatchObject({ content: [{ text: 'fine' }] });
  });
});
