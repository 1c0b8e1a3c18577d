/** Resources under URIs that are legal URLs, for clients that refuse others. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { type Client, callText, refusal, resourceUris, templateUris } from '../support/doors.ts';
import { type HttpGateway, startHttp } from '../support/gateway.ts';
import { KEYS } from '../support/modern-offer.ts';
import { type Message, post } from '../support/modern-request.ts';
import { waitFor } from '../support/processes.ts';
import { server, serversToml } from '../support/server.ts';

/** Two clients that are known to parse URIs. Others get the exposed URIs. */
const PARSING = ['mcp', 'mcp-use'];

const config = (style = '') => `${style}
controls = []
denied_resources = { notes = ["note://denied", "secret://*"] }
${serversToml({
  My_c: server('changing'),
  notes: server(
    'basic',
    ...['--name', 'notes', '--resources', 'note://1,note://denied,secret://1,odd_app://x'],
    ...['--templates', 'note://{id},secret://{id}'],
  ),
  '2nd': server('basic', '--name', '2nd', '--resources', 'note://1'),
  w: server('whole-legacy'),
})}`;

const joined = {
  resources: [
    'My_c_changing://first',
    'notes_note://1',
    'notes_odd_app://x',
    '2nd_note://1',
    'w_whole://text',
    'w_whole://binary',
    'w_whole://watched',
  ],
  templates: ['My_c_changing://first/{id}', 'notes_note://{id}', 'w_whole://item/{id}'],
};
const legal = {
  resources: [
    'x.my..c+changing://first',
    'notes+note://1',
    'notes+-:odd_app://x',
    'x2nd+note://1',
    'w+whole://text',
    'w+whole://binary',
    'w+whole://watched',
  ],
  templates: ['x.my..c+changing://first/{id}', 'notes+note://{id}', 'w+whole://item/{id}'],
};

let gateway: HttpGateway;
beforeAll(async () => {
  gateway = await startHttp({ config: config() });
});

async function lists(client: Client) {
  return { resources: await resourceUris(client), templates: await templateUris(client) };
}

const textAt = async (client: Client, uri: string) =>
  ((await client.readResource({ uri })).contents[0] as { text: string }).text;

async function modernList(name: string, method: string): Promise<Message> {
  const response = await post(gateway, method, {}, { meta: { [KEYS.client]: { name, version: '1' } } });
  return (await response.json()) as Message;
}

describe('with uri_style = "auto"', () => {
  it('lists legal URLs for clients that need them, and exposed URIs for all others', async () => {
    for (const name of PARSING) expect(await lists((await gateway.connect({ name })).client)).toEqual(legal);
    for (const name of ['toolgate-test', 'MCP'])
      expect(await lists((await gateway.connect({ name })).client)).toEqual(joined);
    for (const uri of legal.resources) expect(new URL(uri).href).toBe(uri);
  });

  it('decides by request if there is no session', async () => {
    const uris = async (name: string) =>
      ((await modernList(name, 'resources/list')).result!.resources as { uri: string }[]).map(({ uri }) => uri);
    expect(await uris('mcp-use')).toEqual(legal.resources);
    expect(await uris('raw')).toEqual(joined.resources);
    // Only version 2 of the Python SDK speaks this revision, and it accepts every URI.
    expect(await uris('mcp')).toEqual(joined.resources);
  });
});

describe.each(['mcp', 'toolgate-test'])('a client called %s', (name) => {
  it('reads by either form, by URIs made from templates, and by the own URI of one server', async () => {
    const { client } = await gateway.connect({ name });
    for (const [index, uri] of joined.resources.entries())
      expect(await client.readResource({ uri: legal.resources[index]! })).toEqual(await client.readResource({ uri }));
    for (const uri of ['notes_note://7', 'notes+note://7'])
      expect(await textAt(client, uri)).toBe('note://7 from notes');
    expect(await textAt(client, 'x.my..c+changing://first/7')).toBe('changing://first/7 from changing');
    expect(await textAt(client, 'odd_app://x')).toBe('odd_app://x from notes');
    const several = await refusal(client.readResource({ uri: 'note://1' }));
    const [first, second] = name === 'mcp' ? ['notes+note://1', 'x2nd+note://1'] : ['notes_note://1', '2nd_note://1'];
    expect(several.message).toContain(
      `Several servers have "note://1". Read one of these instead: "${first}", "${second}"`,
    );
  });

  it('completes the arguments of a template by either name', async () => {
    const { client } = await gateway.connect({ name });
    for (const uri of ['w_whole://item/{id}', 'w+whole://item/{id}', 'whole://item/{id}']) {
      const ref = { type: 'ref/resource', uri } as const;
      const { completion } = await client.complete({ ref, argument: { name: 'id', value: '7' } });
      expect(completion.values).toEqual(['7', '70']);
    }
  });

  it('is notified of updates by the URI that it subscribed with', async () => {
    const { client, notifications } = await gateway.connect({ name });
    const updated = () =>
      notifications
        .filter(({ method }) => method === 'notifications/resources/updated')
        .map(({ params }) => params?.uri);
    for (const uri of ['x.my..c+changing://first', 'My_c_changing://first']) {
      await client.subscribeResource({ uri });
      await callText(client, 'My_c_touch_resource', { uri: 'changing://first' });
      await waitFor(() => updated().includes(uri));
      await client.unsubscribeResource({ uri });
    }
    expect(updated()).toEqual(['x.my..c+changing://first', 'My_c_changing://first']);
  });

  it('reaches nothing that policy denies, and gets the answer for an unknown URI', async () => {
    const { client } = await gateway.connect({ name });
    const unknown = await refusal(client.readResource({ uri: 'notes+other://1' }));
    for (const own of ['note://denied', 'secret://1', 'secret://2'])
      for (const uri of [`notes_${own}`, `notes+${own}`, `notes+-:${own}`, own]) {
        const denied = await refusal(client.readResource({ uri }));
        expect([denied.code, denied.message.slice(0, 40)]).toEqual([
          unknown.code,
          `MCP error ${unknown.code}: There is no resource "${uri}"`.slice(0, 40),
        ]);
        expect(denied.message).not.toMatch(/Did you mean.*(denied|secret)/);
        await expect(client.subscribeResource({ uri })).rejects.toMatchObject({ code: unknown.code });
      }
    const ref = { type: 'ref/resource', uri: 'notes+secret://{id}' } as const;
    await expect(client.complete({ ref, argument: { name: 'id', value: '' } })).rejects.toThrow('There is no resource');
  });
});

it('follows the configuration, and clients are told that their list has changed', async () => {
  const other = await startHttp({ config: config('uri_style = "join"') });
  const [parsing, plain] = [await other.connect({ name: 'mcp' }), await other.connect()];
  expect(await lists(parsing.client)).toEqual(joined);
  expect(await lists(plain.client)).toEqual(joined);
  writeFileSync(join(other.cwd, 'tools.toml'), config('uri_style = "scheme"'));
  await waitFor(() => parsing.changes('resources') > 0 && plain.changes('resources') > 0);
  expect(await lists(parsing.client)).toEqual(legal);
  expect(await lists(plain.client)).toEqual(legal);
  expect([plain.changes('tools'), plain.changes('prompts')]).toEqual([0, 0]);
});

it('leaves the URIs of a client alone that sees one namespace only', async () => {
  const { client } = await gateway.connect({ name: 'mcp', headers: { 'x-namespace': 'My_c' } });
  expect(await resourceUris(client)).toEqual(['changing://first']);
  expect(await textAt(client, 'x.my..c+changing://first')).toBe('changing://first from changing');
});
