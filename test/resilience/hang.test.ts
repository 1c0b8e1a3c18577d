/** Calls that take too long or are cancelled: the caller and the server are both told at once. */
import { join } from 'node:path';
import type { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { describe, expect, it } from 'vitest';
import { startHttp, startStdio } from '../support/gateway.ts';
import { callsInFlight } from '../support/in-flight.ts';
import { waitFor } from '../support/processes.ts';
import { callError, callText, received, timed, toml, toolNames } from '../support/running-gateway.ts';
import { server, startHttpServer } from '../support/server.ts';
import { tempFolder } from '../support/temp.ts';

const doors = ['stdio', 'http'] as const;

async function open(door: (typeof doors)[number], config: string) {
  return door === 'stdio' ? startStdio({ config }) : (await startHttp({ config })).connect();
}

describe('timeout', () => {
  it.each(doors)(
    'ends a call with a clear error, cancels it at the server, and affects no other call, over %s',
    async (door) => {
      const hang = { namespace: 'h', command: server('hang'), timeout: '500ms' };
      const { client } = await open(door, toml([hang]));
      const quick = callText(client, 'h_slow', { ms: 50, tag: 'quick' });
      const { value, ms } = await timed(callError(client, 'h_hang', { tag: 'mine' }));
      expect(value).toMatchObject({ code: 'source_timeout' });
      expect(value.message).toBe(
        'Server "h" did not answer tools/call within 0.5 s and was told to stop. Try again, or raise its timeout in the configuration.',
      );
      expect(ms).toBeGreaterThan(400);
      // Without the timeout it would never end.
      expect(ms).toBeLessThan(10_000);
      expect(await quick).toBe('slow quick');
      const cancelled = JSON.parse(await callText(client, 'h_cancelled'));
      expect(cancelled).toMatchObject([{ tag: 'mine', reason: 'timed out' }]);
    },
  );

  it('ends a call to a server over HTTP the same way', async () => {
    const upstream = await startHttpServer('--delay', 60_000);
    const { client } = await startStdio({ config: toml([{ namespace: 'u', url: upstream.url, timeout: '500ms' }]) });
    const { value, ms } = await timed(callError(client, 'u_echo'));
    expect(value).toMatchObject({ code: 'source_timeout' });
    // The server answers after 60 s.
    expect(ms).toBeLessThan(10_000);
    await waitFor(async () => (await cancellations(upstream)).length === 1);
  });

  it('is a protocol error, not a result, for a resource or a prompt', async () => {
    const command = server('basic', '--resources', 'note://1', '--prompts', 'p', '--delay', 60_000);
    const { client } = await startStdio({ config: toml([{ namespace: 'b', command, timeout: '300ms' }]) });
    const resource = await client.readResource({ uri: 'b_note://1' }).catch((error) => error);
    const prompt = await client.getPrompt({ name: 'b_p' }).catch((error) => error);
    for (const error of [resource, prompt]) {
      expect(error).toMatchObject({ code: -32001, data: { success: false, result: null, code: 'source_timeout' } });
    }
    expect(resource.message).toContain('did not answer resources/read within 0.3 s');
  });
});

interface Upstream {
  log(): Promise<{ requests: { body: string }[] }>;
}

async function cancellations(upstream: Upstream): Promise<{ params: { requestId: number; reason: string } }[]> {
  const bodies = (await upstream.log()).requests.map(({ body }) => body);
  return bodies.filter((body) => body.includes('notifications/cancelled')).map((body) => JSON.parse(body));
}

/** Starts a call and cancels it when `reached` says that the server has received it. */
async function cancelOne(client: Client, name: string, reached: () => unknown): Promise<void> {
  const controller = new AbortController();
  const call = client.callTool({ name, arguments: { tag: 'unwanted' } }, undefined, { signal: controller.signal });
  const ended = call.then(
    () => 'answered',
    () => 'cancelled',
  );
  await waitFor(async () => (await reached()) === true);
  controller.abort('no longer needed');
  expect(await ended).toBe('cancelled');
}

describe("a client's cancellation", () => {
  it.each(doors)('reaches a stdio server from the door %s, with the id that the server knows', async (door) => {
    const log = join(tempFolder(), 'log');
    const { client } = await open(door, toml([{ namespace: 'h', command: server('hang', '--log', log) }]));
    await toolNames(client);
    const calls = () => received(log).filter(({ method }) => method === 'tools/call');
    await cancelOne(client, 'h_hang', () => calls().length === 1);
    const cancelled = await waitFor(async () => {
      const list = JSON.parse(await callText(client, 'h_cancelled'));
      return list.length > 0 && list;
    });
    expect(cancelled).toEqual([{ requestId: calls()[0]!.id, reason: 'no longer needed', tag: 'unwanted' }]);
  });

  it.each(doors)('reaches an HTTP server from the door %s, and closes its exchange', async (door) => {
    const upstream = await startHttpServer('--delay', 60_000);
    const { client } = await open(door, toml([{ namespace: 'u', url: upstream.url }]));
    await toolNames(client);
    const calls = async () => (await upstream.log()).requests.filter(({ body }) => body.includes('tools/call'));
    await cancelOne(client, 'u_echo', async () => (await calls()).length === 1);
    await waitFor(async () => (await cancellations(upstream)).length === 1);
    const [call] = await calls();
    const [cancellation] = await cancellations(upstream);
    expect(cancellation!.params).toEqual({ requestId: JSON.parse(call!.body).id, reason: 'no longer needed' });
  });

  it.each(doors)('of a list that waits for a starting server has no side effects, at the door %s', async (door) => {
    const config = toml([{ namespace: 'b', command: server('basic', '--tools', 'echo', '--slow-start', 2000) }]);
    const { client } =
      door === 'stdio' ? await startStdio({ config }) : await (await startHttp({ config, ready: false })).connect();
    const list = client.listTools(undefined, { signal: AbortSignal.timeout(100) });
    await expect(list).rejects.toThrow();
    expect(await toolNames(client)).toEqual(['b_echo']);
  });

  it('is automatic when the client disconnects', async () => {
    const gateway = await startHttp({ config: toml([{ namespace: 'h', command: server('hang') }]) });
    const [leaving, staying] = [await gateway.connect(), await gateway.connect()];
    leaving.client.callTool({ name: 'h_hang', arguments: { tag: 'left behind' } }).catch(() => {});
    await callsInFlight(gateway);
    await leaving.transport.terminateSession();
    const cancelled = await waitFor(async () => {
      const list = JSON.parse(await callText(staying.client, 'h_cancelled'));
      return list.length > 0 && list;
    });
    expect(cancelled).toMatchObject([{ tag: 'left behind', reason: 'the client is gone' }]);
  });
});
