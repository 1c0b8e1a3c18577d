/** Middleware: functions around calls that see each call and may change it or answer it, without other side effects. */
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import {
  type CallResult,
  type EventMap,
  GatewayError,
  type Middleware,
  type MiddlewareCall,
  openLocalDoor,
  RelayedError,
} from '../../src/index.ts';
import { connectHttp } from '../support/connection.ts';
import { connectModernHttp } from '../support/modern.ts';
import { basic, hanging, open, openPipes, outcomesOf } from '../support/open-gateway.ts';
import { waitFor } from '../support/processes.ts';
import { serverEntry } from '../support/server.ts';

interface Result {
  readonly content: { readonly text: string }[];
  readonly isError?: boolean;
}

/** Calls by clients of both eras, over HTTP, on stdio and in process. */
const clients = {
  'with a session': async ({ url }) => {
    const { client } = await connectHttp(url);
    return async (name, args) => (await client.callTool({ name, arguments: args })) as Result;
  },
  'without a session': async ({ url }) => {
    const { client } = await connectModernHttp(url);
    return async (name, args) => (await client.callTool({ name, arguments: args })) as Result;
  },
  'on stdio with a session': async ({ gateway }) => {
    const { ask } = await openPipes(gateway, 'legacy');
    return async (name, args) => (await ask('tools/call', { name, arguments: args })).result as unknown as Result;
  },
  'on stdio without a session': async ({ gateway }) => {
    const { ask } = await openPipes(gateway, 'modern');
    return async (name, args) => (await ask('tools/call', { name, arguments: args })).result as unknown as Result;
  },
} satisfies Record<
  string,
  (
    opened: Awaited<ReturnType<typeof open>>,
  ) => Promise<(name: string, args: Record<string, unknown>) => Promise<Result>>
>;

const servers = { legacy: basic(), modern: serverEntry('modern', '--era', 'modern') };
const pairs = Object.entries(clients).flatMap(([who, connect]) =>
  Object.keys(servers).map((server) => [who, server, connect] as const),
);

const withText = (text: string) => ({ content: [{ type: 'text', text }] });
const failing = (error: unknown): Middleware => {
  return () => {
    throw error;
  };
};

describe.each(pairs)('middleware between a client %s and a %s server', (_, server, connect) => {
  it('runs in order, the first one outermost, and can change arguments and results', async () => {
    const opened = await open({ s: servers[server as keyof typeof servers] });
    const call = await connect(opened);
    const order: string[] = [];
    const seen: unknown[] = [];
    const note =
      (name: string): Middleware =>
      async (one, next) => {
        order.push(`${name} in`);
        seen.push(one.arguments);
        const result = await next({ ...(one.arguments as object), [name]: 'é' });
        order.push(`${name} out`);
        return result;
      };
    opened.gateway.use(note('a'));
    const remove = opened.gateway.use(note('b'));
    expect(JSON.parse((await call('s_echo', { x: 1 })).content[0]!.text)).toEqual({ x: 1, a: 'é', b: 'é' });
    expect(order).toEqual(['a in', 'b in', 'b out', 'a out']);
    expect(seen).toEqual([{ x: 1 }, { x: 1, a: 'é' }]);
    remove();
    remove();
    expect(JSON.parse((await call('s_echo', { x: 2 })).content[0]!.text)).toEqual({ x: 2, a: 'é' });

    opened.gateway.use(async (_, next) => ({ ...(await next()).value, ...withText('changed') }));
    expect(await call('s_echo', {})).toMatchObject(withText('changed'));
    opened.gateway.use(() => withText('instead'));
    expect(await call('s_echo', {})).toMatchObject(withText('changed'));
    expect(outcomesOf(opened.gateway, 's', 'echo')).toEqual({ ok: 3 });
  });

  it('reports its errors as those of Toolgate, and unexpected ones without details', async () => {
    const opened = await open({ s: servers[server as keyof typeof servers] });
    const call = await connect(opened);
    const failures: EventMap['failure'][] = [];
    opened.gateway.events.listen((name, event) => {
      if (name === 'failure') failures.push(event as EventMap['failure']);
    });
    const errorOf = async () => {
      const { content, isError } = await call('s_echo', {});
      expect(isError).toBe(true);
      return JSON.parse(content[0]!.text) as { code: string; message: string };
    };
    const remove = opened.gateway.use(failing(new GatewayError('forbidden', 'Not today.')));
    expect(await errorOf()).toMatchObject({ code: 'forbidden', message: 'Not today.' });
    expect(failures).toEqual([]);
    remove();
    for (const broken of [failing(new Error('secret detail')), () => undefined as never]) {
      const remove = opened.gateway.use(broken);
      const error = await errorOf();
      expect(error.code).toBe('internal');
      expect(error.message).not.toContain('secret');
      remove();
    }
    expect(failures.map(({ error }) => (error as Error).message)).toEqual([
      'secret detail',
      expect.stringContaining('returned no result'),
    ]);
  });
});

describe('middleware', () => {
  it('sees the caller, kind and name of every call', async () => {
    const flags = ['--name', 'b', '--prompts', 'p', '--resources', 'x://one', '--templates', 'x://page/{n}'];
    const { gateway, url } = await open({ a: basic(...flags) }, { controls: ['activate'], active_toolsets: ['*'] });
    const seen: Pick<MiddlewareCall, 'agent' | 'kind' | 'name' | 'server' | 'upstreamName' | 'arguments'>[] = [];
    gateway.use((call, next) => {
      const { agent, kind, name, server, upstreamName } = call;
      seen.push({ agent, kind, name, server, upstreamName, arguments: call.arguments });
      return next();
    });
    const { client } = await connectHttp(url);
    await client.callTool({ name: 'a_echo', arguments: { x: 1 } });
    await client.callTool({ name: 'a_echo' });
    await client.getPrompt({ name: 'a_p', arguments: { topic: 't' } });
    await client.readResource({ uri: 'x://page/7' });
    await client.complete({ ref: { type: 'ref/prompt', name: 'a_p' }, argument: { name: 'topic', value: 'v' } });
    const lists = { tools_on: [], tools_off: [], resources_on: [], resources_off: [] };
    await client.callTool({ name: 'toolman_activate', arguments: lists });
    const a = { agent: 'anonymous', server: 'a' };
    expect(seen).toEqual([
      { ...a, kind: 'tool', name: 'a_echo', upstreamName: 'echo', arguments: { x: 1 } },
      { ...a, kind: 'tool', name: 'a_echo', upstreamName: 'echo', arguments: undefined },
      { ...a, kind: 'prompt', name: 'a_p', upstreamName: 'p', arguments: { topic: 't' } },
      { ...a, kind: 'resource', name: 'x://page/7', upstreamName: 'x://page/7', arguments: undefined },
      { ...a, kind: 'completion', name: 'a_p', upstreamName: 'p', arguments: { name: 'topic', value: 'v' } },
      {
        agent: 'anonymous',
        kind: 'tool',
        name: 'toolman_activate',
        server: 'toolgate',
        upstreamName: 'toolman_activate',
        arguments: lists,
      },
    ]);
  });

  it('passes on unchanged parts byte for byte', async () => {
    const { gateway } = await open({ a: basic() });
    const json = '{ "content":[], "n" : 9007199254740993, "f":1.0 }';
    const door = openLocalDoor(gateway);
    let given: CallResult | null = null;
    gateway.use(async (_, next) => {
      given = await next();
      return given;
    });
    expect((await door.callTool('a_raw', { json })).toString()).toBe(json);
    expect(given!.bytes.toString()).toBe(json);
    expect(given!.value).toMatchObject({ f: 1 });
  });

  it('can add arguments to a call without any, to prompts and completions, but not to resources', async () => {
    const { gateway, url } = await open({
      a: basic('--prompts', 'p', '--resources', 'x://one'),
      m: serverEntry('modern', '--era', 'modern'),
    });
    gateway.use((call, next) => next(call.kind === 'completion' ? { name: 'topic', value: 'new' } : { topic: 'new' }));
    const { client } = await connectHttp(url);
    expect(await client.callTool({ name: 'a_echo' })).toEqual(withText('{"topic":"new"}'));
    expect(await client.callTool({ name: 'm_echo' })).toMatchObject(withText('{"topic":"new"}'));
    for (const args of [{ topic: 'old' }, undefined]) {
      const prompt = await client.getPrompt({ name: 'a_p', arguments: args });
      expect(JSON.stringify(prompt)).toContain('p from basic {\\"topic\\":\\"new\\"}');
    }
    const ref = { type: 'ref/prompt' as const, name: 'a_p' };
    expect(await client.complete({ argument: { name: 'topic', value: 'old' }, ref })).toMatchObject({ completion: {} });
    await expect(client.readResource({ uri: 'x://one' })).rejects.toThrow('without arguments');
  });

  it('sees errors of servers, which pass on unchanged or can be answered', async () => {
    const { gateway, url } = await open({ a: basic() });
    const { client } = await connectHttp(url);
    const errors: unknown[] = [];
    const call = () => client.callTool({ name: 'a_raw', arguments: {} });
    const plain = await call().catch((error: unknown) => error);
    const remove = gateway.use((_, next) =>
      next().catch((error: unknown) => {
        errors.push(error);
        throw error;
      }),
    );
    expect(await call().catch((error: unknown) => error)).toEqual(plain);
    expect(errors).toEqual([expect.any(RelayedError)]);
    remove();
    gateway.use((_, next) => next().catch(() => withText('instead')));
    expect(await call()).toEqual(withText('instead'));
    gateway.use(failing(new RelayedError({ code: -32050, message: 'mine' })));
    expect(await call()).toEqual(withText('instead'));
  });

  it('runs outside of limits: a call that either refuses is counted once', async () => {
    const { gateway, url } = await open({ a: { ...basic(), tools: { echo: { rate: '1/h' } } } });
    const errors: unknown[] = [];
    gateway.use(async (call, next) => {
      if (call.upstreamName === 'raw') throw new GatewayError('forbidden', 'Not that one.');
      return next().catch((error: GatewayError) => {
        errors.push(error.code);
        throw error;
      });
    });
    const { client } = await connectHttp(url);
    for (const name of ['a_echo', 'a_echo', 'a_raw']) await client.callTool({ name, arguments: {} });
    expect(errors).toEqual(['rate_limited']);
    expect(Object.fromEntries(gateway.metrics.refusals)).toEqual({ rate_limited: 1, forbidden: 1 });
    expect(gateway.metrics.refused).toBe(2);
    expect(outcomesOf(gateway, 'a', 'echo')).toEqual({ ok: 1 });
  });

  it('can call next only once', async () => {
    const { gateway, url } = await open({ a: basic() });
    const { client } = await connectHttp(url);
    const twice: unknown[] = [];
    gateway.use(async (_, next) => {
      const result = await next();
      await next().catch((error: Error) => twice.push(error.message));
      return result;
    });
    await client.callTool({ name: 'a_echo', arguments: {} });
    expect(twice).toEqual([expect.stringContaining('twice')]);
    expect(outcomesOf(gateway, 'a', 'echo')).toEqual({ ok: 1 });
  });

  it('can answer before the server does, and the server call is then cancelled', async () => {
    const { gateway, url } = await open({ h: hanging });
    const { client } = await connectHttp(url);
    const remove = gateway.use((_, next) => Promise.race([next(), sleep(100, withText('enough'))]));
    expect(await client.callTool({ name: 'h_hang', arguments: { tag: 't' } })).toEqual(withText('enough'));
    remove();
    const cancelled = (await client.callTool({ name: 'h_cancelled', arguments: {} })) as Result;
    expect(JSON.parse(cancelled.content[0]!.text)).toMatchObject([{ tag: 't' }]);
    expect(outcomesOf(gateway, 'h', 'hang')).toEqual({ cancelled: 1 });
  });

  it.each(['legacy', 'modern'] as const)('is told when a %s client cancels a call', async (era) => {
    const { gateway, url } = await open({ h: hanging });
    const heard: string[] = [];
    let late: Promise<unknown> | null = null;
    let isReached = false;
    gateway.use(async (call, next) => {
      if (call.upstreamName === 'cancelled') return next();
      const { signal } = call;
      signal.addEventListener('abort', () => heard.push((signal.reason as GatewayError).code));
      if (call.upstreamName === 'ok') {
        isReached = true;
        await new Promise((resolve) => signal.addEventListener('abort', resolve));
        late = next().catch((error: GatewayError) => error.code);
      }
      return next().catch((error: GatewayError) => {
        heard.push(error.code);
        throw error;
      });
    });
    const connected = era === 'legacy' ? await connectHttp(url) : await connectModernHttp(url);
    const client = connected.client as Awaited<ReturnType<typeof connectModernHttp>>['client'];
    const cancelling = async (name: string, args: Record<string, unknown>, reached: () => unknown) => {
      const abort = new AbortController();
      const { signal } = abort;
      const more = (era === 'legacy' ? [undefined, { signal }] : [{ signal }]) as [{ signal: AbortSignal }];
      const called = expect(client.callTool({ name, arguments: args }, ...more)).rejects.toThrow();
      await waitFor(() => reached() === true);
      abort.abort();
      await called;
    };
    await cancelling('h_hang', { tag: 't' }, () => gateway.metrics.inFlight === 1);
    await waitFor(() => heard.length === 2);
    expect(heard).toEqual(['cancelled', 'cancelled']);
    const cancelled = (await client.callTool({ name: 'h_cancelled', arguments: {} })) as Result;
    expect(JSON.parse(cancelled.content[0]!.text)).toMatchObject([{ tag: 't' }]);
    // A call that is cancelled before it was sent is not sent.
    await cancelling('h_ok', {}, () => isReached);
    await waitFor(() => late !== null);
    expect(await late).toBe('cancelled');
    expect(gateway.metrics.entries().map(({ name }) => name)).not.toContain('ok');
    expect(gateway.metrics.inFlight).toBe(0);
  });

  it.each(['h_slow', 'm_steps'])('does not delay progress: %s', async (name) => {
    const { gateway, url } = await open({ h: hanging, m: serverEntry('modern', '--era', 'modern') });
    gateway.use(async (_, next) => {
      await sleep(5);
      const result = await next();
      await sleep(20);
      return result;
    });
    const progress: number[] = [];
    const onprogress = (told: { progress: number }) => progress.push(told.progress);
    const args = { ms: 60, steps: 3, count: 3 };
    const legacy = await connectHttp(url);
    await legacy.client.callTool({ name, arguments: args }, undefined, { onprogress });
    const modern = await connectModernHttp(url);
    await modern.client.callTool({ name, arguments: args }, { onprogress });
    expect(progress).toEqual([1, 2, 3, 1, 2, 3]);
  });

  it.each([
    ['asking', 'ask', { action: 'accept', content: { word: 'yes' } }],
    ['asking-modern', 'visit', { action: 'accept' }],
  ] as const)('lets questions of servers through: %s', async (fixture, tool, accepted) => {
    const { gateway, url } = await open({ q: serverEntry(fixture) });
    let calls = 0;
    gateway.use(async (_, next) => {
      calls++;
      return next();
    });
    const capabilities = { elicitation: { form: {}, url: {} } };
    const { ElicitRequestSchema } = await import('@modelcontextprotocol/sdk/types.js');
    const legacy = await connectHttp(url, {}, capabilities);
    legacy.client.setRequestHandler(ElicitRequestSchema, () => accepted);
    const modern = await connectModernHttp(url, {}, capabilities);
    modern.client.setRequestHandler('elicitation/create', () => accepted);
    for (const { client } of [legacy, modern]) {
      const result = (await client.callTool({ name: `q_${tool}`, arguments: {} })) as Result;
      expect(result.isError).toBeFalsy();
      expect(result.content[0]!.text).toContain('accept');
    }
    // A modern server is called again with the answer, and each of these is a call.
    expect(calls).toBe(fixture === 'asking' ? 2 : 4);
  });
});
