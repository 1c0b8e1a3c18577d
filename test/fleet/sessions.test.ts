/** Sessions of the earlier revisions on two replicas that share a real Redis: every request goes to the other one. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { beforeAll, describe, expect, it } from 'vitest';
import { type HttpGateway, startHttp } from '../support/gateway.ts';
import { openEvents, type SseEvent } from '../support/http-events.ts';
import { isMissing } from '../support/needs.ts';
import { waitFor } from '../support/processes.ts';
import { INITIALIZED, initialize } from '../support/raw-http.ts';
import { type RedisServer, startRedis } from '../support/redis.ts';
import { server, serversToml } from '../support/server.ts';
import { tempFolder } from '../support/temp.ts';

const env = { SECRETS_KEY: 'a key that all replicas have' };
const runs = join(tempFolder(), 'runs');
let redis: RedisServer;
let a: HttpGateway;
let b: HttpGateway;

function config(url: string): string {
  return `controls = ["activate"]\nactive_toolsets = ["c_*"]\n[store]\nurl = "${url}"\ntrust_hints = ["c"]\ndrain_pause = "0s"\n${serversToml(
    {
      c: server('../fleet/counted', '--runs', runs),
      basic: server('basic'),
    },
  )}`;
}

interface Reply {
  readonly status: number;
  readonly id: string | null;
  readonly message: { readonly result?: Record<string, unknown>; readonly error?: { readonly message: string } } | null;
}

async function send(to: HttpGateway, session: string | null, body: object | string): Promise<Reply> {
  const headers: Record<string, string> = session === null ? {} : { 'mcp-session-id': session };
  const response = await to.post(
    typeof body === 'string' ? body : JSON.stringify({ jsonrpc: '2.0', ...body }),
    headers,
  );
  const text = await response.text();
  const data = text.startsWith('{') ? text : (/^data: (\{.*)$/m.exec(text)?.[1] ?? 'null');
  return { status: response.status, id: response.headers.get('mcp-session-id'), message: JSON.parse(data) };
}

/** Opens a session on one replica. */
async function open(at: HttpGateway, capabilities: object = {}): Promise<string> {
  const { id } = await send(at, null, initialize('2025-11-25', capabilities));
  expect((await send(at, id, INITIALIZED)).status).toBe(202);
  return id!;
}

let last = 100;
const call = (name: string, args: object, meta?: object) => ({
  id: ++last,
  method: 'tools/call',
  params: { name, arguments: args, ...(meta !== undefined && { _meta: meta }) },
});
const NONE = { tools_on: [], tools_off: [], resources_on: [], resources_off: [] };
const on = (names: string[]) => call('toolman_activate', { ...NONE, tools_on: names });
const off = (names: string[]) => call('toolman_activate', { ...NONE, tools_off: names });
const textOf = ({ message }: Reply) => (message?.result?.content as { text: string }[] | undefined)?.[0]?.text;
const timesRun = (line: string) =>
  readFileSync(runs, 'utf8')
    .split('\n')
    .filter((one) => one === line).length;

describe.skipIf(isMissing('redis'))('two replicas', () => {
  beforeAll(async () => {
    redis = await startRedis();
    [a, b] = await Promise.all([
      startHttp({ config: config(redis.url), env }),
      startHttp({ config: config(redis.url), env }),
    ]);
  });

  it('serve each other’s sessions, and list the same bytes', async () => {
    const id = await open(a);
    const lists = [
      await send(a, id, { id: 1, method: 'tools/list' }),
      await send(b, id, { id: 1, method: 'tools/list' }),
    ];
    expect(lists[1]).toEqual(lists[0]);
    expect(textOf(await send(b, id, call('c_write', { key: 'one' })))).toBe('one');
    expect((await send(b, 'unknown', { id: 1, method: 'tools/list' })).status).toBe(404);
  });

  it('know at once what a client has switched on another one', async () => {
    const id = await open(a);
    const names = async (at: HttpGateway) => {
      const { message } = await send(at, id, { id: ++last, method: 'tools/list' });
      return (message!.result!.tools as { name: string }[]).map(({ name }) => name);
    };
    expect(await names(b)).not.toContain('basic_echo');
    await send(a, id, on(['basic_echo']));
    expect(await names(b)).toContain('basic_echo');
    await send(b, id, off(['basic_echo']));
    expect(await names(a)).not.toContain('basic_echo');
  });

  it('answer a request that comes twice once, and make its call once', async () => {
    const id = await open(a);
    const body = call('c_write', { key: 'twice', ms: 300 });
    const [first, second] = await Promise.all([send(a, id, body), sleep(50).then(() => send(b, id, body))]);
    expect([textOf(first), textOf(second), textOf(await send(b, id, body))]).toEqual(['twice', 'twice', 'twice']);
    expect(timesRun('write twice')).toBe(1);
  });

  it('continue a stream on another one, after any of its events', async () => {
    const id = await open(a);
    const body = JSON.stringify({
      jsonrpc: '2.0',
      ...call('c_write', { key: 'long', ms: 600, steps: 6 }, { progressToken: 't' }),
    });
    const stream = await openEvents(a, '/mcp', { 'mcp-session-id': id }, body);
    const seen: SseEvent[] = [];
    while (seen.length < 3) seen.push((await stream.next())!);
    stream.drop();
    const rest = await openEvents(b, '/mcp', { 'mcp-session-id': id, 'last-event-id': seen.at(-1)!.id });
    for (let event = await rest.next(); event !== null; event = await rest.next()) seen.push(event);
    const steps = seen.map(({ message }) => (message?.params as { progress?: number } | undefined)?.progress ?? null);
    expect(steps.filter((one) => one !== null)).toEqual([1, 2, 3, 4, 5, 6]);
    expect(seen.at(-1)!.message?.result).toEqual({ content: [{ type: 'text', text: 'long' }] });
  });

  it('pass the answer to a question on to the one that asked', async () => {
    const id = await open(a, { elicitation: {} });
    const stream = await openEvents(
      a,
      '/mcp',
      { 'mcp-session-id': id },
      JSON.stringify({ jsonrpc: '2.0', ...call('c_ask', { key: 'q' }) }),
    );
    let event = await stream.next();
    while (event !== null && event.message?.method !== 'elicitation/create') event = await stream.next();
    await send(b, id, { id: event!.message!.id, result: { action: 'accept', content: { word: 'hello' } } });
    expect((await stream.next())!.message?.result).toEqual({ content: [{ type: 'text', text: 'q hello' }] });
  });

  it('cancel a call that another one makes', async () => {
    const id = await open(a);
    const body = call('c_write', { key: 'stopped', ms: 60_000 });
    const answer = send(a, id, body);
    await waitFor(async () => timesRun('write stopped') === 1);
    await send(b, id, { method: 'notifications/cancelled', params: { requestId: body.id } });
    expect((await answer).message).toBeNull();
  });

  it('end a session together', async () => {
    const id = await open(a);
    expect((await send(b, id, { id: 1, method: 'ping' })).status).toBe(200);
    const ended = await fetch(b.url, { method: 'DELETE', headers: { 'mcp-session-id': id } });
    expect(ended.status).toBe(204);
    expect((await send(a, id, { id: 2, method: 'ping' })).status).toBe(404);
  });

  it('send a notification to the stream that is open on another one', async () => {
    const id = await open(a);
    await send(b, id, { id: ++last, method: 'tools/list' });
    const stream = await openEvents(a, '/mcp', { 'mcp-session-id': id });
    await send(b, id, on(['basic_echo']));
    expect((await stream.next())!.message?.method).toBe('notifications/tools/list_changed');
    stream.drop();
    await send(b, id, off(['basic_echo']));
    const again = await openEvents(b, '/mcp', { 'mcp-session-id': id });
    expect((await again.next())!.message?.method).toBe('notifications/tools/list_changed');
    await sleep(100);
    expect(again.waiting).toBe(0);
  });

  it('take up another configuration one after the other, without a failed call, and list the same bytes again', async () => {
    const id = await open(a);
    const names = async (at: HttpGateway) =>
      JSON.stringify((await send(at, id, { id: 1, method: 'tools/list' })).message);
    const before = await names(a);
    let isOver = false;
    const calling = (async () => {
      const texts: (string | undefined)[] = [];
      for (let n = 0; !isOver; n++)
        texts.push(textOf(await send(n % 2 === 0 ? a : b, id, call('c_write', { key: 'same', ms: 20 }))));
      return texts;
    })();
    const next = `${config(redis.url).replace('["c_*"]', '["c_*", "more_*"]')}\n${serversToml({ more: server('basic') })}`;
    for (const one of [a, b]) {
      writeFileSync(join(one.cwd, 'tools.toml'), next);
      await waitFor(async () => (await names(one)).includes('more_echo'));
    }
    a.signal('SIGHUP');
    expect(await names(b)).toBe(await names(a));
    expect(await names(a)).not.toBe(before);
    isOver = true;
    expect(new Set(await calling)).toEqual(new Set(['same']));
  });

  it('refuse sessions while the store is away, and keep them', async () => {
    const id = await open(a);
    await redis.kill();
    await waitFor(async () => (await send(b, id, { id: 1, method: 'ping' })).status === 503);
    const refused = await b.post('{"jsonrpc":"2.0","id":3,"method":"ping"}', { 'mcp-session-id': id });
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '1']);
    await redis.start();
    await waitFor(async () => (await send(b, id, { id: 4, method: 'ping' })).status === 200);
  });
});
