/** Many clients of both eras with the same ids: each gets only the answers to its own requests. */
import { randomUUID } from 'node:crypto';
import { Agent, request } from 'node:http';
import { expect, it } from 'vitest';
import { startHttp } from '../support/gateway.ts';
import { INITIALIZED } from '../support/raw-http.ts';
import { type Era, metaOf, modernHeaders } from '../support/relay-clients.ts';
import { isWide } from '../support/wide.ts';
import { upstreams, upstreamsToml } from './paths.ts';

const CLIENTS = isWide ? 200 : 40;
const CALLS = 30;

/** Posts on a keep-alive connection and returns the session header and the body. */
function post(agent: Agent, url: string, body: string, headers = {}): Promise<{ session: string; body: string }> {
  return new Promise((resolve, reject) => {
    const all = { 'content-type': 'application/json', accept: 'application/json, text/event-stream', ...headers };
    const sent = request(url, { method: 'POST', agent, headers: all }, async (response) => {
      const text = Buffer.concat(await response.toArray()).toString();
      resolve({ session: String(response.headers['mcp-session-id']), body: text });
    });
    sent.on('error', reject);
    sent.end(body);
  });
}

it(`gives none of ${CLIENTS} clients the answer of another`, { timeout: 60_000 }, async () => {
  const gateway = await startHttp({ config: await upstreamsToml(upstreams) });
  const agent = new Agent({ keepAlive: true, maxSockets: 64 });
  const foreign: string[] = [];
  let answers = 0;

  const openSession = async () => {
    const hello = '{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}';
    const session = { 'mcp-session-id': (await post(agent, gateway.url, hello)).session };
    await post(agent, gateway.url, INITIALIZED, session);
    return session;
  };

  const client = async (era: Era) => {
    const session = era === 'legacy' ? await openSession() : null;
    const nonce = randomUUID();
    const call = async (id: number) => {
      const { namespace } = upstreams[id % upstreams.length]!;
      const result = `{"resultType":"complete","content":[],"nonce":"${nonce}-${id}"}`;
      const meta = metaOf(era, `"test/answer":${JSON.stringify(`"result":${result}`)}`);
      const params = `{"name":"${namespace}_any",${meta}}`;
      const text = `{"jsonrpc":"2.0","id":${id},"method":"tools/call","params":${params}}`;
      const { body } = await post(agent, gateway.url, text, session ?? modernHeaders('tools/call', params));
      const answer = JSON.parse(body) as { id: number; result: { nonce: string } };
      answers++;
      if (answer.id !== id || answer.result.nonce !== `${nonce}-${id}`) foreign.push(body);
    };
    // A few at a time, so that answers to the same client can overtake each other too.
    for (let first = 0; first < CALLS; first += 6) {
      await Promise.all([0, 1, 2, 3, 4, 5].map((offset) => call(first + offset)));
    }
  };
  await Promise.all(Array.from({ length: CLIENTS }, (_, i) => client(i % 2 === 0 ? 'legacy' : 'modern')));
  agent.destroy();
  expect(foreign).toEqual([]);
  expect(answers).toBe(CLIENTS * CALLS);
});
