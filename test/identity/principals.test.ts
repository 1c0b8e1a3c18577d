/**
 * Two people who use the same agent share its policy and nothing else: neither can access what the other has opened.
 */
import { beforeAll, describe, expect, it } from 'vitest';
import { FULL_SCOPE } from '../../src/calls/caller.ts';
import { programIdentity } from '../../src/calls/identity.ts';
import { createModernPeers } from '../../src/doors/http/mcp/stateless.ts';
import { configFromValue, createGateway } from '../../src/index.ts';
import { atEnd } from '../support/cleanup.ts';
import { type HttpGateway, startHttp } from '../support/gateway.ts';
import { type Events, openEvents, type SseEvent } from '../support/http-events.ts';
import { request } from '../support/mcp-tasks.ts';
import { answersTo, type ModernReply } from '../support/questions.ts';
import { PING, type RawSession, startSession } from '../support/raw-http.ts';
import { server, serversToml } from '../support/server.ts';
import { tempFolder } from '../support/temp.ts';
import { startIssuer } from './issuer.ts';

type Headers = Record<string, string>;

let gateway: HttpGateway;
let alice: Headers;
let bob: Headers;
/** The same person as Alice, at another client. */
let elsewhere: Headers;

beforeAll(async () => {
  const issuer = await startIssuer();
  await issuer.rotate('ES256');
  const config = [
    'controls = ["activate"]',
    'active_toolsets = ["ask_*", "task_*"]',
    `[http.jwt]\nissuer = "${issuer.issuer}"\nagents = { "*" = "crew" }`,
    serversToml({ up: server('basic'), ask: server('asking'), task: server('tasks') }),
  ];
  gateway = await startHttp({ config: config.join('\n') });
  const sign = async (sub: string, client: string) => ({
    authorization: `Bearer ${await issuer.sign({ sub, client_id: client, aud: gateway.url })}`,
  });
  alice = await sign('alice', 'desk');
  bob = await sign('bob', 'desk');
  elsewhere = await sign('alice', 'phone');
});

const call = (name: string, args: object) =>
  JSON.stringify({ jsonrpc: '2.0', id: 7, method: 'tools/call', params: { name, arguments: args } });

async function nextWith(events: Events, member: string): Promise<SseEvent> {
  for (let event = await events.next(); event !== null; event = await events.next())
    if (event.message?.[member] !== undefined) return event;
  throw new Error(`the stream ended before a message with "${member}"`);
}

async function answerOf(response: Response): Promise<readonly [number, string]> {
  return [response.status, await response.text()];
}

describe.each([
  ['somebody else', () => bob],
  ['the same person at another client', () => elsewhere],
])('isolation of principals: for %s', (_, other) => {
  it.each([
    ['POST', { method: 'POST', body: PING }],
    ['GET', { method: 'GET' }],
    ['DELETE', { method: 'DELETE' }],
  ])('the session of another is answered like an unknown one: %s', async (_, init) => {
    const session = await startSession(gateway, { headers: alice });
    const ask = (id: string, who: Headers) => {
      const headers = { ...who, 'mcp-session-id': id, accept: '*/*', 'content-type': 'application/json' };
      return fetch(gateway.url, { ...init, headers });
    };
    const foreign = await answerOf(await ask(session.id, other()));
    expect(foreign).toEqual(await answerOf(await ask('never-was', other())));
    expect(foreign[0]).toBe(404);
    expect((await session.post(PING)).status).toBe(200);
  });

  it('the events of the session of another cannot be read by their ids', async () => {
    const [hers, his] = [
      await startSession(gateway, { headers: alice, capabilities: { elicitation: {} } }),
      await startSession(gateway, { headers: other() }),
    ];
    const events = await openEvents(gateway, '/mcp', hers.headers, call('ask_ask', { word: 'secret-word' }));
    const { id } = await nextWith(events, 'method');
    // In his own session, her event id refers to nothing of hers.
    const abort = new AbortController();
    const stolen = await fetch(gateway.url, {
      headers: { ...his.headers, accept: 'text/event-stream', 'last-event-id': id.replace(/-\d+$/, '-0') },
      signal: abort.signal,
    });
    setTimeout(() => abort.abort(), 500);
    const text = await stolen.text().catch(() => '');
    expect(text).not.toContain('secret-word');
    await hers.end();
  });

  it('the question to another cannot be answered', async () => {
    const [hers, his] = [
      await startSession(gateway, { headers: alice, capabilities: { elicitation: {} } }),
      await startSession(gateway, { headers: other(), capabilities: { elicitation: {} } }),
    ];
    const events = await openEvents(gateway, '/mcp', hers.headers, call('ask_ask', { word: 'w' }));
    const asked = await nextWith(events, 'method');
    const answer = (content: object) =>
      JSON.stringify({ jsonrpc: '2.0', id: asked.message!.id, result: { action: 'accept', content } });
    expect((await his.post(answer({ word: 'his' }))).status).toBe(202);
    expect((await hers.post(answer({ word: 'hers' }))).status).toBe(202);
    const { message } = await nextWith(events, 'result');
    expect(JSON.stringify(message)).toContain('hers');
  });

  it('the call of another that waits for an answer cannot be continued', async () => {
    const ask = (who: Headers, more: object = {}) =>
      request(gateway, 'tools/call', { name: 'ask_ask', arguments: { word: 'w' }, ...more }, { headers: who });
    const asked = (await ask(alice)) as ModernReply;
    const state = answersTo(asked);
    const foreign = await ask(other(), state);
    const forged = await ask(other(), { ...state, requestState: `${state.requestState.slice(0, -4)}AAAA` });
    expect(foreign.error).toEqual(forged.error);
    expect(foreign.error?.code).toBe(-32_602);
    expect((await ask(alice, state)).result?.resultType).toBe('complete');
  });

  it('the MCP task of another is unknown', async () => {
    const started = await request(
      gateway,
      'tools/call',
      { name: 'task_slow_compute', arguments: { seconds: 5 } },
      { headers: alice },
    );
    const { taskId } = started.result!;
    const get = (who: Headers, id: string) => request(gateway, 'tasks/get', { taskId: id }, { headers: who });
    expect((await get(other(), taskId)).error).toEqual((await get(other(), 'task-1')).error);
    expect((await get(alice, taskId)).result?.taskId).toBe(taskId);
  });

  it('the activations of another stay unchanged', async () => {
    const activate = {
      name: 'toolman_activate',
      arguments: { tools_on: ['up_echo'], tools_off: [], resources_on: [], resources_off: [] },
    };
    await request(gateway, 'tools/call', activate, { headers: alice });
    const list = async (who: Headers) => JSON.stringify(await request(gateway, 'tools/list', {}, { headers: who }));
    expect(await list(alice)).toContain('"up_echo"');
    expect(await list(other())).not.toContain('"up_echo"');
  });

  it('the SSE session of another accepts no messages', async () => {
    const abort = new AbortController();
    atEnd(() => abort.abort());
    const response = await fetch(`${gateway.origin}/sse`, { headers: alice, signal: abort.signal });
    const { value } = await response.body!.getReader().read();
    const path = /data: (\S+)/.exec(Buffer.from(value!).toString())![1]!;
    const post = (place: string, who: Headers) => gateway.post(PING, who, place);
    const foreign = await answerOf(await post(path, other()));
    expect(foreign).toEqual(await answerOf(await post('/messages?session_id=never-was', other())));
    expect((await post(path, alice)).status).toBe(202);
  });
});

it('an agent token and a JWT with the same name are different principals', async () => {
  const issuer = await startIssuer();
  await issuer.rotate('ES256');
  const config = `controls = []\n[agents.crew]\ntoken = "the-token-of-the-crew"\n[http.jwt]\nissuer = "${issuer.issuer}"\n`;
  const both = await startHttp({ config });
  const jwt = await issuer.sign({ sub: 'crew', aud: both.url });
  const sessions: RawSession[] = [];
  for (const token of ['the-token-of-the-crew', jwt])
    sessions.push(await startSession(both, { headers: { authorization: `Bearer ${token}` } }));
  const [one, two] = sessions as [RawSession, RawSession];
  expect((await one.post(PING, { authorization: two.headers.authorization! })).status).toBe(404);
  expect((await two.post(PING, { authorization: one.headers.authorization! })).status).toBe(404);
});

it.each(['default', 'anonymous', ''])('a JWT cannot claim to be the agent "%s"', async (sub) => {
  const issuer = await startIssuer();
  await issuer.rotate('ES256');
  const open = await startHttp({ config: `controls = []\n[http.jwt]\nissuer = "${issuer.issuer}"\n` });
  const token = await issuer.sign({ sub, client_id: 'desk', aud: open.url });
  expect((await open.post(PING, { authorization: `Bearer ${token}` })).status).toBe(403);
});

describe('the state of modern clients', () => {
  const identityOf = (principal: string) => programIdentity('crew', principal);

  it('is limited in number, and the least recently used is dropped first', async () => {
    const own = createGateway(configFromValue({}, { cwd: tempFolder(), env: {} }));
    atEnd(() => own.close());
    const peers = createModernPeers(own, { most: 10 });
    const regular = peers.of(identityOf('regular'), FULL_SCOPE);
    for (let i = 0; i < 100; i++) {
      peers.of(identityOf(`passer-by-${i}`), FULL_SCOPE);
      expect(peers.of(identityOf('regular'), FULL_SCOPE)).toBe(regular);
      expect(peers.size).toBeLessThanOrEqual(10);
    }
  });

  it('is dropped after a configured time', () => {
    const own = createGateway(configFromValue({}, { cwd: tempFolder(), env: {} }));
    atEnd(() => own.close());
    const peers = createModernPeers(own, { ttl: 1_000 });
    const before = peers.of(identityOf('one'), FULL_SCOPE);
    peers.sweep(Date.now());
    expect(peers.of(identityOf('one'), FULL_SCOPE)).toBe(before);
    peers.sweep(Date.now() + 2_000);
    expect(peers.size).toBe(0);
  });
});
