/** Many clients with the same ids: each gets the answers to its own questions and nobody else's. */
import { randomUUID } from 'node:crypto';
import { Agent, request } from 'node:http';
import { describe, expect, it } from 'vitest';
import { startHttp } from '../support/gateway.ts';
import { server, serversToml, startHttpServer } from '../support/server.ts';

const CLIENTS = 200;
const CALLS = 15;

/** Posts on one kept connection; gives the session header and the body. */
function post(agent: Agent, url: string, body: string, session?: string): Promise<{ session: string; body: string }> {
  return new Promise((resolve, reject) => {
    const headers = {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      ...(session !== undefined && { 'mcp-session-id': session }),
    };
    const sent = request(url, { method: 'POST', agent, headers }, async (response) => {
      const text = Buffer.concat(await response.toArray()).toString();
      resolve({ session: String(response.headers['mcp-session-id']), body: text });
    });
    sent.on('error', reject);
    sent.end(body);
  });
}

describe.each(['stdio', 'http --json', 'http --sse'])('with one upstream on %s', (kind) => {
  it(`gives none of ${CLIENTS} clients a foreign answer`, { timeout: 60_000 }, async () => {
    const toml =
      kind === 'stdio'
        ? serversToml({ up: server('basic') })
        : `[[servers]]\nnamespace = "up"\nurl = "${(await startHttpServer(kind.split(' ')[1]!)).url}"\n`;
    const gateway = await startHttp({ config: `controls = []\n${toml}` });
    const agent = new Agent({ keepAlive: true, maxSockets: 64 });
    const foreign: string[] = [];
    let answers = 0;

    const client = async () => {
      const hello = '{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}';
      const { session } = await post(agent, gateway.url, hello);
      const nonce = randomUUID();
      const call = async (id: number) => {
        const params = `{"name":"up_echo","arguments":{"nonce":"${nonce}-${id}"}}`;
        const text = `{"jsonrpc":"2.0","id":${id},"method":"tools/call","params":${params}}`;
        const { body } = await post(agent, gateway.url, text, session);
        const answer = JSON.parse(body) as { id: number; result: { content: [{ text: string }] } };
        answers++;
        if (answer.id !== id || answer.result.content[0].text !== JSON.stringify({ nonce: `${nonce}-${id}` }))
          foreign.push(body);
      };
      // Some at a time, so that a client’s own answers may overtake each other too.
      for (let first = 0; first < CALLS; first += 5) {
        await Promise.all([0, 1, 2, 3, 4].map((offset) => call(first + offset)));
      }
    };
    await Promise.all(Array.from({ length: CLIENTS }, client));
    agent.destroy();
    expect(foreign).toEqual([]);
    expect(answers).toBe(CLIENTS * CALLS);
  });
});
