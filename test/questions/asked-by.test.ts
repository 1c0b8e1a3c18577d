/** Questions say which server asks, lead to web addresses only, and have a limit, in both eras. */
import { ElicitRequestSchema, type ElicitResult } from '@modelcontextprotocol/sdk/types.js';
import { beforeAll, describe, expect, it } from 'vitest';
import { type HttpGateway, startHttp } from '../support/gateway.ts';
import { ABLE, answersTo, callModern, type ModernReply, openLegacy, request } from '../support/questions.ts';
import { server, serversToml } from '../support/server.ts';

const config = `controls = []\n${serversToml({ old: server('asking'), new: server('asking-modern') })}`;
const CAPABLE = { ...ABLE, elicitation: { form: {}, url: {} } };
/** The words with which Toolgate itself asks for an approval. */
const APPROVAL = 'The agent "claude" wants to call "files_read" with {}. It needs your approval. Allow it?';
const FORM = { message: APPROVAL, requestedSchema: { type: 'object', properties: {} } };
const url = (address: string) => ({ mode: 'url', message: 'Go', url: address });
const BAD_ADDRESSES = [
  'javascript:alert(1)',
  ' java\nscript:alert(1)',
  'file:///etc/passwd',
  'vscode://x',
  'no address',
];

let gateway: HttpGateway;
beforeAll(async () => {
  gateway = await startHttp({ config });
});

interface Params {
  readonly message: string;
  readonly _meta?: object;
}

/** A client with a session that keeps the parameters of every question. */
async function connect() {
  const { client } = await gateway.connect({ capabilities: CAPABLE });
  const asked: Params[] = [];
  client.setRequestHandler(ElicitRequestSchema, ({ params }): ElicitResult => {
    asked.push(params as Params);
    return { action: 'accept', content: {} };
  });
  const call = async (name: string, args: object) => {
    const result = await client.callTool({ name, arguments: args as Record<string, unknown> });
    return (result.content as { text: string }[])[0]!.text;
  };
  return { asked, call };
}

const pose = (params: object, more: object = {}) => ({ method: 'elicitation/create', params, ...more });
const inModern = (params: object) => ({ requests: { q: { method: 'elicitation/create', params } } });
const askedOf = ({ result }: ModernReply) => Object.values(result!.inputRequests!).map(({ params }) => params);
/** The same call of a client without a session. */
const modern = (name: string, args: object, more: object = {}) =>
  request(gateway, 'tools/call', { name, arguments: args, ...more }, CAPABLE);

describe('a question says which server asks, so that no server speaks for Toolgate', () => {
  const from = (key: string) => ({ message: `Server "${key}" asks: ${APPROVAL}`, _meta: { 'toolgate/server': key } });

  it('of either era, to a client with a session', async () => {
    const { asked, call } = await connect();
    await call('old_pose', pose(FORM));
    await call('new_pose', inModern(FORM));
    expect(asked).toMatchObject([from('old'), from('new')]);
  });

  it('of either era, to a client without one, and the answer reaches the server', async () => {
    for (const [key, args] of [
      ['old', pose(FORM)],
      ['new', inModern(FORM)],
    ] as const) {
      const first = await modern(`${key}_pose`, args);
      expect(askedOf(first)).toMatchObject([from(key)]);
      const { result } = await modern(`${key}_pose`, args, answersTo(first, { action: 'decline' }));
      expect(result!.content![0]!.text).toContain('decline');
    }
  });

  it('whatever the server writes into its own _meta, of which the rest stays', async () => {
    const { asked, call } = await connect();
    const _meta = { 'toolgate/server': 'files', other: 1 };
    await call('old_pose', pose({ ...FORM, _meta }));
    await call('new_pose', inModern({ ...FORM, _meta }));
    expect(asked.map((params) => params._meta)).toMatchObject([
      { 'toolgate/server': 'old', other: 1 },
      { 'toolgate/server': 'new', other: 1 },
    ]);
  });

  it('and a completion that it asks for says it too', async () => {
    const { client } = await openLegacy(gateway);
    const messages = [{ role: 'user', content: { type: 'text', text: 'Hi' } }];
    const sampling = { method: 'sampling/createMessage', params: { messages, maxTokens: 9 } };
    await client.callTool({ name: 'old_pose', arguments: sampling });
    const first = await callModern(gateway, 'new_pose', { requests: { q: sampling } });
    expect(askedOf(first)).toMatchObject([{ maxTokens: 9, _meta: { 'toolgate/server': 'new' } }]);
  });
});

describe('a question with an address', () => {
  it('is passed on for http and https', async () => {
    const { asked, call } = await connect();
    await call('old_pose', pose({ ...url('https://example.com/'), elicitationId: 'a' }));
    await call('new_pose', inModern(url('http://127.0.0.1:3000/x')));
    expect(asked).toMatchObject([{ url: 'https://example.com/' }, { url: 'http://127.0.0.1:3000/x' }]);
  });

  it.each(BAD_ADDRESSES)('is refused for %j', async (address) => {
    const { asked, call } = await connect();
    const refused = /only addresses that begin with http:\/\/ or https:\/\/ are passed on/;
    expect(await call('old_pose', pose({ ...url(address), elicitationId: 'a' }))).toMatch(refused);
    expect(await call('new_pose', inModern(url(address)))).toMatch(refused);
    expect((await modern('old_pose', pose(url(address)))).result!.content![0]!.text).toMatch(refused);
    expect((await modern('new_pose', inModern(url(address)))).result!.content![0]!.text).toMatch(refused);
    expect(asked).toEqual([]);
  });
});

describe('the number of questions is limited', () => {
  // After five bad addresses in a row the server is not called for a while.
  beforeAll(async () => {
    gateway = await startHttp({ config });
  });

  const answersIn = (text: string) => JSON.parse(text) as { action?: string; error?: { message: string } }[];

  it('to 16 that are open during one call', async () => {
    const { client } = await openLegacy(
      gateway,
      () => new Promise((resolve) => setTimeout(resolve, 500, { action: 'accept' })),
    );
    const args = pose(FORM, { times: 40, atOnce: true });
    const result = await client.callTool({ name: 'old_pose', arguments: args });
    const answers = answersIn((result.content as { text: string }[])[0]!.text);
    expect(answers.filter(({ action }) => action === 'accept')).toHaveLength(16);
    expect(answers.at(-1)!.error!.message).toMatch(/cannot pass on elicitation\/create: .* open/);
  });

  it('to 100 in one call, also for completions', async () => {
    const { client, questions } = await openLegacy(gateway);
    const messages = [{ role: 'user', content: { type: 'text', text: 'Hi' } }];
    const args = { method: 'sampling/createMessage', params: { messages, maxTokens: 9 }, times: 120 };
    const result = await client.callTool({ name: 'old_pose', arguments: args });
    const answers = answersIn((result.content as { text: string }[])[0]!.text);
    expect(questions).toHaveLength(100);
    expect(answers.slice(100).map(({ error }) => error!.message)).toEqual(
      Array.from({ length: 20 }, () => expect.stringContaining('the call has asked 100 questions already')),
    );
  });

  it('to 100 in one call between a modern server and a modern client, which sends it again for each answer', async () => {
    let reply = await modern('new_forever', {});
    let rounds = 0;
    for (; reply.result?.inputRequests !== undefined && rounds < 150; rounds++)
      reply = await modern('new_forever', {}, answersTo(reply, { action: 'accept', content: {} }));
    expect(rounds).toBe(101);
    expect(JSON.stringify(reply)).toContain('asked more than 100 questions in one call');
  });

  it('and a call that is complete is forgotten, so that the same one can be made again and again', async () => {
    for (let i = 0; i < 120; i++) {
      const first = await modern('new_pose', inModern(FORM));
      const { result } = await modern('new_pose', inModern(FORM), answersTo(first, { action: 'decline' }));
      expect(result!.content![0]!.text).toContain('decline');
    }
  });

  it('to 16 in one result of a modern server', async () => {
    const requests = Object.fromEntries(Array.from({ length: 17 }, (_, i) => [`q${i}`, pose(FORM)]));
    const { asked, call } = await connect();
    const refused = /17 questions, and 16 are the most/;
    expect(await call('new_pose', { requests })).toMatch(refused);
    expect((await modern('new_pose', { requests })).result!.content![0]!.text).toMatch(refused);
    expect(asked).toEqual([]);
  });
});
