/** Calls to a server that asks things wait for a free connection, in order, and nothing holds them up for ever. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { type HttpGateway, startHttp } from '../support/gateway.ts';
import { callsInFlight } from '../support/in-flight.ts';
import { runningServers } from '../support/in-process-server.ts';
import { errorOf, textOf } from '../support/modern-servers.ts';
import { waitFor } from '../support/processes.ts';
import {
  ABLE,
  type Asked,
  accept,
  answersTo,
  answerWith,
  askedIn,
  callModern,
  jsonOf,
  type ModernReply,
  openLegacy,
  openLegacyPipe,
} from '../support/questions.ts';
import { server } from '../support/server.ts';
import { isWide } from '../support/wide.ts';

/** How many connections one agent may hold, and how many there may be at all. */
const PER_AGENT = 8;
const IN_ALL = 12;
/** More calls than that. */
const MANY = isWide ? 30 : 15;

const TIMEOUT = { timeout: 120_000 };

let names = 0;

function asking(more = '', before = '') {
  const name = `waiting-${process.pid}-${++names}`;
  const command = JSON.stringify(server('asking', '--name', name));
  const config = `controls = []\n${before}\n[servers.q]\nnamespace = ""\ncommand = ${command}\n${more}`;
  return { config, processes: () => runningServers(name).length };
}

async function startAsking(more = '', before = '') {
  const { config, processes } = asking(more, before);
  return { gateway: await startHttp({ config }), config, processes };
}

const ask = ({ client }: Pick<Asked, 'client'>, word: string, more: object = {}) =>
  client.callTool({ name: 'ask', arguments: { word, ...more } });
const said = (word: string) => [{ action: 'accept', content: { word: `re ${word}#1` } }];
const words = (count: number, prefix = 'w') => Array.from({ length: count }, (_, n) => `${prefix}${n}`);

/** A client whose person answers only when told to, except for the first question. */
async function openSlow(gateway: HttpGateway, headers: Record<string, string> = {}) {
  let release = () => {};
  const held = new Promise<void>((resolve) => {
    release = resolve;
  });
  const { client } = await gateway.connect({ capabilities: ABLE, headers });
  const asked = answerWith(client, async (message) => {
    if (message !== 'first#1') await held;
    return accept(message);
  });
  // From now on the gateway knows that the server asks.
  await ask(asked, 'first');
  return { ...asked, release };
}

/** The same, with so many questions open. */
async function openHeld(gateway: HttpGateway, count = PER_AGENT, headers: Record<string, string> = {}) {
  const slow = await openSlow(gateway, headers);
  const calls = words(count).map((word) => ask(slow, word));
  await waitFor(() => slow.questions.length === count + 1, 60_000);
  return { ...slow, calls };
}

/** A modern client that answers what it is asked. */
async function askModern(gateway: HttpGateway, word: string): Promise<unknown> {
  const first = await callModern(gateway, 'ask', { word });
  expect(askedIn(first)).toEqual([`${word}#1`]);
  return jsonOf((await callModern(gateway, 'ask', { word }, answersTo(first))).result);
}

describe('many calls at once from one client with a session', () => {
  it('all get their answers, also if the server has never asked before', TIMEOUT, async () => {
    const { gateway } = await startAsking();
    const one = await openLegacy(gateway);
    const results = await Promise.all(words(8).map((word) => ask(one, word)));
    expect(results.map(jsonOf)).toEqual(words(8).map(said));
  });

  it('all get their answers on a pipe too', TIMEOUT, async () => {
    const one = await openLegacyPipe(asking().config);
    const results = await Promise.all(words(8).map((word) => ask(one, word)));
    expect(results.map(jsonOf)).toEqual(words(8).map(said));
  });

  it('all get their answers if many of them ask, sample or ask nothing', TIMEOUT, async () => {
    const { gateway, processes } = await startAsking();
    const one = await openLegacy(gateway);
    await ask(one, 'first');
    const results = await Promise.all(
      words(MANY).map(async (word, n) => {
        if (n % 3 === 0) return textOf(await one.client.callTool({ name: 'wait', arguments: { ms: 5 } }));
        if (n % 3 === 1) return jsonOf(await one.client.callTool({ name: 'sample' }));
        return jsonOf(await ask(one, word));
      }),
    );
    expect(results).toEqual(
      words(MANY).map((word, n) =>
        n % 3 === 0 ? 'waited' : n % 3 === 1 ? [expect.objectContaining({ model: 'm' }), { roots: [] }] : said(word),
      ),
    );
    expect(processes()).toBeLessThanOrEqual(IN_ALL);
  });
});

describe('many calls at once from a client without a session', () => {
  it('all get their answers, more of them than connections', TIMEOUT, async () => {
    const { gateway, processes } = await startAsking();
    await askModern(gateway, 'first');
    const answers = await Promise.all(words(MANY).map((word) => askModern(gateway, word)));
    expect(answers).toEqual(words(MANY).map(() => [{ action: 'accept', content: { word: 'yes' } }]));
    expect(processes()).toBeLessThanOrEqual(IN_ALL);
  });

  it('do not wait for each other if the client answers only after all have returned', TIMEOUT, async () => {
    const { gateway } = await startAsking();
    await askModern(gateway, 'first');
    const asked = await Promise.all(words(8).map((word) => callModern(gateway, 'ask', { word })));
    expect(asked.map(askedIn)).toEqual(words(8).map((word) => [`${word}#1`]));
    const answers = await Promise.all(
      words(8).map((word, n) => callModern(gateway, 'ask', { word }, answersTo(asked[n]!))),
    );
    expect(answers.map(({ result }) => jsonOf(result))).toHaveLength(8);
  });

  it('are told to answer first if the client has too many open questions', { timeout: 180_000 }, async () => {
    // Without a wide run, the timeout of the server ends the wait earlier.
    const { gateway } = await startAsking(isWide ? '' : 'timeout = "3s"\n');
    await askModern(gateway, 'first');
    const asked: ModernReply[] = [];
    for (const word of words(PER_AGENT)) asked.push(await callModern(gateway, 'ask', { word }));
    const { result } = await callModern(gateway, 'ask', { word: 'late' });
    expect(result).toMatchObject({ isError: true, content: [{ text: expect.stringContaining('source_busy') }] });
    expect(result!.content![0]!.text).toContain(isWide ? 'Answer them first' : 'has waited 3 s for a free connection');
    const back = await callModern(gateway, 'ask', { word: 'w0' }, answersTo(asked[0]!));
    expect(jsonOf(back.result)).toHaveLength(1);
    expect(askedIn(await callModern(gateway, 'ask', { word: 'again' }))).toEqual(['again#1']);
  });

  it('start with a connection each if an earlier run knew that the server asks', TIMEOUT, async () => {
    const { config } = asking();
    const gateway = await startHttp({ config });
    await askModern(gateway, 'first');
    await gateway.stop();
    const next = await startHttp({ config, cwd: gateway.cwd });
    const answers = await Promise.all(words(4).map((word) => askModern(next, word)));
    expect(answers).toHaveLength(4);
  });
});

describe('a call that waits for a connection', () => {
  it('is sent when one is free, and the calls before it go first', TIMEOUT, async () => {
    const { gateway } = await startAsking();
    const answers: (() => void)[] = [];
    const { client } = await gateway.connect({ capabilities: ABLE });
    const one = answerWith(client, async (message) => {
      if (message !== 'first#1') await new Promise<void>((resolve) => answers.push(resolve));
      return accept(message);
    });
    await ask(one, 'first');
    const calls = words(PER_AGENT).map((word) => ask(one, word));
    await waitFor(() => answers.length === PER_AGENT);
    for (const word of words(3, 'late')) {
      calls.push(ask(one, word));
      // Requests over HTTP may overtake each other.
      await callsInFlight(gateway, calls.length);
    }
    expect(answers).toHaveLength(PER_AGENT);
    for (const free of [1, 2, 3]) {
      answers[free]!();
      await waitFor(() => answers.length === PER_AGENT + free);
    }
    expect(one.questions.slice(PER_AGENT + 1)).toEqual(words(3, 'late').map((word) => `${word}#1`));
    for (const answer of answers) answer();
    expect((await Promise.all(calls)).map(jsonOf)).toEqual([...words(PER_AGENT), ...words(3, 'late')].map(said));
  });

  it('is not held up by those of another agent', TIMEOUT, async () => {
    const { gateway } = await startAsking('', '[http]\ntrust_agent_header = true\n');
    const greedy = await openHeld(gateway, PER_AGENT, { 'x-agent-id': 'greedy' });
    const late = words(20, 'late').map((word) => ask(greedy, word));
    const modest = await gateway.connect({ capabilities: ABLE, headers: { 'x-agent-id': 'modest' } });
    const other = answerWith(modest.client, accept);
    expect((await Promise.all(words(6, 'm').map((word) => ask(other, word)))).map(jsonOf)).toEqual(
      words(6, 'm').map(said),
    );
    expect(greedy.questions).toHaveLength(PER_AGENT + 1);
    greedy.release();
    expect((await Promise.all([...greedy.calls, ...late])).map(jsonOf)).toHaveLength(PER_AGENT + 20);
  });

  it(
    'does not hold up a client that cannot be asked, and no question is refused because of that one',
    TIMEOUT,
    async () => {
      const { gateway } = await startAsking();
      const slow = await openHeld(gateway);
      const late = ask(slow, 'late');
      const mute = await gateway.connect();
      const waiting = mute.client.callTool({ name: 'wait', arguments: { ms: 3_000 } });
      expect(textOf(await mute.client.callTool({ name: 'wait', arguments: { ms: 1 } }))).toBe('waited');
      slow.release();
      expect((await Promise.all([...slow.calls, late])).map(jsonOf)).toEqual([...words(PER_AGENT), 'late'].map(said));
      expect(textOf(await waiting)).toBe('waited');
    },
  );

  it('is refused after its timeout, and is told what it waited for', TIMEOUT, async () => {
    const { gateway } = await startAsking('timeout = "1s"\n');
    const slow = await openHeld(gateway);
    const error = errorOf(await ask(slow, 'late'));
    expect(error).toMatchObject({ code: 'source_busy' });
    expect(error.message).toMatch(/has waited 1 s for a free connection.*8 calls of this agent are not done yet/);
    slow.release();
    expect((await Promise.all(slow.calls)).map(jsonOf)).toEqual(words(PER_AGENT).map(said));
    expect(slow.questions).toHaveLength(PER_AGENT + 1);
  });

  it('is never sent if it is cancelled, or if its client leaves', TIMEOUT, async () => {
    const { gateway } = await startAsking();
    const slow = await openHeld(gateway);
    const abort = new AbortController();
    const cancelled = slow.client
      .callTool({ name: 'ask', arguments: { word: 'cancelled' } }, undefined, { signal: abort.signal })
      .catch(() => 'cancelled');
    const gone = await gateway.connect({ capabilities: ABLE });
    const leaving = answerWith(gone.client, accept);
    const left = ask(leaving, 'left').catch(() => 'left');
    await callsInFlight(gateway, PER_AGENT + 2);
    abort.abort();
    await gone.transport.terminateSession();
    await gone.client.close();
    expect(await Promise.all([cancelled, left])).toEqual(['cancelled', 'left']);
    await callsInFlight(gateway, PER_AGENT);
    slow.release();
    await Promise.all(slow.calls);
    expect(jsonOf(await ask(slow, 'next'))).toEqual(said('next'));
    expect(slow.questions).not.toContain('cancelled#1');
    expect(leaving.questions).toEqual([]);
  });

  it('is answered if all processes of the server end meanwhile', TIMEOUT, async () => {
    const { gateway } = await startAsking();
    const slow = await openSlow(gateway);
    const calls = words(PER_AGENT).map((word) => ask(slow, word, { crash: true }));
    await waitFor(() => slow.questions.length === PER_AGENT + 1, 60_000);
    const late = words(3, 'late').map((word) => ask(slow, word));
    await callsInFlight(gateway, PER_AGENT + 3);
    slow.release();
    for (const call of calls) expect(errorOf(await call)).toMatchObject({ code: 'source_broken' });
    expect((await Promise.all(late)).map(jsonOf)).toEqual(words(3, 'late').map(said));
  });

  it('is checked against the policy again, and keeps its turn when the configuration changes', TIMEOUT, async () => {
    const { gateway, config } = await startAsking();
    const slow = await openHeld(gateway);
    const late = ask(slow, 'late');
    const denied = slow.client.callTool({ name: 'both' });
    await callsInFlight(gateway, PER_AGENT + 2);
    writeFileSync(
      join(gateway.cwd, 'tools.toml'),
      config.replace('controls', 'denied_tools = { q = ["both"] }\ncontrols'),
    );
    await waitFor(async () => {
      const { tools } = await slow.client.listTools();
      return tools.every(({ name }) => name !== 'both');
    }, 30_000);
    slow.release();
    expect(errorOf(await denied).message).toContain('no longer allows "both"');
    expect((await Promise.all([...slow.calls, late])).map(jsonOf)).toEqual([...words(PER_AGENT), 'late'].map(said));
    expect(slow.questions).not.toContain('left');
  });
});
