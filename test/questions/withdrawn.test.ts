/** Questions that are withdrawn because the answer is no longer needed. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Client } from '@modelcontextprotocol/sdk/client/index.js';
import {
  CreateMessageRequestSchema,
  ElicitRequestSchema,
  ListRootsRequestSchema,
} from '@modelcontextprotocol/sdk/types.js';
import { describe, expect, it } from 'vitest';
import { startHttp, startStdio } from '../support/gateway.ts';
import { killServer } from '../support/in-process-server.ts';
import { textOf } from '../support/modern-servers.ts';
import { waitFor } from '../support/processes.ts';
import { ABLE, answersTo, askedIn, callModern, withoutServer } from '../support/questions.ts';
import { messagesOf } from '../support/relay-clients.ts';
import { server } from '../support/server.ts';
import { configOf, OVER, type Over, placeOf, SHARED_OVER, startPersonal } from './personal.ts';

/** A client that never answers. It records its questions, and which of them were withdrawn. */
function neverAnswer(client: Client) {
  const asked: string[] = [];
  const cancelled: string[] = [];
  const keep = (what: string, signal: AbortSignal) => {
    asked.push(what);
    signal.addEventListener('abort', () => cancelled.push(what));
    return new Promise<never>(() => {});
  };
  client.setRequestHandler(ElicitRequestSchema, ({ params }, { signal }) =>
    keep(withoutServer(params.message), signal),
  );
  client.setRequestHandler(CreateMessageRequestSchema, (_, { signal }) => keep('sampling', signal));
  client.setRequestHandler(ListRootsRequestSchema, (_, { signal }) => keep('roots', signal));
  return { client, asked, cancelled };
}

type Opening = (over: Over, more?: string) => Promise<ReturnType<typeof neverAnswer>>;

const openHttp: Opening = async (over, more) => {
  const { gateway } = await startPersonal(over, more);
  return neverAnswer((await gateway.connect({ capabilities: ABLE })).client);
};
const openPipe: Opening = async (over, more) => {
  const { client } = await startStdio({ config: configOf(await placeOf(over), more), capabilities: ABLE });
  return neverAnswer(client);
};
const doors = { HTTP: openHttp, stdio: openPipe };
const cases = SHARED_OVER.flatMap(([over, share]) =>
  (['HTTP', 'stdio'] as const).map((door) => [door, over, share] as const),
);

describe.each(cases)('a client on %s and a server over %s with share = "%s"', (door, over, share) => {
  const open = () => doors[door](over, `share = "${share}"\n`);

  it('is told when the server withdraws its question, and the call continues', async () => {
    const one = await open();
    expect(textOf(await one.client.callTool({ name: 'withdraw', arguments: { ms: 100 } }))).toBe('went on');
    expect([one.asked, one.cancelled]).toEqual([['never mind'], ['never mind']]);
  });

  it('is told that its question is withdrawn when it cancels the call', async () => {
    const one = await open();
    const abort = new AbortController();
    const call = one.client.callTool({ name: 'ask', arguments: { word: 'w' } }, undefined, { signal: abort.signal });
    call.catch(() => {});
    await waitFor(() => one.asked.length === 1);
    abort.abort('enough');
    await waitFor(() => one.cancelled.length === 1);
  });
});

it.each(['project', 'session'])('a question is withdrawn when the server dies, with share = "%s"', async (share) => {
  const { gateway, place } = await startPersonal('stdio', `share = "${share}"\n`);
  const one = neverAnswer((await gateway.connect({ capabilities: ABLE })).client);
  const call = one.client.callTool({ name: 'ask', arguments: { word: 'w' } });
  await waitFor(() => one.asked.length === 1);
  for (const pid of place.processes()) killServer(pid);
  expect((await call).isError).toBe(true);
  await waitFor(() => one.cancelled.length === 1);
});

it.each(['project', 'session'])('a question is withdrawn when the call times out, with share = "%s"', async (share) => {
  const { gateway } = await startPersonal('http', `share = "${share}"\ntotal_timeout = "700ms"\n`);
  const one = neverAnswer((await gateway.connect({ capabilities: ABLE })).client);
  expect((await one.client.callTool({ name: 'ask', arguments: { word: 'w' } })).isError).toBe(true);
  await waitFor(() => one.cancelled.length === 1);
});

it('a question is withdrawn when the call ends without waiting for the answer', async () => {
  const command = JSON.stringify(server('asking'));
  const gateway = await startHttp({ config: `controls = []\n[[servers]]\nnamespace = ""\ncommand = ${command}\n` });
  const one = neverAnswer((await gateway.connect({ capabilities: ABLE })).client);
  expect(textOf(await one.client.callTool({ name: 'leave' }))).toBe('left');
  expect([one.asked, one.cancelled]).toEqual([['never mind'], ['never mind']]);
});

it('the other questions of a modern server are withdrawn when the client refuses one', async () => {
  const command = JSON.stringify(server('conformance', '--era', 'modern'));
  const gateway = await startHttp({ config: `controls = []\n[[servers]]\nnamespace = ""\ncommand = ${command}\n` });
  const one = neverAnswer((await gateway.connect({ capabilities: ABLE })).client);
  one.client.setRequestHandler(ElicitRequestSchema, async () => {
    await waitFor(() => one.asked.length === 2);
    throw new Error('no screen');
  });
  const result = await one.client.callTool({ name: 'test_input_required_result_multiple_inputs' });
  expect(JSON.stringify(result)).toContain('no screen');
  await waitFor(() => one.cancelled.length === 2);
  expect(one.cancelled.sort()).toEqual(['roots', 'sampling']);
});

it('a withdrawal is sent on the stream of the call, between the question and the result', async () => {
  const { gateway } = await startPersonal('http', '');
  const headers: Record<string, string> = {};
  const post = async (message: object) => {
    const response = await gateway.post(JSON.stringify({ jsonrpc: '2.0', ...message }), headers);
    headers['mcp-session-id'] ??= response.headers.get('mcp-session-id')!;
    // A stream may start with an event that has only an id.
    return (await messagesOf(response)).filter(({ length }) => length > 0);
  };
  const clientInfo = { name: 'raw', version: '1' };
  await post({
    id: 1,
    method: 'initialize',
    params: { protocolVersion: '2025-11-25', capabilities: ABLE, clientInfo },
  });
  await post({ method: 'notifications/initialized' });
  const lines = await post({ id: 2, method: 'tools/call', params: { name: 'withdraw', arguments: { ms: 50 } } });
  const [question, cancelled, result, ...more] = lines.map((line) => JSON.parse(line.toString()));
  expect(question).toMatchObject({ id: expect.any(String), method: 'elicitation/create' });
  expect(cancelled).toMatchObject({ method: 'notifications/cancelled', params: { requestId: question.id } });
  expect([result.id, more]).toEqual([2, []]);
});

describe.each(OVER)('a stateless client and a server over %s', (over) => {
  it('gets the result when it answers a question that the server has withdrawn', async () => {
    const { gateway } = await startPersonal(over, '');
    const args = { ms: 200 };
    const asked = await callModern(gateway, 'withdraw', args);
    expect(askedIn(asked)).toEqual(['never mind']);
    await sleep(500);
    const { result } = await callModern(gateway, 'withdraw', args, answersTo(asked));
    expect(result).toMatchObject({ resultType: 'complete', content: [{ text: 'went on' }] });
  });

  it('waits for the result if the call continues after the withdrawal', async () => {
    const { gateway } = await startPersonal(over, '');
    const args = { ms: 100, after: 600 };
    const asked = await callModern(gateway, 'withdraw', args);
    await sleep(300);
    const { result } = await callModern(gateway, 'withdraw', args, answersTo(asked));
    expect(result).toMatchObject({ resultType: 'complete', content: [{ text: 'went on' }] });
  });
});
