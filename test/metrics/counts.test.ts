/** Each call is counted once, by outcome, for every client and door. */
import { describe, expect, it } from 'vitest';
import { openLocalDoor } from '../../src/index.ts';
import { connectHttp, connectSse } from '../support/connection.ts';
import { callsInFlight } from '../support/in-flight.ts';
import { killServer } from '../support/in-process-server.ts';
import { connectModernHttp } from '../support/modern.ts';
import { basic, figuresOf, hanging, type Opened, open, openPipes, outcomesOf } from '../support/open-gateway.ts';
import { waitFor } from '../support/processes.ts';
import { serverEntry } from '../support/server.ts';

const TOOL_ERROR = { json: '{"content":[{"type":"text","text":"no"}],"isError":true}' };
/** Without arguments the fixture answers with a protocol error. */
const NOTHING = {};

interface Client {
  call(name: string, args?: object): Promise<unknown>;
  /** A call that is cancelled once it has been sent to its server. */
  cancel(name: string): Promise<void>;
}

interface SdkClient {
  callTool(params: { name: string; arguments: Record<string, unknown> }, ...more: never[]): Promise<unknown>;
}

function ofSdk({ gateway }: Opened, client: SdkClient, withOptions: (options: object) => unknown[]): Client {
  const call = (name: string, args: object = {}, ...more: unknown[]) =>
    client.callTool({ name, arguments: args as Record<string, unknown> }, ...(more as never[]));
  return {
    call,
    async cancel(name) {
      const abort = new AbortController();
      const called = call(name, {}, ...withOptions({ signal: abort.signal })).catch(() => {});
      await callsInFlight(gateway);
      abort.abort();
      await called;
    },
  };
}

const doors = {
  'a client with a session': async (opened) =>
    ofSdk(opened, (await connectHttp(opened.url)).client, (options) => [undefined, options]),
  'a client without a session': async (opened) =>
    ofSdk(opened, (await connectModernHttp(opened.url)).client as unknown as SdkClient, (options) => [options]),
  'a client of HTTP+SSE': async (opened) =>
    ofSdk(opened, (await connectSse(`${opened.origin}/sse`)).client, (options) => [undefined, options]),
  'a client with a session on stdio': ({ gateway }) => onPipes(gateway, 'legacy'),
  'a client without a session on stdio': ({ gateway }) => onPipes(gateway, 'modern'),
  'a client of REST': async ({ origin, gateway }) => {
    const call = (name: string, args: object = {}, signal: AbortSignal | null = null) =>
      fetch(`${origin}/tools/${name}`, {
        method: 'POST',
        body: JSON.stringify(args),
        headers: { 'content-type': 'application/json' },
        signal,
      });
    return {
      call,
      async cancel(name) {
        const abort = new AbortController();
        const called = call(name, {}, abort.signal).catch(() => {});
        await callsInFlight(gateway);
        abort.abort();
        await called;
      },
    };
  },
  'a program': async ({ gateway }) => {
    const door = openLocalDoor(gateway);
    return {
      call: (name, args = {}) => door.callTool(name, args),
      async cancel(name) {
        const abort = new AbortController();
        const called = door.callTool(name, {}, { signal: abort.signal }).catch(() => {});
        await callsInFlight(gateway);
        abort.abort();
        await called;
      },
    };
  },
} satisfies Record<string, (opened: Opened) => Promise<Client>>;

async function onPipes(gateway: Parameters<typeof openPipes>[0], era: 'legacy' | 'modern'): Promise<Client> {
  const { ask, send } = await openPipes(gateway, era);
  let count = era === 'legacy' ? 1 : 0;
  const call = (name: string, args: object = {}) => {
    count++;
    return ask('tools/call', { name, arguments: args });
  };
  return {
    call,
    async cancel(name) {
      void call(name);
      await callsInFlight(gateway);
      send({ method: 'notifications/cancelled', params: { requestId: count } });
    },
  };
}

describe.each(Object.entries(doors))('the metrics for calls of %s', (_, connect) => {
  it('count each call once, by outcome', async () => {
    const opened = await open({ a: basic(), h: { ...hanging, timeout: 300 }, slow: hanging });
    const { gateway } = opened;
    const client = await connect(opened);
    for (let i = 0; i < 5; i++) await client.call('a_echo', { i });
    await client.call('a_raw', TOOL_ERROR);
    await client.call('a_raw', NOTHING).catch(() => {});
    await client.call('a_nowhere').catch(() => {});
    await client.call('h_hang').catch(() => {});
    await client.cancel('slow_hang');
    await waitFor(() => gateway.metrics.inFlight === 0);
    expect(outcomesOf(gateway, 'a', 'echo')).toEqual({ ok: 5 });
    expect(outcomesOf(gateway, 'a', 'raw')).toEqual({ tool_error: 1, error: 1 });
    expect(outcomesOf(gateway, 'h', 'hang')).toEqual({ timeout: 1 });
    expect(outcomesOf(gateway, 'slow', 'hang')).toEqual({ cancelled: 1 });
    expect(gateway.metrics.refused).toBe(1);
    expect(gateway.metrics.entries()).toHaveLength(4);
    const { p50, p99 } = figuresOf(gateway, 'h', 'hang');
    expect(p50).toBeGreaterThan(270);
    // Without the timeout the call would never end.
    expect(p99).toBeLessThan(5_000);
    expect(figuresOf(gateway, 'slow', 'hang').p50).toBeNull();
  });
});

describe('call metrics', () => {
  it('include modern servers', async () => {
    const { gateway, url } = await open({ m: serverEntry('modern', '--era', 'modern') });
    const legacy = await connectHttp(url);
    const modern = await connectModernHttp(url);
    await legacy.client.callTool({ name: 'm_echo', arguments: {} });
    await modern.client.callTool({ name: 'm_echo', arguments: {} });
    await modern.client.callTool({ name: 'm_steps', arguments: { count: 'three' } }).catch(() => {});
    expect(outcomesOf(gateway, 'm', 'echo')).toEqual({ ok: 2 });
    expect(outcomesOf(gateway, 'm', 'steps')).toEqual({ tool_error: 1 });
  });

  it('are labelled with the listed prompt, resource or template, not with the requested URI', async () => {
    const { gateway, url } = await open({
      a: basic('--prompts', 'p', '--resources', 'x://one', '--templates', 'x://page/{n}'),
    });
    const { client } = await connectHttp(url);
    await client.getPrompt({ name: 'a_p' });
    await client.readResource({ uri: 'x://one' });
    for (let n = 0; n < 3; n++) await client.readResource({ uri: `x://page/${n}` });
    expect(outcomesOf(gateway, 'a', 'p', 'prompt')).toEqual({ ok: 1 });
    expect(outcomesOf(gateway, 'a', 'x://one', 'resource')).toEqual({ ok: 1 });
    expect(outcomesOf(gateway, 'a', 'x://page/{n}', 'resource')).toEqual({ ok: 3 });
    expect(gateway.metrics.entries()).toHaveLength(3);
  });

  it('show running calls, and calls to a server that was down', async () => {
    const { gateway, url } = await open({ slow: hanging });
    const { client } = await connectHttp(url);
    const called = client.callTool({ name: 'slow_hang', arguments: {} }).catch(() => {});
    await waitFor(() => gateway.metrics.inFlight === 1);
    killServer(gateway.statuses()[0]!.pid!);
    await called;
    expect(outcomesOf(gateway, 'slow', 'hang')).toEqual({ failed: 1 });
    expect(gateway.metrics.inFlight).toBe(0);
  });

  it('count a call that waits for its client once', async () => {
    const { gateway, url } = await open({ q: serverEntry('asking') });
    const { client } = await connectModernHttp(url, {}, { elicitation: { form: {} } });
    client.setRequestHandler('elicitation/create', () => ({ action: 'accept', content: { word: 'yes' } }));
    await client.callTool({ name: 'q_ask', arguments: { questions: 2 } });
    expect(outcomesOf(gateway, 'q', 'ask')).toEqual({ ok: 1 });
  });

  it('are bounded: beyond a thousand items, calls are counted together', async () => {
    const tools = Array.from({ length: 1_003 }, (_, i) => `t${i}`);
    const { gateway } = await open({ a: { ...basic('--tools', tools.join(',')), queue: 1_003 } });
    const door = openLocalDoor(gateway);
    await Promise.all(tools.map((name) => door.callTool(`a_${name}`, {})));
    const entries = gateway.metrics.entries();
    expect(entries).toHaveLength(1_001);
    expect(entries.at(-1)).toMatchObject({ server: '', name: '', kind: 'tool', calls: 3 });
  });

  it('distinguish a fast tool from a slow one', async () => {
    const { gateway } = await open({ h: hanging });
    const door = openLocalDoor(gateway);
    for (let i = 0; i < 20; i++) await door.callTool('h_ok', {});
    for (let i = 0; i < 3; i++) await door.callTool('h_slow', { ms: 200 });
    expect(figuresOf(gateway, 'h', 'ok').p50).toBeLessThan(50);
    expect(figuresOf(gateway, 'h', 'slow').p50).toBeGreaterThan(180);
    expect(figuresOf(gateway, 'h', 'slow').p50).toBeLessThan(400);
  });
});
