/** The answer of an activation comes when the client has its new list, if it is a client that lists again. */
import type { Client as SdkClient } from '@modelcontextprotocol/sdk/client/index.js';
import { type JSONRPCMessage, ToolListChangedNotificationSchema } from '@modelcontextprotocol/sdk/types.js';
import { describe, expect, it } from 'vitest';
import { connectHttp, connectSse } from '../support/connection.ts';
import { activate, allDoors, type Client, type Door, enter, isModern, type ToolResult } from '../support/doors.ts';
import { startHttp, startStdio } from '../support/gateway.ts';
import { callsInFlight } from '../support/in-flight.ts';
import { useUsualListWait } from '../support/list-wait.ts';
import { connectNamed } from '../support/named-client.ts';
import { basic, open, openPipes } from '../support/open-gateway.ts';
import { server, serversToml } from '../support/server.ts';

useUsualListWait();

const config = serversToml({ git: server('basic', '--name', 'git') });
const LISTS = { tools_on: ['git_echo'], tools_off: [], resources_on: [], resources_off: [] };

/** What the answers are about, in order of arrival: `list`, `answer` of an activation, or `other`. */
function answersIn(messages: readonly JSONRPCMessage[]): string[] {
  return messages.flatMap((message) => {
    if (!('result' in message)) return [];
    if ('tools' in message.result) return ['list'];
    return ['content' in message.result ? 'answer' : 'other'];
  });
}

const lastTexts = (messages: readonly JSONRPCMessage[]): string[] => {
  const last = messages.findLast((message) => 'result' in message && 'content' in message.result);
  return (last as unknown as { result: ToolResult }).result.content.map(({ text }) => text);
};

/** From now on the client lists again when it is told to. */
function follow(client: SdkClient, listed: () => void = () => {}): void {
  client.setNotificationHandler(ToolListChangedNotificationSchema, async () => {
    await client.listTools();
    listed();
  });
}

describe('a client that lists again', () => {
  it.each(allDoors)('has its new list when it gets the answer, over %s', async (door: Door) => {
    const { client, messages } = await enter(door, { config });
    if (isModern(door)) {
      const modern = client as unknown as { setNotificationHandler(method: string, handle: () => unknown): void };
      modern.setNotificationHandler('notifications/tools/list_changed', () => client.listTools());
    } else follow(client as unknown as SdkClient);
    await client.listTools();
    const before = messages.length;
    const { content } = await activate(client, { tools_on: ['git_echo'] });
    expect(answersIn(messages.slice(before))).toEqual(['list', 'answer']);
    expect(content).toHaveLength(1);
  });

  it('has it over HTTP+SSE', async () => {
    const { origin } = await startHttp({ config });
    const { client, messages } = await connectSse(`${origin}/sse`);
    follow(client);
    await client.listTools();
    const before = messages.length;
    await activate(client as unknown as Client, { tools_on: ['git_echo'] });
    expect(answersIn(messages.slice(before))).toEqual(['list', 'answer']);
  });

  it('has all pages of it, and the tools of a toolset that it equips', async () => {
    const { gateway } = await open(
      { git: basic('--tools', 'a,b,c') },
      { controls: ['equip'], limits: { page: 3 }, toolsets: { all: { tools: ['git.*'] } } },
    );
    const { client, messages } = await connectNamed(gateway, 'a client of my own');
    const listAll = async () => {
      let cursor: string | undefined;
      do cursor = (await client.listTools(cursor === undefined ? {} : { cursor })).nextCursor;
      while (cursor !== undefined);
    };
    client.setNotificationHandler(ToolListChangedNotificationSchema, listAll);
    await listAll();
    const before = messages.length;
    await client.callTool({ name: 'equip-toolset', arguments: { name: 'all' } });
    const answers = answersIn(messages.slice(before));
    expect(answers.length).toBeGreaterThan(3);
    expect(answers.indexOf('answer')).toBe(answers.length - 1);
  });

  it('gets every one of several answers after a list that has its change', async () => {
    const { gateway } = await open({ git: basic('--tools', 'a,b,c') }, { controls: ['activate'] });
    const { client, messages } = await connectNamed(gateway, 'claude-code');
    follow(client);
    await client.listTools();
    const before = messages.length;
    const names = ['git_a', 'git_b', 'git_c'];
    await Promise.all(names.map((name) => activate(client as unknown as Client, { tools_on: [name] })));
    let listed: string[] = [];
    let answered = 0;
    for (const message of messages.slice(before)) {
      if (!('result' in message)) continue;
      if ('tools' in message.result) listed = (message.result.tools as { name: string }[]).map(({ name }) => name);
      else expect(listed, `answer ${answered}`).toContain(names[answered++]);
    }
    expect(answered).toBe(3);
  });
});

describe('a client that does not list again', () => {
  /** Whether the activation is answered before a request that was sent after it. */
  async function isAtOnce({ client, messages }: Awaited<ReturnType<typeof connectNamed>>, on: string) {
    const before = messages.length;
    const activation = activate(client as unknown as Client, { tools_on: [on] });
    await Promise.all([activation, client.ping()]);
    return answersIn(messages.slice(before))[0] === 'answer';
  }

  it('is waited for once if nobody knows it, and is told how to call', async () => {
    const { gateway } = await open({ git: basic('--tools', 'a,b') }, { controls: ['activate'] });
    const guest = await connectNamed(gateway, 'a client of my own');
    await guest.client.listTools();
    expect(await isAtOnce(guest, 'git_a')).toBe(false);
    const [confirmation, advice] = lastTexts(guest.messages);
    expect(confirmation).toMatch(/^Activated 1 /);
    expect(advice).toMatch(/^If your list of tools does not show them, use toolman_call: \{"name": "git_a"/);
    expect(await isAtOnce(guest, 'git_b')).toBe(true);
    expect(lastTexts(guest.messages)[1]).toContain('"git_b"');
    // It lists by hand, and its list is what it would be without the advice.
    const { tools } = await guest.client.listTools();
    expect(tools.map(({ name }) => name)).toEqual(['toolman_activate', 'git_a', 'git_b']);
    expect(await isAtOnce(guest, 'git_b')).toBe(true);
    expect(lastTexts(guest.messages)).toHaveLength(1);
  });

  it('is not waited for if it is known, and learns what the tools take', async () => {
    const { gateway } = await open({ git: basic(), hang: basic('--tools', 'x') }, { controls: ['activate'] });
    const guest = await connectNamed(gateway, 'codex-mcp-client');
    await guest.client.listTools();
    expect(await isAtOnce(guest, 'git_echo')).toBe(true);
    expect(lastTexts(guest.messages)[1]).toBe(
      'Your list of tools does not show them. Call them with toolman_call: {"name": "…", "arguments": {…}}. They take:\n' +
        'git_echo() - Gives its arguments back as JSON text',
    );
    // Asked for the same again, it is told the same again.
    expect(await isAtOnce(guest, 'git_echo')).toBe(true);
    expect(lastTexts(guest.messages)[1]).toContain('git_echo()');
    expect(await isAtOnce(guest, 'git_*')).toBe(true);
    expect(lastTexts(guest.messages)[1]!.split('\n').slice(1)).toHaveLength(3);
  });

  it('is not waited for if it cannot be told, or if nothing has changed for it', async () => {
    const { gateway } = await open({ git: basic('--tools', 'a,b') }, { controls: ['activate'] });
    const modern = await openPipes(gateway, 'modern');
    await modern.ask('tools/list', {});
    const before = modern.lines.length;
    const activation = modern.ask('tools/call', {
      name: 'toolman_activate',
      arguments: { ...LISTS, tools_on: ['git_a'] },
    });
    await Promise.all([activation, modern.ask('prompts/list', {})]);
    expect(modern.lines.slice(before).map(({ result }) => Object.keys(result!).includes('content'))).toEqual([
      true,
      false,
    ]);
    const early = await connectNamed(gateway, 'claude-code');
    expect(await isAtOnce(early, 'git_a'), 'it has not listed yet').toBe(true);
    await early.client.listTools();
    expect(await isAtOnce(early, 'git_a'), 'it is active already').toBe(true);
  });
});

describe('an activation that waits', () => {
  it('ends with its client, or when it is cancelled', async () => {
    const { gateway, url } = await open({ git: basic('--tools', 'a,b') }, { controls: ['activate'] });
    const { client } = await connectHttp(url);
    await client.listTools();
    const cancel = new AbortController();
    const params = { name: 'toolman_activate', arguments: { ...LISTS, tools_on: ['git_a'] } };
    const cancelled = client.callTool(params, undefined, { signal: cancel.signal });
    cancelled.catch(() => {});
    await callsInFlight(gateway);
    cancel.abort('enough');
    await expect(cancelled).rejects.toThrow('enough');
    await callsInFlight(gateway, 0);
    // The wait that was cut short has shown nothing about the client.
    const closed = client.callTool({ ...params, arguments: { ...LISTS, tools_on: ['git_b'] } });
    closed.catch(() => {});
    await callsInFlight(gateway);
    await client.close();
    await callsInFlight(gateway, 0);
  });

  it('does not keep a gateway from ending', async () => {
    const stdio = await startStdio({ config });
    await stdio.client.listTools();
    const answered = stdio.client.callTool({ name: 'toolman_activate', arguments: LISTS });
    answered.catch(() => {});
    const { code } = await stdio.stop('stdin');
    expect(code).toBe(0);
    const http = await startHttp({ config });
    const { client } = await http.connect();
    await client.listTools();
    client.callTool({ name: 'toolman_activate', arguments: LISTS }).catch(() => {});
    await callsInFlight(http);
    expect((await http.stop('SIGTERM')).code).toBe(0);
  });
});
