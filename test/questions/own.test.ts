/** Servers with `share = "session"`: each client gets its own connection. */
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { describe, expect, it } from 'vitest';
import { type HttpGateway, startHttp, startStdio } from '../support/gateway.ts';
import { killServer } from '../support/in-process-server.ts';
import { textOf } from '../support/modern-servers.ts';
import { waitFor } from '../support/processes.ts';
import { ABLE, callModern, jsonOf, openLegacy, request } from '../support/questions.ts';
import { replaceFile } from '../support/running-gateway.ts';
import { server } from '../support/server.ts';
import { tempFolder } from '../support/temp.ts';
import { configOf, OVER, placeOf, startPersonal } from './personal.ts';

interface Whoami {
  readonly pid: number;
  readonly connection: number;
  readonly capabilities: object;
}

const call = async (client: Client, name: string, args: Record<string, unknown> = {}) =>
  textOf(await client.callTool({ name, arguments: args }));
const who = async (client: Client) => JSON.parse(await call(client, 'whoami')) as Whoami;
const modern = async (gateway: HttpGateway, name: string, args: object = {}) =>
  (await callModern(gateway, name, args)).result?.content?.[0]?.text;

describe.each(OVER)('a server over %s with share = "session"', (over) => {
  it('separates clients with sessions, and uses one connection per agent for stateless clients', async () => {
    const { gateway, place } = await startPersonal(over);
    expect(await place.count()).toBe(1);
    const [one, two] = await Promise.all([gateway.connect(), gateway.connect()]);
    await one.client.listTools();
    expect(await place.count()).toBe(1);
    await call(one.client, 'remember', { word: 'first' });
    await call(two.client, 'remember', { word: 'second' });
    await modern(gateway, 'remember', { word: 'third' });
    expect([await call(one.client, 'recall'), await call(two.client, 'recall')]).toEqual(['first', 'second']);
    expect(await modern(gateway, 'recall')).toBe('third');
    expect(await place.count()).toBe(4);
    // Resources and prompts use the own connection too.
    const { contents } = await one.client.readResource({ uri: 'personal://it' });
    expect(contents).toMatchObject([{ text: 'first' }]);
    const { messages } = await two.client.getPrompt({ name: 'word' });
    expect(messages).toMatchObject([{ content: { text: 'second' } }]);
    const read = await request(gateway, 'resources/read', { uri: 'personal://it' });
    expect(read.result).toMatchObject({ contents: [{ text: 'third' }] });
    expect(await place.count()).toBe(4);
  });

  it('closes the connection of a client with its session, and all others with the gateway', async () => {
    const { gateway, place } = await startPersonal(over);
    const [one, two] = await Promise.all([gateway.connect(), gateway.connect()]);
    await Promise.all([call(one.client, 'recall'), call(two.client, 'recall')]);
    expect(await place.count()).toBe(3);
    await one.transport.terminateSession();
    await waitFor(async () => (await place.count()) === 2);
    expect(await call(two.client, 'recall')).toBe('');
    await gateway.stop();
    await waitFor(async () => (await place.count()) === 0);
  });

  it('closes the connection of a client that disconnects in the middle of a call', async () => {
    const place = await placeOf(over);
    const pipe = await startStdio({ config: configOf(place), capabilities: ABLE });
    await call(pipe.client, 'recall');
    const open = pipe.client.callTool({ name: 'withdraw', arguments: { ms: 60_000 } });
    open.catch(() => {});
    await waitFor(async () => (await place.count()) === 2);
    pipe.stdin.end();
    await waitFor(async () => (await place.count()) === 0);
  });

  it('closes all connections on a reload that removes the server', async () => {
    const { gateway, place } = await startPersonal(over);
    const { client } = await gateway.connect();
    await call(client, 'recall');
    expect(await place.count()).toBe(2);
    const other = `controls = []\n[[servers]]\nnamespace = ""\ncommand = ${JSON.stringify(server('basic'))}\n`;
    replaceFile(gateway.cwd, other);
    await waitFor(async () => (await place.count()) === 0);
  });

  it('closes an idle connection, and reopens it for the next call', async () => {
    const { gateway, place } = await startPersonal(over, 'share = "session"\nidle_stop = "300ms"\n');
    const { client } = await gateway.connect();
    await call(client, 'remember', { word: 'gone' });
    await waitFor(async () => (await place.count()) === 0);
    expect(await call(client, 'recall')).toBe('');
    // Only the connection of the client is reopened. Nothing needs the other one.
    expect(await place.count()).toBe(1);
  });

  it('notifies only the client whose resource has changed', async () => {
    const { gateway, place } = await startPersonal(over);
    const clients = await Promise.all([gateway.connect(), gateway.connect()]);
    for (const { client } of clients) await client.subscribeResource({ uri: 'personal://it' });
    expect(await place.count()).toBe(3);
    expect(await call(clients[0]!.client, 'touch')).toBe('true');
    const updates = () =>
      clients.map(({ notifications }) => notifications.filter(({ method }) => method.endsWith('updated')).length);
    await waitFor(() => updates()[0] === 1);
    await clients[0]!.client.unsubscribeResource({ uri: 'personal://it' });
    expect(await call(clients[0]!.client, 'touch')).toBe('false');
    await call(clients[1]!.client, 'touch');
    await waitFor(() => updates()[1] === 1);
    expect(updates()).toEqual([1, 1]);
  });
});

describe('the own connection of a client to a server', () => {
  it('declares exactly the capabilities of its client', async () => {
    const { gateway } = await startPersonal('stdio');
    const able = await gateway.connect({ capabilities: { roots: { listChanged: true }, sampling: {} } });
    expect((await who(able.client)).capabilities).toEqual({ roots: { listChanged: true }, sampling: {} });
    expect((await who((await gateway.connect()).client)).capabilities).toEqual({});
    const whoami = JSON.parse((await modern(gateway, 'whoami'))!) as Whoami;
    expect(Object.keys(whoami.capabilities).sort()).toEqual(['elicitation', 'roots', 'sampling']);
  });

  it('is reopened by the next call after it died, without affecting other clients', async () => {
    const { gateway, place } = await startPersonal('stdio');
    const [one, two] = await Promise.all([gateway.connect(), gateway.connect()]);
    const before = [await who(one.client), await who(two.client)];
    expect((await one.client.callTool({ name: 'die' })).isError).toBe(true);
    const after = [await who(one.client), await who(two.client)];
    expect(after[0]!.pid).not.toBe(before[0]!.pid);
    expect(after[1]!.pid).toBe(before[1]!.pid);
    expect(await place.count()).toBe(3);
  });

  it('is reopened for subscriptions after a call failed to open it', async () => {
    const place = await placeOf('stdio');
    const refusing = join(tempFolder(), 'refusing');
    const command = JSON.parse(place.toml.replace('command = ', '')) as string;
    const toml = `command = ${JSON.stringify(`test -e ${refusing} && exit 1; exec ${command}`)}\n`;
    const gateway = await startHttp({ config: configOf({ ...place, toml }) });
    const { client } = await gateway.connect();
    await client.subscribeResource({ uri: 'personal://it' });
    const { pid } = await who(client);
    writeFileSync(refusing, '');
    killServer(pid);
    await waitFor(async () => (await place.count()) === 1);
    // The call replaces the next reconnection attempt, and fails.
    await waitFor(async () => (await client.callTool({ name: 'whoami' })).isError === true);
    rmSync(refusing);
    await waitFor(async () => (await place.count()) === 2);
    expect(await call(client, 'touch')).toBe('true');
  });

  it('is reopened for subscriptions after it died, without a call', async () => {
    const { gateway, place } = await startPersonal('stdio');
    const { client, notifications } = await gateway.connect();
    await client.subscribeResource({ uri: 'personal://it' });
    const { pid } = await who(client);
    killServer(pid);
    await waitFor(async () => (await place.count()) === 1);
    await waitFor(async () => (await place.count()) === 2);
    expect(await call(client, 'touch')).toBe('true');
    await waitFor(() => notifications.some(({ method }) => method === 'notifications/resources/updated'));
    expect((await who(client)).pid).not.toBe(pid);
    expect(await place.count()).toBe(2);
  });

  it('is opened once for concurrent calls', async () => {
    const { gateway, place } = await startPersonal('stdio');
    const { client } = await gateway.connect();
    const all = await Promise.all(Array.from({ length: 5 }, () => who(client)));
    expect(new Set(all.map(({ pid }) => pid)).size).toBe(1);
    expect(await place.count()).toBe(2);
  });

  it('is opened without starting a lazy server for its lists', async () => {
    const { gateway, place } = await startPersonal('stdio');
    await (await gateway.connect()).client.listTools();
    await gateway.stop();
    const config = configOf(place, 'share = "session"\nstart = "lazy"\n');
    const later = await startHttp({ config, cwd: gateway.cwd });
    const { client } = await later.connect();
    expect(await place.count()).toBe(0);
    expect(await call(client, 'recall')).toBe('');
    expect(await place.count()).toBe(1);
    // From then on the capabilities of the server are known.
    await client.subscribeResource({ uri: 'personal://it' });
    expect(await call(client, 'touch')).toBe('true');
    expect(await place.count()).toBe(1);
  });

  it('reports why it cannot be opened', async () => {
    const place = await placeOf('stdio');
    const broken = `sh -c 'test -e broken && exit 3; exec ${/command = "(.*)"/.exec(place.toml)![1]}'`;
    const toml = `command = ${JSON.stringify(broken)}\n`;
    const gateway = await startHttp({ config: configOf({ ...place, toml }) });
    const { client } = await gateway.connect();
    writeFileSync(join(gateway.cwd, 'broken'), '');
    const { content, isError } = await client.callTool({ name: 'recall' });
    expect([isError, JSON.stringify(content)]).toEqual([true, expect.stringContaining('exited with code 3')]);
    expect((await client.listTools()).tools.length).toBeGreaterThan(0);
  });

  it('is not idle while its user is visiting a URL', async () => {
    const { gateway } = await startPersonal('stdio', 'share = "session"\nidle_stop = "300ms"\n');
    const { client, notifications } = await gateway.connect({ capabilities: { elicitation: { url: {} } } });
    client.setRequestHandler(ElicitRequestSchema, () => ({ action: 'accept' }));
    await call(client, 'url', { id: 'far' });
    // From now on it is not idle. Before, a busy machine may have taken longer than `idle_stop`.
    const { pid } = await who(client);
    await sleep(1000);
    expect((await who(client)).pid).toBe(pid);
    await call(client, 'finish', { id: 'far' });
    await waitFor(() => notifications.some(({ method }) => method === 'notifications/elicitation/complete'));
    await sleep(1000);
    expect((await who(client)).pid).not.toBe(pid);
  });

  it('can have several open questions at once, each with its own answer', async () => {
    const { gateway } = await startPersonal('stdio');
    const one = await openLegacy(gateway, async (message) => {
      await sleep(100);
      return { action: 'accept', content: { word: message } };
    });
    const words = ['a', 'b', 'c'];
    const answers = await Promise.all(words.map((word) => one.client.callTool({ name: 'ask', arguments: { word } })));
    expect(answers.map(jsonOf)).toEqual(words.map((word) => ({ action: 'accept', content: { word } })));
  });
});

it('changing share replaces the server', async () => {
  const { gateway, place } = await startPersonal('stdio', '');
  const { client } = await gateway.connect();
  await call(client, 'remember', { word: 'shared' });
  replaceFile(gateway.cwd, configOf(place));
  await waitFor(async () => (await call(client, 'recall')) === '');
  await waitFor(async () => (await place.count()) === 2);
});
