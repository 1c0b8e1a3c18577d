/** Stateless clients, which are asked by a result and repeat the request with the answer. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { beforeAll, describe, expect, it } from 'vitest';
import { startFixture } from '../support/conformance-suite.ts';
import { type HttpGateway, startHttp, startStdio } from '../support/gateway.ts';
import { connectModernHttp } from '../support/modern.ts';
import { patient } from '../support/patience.ts';
import { waitFor } from '../support/processes.ts';
import { ABLE, answersTo, askedIn, callModern, jsonOf, type ModernReply, request } from '../support/questions.ts';
import { server } from '../support/server.ts';
import { tempFolder } from '../support/temp.ts';

const config = `controls = []\n[[servers]]\nnamespace = ""\ncommand = ${JSON.stringify(server('asking'))}\n`;
const INVALID = -32_602;
const YES = { action: 'accept', content: { word: 'yes' } };

describe('a legacy server and a stateless client', () => {
  let gateway: HttpGateway;
  beforeAll(async () => {
    gateway = await startHttp({ config });
  });

  it('asks by a result, and returns its own result to the repeated request with the answer', async () => {
    const asked = await callModern(gateway, 'ask', { word: 'ü☃' });
    expect(asked.result).toEqual({
      resultType: 'input_required',
      inputRequests: {
        'question-1': {
          method: 'elicitation/create',
          params: {
            message: expect.stringMatching(/^Server "[\w-]+" asks: ü☃#1$/),
            requestedSchema: { type: 'object', properties: { word: { type: 'string' } } },
            _meta: { 'toolgate/server': expect.stringMatching(/^[\w-]+$/) },
          },
        },
      },
      requestState: expect.stringMatching(/^toolgate\.[\w-]+\.[\w-]+$/),
    });
    const { result } = await callModern(gateway, 'ask', { word: 'ü☃' }, answersTo(asked));
    expect(result?.resultType).toBe('complete');
    expect(jsonOf(result)).toEqual([YES]);
  });

  it('accepts the repeated request with its arguments in another order', async () => {
    const asked = await callModern(gateway, 'ask', { questions: 1, word: 'x' });
    const { result } = await callModern(gateway, 'ask', { word: 'x', questions: 1 }, answersTo(asked));
    expect(jsonOf(result)).toEqual([YES]);
  });

  it('is told that the user declined', async () => {
    const asked = await callModern(gateway, 'ask');
    const { result } = await callModern(gateway, 'ask', {}, answersTo(asked, { action: 'decline' }));
    expect(jsonOf(result)).toEqual([{ action: 'decline' }]);
  });

  it('asks several questions in sequence, with a new state each time', async () => {
    const first = await callModern(gateway, 'ask', { questions: 2 });
    const second = await callModern(gateway, 'ask', { questions: 2 }, answersTo(first));
    expect([first, second].map(askedIn)).toEqual([['#1'], ['#2']]);
    expect(second.result!.requestState).not.toBe(first.result!.requestState);
    const stale = await callModern(gateway, 'ask', { questions: 2 }, answersTo(first));
    expect(stale.error?.code).toBe(INVALID);
    const third = await callModern(gateway, 'ask', { questions: 2 }, answersTo(second));
    expect(jsonOf(third.result)).toEqual([YES, YES]);
  });

  it('asks two questions at once, which the client gets one by one', async () => {
    let reply = await callModern(gateway, 'both');
    const questions: unknown[] = [];
    for (let round = 0; round < 3 && reply.result?.resultType === 'input_required'; round++) {
      questions.push(...askedIn(reply));
      reply = await callModern(gateway, 'both', {}, answersTo(reply));
    }
    expect(questions).toEqual(['left', 'right']);
    expect(jsonOf(reply.result)).toEqual([YES, YES]);
  });

  it('asks again if the answer is missing or invalid', async () => {
    let asked = await callModern(gateway, 'ask', { word: 'w' });
    for (const inputResponses of [undefined, {}, { other: YES }, { 'question-1': 'yes' }, []]) {
      const { requestState } = asked.result!;
      asked = await callModern(gateway, 'ask', { word: 'w' }, { requestState, inputResponses });
      expect(askedIn(asked)).toEqual(['w#1']);
    }
    expect(jsonOf((await callModern(gateway, 'ask', { word: 'w' }, answersTo(asked))).result)).toEqual([YES]);
  });

  it('refuses a state that was changed, invented, or issued for another request', async () => {
    const args = { word: 'bound' };
    const asked = await callModern(gateway, 'ask', args);
    const good = answersTo(asked);
    const [mark, id, mac] = good.requestState.split('.') as [string, string, string];
    const changed = (text: string) => (text.startsWith('A') ? 'B' : 'A') + text.slice(1);
    const attempts: Promise<ModernReply>[] = [
      ...[`${mark}.${id}.${changed(mac)}`, `${mark}.${changed(id)}.${mac}`, `${mark}.${id}`, 'toolgate.'].map(
        (requestState) => callModern(gateway, 'ask', args, { ...good, requestState }),
      ),
      callModern(gateway, 'ask', { word: 'other' }, good),
      callModern(gateway, 'ask', { ...args, more: 1 }, good),
      callModern(gateway, 'wait', args, good),
      request(gateway, 'resources/read', { uri: 'asking://one', ...good }),
    ];
    const refused = { error: { code: INVALID, message: expect.stringContaining('requestState') } };
    expect(await Promise.all(attempts)).toMatchObject(attempts.map(() => refused));
    // None of these attempts has affected the call.
    expect(jsonOf((await callModern(gateway, 'ask', args, good)).result)).toEqual([YES]);
    expect((await callModern(gateway, 'ask', args, good)).error?.code).toBe(INVALID);
  });

  it('returns a result that arrived while the client was not connected', async () => {
    const asked = await callModern(gateway, 'leave');
    await sleep(200);
    const { result } = await callModern(gateway, 'leave', {}, { requestState: asked.result!.requestState });
    expect(result?.content?.[0]?.text).toBe('left');
  });

  it('is told at once that a client cannot be asked', async () => {
    const started = performance.now();
    const { result } = await request(gateway, 'tools/call', { name: 'ask', arguments: {} }, { sampling: {} });
    expect(jsonOf(result)).toMatchObject([{ error: { code: -32_601 } }]);
    // A question that is sent would wait for the timeout of five minutes.
    expect(performance.now() - started).toBeLessThan(patient(10_000));
  });
});

it('the SDK client answers questions without special code', async () => {
  const gateway = await startHttp({ config });
  const { client } = await connectModernHttp(gateway.url, {}, { elicitation: {} });
  client.setRequestHandler('elicitation/create', () => ({ action: 'accept' as const, content: { word: 'sdk' } }));
  const result = await client.callTool({ name: 'ask', arguments: { questions: 3 } });
  expect(jsonOf(result)).toEqual(Array(3).fill({ action: 'accept', content: { word: 'sdk' } }));
});

it('a stateless client on stdio is asked in the same way', async () => {
  const pipe = await startStdio({ config, connect: false });
  const meta = {
    'io.modelcontextprotocol/protocolVersion': '2026-07-28',
    'io.modelcontextprotocol/clientCapabilities': ABLE,
  };
  const call = async (more: object = {}) => {
    const params = { name: 'ask', arguments: {}, _meta: meta, ...more };
    return JSON.parse((await pipe.request('tools/call', JSON.stringify(params))).toString()) as ModernReply;
  };
  expect(jsonOf((await call(answersTo(await call()))).result)).toEqual([YES]);
});

describe('a call that was resumed with an answer', () => {
  const slow = { questions: 1, after: 60_000 };

  it('is cancelled if the resuming request is aborted', async () => {
    // All processes of the server write to this file.
    const log = join(tempFolder(), 'log');
    const command = JSON.stringify(server('asking', '--log', log));
    const gateway = await startHttp({ config: `controls = []\n[[servers]]\nnamespace = ""\ncommand = ${command}\n` });
    const got = (text: string) => waitFor(() => readFileSync(log, 'utf8').includes(text));
    const asked = await callModern(gateway, 'ask', slow);
    const abort = new AbortController();
    const params = { name: 'ask', arguments: slow, ...answersTo(asked) };
    const resumed = request(gateway, 'tools/call', params, ABLE, abort.signal);
    resumed.catch(() => {});
    await got('"yes"');
    // A second request would take the result from the first one.
    expect((await request(gateway, 'tools/call', params)).error?.code).toBe(INVALID);
    abort.abort();
    await expect(resumed).rejects.toThrow();
    await got('notifications/cancelled');
    expect((await request(gateway, 'tools/call', params)).error?.code).toBe(INVALID);
  });
});

it('an agent can have eight open questions: the ninth is refused, and the server is told', {
  timeout: 60_000,
}, async () => {
  // Over HTTP a server does not need a process for each of them.
  const url = JSON.stringify(await startFixture('--era', 'legacy'));
  const gateway = await startHttp({ config: `controls = []\n[[servers]]\nnamespace = ""\nurl = ${url}\n` });
  const call = (index: number, more: object = {}) =>
    callModern(gateway, 'test_elicitation', { message: `m${index}` }, more);
  const asked = await Promise.all(Array.from({ length: 8 }, (_, index) => call(index)));
  expect(asked.map(askedIn)).toEqual(asked.map((_, index) => [`m${index}`]));
  const refused = await call(8);
  expect(JSON.stringify(refused.result)).toContain('8 open questions');
  expect(refused.result).toMatchObject({ isError: true, resultType: 'complete' });
  const answers = await Promise.all(asked.map((one, index) => call(index, answersTo(one))));
  expect(answers.map(({ result }) => JSON.stringify(result).includes('yes'))).toEqual(Array(8).fill(true));
  expect(askedIn(await call(9))).toEqual(['m9']);
});

describe.each(['stdio', 'http'])('a modern server on %s and a stateless client', (way) => {
  it('exchange question and state unchanged through the gateway', async () => {
    const place =
      way === 'stdio'
        ? `command = ${JSON.stringify(server('conformance', '--era', 'modern'))}`
        : `url = ${JSON.stringify(await startFixture('--era', 'modern'))}`;
    const gateway = await startHttp({ config: `controls = []\n[[servers]]\nnamespace = ""\n${place}\n` });
    const name = 'test_input_required_result_request_state';
    const asked = await callModern(gateway, name);
    expect(askedIn(asked)).toEqual(['Are you sure?']);
    expect(asked.result!.requestState).not.toMatch(/^toolgate/);
    const answer = { action: 'accept', content: { ok: true } };
    const { result } = await callModern(gateway, name, {}, answersTo(asked, answer));
    expect(result?.content?.[0]?.text).toBe('state-ok');
  });
});
