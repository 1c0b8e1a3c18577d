/** What replicas share apart from calls and streams: each client does one thing on one replica and the next on the other. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { openAgentStore } from '../../src/store/agents.ts';
import { AUTHORIZED, ENGINES, type OneOfTwo, openPair, type Pair } from '../support/fleet-pair.ts';
import { openEvents } from '../support/http-events.ts';
import { send as sendModern, TAKES_TASKS } from '../support/mcp-tasks.ts';
import { waitFor } from '../support/processes.ts';
import { INITIALIZED, initialize } from '../support/raw-http.ts';
import { messagesOf } from '../support/relay-clients.ts';
import { serverEntry } from '../support/server.ts';
import { tempFolder } from '../support/temp.ts';

interface Answer {
  readonly result?: Record<string, unknown> & { readonly content?: { readonly text: string }[] };
  readonly error?: { readonly message: string };
}

const textOf = ({ result, error }: Answer) => result?.content?.[0]?.text ?? error?.message ?? '';
let last = 0;

/** A request of a client without a session. */
async function modern(
  at: OneOfTwo,
  method: string,
  params: object,
  headers: Record<string, string> = AUTHORIZED,
): Promise<Answer> {
  const response = await sendModern(at.url, method, params, { capabilities: TAKES_TASKS, headers });
  return JSON.parse((await messagesOf(response)).at(-1)!.toString()) as Answer;
}
const callModern = (at: OneOfTwo, name: string, args: object = {}, more: object = {}) =>
  modern(at, 'tools/call', { name, arguments: args, ...more });
const namesOf = ({ result }: Answer) => (result!.tools as { name: string }[]).map(({ name }) => name);

/** A request of a client with a session. */
async function legacy(at: OneOfTwo, session: string | null, body: object | string): Promise<Answer> {
  const text = typeof body === 'string' ? body : JSON.stringify({ jsonrpc: '2.0', id: ++last, ...body });
  const response = await at.post(text, { ...AUTHORIZED, ...(session !== null && { 'mcp-session-id': session }) });
  const messages = await messagesOf(response);
  const answer = messages.length === 0 ? {} : (JSON.parse(messages.at(-1)!.toString()) as Answer);
  return { ...answer, ...(session === null && { result: { id: response.headers.get('mcp-session-id') } }) };
}
async function openSession(at: OneOfTwo): Promise<string> {
  const { result } = await legacy(at, null, initialize('2025-11-25', { elicitation: {} }));
  await legacy(at, String(result!.id), INITIALIZED);
  return String(result!.id);
}
const callIn = (at: OneOfTwo, session: string, name: string, args: object = {}, more: object = {}) =>
  legacy(at, session, { method: 'tools/call', params: { name, arguments: args, ...more } });

describe.each(ENGINES)('two replicas on %s share', (engine) => {
  const runs = join(tempFolder({ runs: '' }), 'runs');
  const timesRun = (line: string) =>
    readFileSync(runs, 'utf8')
      .split('\n')
      .filter((one) => one === line).length;
  let pair: Pair;
  let a: OneOfTwo;
  let b: OneOfTwo;

  beforeAll(async () => {
    pair = await openPair(engine, {
      servers: {
        c: serverEntry('../fleet/counted', '--runs', runs),
        rated: { ...serverEntry('basic'), tools: { echo: { rate: '2/h' }, raw: { calls_per_day: 2 } } },
        kept: { ...serverEntry('../fleet/counted', '--runs', runs), tools: { write: { cache: '5m' } } },
        danger: serverEntry('basic'),
        t: serverEntry('tasks'),
        old: serverEntry('tasks-legacy'),
        asking: serverEntry('asking'),
      },
      controls: ['activate', 'request'],
      active_toolsets: ['*'],
      security: { dangerous_tools: { danger: ['count'] }, grants: [{ tools: ['*'], approval: false }] },
      agents: { limited: { token: 'limited-token-of-the-test' } },
      agent_policies: { limited: { allowed_servers: ['danger'], tool_overrides: { danger: ['echo'] } } },
      default_policy: { allow_unknown_tools: true },
    });
    ({ a, b } = pair);
  });

  it('lists, byte for byte, in both eras', async () => {
    const session = await openSession(a);
    const list = async (at: OneOfTwo) => [
      JSON.stringify((await legacy(at, session, { id: 7, method: 'tools/list' })).result),
      JSON.stringify((await modern(at, 'tools/list', {})).result),
      JSON.stringify((await modern(at, 'resources/list', {})).result),
      JSON.stringify((await modern(at, 'prompts/list', {})).result),
    ];
    expect(await list(b)).toEqual(await list(a));
  });

  it('rates and calls of a day', async () => {
    expect(textOf(await callModern(a, 'rated_echo', { text: 'one' }))).toContain('one');
    expect(textOf(await callModern(b, 'rated_echo', { text: 'two' }))).toContain('two');
    for (const at of [a, b]) expect(textOf(await callModern(at, 'rated_echo', {}))).toContain('rate_limited');
    for (const at of [a, b]) expect((await callModern(at, 'rated_raw')).result?.isError).toBeUndefined();
    for (const at of [a, b]) expect(textOf(await callModern(at, 'rated_raw'))).toContain('calls_per_day');
  });

  it('results that are kept for equal calls', async () => {
    expect(textOf(await callModern(a, 'kept_write', { key: 'k', ms: 1 }))).toBe('k');
    await waitFor(async () => {
      expect(textOf(await callModern(b, 'kept_write', { ms: 1, key: 'k' }))).toBe('k');
      return true;
    });
    // What is kept is written while the answer is on its way, so a call at once may come before it.
    const before = timesRun('write k');
    expect(before).toBeLessThanOrEqual(2);
    for (const at of [a, b, a, b]) await callModern(at, 'kept_write', { key: 'k', ms: 1 });
    expect(timesRun('write k')).toBe(before);
  });

  it('approvals: shown and decided anywhere, and those that last', async () => {
    const calling = callModern(a, 'danger_count');
    const request = await waitFor(async () => b.gateway.approvals.list()[0] ?? null);
    expect(request).toMatchObject({ tool: 'danger_count', agent: 'default' });
    expect(b.gateway.approvals.decide(request.id, { approved: true, by: 'ann', lasting: 60_000, reason: '' })).toBe(
      true,
    );
    expect((await calling).result?.isError).toBeUndefined();
    await waitFor(async () => a.gateway.approvals.list().length + b.gateway.approvals.list().length === 0);
    for (const at of [b, a]) expect((await callModern(at, 'danger_count')).result?.isError).toBeUndefined();
  });

  it('grants of tools that an agent asked for', async () => {
    const as = { authorization: 'Bearer limited-token-of-the-test' };
    const list = async (at: OneOfTwo) => namesOf(await modern(at, 'tools/list', {}, as));
    expect(await list(b)).not.toContain('danger_raw');
    const params = { name: 'request_access', arguments: { tool: 'danger_raw', reason: 'to test' } };
    expect(textOf(await modern(a, 'tools/call', params, as))).toContain('You may use "danger_raw" until');
    await waitFor(async () => (await list(b)).includes('danger_raw'));
  });

  it('MCP tasks of both eras', async () => {
    const { result } = await callModern(a, 't_slow_compute', { label: 'x' });
    const taskId = String(result?.taskId);
    const task = await waitFor(async () => {
      const { result: found, error } = await modern(b, 'tasks/get', { taskId });
      return found?.status === 'working' ? null : { found, error };
    });
    expect(JSON.stringify(task)).toContain('computed x');
    const session = await openSession(a);
    const started = await callIn(a, session, 'old_slow', { label: 'y' }, { task: { ttl: 60_000 } });
    const old = (started.result!.task as { taskId: string }).taskId;
    const listed = await legacy(b, session, { method: 'tasks/list' });
    expect((listed.result!.tasks as { taskId: string }[]).map((one) => one.taskId)).toContain(old);
    const ended = await legacy(b, session, { method: 'tasks/result', params: { taskId: old } });
    expect(textOf(ended)).toContain('did y');
    const foreign = await openSession(b);
    expect((await legacy(b, foreign, { method: 'tasks/get', params: { taskId: `${old}x` } })).error).toBeDefined();
  });

  it('the state of a call that waits for its client without a session', async () => {
    const first = await callModern(a, 'c_ask', { key: 'q' });
    const { requestState, inputRequests } = first.result as { requestState: string; inputRequests: object };
    const inputResponses = Object.fromEntries(
      Object.keys(inputRequests).map((key) => [key, { action: 'accept', content: { word: 'hello' } }]),
    );
    const more = { requestState, inputResponses };
    expect(textOf(await callModern(b, 'c_ask', { key: 'q' }, more))).toBe('q hello');
    expect((await callModern(b, 'c_ask', { key: 'other' }, more)).error?.message).toContain('requestState');
  });

  it('subscriptions of a session', async () => {
    const session = await openSession(a);
    const uri = 'asking://one';
    const listed = await legacy(a, session, { method: 'resources/list' });
    const named = (listed.result!.resources as { uri: string }[]).find((one) => one.uri.includes('one'))!.uri;
    await legacy(a, session, { method: 'resources/subscribe', params: { uri: named } });
    const stream = await openEvents(b, '/mcp', { ...AUTHORIZED, 'mcp-session-id': session });
    await waitFor(async () => textOf(await callIn(b, session, 'asking_touch', { uri })).includes(uri));
    for (let event = await stream.next(); ; event = await stream.next()) {
      if (event?.message?.method !== 'notifications/resources/updated') continue;
      expect(event.message.params).toEqual({ uri: named });
      break;
    }
    stream.drop();
    // The position is valid on any of them.
    const again = await openEvents(a, '/mcp', { ...AUTHORIZED, 'mcp-session-id': session, 'last-event-id': 's_0-0' });
    expect((await again.next())?.message?.method).toMatch(/^notifications\//);
    again.drop();
  });

  it('what clients without sessions switch', async () => {
    const without = async (at: OneOfTwo) => namesOf(await modern(at, 'tools/list', {}));
    const off = { tools_on: [], tools_off: ['c_write'], resources_on: [], resources_off: [] };
    await callModern(a, 'toolman_activate', off);
    expect(await without(b)).not.toContain('c_write');
    await callModern(b, 'toolman_activate', { ...off, tools_off: [], tools_on: ['c_write'] });
    expect(await without(a)).toContain('c_write');
  });

  it('agents and their tokens', async () => {
    const { token } = await openAgentStore(a.dataDir).add('ann', '', null);
    const as = { authorization: `Bearer ${token}` };
    const status = async (at: OneOfTwo) =>
      (await sendModern(at.url, 'tools/list', {}, { capabilities: {}, headers: as })).status;
    await waitFor(async () => (await status(a)) === 200 && (await status(b)) === 200);
    await openAgentStore(b.dataDir).revoke('ann');
    await waitFor(async () => (await status(a)) === 401 && (await status(b)) === 401);
  });

  it.skipIf(engine !== 'redis')('nothing while the store is away, but calls without sessions go on', async () => {
    const { redis } = pair;
    await redis!.kill();
    await waitFor(async () => !a.gateway.replica!.isUp && !b.gateway.replica!.isUp);
    expect(textOf(await callModern(a, 'c_write', { key: 'away' }))).toBe('away');
    // Each replica has its part of a rate, and has used none of it yet.
    expect((await callModern(a, 'rated_echo', {})).result?.isError).toBeUndefined();
    expect(textOf(await callModern(a, 'rated_echo', {}))).toContain('rate_limited');
    const refused = await a.post(initialize('2025-11-25', {}), AUTHORIZED);
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '1']);
    await redis!.start();
    await waitFor(async () => a.gateway.replica!.isUp && b.gateway.replica!.isUp);
    await openSession(b);
  });
});

describe.each(ENGINES)('two replicas on %s with toolsets', (engine) => {
  it('share what clients have equipped, with and without sessions', async () => {
    const { a, b } = await openPair(engine, {
      servers: { one: serverEntry('basic') },
      controls: ['equip'],
      toolsets: { small: { tools: ['one.echo'] } },
    });
    const session = await openSession(a);
    const inSession = async (at: OneOfTwo) => namesOf(await legacy(at, session, { method: 'tools/list' }));
    expect(await inSession(b)).not.toContain('one_echo');
    await callIn(a, session, 'equip-toolset', { name: 'small' });
    expect(await inSession(b)).toContain('one_echo');
    await callIn(b, session, 'unequip-toolset');
    expect(await inSession(a)).not.toContain('one_echo');
    const without = async (at: OneOfTwo) => namesOf(await modern(at, 'tools/list', {}));
    await callModern(b, 'equip-toolset', { name: 'small' });
    expect(await without(a)).toContain('one_echo');
    expect(await without(b)).toEqual(await without(a));
  });
});
