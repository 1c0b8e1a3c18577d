/** What is listed, what can be read of it, and changes of it. */
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'vitest';
import { waitFor } from '../../support/processes.ts';
import type { Guest } from '../guests.ts';
import { NAMESPACE, PAGE } from '../servers.ts';
import { callJson, QUIET } from './calls.ts';

const TOOLS = [
  'echo',
  'add',
  'fail',
  'refuse',
  'steps',
  'wait',
  'aborted',
  'speak',
  'late',
  'touch',
  'toggle',
  'job',
  'ask_form',
  'ask_url',
  'ask_model',
  'ask_roots',
  'ask_much',
];
const PROMPTS = ['plain', 'greet', ...Array.from({ length: 58 }, (_, n) => `number_${n}`)];
/** What clients call an item, by its name or its URI. */
const exposed = (name: string) => `${NAMESPACE}_${name}`;

/** Of the one server, not of the other that each session has to itself. */
async function ownTools({ client }: Guest): Promise<{ name: string }[]> {
  return (await client.listTools()).tools.filter(({ name }) => name.startsWith(exposed('')));
}

export async function toolsList(guest: Guest): Promise<void> {
  const tools = await ownTools(guest);
  expect(tools.map(({ name }) => name)).toEqual(TOOLS.map(exposed));
  expect(tools[0]).toEqual({
    name: exposed('echo'),
    title: 'Echo',
    description: 'Gives its arguments back',
    annotations: { readOnlyHint: true },
    inputSchema: { type: 'object' },
  });
}

export async function resourcesList(guest: Guest): Promise<void> {
  const { resources } = await guest.client.listResources();
  expect(resources).toEqual([
    { uri: exposed('whole://text'), name: 'text', mimeType: 'text/plain' },
    { uri: exposed('whole://binary'), name: 'binary', mimeType: 'application/octet-stream' },
    { uri: exposed('whole://watched'), name: 'watched' },
  ]);
}

export async function resourcesRead(guest: Guest): Promise<void> {
  const read = async (uri: string) => (await guest.client.readResource({ uri: exposed(uri) })).contents;
  expect(await read('whole://text')).toEqual([
    { uri: 'whole://text', mimeType: 'text/plain', text: 'text of whole://text' },
  ]);
  const blob = Buffer.from([0, 1, 2, 253, 254, 255]).toString('base64');
  expect(await read('whole://binary')).toEqual([{ uri: 'whole://binary', mimeType: 'application/octet-stream', blob }]);
}

export async function templates(guest: Guest): Promise<void> {
  const { resourceTemplates } = await guest.client.listResourceTemplates();
  expect(resourceTemplates).toMatchObject([{ uriTemplate: exposed('whole://item/{id}'), mimeType: 'text/plain' }]);
  const { contents } = await guest.client.readResource({ uri: exposed('whole://item/7') });
  expect(contents).toEqual([{ uri: 'whole://item/7', mimeType: 'text/plain', text: 'item 7' }]);
}

export async function subscription(guest: Guest): Promise<void> {
  const uri = 'whole://watched';
  const known = exposed(uri);
  const from = guest.notifications.length;
  const heard = () =>
    guest.notifications
      .slice(from)
      .flatMap(({ method, params }) => (method === 'notifications/resources/updated' ? [params?.uri] : []));
  const touch = (which: string) => guest.call('touch', { uri: which });
  const stop = await guest.listen(known);
  // What a modern server is asked next may overtake, over HTTP, what it is to tell of.
  await sleep(QUIET);
  await touch(uri);
  await touch('whole://text');
  await touch(uri);
  await waitFor(() => heard().length >= 2);
  await stop();
  await sleep(QUIET);
  await touch(uri);
  await sleep(QUIET);
  expect(heard()).toEqual([known, known]);
}

export async function promptsList(guest: Guest): Promise<void> {
  const { prompts } = await listPage(guest);
  expect(prompts.slice(0, 2)).toEqual([
    { name: exposed('plain'), description: 'Takes no arguments' },
    { name: exposed('greet'), description: 'Greets', arguments: [{ name: 'name', required: true }] },
  ]);
}

export async function promptsGet(guest: Guest): Promise<void> {
  const got = await guest.client.getPrompt({ name: exposed('greet'), arguments: { name: 'Zoë' } });
  expect(got).toMatchObject({
    description: 'greet',
    messages: [{ role: 'user', content: { type: 'text', text: 'Hello, Zoë!' } }],
  });
}

export async function completion(guest: Guest): Promise<void> {
  const ofPrompt = await guest.client.complete({
    ref: { type: 'ref/prompt', name: exposed('greet') },
    argument: { name: 'name', value: 'Par' },
  });
  expect(ofPrompt.completion).toEqual({ values: ['Paris', 'Parma'], total: 2, hasMore: false });
  const ofTemplate = await guest.client.complete({
    ref: { type: 'ref/resource', uri: exposed('whole://item/{id}') },
    argument: { name: 'id', value: '7' },
  });
  expect(ofTemplate.completion).toEqual({ values: ['7', '70'], total: 2, hasMore: false });
}

type List = 'tools' | 'resources' | 'prompts';

const listings: Readonly<Record<List, (guest: Guest) => Promise<string[]>>> = {
  tools: async (guest) => (await ownTools(guest)).map(({ name }) => name),
  resources: async ({ client }) => (await client.listResources()).resources.map(({ uri }) => uri),
  prompts: async (guest) => (await allPages(guest)).flat(),
};
const extras: Readonly<Record<List, string>> = {
  tools: exposed('extra'),
  resources: exposed('whole://extra'),
  prompts: exposed('extra'),
};

export function listChanged(list: List): (guest: Guest) => Promise<void> {
  return async (guest) => {
    const count = () =>
      guest.notifications.filter(({ method }) => method === `notifications/${list}/list_changed`).length;
    const before = await listings[list](guest);
    for (const there of [true, false]) {
      const told = count();
      expect(await callJson(guest, 'toggle', { list })).toBe(there);
      await waitFor(() => count() === told + 1);
      expect(await listings[list](guest)).toEqual(there ? [...before, extras[list]] : before);
    }
  };
}

/** The server gives 25 at a time, of 60. */
export async function serverPages(guest: Guest): Promise<void> {
  expect((await allPages(guest)).flat()).toEqual(PROMPTS.map(exposed));
}

export async function clientPages(guest: Guest): Promise<void> {
  const pages = await allPages(guest);
  expect(pages.map(({ length }) => length)).toEqual([PAGE, PROMPTS.length - PAGE]);
  await expect(listPage(guest, 'none of ours')).rejects.toMatchObject({ code: -32_602 });
}

interface Page {
  readonly prompts: readonly { readonly name: string }[];
  readonly nextCursor?: string;
}

async function listPage(guest: Guest, cursor?: string): Promise<Page> {
  return (await guest.request('prompts/list', cursor === undefined ? {} : { cursor })) as unknown as Page;
}

async function allPages(guest: Guest): Promise<string[][]> {
  const pages: string[][] = [];
  let cursor: string | undefined;
  do {
    const { prompts, nextCursor } = await listPage(guest, cursor);
    pages.push(prompts.map(({ name }) => name));
    cursor = nextCursor;
  } while (cursor !== undefined && pages.length < 10);
  return pages;
}

export async function instructions(guest: Guest): Promise<void> {
  const text = guest.client.getInstructions() ?? '';
  expect(text).toContain('Ask the whole server for anything.');
  expect(text.slice(0, text.indexOf('Ask the whole'))).toContain(NAMESPACE);
}
