/** Lists, reading what they contain, and their changes. */
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'vitest';
import { waitFor } from '../../support/processes.ts';
import type { MatrixClient } from '../clients.ts';
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
/** The name or URI of an item for clients. */
const exposed = (name: string) => `${NAMESPACE}_${name}`;

/** Of the shared server, not of the one that each session has for itself. */
async function ownTools({ client }: MatrixClient): Promise<{ name: string }[]> {
  return (await client.listTools()).tools.filter(({ name }) => name.startsWith(exposed('')));
}

export async function toolsList(subject: MatrixClient): Promise<void> {
  const tools = await ownTools(subject);
  expect(tools.map(({ name }) => name)).toEqual(TOOLS.map(exposed));
  expect(tools[0]).toEqual({
    name: exposed('echo'),
    title: 'Echo',
    description: 'Gives its arguments back',
    annotations: { readOnlyHint: true },
    inputSchema: { type: 'object' },
  });
}

export async function resourcesList(subject: MatrixClient): Promise<void> {
  const { resources } = await subject.client.listResources();
  expect(resources).toEqual([
    { uri: exposed('whole://text'), name: 'text', mimeType: 'text/plain' },
    { uri: exposed('whole://binary'), name: 'binary', mimeType: 'application/octet-stream' },
    { uri: exposed('whole://watched'), name: 'watched' },
  ]);
}

export async function resourcesRead(subject: MatrixClient): Promise<void> {
  const read = async (uri: string) => (await subject.client.readResource({ uri: exposed(uri) })).contents;
  expect(await read('whole://text')).toEqual([
    { uri: 'whole://text', mimeType: 'text/plain', text: 'text of whole://text' },
  ]);
  const blob = Buffer.from([0, 1, 2, 253, 254, 255]).toString('base64');
  expect(await read('whole://binary')).toEqual([{ uri: 'whole://binary', mimeType: 'application/octet-stream', blob }]);
}

export async function templates(subject: MatrixClient): Promise<void> {
  const { resourceTemplates } = await subject.client.listResourceTemplates();
  expect(resourceTemplates).toMatchObject([{ uriTemplate: exposed('whole://item/{id}'), mimeType: 'text/plain' }]);
  const { contents } = await subject.client.readResource({ uri: exposed('whole://item/7') });
  expect(contents).toEqual([{ uri: 'whole://item/7', mimeType: 'text/plain', text: 'item 7' }]);
}

export async function subscription(subject: MatrixClient): Promise<void> {
  const uri = 'whole://watched';
  const known = exposed(uri);
  const from = subject.notifications.length;
  const heard = () =>
    subject.notifications
      .slice(from)
      .flatMap(({ method, params }) => (method === 'notifications/resources/updated' ? [params?.uri] : []));
  const touch = (which: string) => subject.call('touch', { uri: which });
  const stop = await subject.listen(known);
  // Over HTTP the next request may overtake the subscription.
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

export async function promptsList(subject: MatrixClient): Promise<void> {
  const { prompts } = await listPage(subject);
  expect(prompts.slice(0, 2)).toEqual([
    { name: exposed('plain'), description: 'Takes no arguments' },
    { name: exposed('greet'), description: 'Greets', arguments: [{ name: 'name', required: true }] },
  ]);
}

export async function promptsGet(subject: MatrixClient): Promise<void> {
  const got = await subject.client.getPrompt({ name: exposed('greet'), arguments: { name: 'Zoë' } });
  expect(got).toMatchObject({
    description: 'greet',
    messages: [{ role: 'user', content: { type: 'text', text: 'Hello, Zoë!' } }],
  });
}

export async function completion(subject: MatrixClient): Promise<void> {
  const ofPrompt = await subject.client.complete({
    ref: { type: 'ref/prompt', name: exposed('greet') },
    argument: { name: 'name', value: 'Par' },
  });
  expect(ofPrompt.completion).toEqual({ values: ['Paris', 'Parma'], total: 2, hasMore: false });
  const ofTemplate = await subject.client.complete({
    ref: { type: 'ref/resource', uri: exposed('whole://item/{id}') },
    argument: { name: 'id', value: '7' },
  });
  expect(ofTemplate.completion).toEqual({ values: ['7', '70'], total: 2, hasMore: false });
}

type List = 'tools' | 'resources' | 'prompts';

const listings: Readonly<Record<List, (subject: MatrixClient) => Promise<string[]>>> = {
  tools: async (subject) => (await ownTools(subject)).map(({ name }) => name),
  resources: async ({ client }) => (await client.listResources()).resources.map(({ uri }) => uri),
  prompts: async (subject) => (await allPages(subject)).flat(),
};
const extras: Readonly<Record<List, string>> = {
  tools: exposed('extra'),
  resources: exposed('whole://extra'),
  prompts: exposed('extra'),
};

export function listChanged(list: List): (subject: MatrixClient) => Promise<void> {
  return async (subject) => {
    const count = () =>
      subject.notifications.filter(({ method }) => method === `notifications/${list}/list_changed`).length;
    const before = await listings[list](subject);
    for (const there of [true, false]) {
      const told = count();
      expect(await callJson(subject, 'toggle', { list })).toBe(there);
      await waitFor(() => count() === told + 1);
      expect(await listings[list](subject)).toEqual(there ? [...before, extras[list]] : before);
    }
  };
}

/** The server returns 60 items in pages of 25. */
export async function serverPages(subject: MatrixClient): Promise<void> {
  expect((await allPages(subject)).flat()).toEqual(PROMPTS.map(exposed));
}

export async function clientPages(subject: MatrixClient): Promise<void> {
  const pages = await allPages(subject);
  expect(pages.map(({ length }) => length)).toEqual([PAGE, PROMPTS.length - PAGE]);
  await expect(listPage(subject, 'none of ours')).rejects.toMatchObject({ code: -32_602 });
}

interface Page {
  readonly prompts: readonly { readonly name: string }[];
  readonly nextCursor?: string;
}

async function listPage(subject: MatrixClient, cursor?: string): Promise<Page> {
  return (await subject.request('prompts/list', cursor === undefined ? {} : { cursor })) as unknown as Page;
}

async function allPages(subject: MatrixClient): Promise<string[][]> {
  const pages: string[][] = [];
  let cursor: string | undefined;
  do {
    const { prompts, nextCursor } = await listPage(subject, cursor);
    pages.push(prompts.map(({ name }) => name));
    cursor = nextCursor;
  } while (cursor !== undefined && pages.length < 10);
  return pages;
}

export async function instructions(subject: MatrixClient): Promise<void> {
  const text = subject.client.getInstructions() ?? '';
  expect(text).toContain('Ask the whole server for anything.');
  expect(text.slice(0, text.indexOf('Ask the whole'))).toContain(NAMESPACE);
}
