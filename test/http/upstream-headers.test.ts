/**
 * Headers that a client sends to the gateway are not forwarded. An upstream receives only what its configuration
 * declares.
 */
import { beforeAll, describe, expect, it } from 'vitest';
import { type HttpGateway, startHttp } from '../support/gateway.ts';
import { request } from '../support/mcp-tasks.ts';
import { startSession } from '../support/raw-http.ts';
import { startHttpServer } from '../support/server.ts';

const CANARY = 'canary-51c2';
const inbound = {
  cookie: `session=${CANARY}`,
  'x-forwarded-for': CANARY,
  'x-forwarded-host': CANARY,
  'x-forwarded-proto': CANARY,
  'x-forwarded-user': CANARY,
  'x-agent-id': CANARY,
  forwarded: `for=${CANARY}`,
  'proxy-authorization': `Basic ${CANARY}`,
  'x-api-key': CANARY,
  'user-agent': CANARY,
  referer: `http://127.0.0.1/${CANARY}`,
};

describe('an HTTP upstream', () => {
  let upstream: Awaited<ReturnType<typeof startHttpServer>>;
  let gateway: HttpGateway;
  const token = `bearer-${CANARY}`;
  beforeAll(async () => {
    upstream = await startHttpServer('--resources', 'up://one', '--prompts', 'one', '--token', 'its-own');
    const config = [
      'controls = []',
      '[[servers]]',
      'namespace = "up"',
      `url = "${upstream.url}"`,
      'headers = { Authorization = "Bearer ${UPSTREAM_TOKEN}", X-Tenant = "blue" }',
    ].join('\n');
    gateway = await startHttp({ config, env: { UPSTREAM_TOKEN: 'its-own', BEARER_TOKEN: token } });
  });

  it('receives the configured headers with every request, and none of the client', async () => {
    const session = await startSession(gateway, { headers: { ...inbound, authorization: `Bearer ${token}` } });
    const { result } = await session.ask('tools/call', { name: 'up_headers' });
    const [{ text }] = (result as { content: [{ text: string }] }).content;
    expect(JSON.parse(text)).toMatchObject({ authorization: 'Bearer its-own', 'x-tenant': 'blue' });
    expect(text).not.toContain(CANARY);
    expect(text).not.toContain(session.id);
  });

  it('never receives a credential of the client, for any method or outcome', async () => {
    const session = await startSession(gateway, { headers: { ...inbound, authorization: `Bearer ${token}` } });
    for (let i = 0; i < 25; i++) {
      await session.ask('tools/call', { name: 'up_echo', arguments: { i }, _meta: { progressToken: i } });
      await session.ask('tools/call', { name: 'up_raw', arguments: { json: 'null' } });
      await session.ask('resources/read', { uri: 'up_up://one' });
      await session.ask('prompts/get', { name: 'up_one' });
      await session.ask('prompts/get', { name: 'up_none' });
    }
    await session.end();
    for (let i = 0; i < 25; i++) {
      const options = { headers: { ...inbound, authorization: `Bearer ${token}` } };
      await request(gateway, 'tools/call', { name: 'up_echo', arguments: { i } }, options);
      await request(gateway, 'tools/call', { name: 'up_none', arguments: {} }, options);
    }
    const { requests } = await upstream.log();
    expect(requests.length).toBeGreaterThan(100);
    expect(requests.filter(({ headers }) => JSON.stringify(headers).includes(CANARY))).toEqual([]);
    for (const { headers } of requests)
      expect(headers).toMatchObject({ authorization: 'Bearer its-own', 'x-tenant': 'blue' });
  });
});
