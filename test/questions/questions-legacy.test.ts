/** Legacy clients, which are asked in the middle of a call. */
import { setTimeout as sleep } from 'node:timers/promises';
import { ListRootsRequestSchema, McpError } from '@modelcontextprotocol/sdk/types.js';
import { beforeAll, describe, expect, it } from 'vitest';
import { startFixture } from '../support/conformance-suite.ts';
import { type HttpGateway, startHttp } from '../support/gateway.ts';
import { callsInFlight } from '../support/in-flight.ts';
import { runningServers } from '../support/in-process-server.ts';
import { errorOf, textOf } from '../support/modern-servers.ts';
import { patient } from '../support/patience.ts';
import { waitFor } from '../support/processes.ts';
import { type Answering, type Asked, accept, jsonOf, openLegacy, openLegacyPipe } from '../support/questions.ts';
import { server } from '../support/server.ts';
import { onePart } from '../support/wide.ts';

const UPSTREAMS = ['legacy stdio', 'legacy http', 'modern stdio', 'modern http'] as const;

async function configOf(upstream: (typeof UPSTREAMS)[number]): Promise<string> {
  const [era, way] = upstream.split(' ') as [string, string];
  const place =
    way === 'stdio'
      ? `command = ${JSON.stringify(server('conformance', '--era', era))}`
      : `url = ${JSON.stringify(await startFixture('--era', era))}`;
  return `controls = []\n\n[[servers]]\nnamespace = ""\n${place}\n`;
}

describe.each(onePart(2, UPSTREAMS))('a server called %s', (upstream) => {
  let config: string;
  let gateway: HttpGateway;
  beforeAll(async () => {
    config = await configOf(upstream);
    gateway = await startHttp({ config });
  });

  const doors: [string, (answering?: Answering) => Promise<Asked>][] = [
    ['stdio', (answering) => openLegacyPipe(config, answering)],
    ['HTTP', (answering) => openLegacy(gateway, answering)],
  ];

  it.each(doors)('asks a client on %s and gets its answer', async (_, open) => {
    const content = { username: 'ü', email: 'a@b' };
    const { client, questions } = await open(() => ({ action: 'accept', content }));
    const result = await client.callTool({ name: 'test_elicitation', arguments: { message: 'Who?' } });
    expect(textOf(result)).toContain(JSON.stringify(content));
    expect(questions).toEqual(['Who?']);
  });

  it.each(doors)('gets a sampling result from the model of a client on %s', async (_, open) => {
    const { client, questions } = await open();
    expect(textOf(await client.callTool({ name: 'test_sampling', arguments: { prompt: 'p' } }))).toContain('word');
    expect(questions).toEqual(['sampling']);
  });

  it('is told that the user declined', async () => {
    const { client } = await openLegacy(gateway, () => ({ action: 'decline' }));
    const result = await client.callTool({ name: 'test_elicitation', arguments: { message: 'Who?' } });
    expect(textOf(result)).toContain('decline');
  });

  it('fails the call with the reason if the client answers with an error', async () => {
    const { client } = await openLegacy(gateway, () => {
      throw new McpError(-32_000, 'no screen');
    });
    const result = await client.callTool({ name: 'test_elicitation', arguments: { message: 'Who?' } });
    expect(result.isError).toBe(true);
    expect(JSON.stringify(result)).toContain('no screen');
  });

  it('asks several questions one after the other', async () => {
    const { client, questions } = await openLegacy(gateway, (message) => ({
      action: 'accept',
      content: Object.fromEntries([message.includes('color') ? ['color', 'red'] : ['name', 'Ann']]),
    }));
    const call = async (name: string) => textOf(await client.callTool({ name, arguments: {} }));
    expect(await call('test_input_required_result_multi_round')).toBe('Ann likes red');
    expect(questions).toEqual(['What is your name?', 'Which color do you like?']);
  });

  // Not with a legacy server: one that asks for the roots gets an empty list.
  if (!upstream.startsWith('legacy'))
    it('asks several questions at once', async () => {
      const { client, questions } = await openLegacy(gateway, () => ({ action: 'accept', content: { name: 'Ann' } }));
      client.setRequestHandler(ListRootsRequestSchema, () => ({ roots: [] }));
      const result = await client.callTool({ name: 'test_input_required_result_multiple_inputs', arguments: {} });
      expect(textOf(result)).toBe('all three answered');
      expect(questions.sort()).toEqual(['What is your name?', 'sampling']);
    });

  it('cannot ask a client that declared no capability, and the call ends at once', async () => {
    const { client } = await gateway.connect();
    const started = performance.now();
    const result = await client.callTool({ name: 'test_elicitation', arguments: { message: 'Who?' } });
    expect(result.isError).toBe(true);
    // A question that is sent would wait for the timeout of five minutes.
    expect(performance.now() - started).toBeLessThan(patient(10_000));
  });
});

describe('a modern server and a legacy client', () => {
  let gateway: HttpGateway;
  beforeAll(async () => {
    gateway = await startHttp({
      config: `controls = []\n[[servers]]\nnamespace = ""\ncommand = ${JSON.stringify(server('asking-modern'))}\n`,
    });
  });

  it('is given up after ten rounds of questions', async () => {
    const { client, questions } = await openLegacy(gateway);
    expect(errorOf(await client.callTool({ name: 'forever' }))).toMatchObject({ code: 'source_broken' });
    expect(questions).toHaveLength(10);
  });

  it('gets its state back if it asks to be called again without a question', async () => {
    const { client, questions } = await openLegacy(gateway);
    expect(jsonOf(await client.callTool({ name: 'again' }))).toEqual(['state-1', 'state-2', 'state-3']);
    expect(questions).toEqual([]);
  });

  it('is told the reason if the client does not answer', async () => {
    const { client } = await openLegacy(gateway, () => {
      throw new McpError(-32_000, 'no screen');
    });
    const { code, message } = errorOf(await client.callTool({ name: 'forever' }));
    expect(code).toBe('question_unanswered');
    expect(message).toContain('no screen');
  });
});

interface Seen {
  readonly pid: number;
  readonly cancelled: readonly object[];
  readonly answers: readonly { readonly error?: { readonly code: number; readonly message: string } }[];
}

let names = 0;

/** A gateway with its own shared server, which can be found by name. */
async function startAsking(more = '') {
  const name = `asking-${process.pid}-${++names}`;
  const command = JSON.stringify(server('asking', '--name', name));
  const gateway = await startHttp({
    config: `controls = []\n[[servers]]\nnamespace = ""\ncommand = ${command}\n${more}`,
  });
  const processes = () => runningServers(name).length;
  return { gateway, processes };
}

const seenBy = async ({ client }: Pick<Asked, 'client'>) => jsonOf(await client.callTool({ name: 'seen' })) as Seen;
const callAsk = async ({ client }: Pick<Asked, 'client'>, args: Record<string, unknown> = {}) =>
  jsonOf(await client.callTool({ name: 'ask', arguments: args }));
const said = (word: string) => ({ action: 'accept', content: { word: `re ${word}` } });

describe('a shared legacy server', () => {
  it('asks several questions, one after the other or together', async () => {
    const { gateway } = await startAsking();
    const asked = await openLegacy(gateway);
    expect(await callAsk(asked, { questions: 3, word: 'a' })).toEqual([said('a#1'), said('a#2'), said('a#3')]);
    expect(jsonOf(await asked.client.callTool({ name: 'both' }))).toEqual([said('left'), said('right')]);
  });

  it('gets an answer to roots/list without any client being asked', async () => {
    const { gateway } = await startAsking();
    const asked = await openLegacy(gateway);
    expect(jsonOf(await asked.client.callTool({ name: 'sample' }))).toMatchObject([{ model: 'm' }, { roots: [] }]);
    expect(asked.questions).toEqual(['sampling']);
  });

  it('never gets an answer from the wrong client', { timeout: 60_000 }, async () => {
    const { gateway, processes } = await startAsking();
    const clients = await Promise.all(Array.from({ length: 4 }, () => openLegacy(gateway, slowly)));
    // Before its first question, the gateway does not know that the server needs more than one process.
    await callAsk(clients[0]!, { word: 'first' });
    const answers = await Promise.all(clients.map((one, index) => callAsk(one, { questions: 2, word: `w${index}` })));
    expect(answers).toEqual(clients.map((_, index) => [said(`w${index}#1`), said(`w${index}#2`)]));
    expect(clients.map(({ questions }) => questions.slice(-2))).toEqual(
      clients.map((_, index) => [`w${index}#1`, `w${index}#2`]),
    );
    expect(processes()).toBe(4);
  });

  it('works on at most four calls at once, and the fifth waits', { timeout: 60_000 }, async () => {
    const { gateway, processes } = await startAsking();
    const one = await openLegacy(gateway);
    await callAsk(one, { word: 'first' });
    const calls = Array.from({ length: 9 }, () => one.client.callTool({ name: 'wait', arguments: { ms: 300 } }));
    // A client that cannot be asked needs no process of its own and does not have to wait.
    const other = await gateway.connect({ capabilities: { roots: {} } });
    expect(textOf(await other.client.callTool({ name: 'wait', arguments: { ms: 1 } }))).toBe('waited');
    expect((await Promise.all(calls)).map(textOf)).toEqual(calls.map(() => 'waited'));
    expect(processes()).toBeLessThanOrEqual(5);
  });

  it('does not ask one client about the call of another that cannot be asked', async () => {
    const { gateway } = await startAsking();
    const able = await openLegacy(gateway);
    const mute = await gateway.connect();
    // This call runs on the same pipe, and its client is the only one that could be asked.
    const waiting = able.client.callTool({ name: 'wait', arguments: { ms: 3500 } });
    await callsInFlight(gateway);
    expect(await callAsk(mute)).toMatchObject([{ error: { code: -32_601 } }]);
    expect(textOf(await waiting)).toBe('waited');
    // From now on the server is known to ask, so each client gets its own process.
    const abort = new AbortController();
    const longer = able.client
      .callTool({ name: 'wait', arguments: { ms: 60_000 } }, undefined, { signal: abort.signal })
      .catch(() => 'cancelled');
    // It does not wait for the call of the other client.
    expect(await callAsk(mute)).toMatchObject([{ error: { code: -32_601 } }]);
    abort.abort();
    expect(await longer).toBe('cancelled');
    expect(able.questions).toEqual([]);
  });

  it('is told at once that a client cannot be asked', async () => {
    const { gateway } = await startAsking();
    const started = performance.now();
    expect(await callAsk(await gateway.connect())).toMatchObject([{ error: { code: -32_601 } }]);
    const onlyForms = await gateway.connect({ capabilities: { elicitation: {} } });
    expect(jsonOf(await onlyForms.client.callTool({ name: 'sample' }))).toMatchObject([{ error: {} }, { roots: [] }]);
    // A question that is sent would wait for the timeout of five minutes.
    expect(performance.now() - started).toBeLessThan(patient(10_000));
  });

  it('does not time out while the user answers, but does for its own work', async () => {
    const { gateway } = await startAsking('timeout = "1s"\n');
    const asked = await openLegacy(gateway, slowlyBy(2500));
    expect(await callAsk(asked)).toEqual([said('#1')]);
    expect(jsonOf(await asked.client.callTool({ name: 'both' }))).toEqual([said('left'), said('right')]);
    const wait = await asked.client.callTool({ name: 'wait', arguments: { ms: 5000 } });
    expect(errorOf(wait)).toMatchObject({ code: 'source_timeout' });
  });

  it('is told that a call was cancelled while its question was open', async () => {
    const { gateway } = await startAsking();
    const asked = await openLegacy(gateway, () => new Promise(() => {}));
    const abort = new AbortController();
    const call = asked.client.callTool({ name: 'ask' }, undefined, { signal: abort.signal });
    await waitFor(() => asked.questions.length === 1);
    abort.abort('enough');
    await expect(call).rejects.toThrow();
    const seen = await waitFor(async () => {
      const now = await seenBy(asked);
      return now.answers.length > 0 && now;
    });
    expect(seen.answers).toMatchObject([{ error: { code: -32_601 } }]);
    expect(seen.cancelled).toHaveLength(1);
  });

  it('has its open question withdrawn if it ends the call without waiting for the answer', async () => {
    const { gateway } = await startAsking();
    const asked = await openLegacy(gateway, () => new Promise(() => {}));
    expect(textOf(await asked.client.callTool({ name: 'leave' }))).toBe('left');
    const { answers } = await seenBy(asked);
    expect(answers).toMatchObject([{ error: { message: expect.stringContaining('the call is over') } }]);
  });
});

const slowlyBy =
  (ms: number): Answering =>
  async (message) => {
    await sleep(ms);
    return accept(message);
  };
const slowly = slowlyBy(150);
