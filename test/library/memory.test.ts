/** Clients in the same process as the gateway: official SDK clients of both generations on the in-memory transport. */
import { Client as ModernClient } from '@modelcontextprotocol/client';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { ElicitRequestSchema, ToolListChangedNotificationSchema } from '@modelcontextprotocol/sdk/types.js';
import { beforeAll, describe, expect, it } from 'vitest';
import { configFromValue, connectInMemory, type Gateway, type MemoryTransport } from '../../src/index.ts';
import { atEnd } from '../support/cleanup.ts';
import { createGateway } from '../support/in-process-gateway.ts';
import { MODERN } from '../support/modern.ts';
import { waitFor } from '../support/processes.ts';
import { serverEntry } from '../support/server.ts';
import { tempFolder } from '../support/temp.ts';

let gateway: Gateway;

beforeAll(async () => {
  const mcpServers = { slow: serverEntry('hang'), up: serverEntry('changing'), asking: serverEntry('asking') };
  const config = {
    controls: [],
    mcpServers,
    agent_policies: { guest: { allowed_servers: ['up'] } },
    default_policy: { allow_unknown_tools: true },
  };
  gateway = createGateway(configFromValue(config, { cwd: tempFolder(), env: {} }));
  atEnd(() => gateway.close());
  await gateway.tried();
});

async function connect(transport: MemoryTransport): Promise<Client> {
  const client = new Client({ name: 'test', version: '1' }, { capabilities: { elicitation: {} } });
  await client.connect(transport);
  atEnd(() => client.close());
  return client;
}

async function connectModern(transport: MemoryTransport, mode: 'auto' | { pin: string }): Promise<ModernClient> {
  const client = new ModernClient({ name: 'test', version: '2' }, { versionNegotiation: { mode } });
  await client.connect(transport);
  atEnd(() => client.close());
  return client;
}

const cancelled = async (client: Client, tag: string) =>
  JSON.stringify(await client.callTool({ name: 'slow_cancelled' })).includes(tag);

describe('a client of SDK v1', () => {
  it('lists tools, calls them, and receives progress', async () => {
    const client = await connect(connectInMemory(gateway));
    expect(client.getServerVersion()?.name).toBe('toolgate');
    expect((await client.listTools()).tools.map(({ name }) => name)).toContain('slow_slow');
    const seen: number[] = [];
    const slow = { name: 'slow_slow', arguments: { ms: 20, steps: 4 } };
    const result = await client.callTool(slow, undefined, { onprogress: ({ progress }) => seen.push(progress) });
    expect(result.content).toEqual([{ type: 'text', text: 'slow' }]);
    expect(seen).toEqual([1, 2, 3, 4]);
  });

  it('answers questions, and cancels', async () => {
    const client = await connect(connectInMemory(gateway));
    client.setRequestHandler(ElicitRequestSchema, () => ({ action: 'accept', content: { value: 'yes' } }));
    const asked = await client.callTool({ name: 'asking_ask', arguments: { questions: 1 } });
    expect(JSON.stringify(asked.content)).toContain('accept');
    const abort = new AbortController();
    const hanging = { name: 'slow_hang', arguments: { tag: 'memory' } };
    const call = client.callTool(hanging, undefined, { signal: abort.signal });
    setImmediate(() => abort.abort());
    await expect(call).rejects.toThrow();
    await waitFor(() => cancelled(client, 'memory'));
  });

  it('is notified of changes', async () => {
    const client = await connect(connectInMemory(gateway));
    let changes = 0;
    client.setNotificationHandler(ToolListChangedNotificationSchema, () => void changes++);
    await client.listTools();
    await client.callTool({ name: 'up_add_tool', arguments: { name: 'late' } });
    await waitFor(() => changes > 0);
    expect((await client.listTools()).tools.map(({ name }) => name)).toContain('up_late');
  });

  it('connects as an agent, and sees what that agent may use', async () => {
    const client = await connect(connectInMemory(gateway, { agent: 'guest' }));
    const { tools } = await client.listTools();
    expect(tools.every(({ name }) => name.startsWith('up_'))).toBe(true);
    await expect(client.callTool({ name: 'slow_ok' })).resolves.toMatchObject({ isError: true });
  });

  it('leaves nothing running when it disconnects', async () => {
    const client = await connect(connectInMemory(gateway));
    const call = client.callTool({ name: 'slow_hang', arguments: { tag: 'left' } });
    const ended = expect(call).rejects.toThrow();
    await client.ping();
    await client.close();
    await ended;
    const other = await connect(connectInMemory(gateway));
    await waitFor(() => cancelled(other, 'left'));
  });
});

describe('a client of SDK v2', () => {
  it.each([['auto'], [{ pin: MODERN }]] as const)('uses the newest revision: %j', async (mode) => {
    const client = await connectModern(connectInMemory({ gateway }), mode);
    expect(client.getProtocolEra()).toBe('modern');
    expect((await client.listTools()).tools.map(({ name }) => name)).toContain('slow_slow');
    const seen: number[] = [];
    const slow = { name: 'slow_slow', arguments: { ms: 20, steps: 4 } };
    await client.callTool(slow, { onprogress: ({ progress }) => seen.push(progress) });
    expect(seen).toEqual([1, 2, 3, 4]);
  });

  it('listens for changes until one side ends the subscription', async () => {
    const client = await connectModern(connectInMemory(gateway), { pin: MODERN });
    await client.listTools();
    let changes = 0;
    client.setNotificationHandler('notifications/tools/list_changed', () => void changes++);
    const subscription = await client.listen({ toolsListChanged: true });
    await client.callTool({ name: 'up_add_tool', arguments: { name: 'later' } });
    await waitFor(() => changes > 0);
    await client.close();
    expect(await subscription.closed).toBeDefined();
  });
});

it('serves one client, between start and close', async () => {
  const transport = connectInMemory(gateway);
  await expect(transport.send({})).rejects.toThrow('not open');
  const client = await connect(transport);
  await expect(transport.start()).rejects.toThrow('create one for each client');
  await client.close();
  await expect(client.ping()).rejects.toThrow();
  await expect(transport.send({})).rejects.toThrow('not open');
});
