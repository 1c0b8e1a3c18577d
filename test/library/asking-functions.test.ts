/** Functions of a program as tools that ask: the user and the model of the client, who calls, and what was kept. */
import { setTimeout as sleep } from 'node:timers/promises';
import { beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { defineTool, type McpServerHandle } from '../../src/index.ts';
import { connectHttp } from '../support/connection.ts';
import { ABLE, accept, answersTo, answerWith, askedIn, callModern } from '../support/questions.ts';
import { startServer } from './support.ts';

const none = z.object({});

/** Why questions had no answer. */
const unanswered: string[] = [];
let arrived = () => {};
const hasArrived = new Promise<void>((resolve) => {
  arrived = resolve;
});

const tools = [
  defineTool({
    name: 'ask',
    description: 'Asks for a word.',
    inputSchema: none,
    async execute(_, ctx) {
      const asked = await ctx.elicit('A word?', z.object({ word: z.string() }));
      return asked.action === 'accept' ? `got ${asked.content.word}` : asked.action;
    },
  }),
  defineTool({
    name: 'leave',
    description: 'Asks, and does not wait for the answer.',
    inputSchema: none,
    async execute(_, { elicit }) {
      elicit('never mind', none).catch((error: Error) => unanswered.push(error.message));
      await hasArrived;
      return 'left';
    },
  }),
  defineTool({
    name: 'ask_again',
    description: 'Asks a second question while the first one is open.',
    inputSchema: none,
    timeoutMs: 2_000,
    async execute(_, { elicit }) {
      const first = elicit('first', none);
      // Longer than its time-out, which is what this is about.
      await sleep(2_100);
      await Promise.all([first, elicit('second', none)]);
      await sleep(20);
      return 'done';
    },
  }),
  defineTool({
    name: 'write',
    description: 'Lets the model write.',
    inputSchema: none,
    execute: async (_, { sample }) => `wrote ${(await sample({ messages: [] })).text}`,
  }),
  defineTool({
    name: 'count',
    description: 'Counts the calls of a session.',
    inputSchema: none,
    async execute(_, ctx) {
      const calls = ((await ctx.state.get<number>('calls')) ?? 0) + 1;
      await ctx.state.set('calls', calls);
      return JSON.stringify([ctx.agent, ctx.clientId, ctx.sessionId, calls]);
    },
  }),
];

describe('a function of a program', () => {
  let server: McpServerHandle & { url: string };

  beforeAll(async () => {
    server = await startServer({
      catalog: { words: { name: 'Words', description: 'Words.', tools } },
      startup: { mode: 'STATIC', toolsets: 'ALL' },
    });
  });

  const open = async (id: string, capabilities = ABLE) =>
    answerWith((await connectHttp(server.url, { 'mcp-client-id': id }, capabilities)).client, accept);
  const call = async (client: Awaited<ReturnType<typeof open>>['client'], name: string) => {
    const { content } = await client.callTool({ name: `words.${name}`, arguments: {} });
    return (content as { text: string }[])[0]!.text;
  };

  it('asks the user and the model of the client that called', async () => {
    const [ann, bob] = await Promise.all([open('ann'), open('bob')]);
    expect(await call(ann.client, 'ask')).toBe('got re A word?');
    expect(await call(bob.client, 'write')).toBe('wrote word');
    expect([ann.questions, bob.questions]).toEqual([['A word?'], ['sampling']]);
    const mute = await connectHttp(server.url, { 'mcp-client-id': 'mute' }, {});
    expect(await call(mute.client, 'ask')).toContain('does not support elicitation');
  });

  it('has all the time that it had left after several questions at once', async () => {
    const { client } = await connectHttp(server.url, { 'mcp-client-id': 'dan' }, ABLE);
    const open: (() => void)[] = [];
    answerWith(client, async (message) => {
      if (message.endsWith('second')) for (const answer of open) answer();
      else await new Promise<void>((resolve) => void open.push(resolve));
      return { action: 'accept', content: {} };
    });
    expect(await call(client, 'ask_again')).toBe('done');
  });

  it('learns that its question has no answer any more when its call is over', async () => {
    const { client } = await connectHttp(server.url, { 'mcp-client-id': 'cat' }, ABLE);
    answerWith(client, () => {
      arrived();
      return new Promise(() => {});
    });
    expect(await call(client, 'leave')).toBe('left');
    expect(unanswered).toEqual(['The call is over.']);
  });

  it('asks a client without sessions in rounds', async () => {
    const cat = { url: server.url, headers: { 'mcp-client-id': 'cat' } };
    const first = await callModern(cat, 'words.ask');
    expect(askedIn(first)).toEqual(['A word?']);
    const last = await callModern(cat, 'words.ask', {}, answersTo(first));
    expect(last.result?.content?.[0]?.text).toBe('got yes');
  });

  it('knows who calls, and keeps values for the session', async () => {
    const [ann, again] = await Promise.all([open('ann'), open('ann')]);
    const [agent, clientId, session, first] = JSON.parse(await call(ann.client, 'count')) as unknown[];
    expect([agent, clientId, first]).toEqual(['ann', 'ann', 1]);
    expect(JSON.parse(await call(ann.client, 'count'))).toEqual(['ann', 'ann', session, 2]);
    const other = JSON.parse(await call(again.client, 'count')) as unknown[];
    expect(other[3]).toBe(1);
    expect(other[2]).not.toBe(session);
  });
});
