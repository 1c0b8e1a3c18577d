/** Tools in folders that ask: the user and the model of the client, who calls, and what was kept for the session. */
import { setTimeout as sleep } from 'node:timers/promises';
import { ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { beforeAll, describe, expect, it } from 'vitest';
import { type Dock, startDock } from '../support/dock.ts';
import { callsInFlight } from '../support/in-flight.ts';
import { waitFor } from '../support/processes.ts';
import { noPython } from '../support/python.ts';
import { answersTo, askedIn, callModern, openLegacy, request, withoutServer } from '../support/questions.ts';

const typescript = `
import { defineTool } from 'toolgate';
import { z } from 'zod';
const none = z.object({});
export const ask = defineTool({
  description: 'Asks for a word.',
  inputSchema: z.object({ about: z.string() }),
  timeoutMs: 1500,
  async execute({ about }, ctx) {
    const asked = await ctx.elicit(about, z.object({ word: z.string().max(20) }));
    return asked.action === 'accept' ? 'got ' + asked.content.word : 'was told ' + asked.action;
  },
});
export const ask_twice = defineTool({
  description: 'Asks two things.',
  inputSchema: none,
  async execute(_, { elicit }) {
    const schema = { type: 'object', properties: { word: { type: 'string' } } } as const;
    const first = await elicit('first', schema);
    const second = await elicit('second', schema);
    return JSON.stringify([first, second]);
  },
});
export const give_up = defineTool({
  description: 'Asks, and does not wait for the answer.',
  inputSchema: none,
  async execute(_, ctx) {
    void ctx.elicit('never mind', none);
    await new Promise((resolve) => setTimeout(resolve, 50));
    return 'done without it';
  },
});
export const write = defineTool({
  description: 'Lets the model write.',
  inputSchema: none,
  execute: async (_, ctx) => 'wrote ' + (await ctx.sample('Write a word.')).text,
});
export const who = defineTool({
  description: 'Says who calls.',
  inputSchema: none,
  execute: (_, { agent, clientId, sessionId }) => JSON.stringify([agent, clientId, sessionId]),
});
export const keep = defineTool({
  description: 'Keeps a value.',
  inputSchema: z.object({ value: z.any() }),
  async execute({ value }, ctx) {
    if (value === null) await ctx.state.delete('k');
    else await ctx.state.set('k', value);
    return 'kept';
  },
});
export const recall = defineTool({
  description: 'Returns what was kept.',
  inputSchema: none,
  execute: async (_, ctx) => JSON.stringify((await ctx.state.get('k')) ?? null),
});
export const plain = defineTool({ description: 'Asks nothing.', inputSchema: none, execute: () => 'plain' });
`;

const python = `
import json
from dataclasses import dataclass
from typing import Any
import asyncio
from fastmcp import Context
from fastmcp.tools import tool

@dataclass
class Word:
    word: str

@tool(timeout=1.5)
async def ask(about: str, ctx: Context) -> str:
    asked = await ctx.elicit(about, Word)
    return "got " + asked.data.word if asked.action == "accept" else "was told " + asked.action

@tool
async def ask_twice(ctx: Context) -> str:
    first = await ctx.elicit("first", Word)
    second = await ctx.elicit("second", Word)
    return json.dumps([{"action": one.action, "content": {"word": one.data.word}} for one in (first, second)])

@tool
async def give_up(ctx: Context) -> str:
    try:
        await asyncio.wait_for(ctx.elicit("never mind", Word), 0.05)
    except asyncio.TimeoutError:
        return "done without it"

@tool
async def write(ctx: Context) -> str:
    return "wrote " + (await ctx.sample("Write a word.")).text

@tool
async def who(ctx: Context) -> str:
    return json.dumps([ctx.client_id, ctx.client_id, ctx.session_id])

@tool
async def keep(value: Any, ctx: Context) -> str:
    if value is None:
        await ctx.delete_state("k")
    else:
        await ctx.set_state("k", value)
    return "kept"

@tool
async def recall(ctx: Context) -> str:
    return json.dumps(await ctx.get_state("k"))

@tool
def plain() -> str:
    return "plain"
`;

let dock: Dock;
const languages = ['ts', ...(noPython ? [] : ['py'])];

beforeAll(async () => {
  dock = await startDock(
    { 'ts/tools.ts': typescript, ...(!noPython && { 'py/tools.py': python }), 'other/tools.ts': typescript },
    { python: !noPython },
  );
  for (const language of languages) await dock.until(`${language}_plain`, ({ text }) => text === 'plain', 60_000);
});

type Client = Awaited<ReturnType<typeof openLegacy>>['client'];

async function call(client: Client, name: string, args: Record<string, unknown> = {}): Promise<string> {
  const { content } = await client.callTool({ name, arguments: args });
  return (content as { text: string }[])[0]!.text;
}

describe.each(languages)('a tool in a folder (%s)', (language) => {
  const named = (tool: string) => `${language}_${tool}`;

  it('asks the user of the client that called, and no other', async () => {
    const [ann, bob] = await Promise.all([openLegacy(dock), openLegacy(dock)]);
    const answers = await Promise.all([
      ...['a', 'b', 'c'].map((about) => call(ann.client, named('ask'), { about })),
      ...['x', 'y'].map((about) => call(bob.client, named('ask'), { about })),
    ]);
    expect(answers).toEqual(['got re a', 'got re b', 'got re c', 'got re x', 'got re y']);
    expect(ann.questions.sort()).toEqual(['a', 'b', 'c']);
    expect(bob.questions.sort()).toEqual(['x', 'y']);
  });

  it('learns that the user declined, and that an answer does not fit', async () => {
    const declining = await openLegacy(dock, () => ({ action: 'decline' }));
    expect(await call(declining.client, named('ask'), { about: 'it' })).toBe('was told decline');
    const careless = await openLegacy(dock, () => ({ action: 'accept', content: { other: 1 } }));
    expect(await call(careless.client, named('ask'), { about: 'it' })).toContain('word');
  });

  it('asks a client without sessions in rounds', async () => {
    const first = await callModern(dock, named('ask_twice'));
    expect(askedIn(first)).toEqual(['first']);
    const second = await callModern(dock, named('ask_twice'), {}, answersTo(first));
    expect(askedIn(second)).toEqual(['second']);
    const last = await callModern(dock, named('ask_twice'), {}, answersTo(second));
    const accepted = { action: 'accept', content: { word: 'yes' } };
    expect(JSON.parse(last.result!.content![0]!.text)).toEqual([accepted, accepted]);
  });

  it('lets the model of the client write', async () => {
    const { client, questions } = await openLegacy(dock);
    expect(await call(client, named('write'))).toBe('wrote word');
    expect(questions).toEqual(['sampling']);
  });

  it('gets a clear error if the client cannot be asked', async () => {
    const { client } = await dock.connect();
    expect(await call(client, named('ask'), { about: 'it' })).toContain(
      'The client of this call does not support elicitation, so its user cannot be asked.',
    );
    expect(await call(client, named('write'))).toContain('does not support sampling');
    const modern = await request(dock, 'tools/call', { name: named('write'), arguments: {} }, {});
    expect(modern.result?.content?.[0]?.text).toContain('does not support sampling');
    const rest = await fetch(`${dock.origin}/tools/${named('write')}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: '{}',
    });
    expect(await rest.text()).toContain('does not support sampling');
  });

  it('has time while the user thinks: its time-out does not run', async () => {
    const slow = await openLegacy(dock, async (message) => {
      // Longer than the time-out of the tool, which is what this is about.
      await sleep(2_000);
      return { action: 'accept', content: { word: message } };
    });
    expect(await call(slow.client, named('ask'), { about: 'slow' })).toBe('got slow');
  });

  it('ends its question when it no longer needs the answer, and when its call is cancelled', async () => {
    const ended: string[] = [];
    const waiting = await openLegacy(dock, () => new Promise(() => {}));
    waiting.client.setRequestHandler(ElicitRequestSchema, async ({ params }, { signal }) => {
      const message = withoutServer(params.message);
      waiting.questions.push(message);
      signal.addEventListener('abort', () => ended.push(message));
      return new Promise(() => {});
    });
    expect(await call(waiting.client, named('give_up'))).toBe('done without it');
    const controller = new AbortController();
    const cancelled = waiting.client.callTool({ name: named('ask'), arguments: { about: 'x' } }, undefined, {
      signal: controller.signal,
    });
    cancelled.catch(() => {});
    await waitFor(() => waiting.questions.length === 2);
    controller.abort();
    await expect(cancelled).rejects.toThrow();
    await callsInFlight(dock, 0);
    await waitFor(() => ended.length === 2);
    expect(ended).toEqual(['never mind', 'x']);
    expect(await call(waiting.client, named('plain'))).toBe('plain');
  });

  it('knows who calls, and not the id that lets a client into its session', async () => {
    const [one, two] = await Promise.all([dock.connect(), dock.connect()]);
    const [agent, clientId, session] = JSON.parse(await call(one.client, named('who'))) as string[];
    expect([agent, clientId]).toEqual(['anonymous', 'anonymous']);
    expect(session).toMatch(/^[0-9a-f-]{36}$/);
    expect(session).not.toBe(one.transport.sessionId);
    expect(JSON.parse(await call(one.client, named('who')))[2]).toBe(session);
    expect(JSON.parse(await call(two.client, named('who')))[2]).not.toBe(session);
  });

  it('keeps values for the session, which no other session and no other namespace sees', async () => {
    const [one, two] = await Promise.all([dock.connect(), dock.connect()]);
    await call(one.client, named('keep'), { value: { a: [1, 'ü'] } });
    expect(JSON.parse(await call(one.client, named('recall')))).toEqual({ a: [1, 'ü'] });
    expect(await call(two.client, named('recall'))).toBe('null');
    expect(await call(one.client, 'other_recall')).toBe('null');
    await call(one.client, named('keep'), { value: null });
    expect(await call(one.client, named('recall'))).toBe('null');
    expect(await call(one.client, named('keep'), { value: 'x'.repeat(2 ** 20) })).toContain(
      'at most 1048576 characters',
    );
    // Without sessions it is kept for the agent.
    await callModern(dock, named('keep'), { value: 7 });
    expect((await callModern(dock, named('recall'))).result?.content?.[0]?.text).toBe('7');
  });
});
