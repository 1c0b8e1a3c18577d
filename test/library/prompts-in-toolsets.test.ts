/** Prompts and resources in toolsets of a program: they come and go with the toolset. */
import { expect, it } from 'vitest';
import { z } from 'zod';
import { definePrompt, defineResource, defineTool } from '../../src/index.ts';
import { connectHttp } from '../support/connection.ts';
import { waitFor } from '../support/processes.ts';
import { startServer } from './support.ts';

const greet = definePrompt({
  name: 'greet',
  description: 'Greets somebody.',
  arguments: { name: z.string(), tone: z.enum(['warm', 'cold']).optional() },
  render: ({ name, tone = 'warm' }, { clientId }) => `${tone} greetings from ${clientId} to ${name}`,
});
const note = defineResource({
  name: 'note',
  uriTemplate: 'notes://{day}/{+path}',
  read: ({ day, path }) => `${day} ${path}`,
});
const about = defineResource({ name: 'about', uri: 'notes://about', read: () => ({ about: 'notes' }) });
const plain = defineTool({ name: 'plain', description: 'Plain.', inputSchema: z.object({}), execute: () => 'plain' });

const catalog = {
  notes: {
    name: 'Notes',
    description: 'Notes.',
    tools: [plain],
    prompts: [greet],
    resources: [about],
    modules: ['more'],
  },
};
const moduleLoaders = { more: () => [note] };

it('are listed and used while their toolset is switched on', async () => {
  const server = await startServer({ catalog, moduleLoaders });
  const { client, changes } = await connectHttp(server.url, { 'mcp-client-id': 'ann' });
  expect((await client.listPrompts()).prompts).toEqual([]);
  expect((await client.listResources()).resources).toEqual([]);
  await client.callTool({ name: 'enable_toolset', arguments: { name: 'notes' } });
  await waitFor(() => changes('prompts') === 1 && changes('resources') === 1);
  const { prompts } = await client.listPrompts();
  expect(prompts).toMatchObject([
    { name: 'notes.greet', arguments: [{ name: 'name', required: true }, { name: 'tone' }] },
  ]);
  const { messages } = await client.getPrompt({ name: 'notes.greet', arguments: { name: 'Bob' } });
  expect(messages).toEqual([{ role: 'user', content: { type: 'text', text: 'warm greetings from ann to Bob' } }]);
  await expect(client.getPrompt({ name: 'notes.greet', arguments: { name: 'Bob', tone: 'loud' } })).rejects.toThrow(
    'tone',
  );

  const { resources } = await client.listResources();
  const read = async (uri: string) => (await client.readResource({ uri })).contents[0];
  expect(await read(resources[0]!.uri)).toMatchObject({ mimeType: 'application/json', text: '{"about":"notes"}' });
  const { resourceTemplates } = await client.listResourceTemplates();
  const uri = resourceTemplates[0]!.uriTemplate.replace('{day}', 'friday').replace('{+path}', 'a/b%20c');
  expect(await read(uri)).toMatchObject({ text: 'friday a/b c' });

  const { completion } = await client.complete({
    ref: { type: 'ref/prompt', name: 'notes.greet' },
    argument: { name: 'tone', value: 'c' },
  });
  expect(completion.values).toEqual(['cold']);
  await client.callTool({ name: 'disable_toolset', arguments: { name: 'notes' } });
  expect((await client.listPrompts()).prompts).toEqual([]);
  await expect(client.getPrompt({ name: 'notes.greet', arguments: { name: 'Bob' } })).rejects.toThrow();
});

it('are checked before they are served', async () => {
  const broken = { ...note, uriTemplate: 'notes://{day}{path}' };
  const server = await startServer({
    catalog: { notes: { name: 'Notes', description: 'Notes.', modules: ['more'] } },
    moduleLoaders: { more: () => [broken] },
  });
  const { client } = await connectHttp(server.url, { 'mcp-client-id': 'ann' });
  const { content } = await client.callTool({ name: 'enable_toolset', arguments: { name: 'notes' } });
  expect(JSON.stringify(content)).toContain('has nothing between {path} and the variable before it');
});
