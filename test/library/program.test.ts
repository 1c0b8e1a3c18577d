/** `gateway.call` and `gateway.view`: the gateway as the program around it uses it. */
import { beforeAll, describe, expect, expectTypeOf, it } from 'vitest';
import {
  configFromValue,
  type ErrorCode,
  type Gateway,
  GatewayError,
  RelayedError,
  type ToolCallResult,
} from '../../src/index.ts';
import { atEnd } from '../support/cleanup.ts';
import { createGateway } from '../support/in-process-gateway.ts';
import { waitFor } from '../support/processes.ts';
import { serverEntry } from '../support/server.ts';
import { tempFolder } from '../support/temp.ts';

let gateway: Gateway;

beforeAll(async () => {
  const config = {
    mcpServers: {
      basic: serverEntry('basic', '--resources', 'a://1', '--prompts', 'ask'),
      slow: serverEntry('hang'),
      mute: serverEntry('hang', '--without', 'tools/call'),
    },
    agent_policies: { guest: { tool_overrides: { basic: ['echo'] } } },
    default_policy: { allow_unknown_tools: false },
  };
  gateway = createGateway(configFromValue(config, { cwd: tempFolder(), env: {} }));
  atEnd(() => gateway.close());
});

describe('gateway.view', () => {
  it('has everything for the operator, once the servers are up', async () => {
    const { tools, resources, resourceTemplates, prompts } = await gateway.view();
    expect(tools.map(({ name }) => name)).toEqual(expect.arrayContaining(['basic_echo', 'slow_slow']));
    expect(tools.find(({ name }) => name === 'basic_echo')!.inputSchema).toMatchObject({ type: 'object' });
    expect([resources.length, resourceTemplates.length, prompts.length]).toEqual([1, 0, 1]);
  });

  it('has what an agent may use', async () => {
    const { tools } = await gateway.view({ agent: 'guest' });
    const theirs = tools.map(({ name }) => name).filter((name) => !name.startsWith('toolman_'));
    expect(theirs).toEqual(['basic_echo']);
  });
});

describe('gateway.call', () => {
  it('returns the result as a value', async () => {
    const result = await gateway.call('basic_echo', { text: 'hello' });
    expectTypeOf(result).toEqualTypeOf<ToolCallResult>();
    const [first] = result.content;
    expect(first?.type === 'text' && first.text).toContain('hello');
  });

  it('types the structured content if the program knows its type', async () => {
    const call = gateway.call<{ sum: number }>('basic_echo', {});
    expectTypeOf(call).resolves.toHaveProperty('structuredContent').toEqualTypeOf<{ sum: number } | undefined>();
    await call;
  });

  it('applies the policy of an agent', async () => {
    const call = gateway.call('slow_slow', { ms: 1 }, { agent: 'guest' });
    const error = await call.then(
      () => null,
      (failure: unknown) => failure,
    );
    expect(error).toBeInstanceOf(GatewayError);
    expect((error as GatewayError).code).toBe('item_unknown' satisfies ErrorCode);
  });

  it('does not throw if the tool itself reports that it failed', async () => {
    const result = await gateway.call('basic_raw', { json: '{"content":[],"isError":true}' });
    expect(result.isError).toBe(true);
  });

  it('throws the error of a server unchanged', async () => {
    const error = await gateway.call('mute_ok').catch((failure: unknown) => failure);
    expect(error).toBeInstanceOf(RelayedError);
    expect((error as RelayedError).error).toMatchObject({ code: -32601 });
    await expect(gateway.call('nowhere', {})).rejects.toMatchObject({ code: 'item_unknown' });
  });

  it('reports progress, and is cancelled by a signal', async () => {
    const seen: number[] = [];
    await gateway.call('slow_slow', { ms: 20, steps: 3 }, { onProgress: ({ progress }) => seen.push(progress) });
    expect(seen).toEqual([1, 2, 3]);
    const abort = new AbortController();
    const call = gateway.call('slow_hang', { tag: 'taken back' }, { signal: abort.signal });
    setImmediate(() => abort.abort());
    await expect(call).rejects.toMatchObject({ code: 'cancelled' });
    await waitFor(async () => JSON.stringify(await gateway.call('slow_cancelled')).includes('taken back'));
    await expect(gateway.call('basic_echo', {}, { signal: abort.signal })).rejects.toMatchObject({ code: 'cancelled' });
  });

  it('goes through middleware', async () => {
    const remove = gateway.use(async ({ agent }, next) => ({ ...(await next()).value, _meta: { agent } }));
    atEnd(remove);
    expect((await gateway.call('basic_echo', {}, { agent: 'guest' }))._meta).toEqual({ agent: 'guest' });
  });
});
