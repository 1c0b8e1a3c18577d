/** Prompts and resources in folders, in both languages: listed, read, policed, audited and changed like those of servers. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { type Dock, save, startDock } from '../support/dock.ts';
import { waitFor } from '../support/processes.ts';
import { noPython } from '../support/python.ts';
import { answersTo, askedIn, request } from '../support/questions.ts';
import { isWide } from '../support/wide.ts';

const typescript = (greeting: string) => `
import { definePrompt, defineResource, defineTool } from 'toolgate';
import { z } from 'zod';
export const greet = definePrompt({
  title: 'Greet',
  description: 'Greets somebody.',
  arguments: z.object({ name: z.string().describe('Who.'), tone: z.enum(['warm', 'cold']).optional() }),
  complete: { name: (typed) => ['Ann', 'Anton', 'Bob'].filter((one) => one.startsWith(typed)) },
  render: ({ name, tone = 'warm' }) => ['${greeting} ' + name, { role: 'assistant', content: tone }],
});
export const asks = definePrompt({
  description: 'Asks first.',
  render: async (_, ctx) => {
    const asked = await ctx.elicit('Which?', z.object({ word: z.string() }));
    return ctx.agent + ' ' + asked.action;
  },
});
export const fails = definePrompt({ description: 'Fails.', render: () => { throw new Error('no luck'); } });
export const about = defineResource({ uri: 'notes://about', description: 'About.', read: () => 'about notes' });
export const bytes = defineResource({ uri: 'notes://bytes', mimeType: 'image/png', read: () => new Uint8Array([1, 2]) });
export const note = defineResource({
  uriTemplate: 'notes://day/{day}',
  description: 'A day.',
  complete: { day: () => ['monday', 'friday'] },
  read: ({ uri, day }) => ({ uri, day }),
});
export const secret = defineResource({ uri: 'notes://secret', read: () => 'secret' });
export const plain = defineTool({ description: 'Plain.', inputSchema: z.object({}), execute: () => 'plain' });
`;

const python = (greeting: string) => `
from dataclasses import dataclass
from typing import Literal
from fastmcp import Context
from fastmcp.prompts import Message, prompt
from fastmcp.resources import resource
from fastmcp.tools import tool

@prompt(title="Greet")
def greet(name: str, tone: Literal["warm", "cold"] = "warm"):
    """Greets somebody.

    Args:
        name: Who.
    """
    return [Message("${greeting} " + name), Message(tone, role="assistant")]

@dataclass
class Word:
    word: str

@prompt
async def asks(ctx: Context) -> str:
    """Asks first."""
    asked = await ctx.elicit("Which?", Word)
    return f"{ctx.client_id} {asked.action}"

@prompt
def fails() -> str:
    """Fails."""
    raise ValueError("no luck")

@resource("notes://about", description="About.")
def about() -> str:
    return "about notes"

@resource("notes://bytes", mime_type="image/png")
def some_bytes() -> bytes:
    return bytes([1, 2])

@resource("notes://day/{day}", description="A day.", mime_type="application/json")
async def note(day: str, ctx: Context) -> str:
    await ctx.info("reading")
    return '{"uri":"notes://day/' + day + '","day":"' + day + '"}'

@resource("notes://secret")
def secret() -> str:
    return "secret"

@tool
def plain() -> str:
    return "plain"
`;

const files: Record<string, (greeting: string) => string> = { 'ts/all.ts': typescript, 'py/all.py': python };
const languages = Object.keys(files).filter((file) => file.startsWith('ts') || !noPython);

let dock: Dock;

beforeAll(async () => {
  dock = await startDock(Object.fromEntries(languages.map((file) => [file, files[file]!('Hello')])), {
    python: !noPython,
    config: `controls = []
denied_resources = { ts = ["notes://secret"], py = ["notes://secret"] }
[audit]
enabled = true
`,
  });
  for (const file of languages) await dock.until(`${file.slice(0, 2)}_plain`, ({ text }) => text === 'plain', 60_000);
});

describe.each(languages)('a folder (%s)', (file) => {
  const language = file.slice(0, 2);
  const uri = (rest: string) => `${language}_notes://${rest}`;

  it('lists prompts, resources and templates', async () => {
    const { client } = await dock.connect();
    const { prompts } = await client.listPrompts();
    expect(prompts.find(({ name }) => name === `${language}_greet`)).toMatchObject({
      title: 'Greet',
      description: 'Greets somebody.',
      arguments: [
        { name: 'name', description: 'Who.', required: true },
        { name: 'tone', required: false },
      ],
    });
    const { resources } = await client.listResources();
    const own = resources.filter((one) => one.uri.startsWith(`${language}_`)).map((one) => one.uri);
    expect(own.sort()).toEqual([uri('about'), uri('bytes')]);
    const { resourceTemplates } = await client.listResourceTemplates();
    expect(resourceTemplates.map(({ uriTemplate }) => uriTemplate)).toContain(uri('day/{day}'));
  });

  it('renders prompts', async () => {
    const { client } = await dock.connect();
    expect(
      await client.getPrompt({ name: `${language}_greet`, arguments: { name: 'Ann', tone: 'cold' } }),
    ).toMatchObject({
      messages: [
        { role: 'user', content: { type: 'text', text: 'Hello Ann' } },
        { role: 'assistant', content: { type: 'text', text: 'cold' } },
      ],
    });
    await expect(client.getPrompt({ name: `${language}_greet`, arguments: {} })).rejects.toThrow(/name/);
    await expect(client.getPrompt({ name: `${language}_fails` })).rejects.toThrow('no luck');
  });

  it('reads resources and templates', async () => {
    const { client } = await dock.connect();
    const about = await client.readResource({ uri: uri('about') });
    expect(about.contents).toEqual([{ uri: 'notes://about', mimeType: 'text/plain', text: 'about notes' }]);
    const bytes = await client.readResource({ uri: uri('bytes') });
    expect(bytes.contents).toEqual([{ uri: 'notes://bytes', mimeType: 'image/png', blob: 'AQI=' }]);
    const day = await client.readResource({ uri: uri('day/monday') });
    expect(day.contents).toMatchObject([{ uri: 'notes://day/monday', mimeType: 'application/json' }]);
    expect(JSON.parse((day.contents[0] as { text: string }).text)).toEqual({
      uri: 'notes://day/monday',
      day: 'monday',
    });
    await expect(client.readResource({ uri: uri('other') })).rejects.toThrow();
  });

  it('asks during a prompt', async () => {
    const params = { name: `${language}_asks`, arguments: {} };
    const first = await request(dock, 'prompts/get', params);
    expect(askedIn(first)).toEqual(['Which?']);
    const last = await request(dock, 'prompts/get', { ...params, ...answersTo(first) });
    expect(JSON.stringify(last)).toContain('anonymous accept');
  });

  it('hides what the policy denies, and audits the rest', async () => {
    const { client } = await dock.connect();
    await expect(client.readResource({ uri: uri('secret') })).rejects.toThrow();
    await client.readResource({ uri: uri('about') });
    const folder = join(dock.cwd, '.toolgate/logs');
    await waitFor(() => {
      const text = readdirSync(folder)
        .map((name) => readFileSync(join(folder, name), 'utf8'))
        .join('');
      return text.includes('notes://about') && !text.includes('"secret"');
    });
  });

  // A Python worker takes long to start, and how edits reach clients is the gateway's part.
  if (language === 'py' && !isWide) return;

  it('tells clients when an edit changes them', async () => {
    const { client, changes } = await dock.connect();
    const before = changes('prompts');
    save(join(dock.tools, file), files[file]!('Bye').replaceAll('Greets somebody.', 'Says goodbye.'));
    await waitFor(() => changes('prompts') > before, 30_000);
    const { prompts } = await client.listPrompts();
    expect(prompts.find(({ name }) => name === `${language}_greet`)?.description).toBe('Says goodbye.');
    const { messages } = await client.getPrompt({ name: `${language}_greet`, arguments: { name: 'Ann' } });
    expect(messages[0]?.content).toMatchObject({ text: 'Bye Ann' });
  });
});

it('a TypeScript folder proposes values for arguments', async () => {
  const { client } = await dock.connect();
  const ask = async (ref: { type: 'ref/prompt'; name: string } | { type: 'ref/resource'; uri: string }, name: string) =>
    (await client.complete({ ref, argument: { name, value: name === 'tone' ? 'w' : '' } })).completion.values;
  const prompt = { type: 'ref/prompt', name: 'ts_greet' } as const;
  expect(await ask(prompt, 'name')).toEqual(['Ann', 'Anton', 'Bob']);
  expect(await ask(prompt, 'tone')).toEqual(['warm']);
  expect(await ask({ type: 'ref/resource', uri: 'ts_notes://day/{day}' }, 'day')).toEqual(['monday', 'friday']);
});
