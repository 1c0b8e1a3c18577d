/** Long calls over REST: they wait for approval, end with a credential, and finish before the gateway stops. */
import { join } from 'node:path';
import { beforeAll, expect, it } from 'vitest';
import { openAgentStore } from '../../src/index.ts';
import { callsInFlight } from '../support/in-flight.ts';
import { waitFor } from '../support/processes.ts';
import { serverEntry } from '../support/server.ts';
import { type RestGateway, startRest } from './rest.ts';

const KEY = 'the-key-of-the-operator';
const TOKEN = 'a-token-that-stays';
const auth = { authorization: `Bearer ${TOKEN}` };

let gateway: RestGateway;
beforeAll(async () => {
  gateway = await startRest(
    {
      http: { public_url: 'https://tools.example.com/gate/mcp', drain: '10s' },
      security: { dangerous_tools: { up: ['ok'] } },
      servers: { up: serverEntry('hang') },
    },
    {},
    { BEARER_TOKEN: TOKEN, TOOLGATE_OPERATOR_KEY: KEY },
  );
});

/** Resolves when a call has reached its server. */
const underWay = () => callsInFlight({ origin: gateway.origin, token: TOKEN });

it('names the public URL in a document', async () => {
  const { json } = await gateway.ask('/ns/up/openapi.json', { headers: auth });
  expect(json.servers).toEqual([{ url: 'https://tools.example.com/gate/ns/up' }]);
});

it('makes a dangerous call wait for a person, and then runs it or answers 403', async () => {
  const operator = { authorization: `Bearer ${KEY}` };
  for (const [decision, status] of [
    ['approve', 200],
    ['deny', 403],
  ] as const) {
    const calling = gateway.call('/tools/up_ok', {}, auth);
    const id = await waitFor(async () => {
      const { json } = await gateway.ask('/admin/approvals', { headers: operator });
      return json.approvals[0]?.id as string | undefined;
    });
    expect((await gateway.call(`/admin/approvals/${id}`, { decision }, operator)).status).toBe(200);
    const { status: answered, json } = await calling;
    expect(answered, JSON.stringify(json)).toBe(status);
    if (status === 403) expect(json.code).toBe('not_approved');
  }
});

it('ends the calls of a revoked credential', async () => {
  const store = openAgentStore(join(gateway.cwd, '.toolgate'));
  const { token } = await store.add('guest', '', null);
  const guest = { authorization: `Bearer ${token}` };
  await waitFor(async () => (await gateway.ask('/tools', { headers: guest })).status === 200);
  const calling = gateway.call('/tools/up_hang', { tag: 'of a guest' }, guest);
  await underWay();
  await store.revoke('guest');
  const { status, headers, json } = await calling;
  expect([status, json.code]).toEqual([401, 'unauthorized']);
  expect(headers.get('www-authenticate')).toMatch(/^Bearer /);
  await waitFor(async () => (await gateway.call('/tools/up_cancelled', {}, auth)).text.includes('of a guest'));
});

it('answers running calls after SIGTERM', async () => {
  const calling = gateway.call('/tools/up_slow', { ms: 700, tag: 'last' }, auth);
  await underWay();
  gateway.signal('SIGTERM');
  expect([(await calling).status, (await calling).json]).toEqual([200, 'slow last']);
  expect(await gateway.exited).toEqual({ code: 0, signal: null });
});
