/** Toolsets mounted in existing servers of the official SDK, of both generations, with its clients. */
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Client as ModernClient, StreamableHTTPClientTransport as ModernHttp } from '@modelcontextprotocol/client';
import { toNodeHandler } from '@modelcontextprotocol/node';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { InMemoryTransport } from '@modelcontextprotocol/sdk/inMemory.js';
import { Server } from '@modelcontextprotocol/sdk/server/index.js';
import { McpServer, ResourceTemplate } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import {
  CallToolRequestSchema,
  ElicitRequestSchema,
  ListToolsRequestSchema,
  type LoggingMessageNotification,
  LoggingMessageNotificationSchema,
  PromptListChangedNotificationSchema,
  ResourceListChangedNotificationSchema,
  ToolListChangedNotificationSchema,
} from '@modelcontextprotocol/sdk/types.js';
import { createMcpHandler, McpServer as McpServer2, Server as Server2 } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import { beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import {
  createMcpServer,
  createPermissionBasedMcpServer,
  definePrompt,
  defineResource,
  fromServer,
  type McpServerHandle,
  type MountableServer,
  type MountOptions,
  mountToolsets,
  type ToolSetCatalog,
} from '../../src/index.ts';
import { atEnd } from '../support/cleanup.ts';
import { connectHttp, overhear, type Told } from '../support/connection.ts';
import { MODERN } from '../support/modern.ts';
import { waitFor } from '../support/processes.ts';
import { serverEntry } from '../support/server.ts';
import { META } from './support.ts';

const aborted: string[] = [];

const catalog: ToolSetCatalog = {
  math: {
    name: 'Math',
    description: 'Sums.',
    tools: [
      {
        name: 'add',
        description: 'Adds two numbers.',
        inputSchema: z.object({ a: z.number(), b: z.number() }),
        handler: ({ a, b }: { a: number; b: number }) => ({ content: [{ type: 'text', text: String(a + b) }] }),
      },
      {
        name: 'long',
        description: 'Takes its time.',
        inputSchema: z.object({ tag: z.string().optional() }),
        async handler({ tag }: { tag?: string }, { progress, log, signal }) {
          progress(1, 2);
          log.info('half');
          progress(2, 2);
          if (tag === undefined) return 'done';
          await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
          aborted.push(tag);
          return 'late';
        },
      },
    ],
  },
  clash: {
    name: 'Clash',
    description: 'Has a tool that the server has, too.',
    tools: [{ name: 'own', description: 'Another.', handler: () => 'never' }],
  },
  notes: {
    name: 'Notes',
    description: 'Notes.',
    prompts: [
      definePrompt({
        name: 'greet',
        description: 'Greets somebody.',
        arguments: { name: z.string(), tone: z.enum(['warm', 'cold']).optional() },
        render: ({ name }) => `Hi, ${name}`,
      }),
    ],
    resources: [
      defineResource({ name: 'about', uri: 'notes://about', read: () => 'all about notes' }),
      defineResource({ name: 'note', uriTemplate: 'notes://{day}/{+path}', read: ({ day, path }) => `${day} ${path}` }),
    ],
  },
  asking: { name: 'Asking', description: 'A server that asks back.', modules: ['asking'] },
};

const moduleLoaders = { asking: () => fromServer(serverEntry('asking')) };
const info = { name: 'mine', version: '1.0.0' };
const OWN = { content: [{ type: 'text' as const, text: 'own' }] };

interface Made {
  readonly server: MountableServer;
  connect(transport: Transport): Promise<void>;
}

/** Each has its own tool, called `own`. */
const SERVERS: Record<string, () => Made> = {
  'McpServer of SDK v1': () => {
    const server = new McpServer(info);
    server.registerTool('own', { description: 'Its own.' }, () => OWN);
    return { server, connect: (transport) => server.connect(transport) };
  },
  'Server of SDK v1': () => {
    const server = new Server(info, { capabilities: { tools: {} } });
    server.setRequestHandler(ListToolsRequestSchema, () => ({
      tools: [{ name: 'own', inputSchema: { type: 'object' } }],
    }));
    server.setRequestHandler(CallToolRequestSchema, () => OWN);
    return { server, connect: (transport) => server.connect(transport) };
  },
  'McpServer of SDK v2': () => {
    const server = makeV2();
    return { server, connect: (transport) => server.connect(transport as never) };
  },
  'Server of SDK v2': () => {
    const server = new Server2(info, { capabilities: { tools: {} } });
    server.setRequestHandler('tools/list', () => ({ tools: [{ name: 'own', inputSchema: { type: 'object' } }] }));
    server.setRequestHandler('tools/call', () => OWN);
    return { server, connect: (transport) => server.connect(transport as never) };
  },
};

function makeV2(): McpServer2 {
  const server = new McpServer2(info);
  server.registerTool('own', { description: 'Its own.' }, () => OWN);
  return server;
}

let toolsets: McpServerHandle;

beforeAll(async () => {
  toolsets = await createMcpServer({ catalog, moduleLoaders, exposurePolicy: { namespaceToolsWithSetKey: false } });
  atEnd(() => toolsets.close());
});

async function connectTo({ server, connect }: Made, clientId?: string): Promise<Client> {
  toolsets.mount(server, clientId === undefined ? {} : { clientId });
  const [near, far] = InMemoryTransport.createLinkedPair();
  const client = new Client({ name: 'test', version: '1' }, { capabilities: { elicitation: {} } });
  await Promise.all([connect(far), client.connect(near)]);
  atEnd(() => client.close());
  return client;
}

interface Listing {
  listTools(): Promise<{ tools: { name: string }[] }>;
}

const names = async (client: Listing) => (await client.listTools()).tools.map(({ name }) => name);
/** The names of its prompts, resources and templates. */
const lists = async (client: Client) => [
  (await client.listPrompts()).prompts.map(({ name }) => name),
  (await client.listResources()).resources.map(({ uri }) => uri),
  (await client.listResourceTemplates()).resourceTemplates.map(({ uriTemplate }) => uriTemplate),
];
const read = async (client: Client, uri: string) => {
  const [content] = (await client.readResource({ uri })).contents;
  return content !== undefined && 'text' in content ? content.text : undefined;
};
const textOf = (result: unknown) => JSON.stringify((result as { content: unknown }).content);
const enable = (name: string) => ({ name: 'enable_toolset', arguments: { name } });
const disable = (name: string) => ({ name: 'disable_toolset', arguments: { name } });

describe.each(Object.entries(SERVERS))('toolsets in a %s', (_name, make) => {
  it('appear next to its own tools, and are switched on and off', async () => {
    const client = await connectTo(make());
    let changes = 0;
    client.setNotificationHandler(ToolListChangedNotificationSchema, () => void changes++);
    expect(client.getServerVersion()).toMatchObject(info);
    expect(await names(client)).toEqual(['own', ...META]);
    expect(textOf(await client.callTool({ name: 'own' }))).toContain('own');
    await client.callTool(enable('math'));
    await waitFor(() => changes === 1);
    expect(await names(client)).toEqual(['own', ...META, 'add', 'long']);
    expect(textOf(await client.callTool({ name: 'add', arguments: { a: 2, b: 3 } }))).toContain('5');
    await client.callTool(disable('math'));
    await waitFor(() => changes === 2);
    expect(await names(client)).toEqual(['own', ...META]);
    const gone = await client.callTool({ name: 'add', arguments: { a: 2, b: 3 } }).catch((error: unknown) => error);
    expect(JSON.stringify(gone)).not.toContain('5');
    await client.callTool(enable('math'));
    expect(textOf(await client.callTool({ name: 'add', arguments: { a: 2, b: 3 } }))).toContain('5');
  });

  it('report progress, log, and learn of cancelled calls', async () => {
    const client = await connectTo(make());
    const logged: unknown[] = [];
    client.setNotificationHandler(LoggingMessageNotificationSchema, ({ params }: LoggingMessageNotification) => {
      logged.push(params.data);
    });
    await client.setLoggingLevel('info');
    await client.callTool(enable('math'));
    const seen: number[] = [];
    const done = await client.callTool({ name: 'long', arguments: {} }, undefined, {
      onprogress: ({ progress }) => seen.push(progress),
    });
    expect([textOf(done).includes('done'), seen, logged]).toEqual([true, [1, 2], ['half']]);
    const abort = new AbortController();
    const tag = randomUUID();
    const started = new Promise<void>((resolve) => {
      const options = { signal: abort.signal, onprogress: () => resolve() };
      client.callTool({ name: 'long', arguments: { tag } }, undefined, options).catch(() => {});
    });
    await started;
    abort.abort();
    await waitFor(() => aborted.includes(tag));
  });

  it('are not switched on if a tool would have the name of one of its own', async () => {
    const client = await connectTo(make());
    const result = await client.callTool(enable('clash'));
    expect(textOf(result)).toContain('E_TOOL_NAME_CONFLICT');
    expect(textOf(result)).toContain('the server itself');
    expect(await names(client)).toEqual(['own', ...META]);
  });
});

describe.each(Object.entries(SERVERS))('prompts and resources of toolsets in a %s', (_name, make) => {
  it('come and go with their toolset', async () => {
    const client = await connectTo(make());
    const changed: string[] = [];
    const note = (list: string) => () => void changed.push(list);
    client.setNotificationHandler(PromptListChangedNotificationSchema, note('prompts'));
    client.setNotificationHandler(ResourceListChangedNotificationSchema, note('resources'));
    expect(await lists(client)).toEqual([[], [], []]);
    await client.callTool(enable('notes'));
    await waitFor(() => changed.length === 2);
    expect(changed.sort()).toEqual(['prompts', 'resources']);
    expect(await lists(client)).toEqual([['greet'], ['notes://about'], ['notes://{day}/{+path}']]);
    expect(JSON.stringify(await client.getPrompt({ name: 'greet', arguments: { name: 'Bob' } }))).toContain('Hi, Bob');
    expect(await read(client, 'notes://about')).toBe('all about notes');
    expect(await read(client, 'notes://friday/a/b')).toBe('friday a/b');
    const { completion } = await client.complete({
      ref: { type: 'ref/prompt', name: 'greet' },
      argument: { name: 'tone', value: 'c' },
    });
    expect(completion.values).toEqual(['cold']);
    await client.callTool(disable('notes'));
    expect(await lists(client)).toEqual([[], [], []]);
    await expect(client.getPrompt({ name: 'greet', arguments: { name: 'Bob' } })).rejects.toThrow();
    await expect(client.readResource({ uri: 'notes://about' })).rejects.toThrow();
  });
});

describe('prompts and resources of a server', () => {
  function makeRich(): McpServer {
    const server = new McpServer(info);
    server.registerPrompt('mine', {}, () => ({
      messages: [{ role: 'user', content: { type: 'text', text: 'my own' } }],
    }));
    const template = new ResourceTemplate('notes://own/{id}', {
      list: undefined,
      complete: { id: (value) => ['one', 'two'].filter((one) => one.startsWith(value)) },
    });
    const text = (uri: URL) => ({ contents: [{ uri: uri.href, text: 'of the server' }] });
    server.registerResource('own', template, {}, text);
    server.registerResource('plain', 'notes://plain', {}, text);
    return server;
  }
  const made = (server: McpServer) => ({ server, connect: (transport: Transport) => server.connect(transport) });

  it('stay its own next to those of toolsets', async () => {
    const client = await connectTo(made(makeRich()));
    await client.callTool(enable('notes'));
    expect(await lists(client)).toEqual([
      ['mine', 'greet'],
      ['notes://plain', 'notes://about'],
      ['notes://own/{id}', 'notes://{day}/{+path}'],
    ]);
    expect(JSON.stringify(await client.getPrompt({ name: 'mine' }))).toContain('my own');
    expect(await read(client, 'notes://plain')).toBe('of the server');
    expect(await read(client, 'notes://own/1')).toBe('of the server');
    expect(await read(client, 'notes://monday/1')).toBe('monday 1');
    const { completion } = await client.complete({
      ref: { type: 'ref/resource', uri: 'notes://own/{id}' },
      argument: { name: 'id', value: 't' },
    });
    expect(completion.values).toEqual(['two']);
  });

  it('are read from the server before it has listed them', async () => {
    const client = await connectTo(made(makeRich()));
    await client.callTool(enable('notes'));
    expect(await read(client, 'notes://own/1')).toBe('of the server');
  });

  it('lead to an error if a toolset has one of the same name', async () => {
    const server = makeRich();
    const client = await connectTo(made(server));
    await client.callTool(enable('notes'));
    const failures: string[] = [];
    server.server.onerror = ({ message }) => failures.push(message);
    server.registerPrompt('greet', {}, () => ({ messages: [] }));
    server.registerResource('about', 'notes://about', {}, () => ({ contents: [] }));
    await expect(client.listPrompts()).rejects.toThrow('have prompts with the same names: greet. Rename one');
    await expect(client.getPrompt({ name: 'greet' })).rejects.toThrow('Rename one');
    await expect(client.listResources()).rejects.toThrow('have the same resources: notes://about');
    await expect(client.readResource({ uri: 'notes://about' })).rejects.toThrow('Rename one');
    expect(failures).toHaveLength(4);
  });

  it('are not announced if neither the server nor a toolset can have any', async () => {
    const server = new McpServer(info);
    const alone = await mountToolsets(server, { catalog: { math: catalog.math! } });
    atEnd(() => alone.close());
    const [near, far] = InMemoryTransport.createLinkedPair();
    const client = new Client({ name: 'test', version: '1' });
    await Promise.all([server.connect(far), client.connect(near)]);
    atEnd(() => client.close());
    expect(Object.keys(client.getServerCapabilities()!).sort()).toEqual(['logging', 'tools']);
  });
});

describe('a connection', () => {
  it('has its own toolsets, unless the program says that it is the same client', async () => {
    const make = SERVERS['McpServer of SDK v1']!;
    const [one, other] = [await connectTo(make()), await connectTo(make())];
    await one.callTool(enable('math'));
    expect([(await names(one)).length, (await names(other)).length]).toEqual([8, 6]);
    const [alice, again] = [await connectTo(make(), 'alice'), await connectTo(make(), 'alice')];
    await alice.callTool(enable('math'));
    expect(await names(again)).toContain('add');
    await alice.close();
    expect(await names(await connectTo(make(), 'alice'))).toContain('add');
  });

  it('receives the questions of a server behind a toolset', async () => {
    const client = await connectTo(SERVERS['McpServer of SDK v1']!());
    client.setRequestHandler(ElicitRequestSchema, () => ({ action: 'accept', content: { value: 'yes' } }));
    await client.callTool(enable('asking'));
    const result = await client.callTool({ name: 'ask', arguments: { questions: 1 } });
    expect(textOf(result)).toContain('accept');
  });

  it('sees tools that the server adds later, and gets an error if one has the name of another', async () => {
    const server = new McpServer(info);
    toolsets.mount(server);
    server.registerTool('first', {}, () => OWN);
    const client = new Client({ name: 'test', version: '1' });
    const [near, far] = InMemoryTransport.createLinkedPair();
    await Promise.all([server.connect(far), client.connect(near)]);
    atEnd(() => client.close());
    expect(await names(client)).toEqual(['first', ...META]);
    const second = server.registerTool('second', {}, () => OWN);
    expect(await names(client)).toEqual(['first', 'second', ...META]);
    await client.callTool(enable('math'));
    const failures: Error[] = [];
    server.server.onerror = (error) => failures.push(error);
    const clashing = server.registerTool('add', {}, () => OWN);
    await expect(client.listTools()).rejects.toThrow('have tools with the same names: add');
    await expect(client.callTool({ name: 'add' })).rejects.toThrow('Rename one');
    expect(failures.map(({ message }) => message)).toEqual([expect.any(String), expect.any(String)]);
    clashing.remove();
    second.remove();
    expect(await names(client)).toEqual(['first', ...META, 'add', 'long']);
  });

  it('receives all pages of the list of the server before the tools of toolsets', async () => {
    const server = new Server(info, { capabilities: { tools: {} } });
    const tool = (name: string) => ({ name, inputSchema: { type: 'object' as const } });
    server.setRequestHandler(ListToolsRequestSchema, ({ params }) =>
      params?.cursor === undefined ? { tools: [tool('a')], nextCursor: '2' } : { tools: [tool('own')] },
    );
    const client = await connectTo({ server, connect: (transport) => server.connect(transport) });
    const clash = await client.callTool(enable('clash'));
    expect(textOf(clash)).toContain('E_TOOL_NAME_CONFLICT');
    const first = await client.listTools();
    expect(first.tools.map(({ name }) => name)).toEqual(['a']);
    const second = await client.listTools({ cursor: first.nextCursor! });
    expect(second.tools.map(({ name }) => name)).toEqual(['own', ...META]);
    expect(second.nextCursor).toBeUndefined();
  });
});

describe('toolsets without sessions', () => {
  it('work over a pipe, with the one server that SDK v2 creates for it', async () => {
    const [near, far] = InMemoryTransport.createLinkedPair();
    const handle = serveStdio(
      () => {
        const server = makeV2();
        toolsets.mount(server);
        return server;
      },
      { transport: far as never },
    );
    atEnd(() => handle.close());
    const client = new ModernClient(
      { name: 'test', version: '2' },
      { capabilities: { elicitation: {} }, versionNegotiation: { mode: { pin: MODERN } } },
    );
    client.setRequestHandler('elicitation/create', () => ({ action: 'accept', content: { value: 'yes' } }));
    await client.connect(near as never);
    atEnd(() => client.close());
    let changes = 0;
    client.setNotificationHandler('notifications/tools/list_changed', () => void changes++);
    await client.listen({ toolsListChanged: true });
    expect(client.getProtocolEra()).toBe('modern');
    expect(await names(client)).toEqual(['own', ...META]);
    await client.callTool(enable('math'));
    await waitFor(() => changes > 0);
    expect(await names(client)).toEqual(['own', ...META, 'add', 'long']);
    const seen: number[] = [];
    const long = { name: 'long', arguments: {} };
    await client.callTool(long, { onprogress: ({ progress }) => seen.push(progress) });
    expect(seen).toEqual([1, 2]);
    expect(textOf(await client.callTool({ name: 'own' }))).toContain('own');
    expect(textOf(await client.callTool(enable('clash')))).toContain('E_TOOL_NAME_CONFLICT');
    await client.callTool(enable('notes'));
    expect((await client.listPrompts()).prompts.map(({ name }) => name)).toEqual(['greet']);
    const prompt = await client.getPrompt({ name: 'greet', arguments: { name: 'Bob' } });
    expect(JSON.stringify(prompt)).toContain('Hi, Bob');
    expect((await client.readResource({ uri: 'notes://friday/a' })).contents).toMatchObject([{ text: 'friday a' }]);
    await client.callTool(enable('asking'));
    expect(textOf(await client.callTool({ name: 'ask', arguments: { questions: 2 } }))).toContain('accept');
    const abort = new AbortController();
    const tag = randomUUID();
    const options = { signal: abort.signal, onprogress: () => abort.abort() };
    await expect(client.callTool({ name: 'long', arguments: { tag } }, options)).rejects.toThrow();
    await waitFor(() => aborted.includes(tag));
  });

  it('work over HTTP, with a server for each request, for clients that the program knows', async () => {
    const handler = createMcpHandler(({ requestInfo }) => {
      const server = makeV2();
      const clientId = requestInfo?.headers.get('x-user') ?? 'nobody';
      toolsets.mount(server, { clientId, toolsChanged: () => handler.notify.toolsChanged() });
      return server;
    });
    atEnd(() => handler.close());
    const at = await serveNode(toNodeHandler(handler));
    const told = new Map<string, Told>();
    const connect = async (user: string) => {
      const client = new ModernClient(
        { name: user, version: '2' },
        { capabilities: { elicitation: {} }, versionNegotiation: { mode: { pin: MODERN } } },
      );
      client.setRequestHandler('elicitation/create', () => ({ action: 'accept', content: { value: user } }));
      const transport = new ModernHttp(new URL(at), { requestInit: { headers: { 'x-user': user } } });
      told.set(user, overhear(transport));
      await client.connect(transport);
      atEnd(() => client.close());
      return client;
    };
    const [bob, carol] = [await connect('bob'), await connect('carol')];
    let changes = 0;
    bob.setNotificationHandler('notifications/tools/list_changed', () => void changes++);
    await bob.listen({ toolsListChanged: true });
    await bob.callTool(enable('math'));
    await waitFor(() => changes > 0);
    expect(await names(bob)).toEqual(['own', ...META, 'add', 'long']);
    expect(await names(carol)).toEqual(['own', ...META]);
    expect(textOf(await bob.callTool({ name: 'add', arguments: { a: 20, b: 3 } }))).toContain('23');
    await bob.callTool({ name: 'long', arguments: {} }, { onprogress: () => {} });
    expect(told.get('bob')!.notifications.filter(({ method }) => method === 'notifications/progress')).toHaveLength(2);
    await bob.callTool(disable('math'));
    expect(await names(bob)).toEqual(['own', ...META]);
    await carol.callTool(enable('asking'));
    expect(textOf(await carol.callTool({ name: 'ask', arguments: { questions: 2 } }))).toContain('carol');
  });
});

it('gives each session of SDK v1 over HTTP its own toolsets', async () => {
  const sessions = new Map<string, StreamableHTTPServerTransport>();
  const at = await serveNode(async (request, response) => {
    const id = request.headers['mcp-session-id'] as string | undefined;
    let transport = sessions.get(id ?? '');
    if (transport === undefined) {
      const opened = new StreamableHTTPServerTransport({
        sessionIdGenerator: randomUUID,
        onsessioninitialized: (given) => void sessions.set(given, opened),
      });
      const server = new McpServer(info);
      server.registerTool('own', {}, () => OWN);
      toolsets.mount(server);
      await server.connect(opened as never);
      transport = opened;
    }
    await transport.handleRequest(request, response);
  });
  const [one, other] = [await connectHttp(at), await connectHttp(at)];
  await one.client.callTool(enable('math'));
  await waitFor(() => one.changes('tools') > 0);
  expect(await names(one.client)).toEqual(['own', ...META, 'add', 'long']);
  expect(await names(other.client)).toEqual(['own', ...META]);
  await one.client.callTool({ name: 'long', arguments: {} }, undefined, { onprogress: () => {} });
  expect(one.notifications.filter(({ method }) => method === 'notifications/progress')).toHaveLength(2);
  const tag = randomUUID();
  const hanging = { name: 'long', arguments: { tag } };
  const started = new Promise<void>((resolve) => {
    one.client.callTool(hanging, undefined, { onprogress: () => resolve() }).catch(() => {});
  });
  await started;
  await one.transport.terminateSession();
  await waitFor(() => aborted.includes(tag));
});

describe('mountToolsets', () => {
  it('creates and mounts in one step, also for toolsets that all clients have', async () => {
    const server = new McpServer(info);
    const handle = await mountToolsets(server, {
      catalog: { math: catalog.math! },
      startup: { toolsets: 'ALL' },
      registerMetaTools: false,
    });
    atEnd(() => handle.close());
    const [near, far] = InMemoryTransport.createLinkedPair();
    const client = new Client({ name: 'test', version: '1' });
    await Promise.all([server.connect(far), client.connect(near)]);
    atEnd(() => client.close());
    expect(await names(client)).toEqual(['math.add', 'math.long']);
    expect(textOf(await client.callTool({ name: 'math.add', arguments: { a: 1, b: 1 } }))).toContain('2');
  });

  it('gives each client what its permissions allow', async () => {
    const permitted = await createPermissionBasedMcpServer({
      catalog,
      moduleLoaders,
      permissions: { source: 'config', staticMap: { ann: ['math'] } },
      exposurePolicy: { namespaceToolsWithSetKey: false },
    });
    atEnd(() => permitted.close());
    const seen = async (options: MountOptions) => {
      const server = new McpServer(info);
      permitted.mount(server, options);
      const [near, far] = InMemoryTransport.createLinkedPair();
      const client = new Client({ name: 'test', version: '1' });
      await Promise.all([server.connect(far), client.connect(near)]);
      atEnd(() => client.close());
      return names(client);
    };
    expect(await seen({ clientId: 'ann' })).toEqual(['add', 'long']);
    expect(await seen({ clientId: 'bob' })).toEqual([]);
    expect(await seen({ clientId: 'bob', toolsets: ['math', 'nothing'] })).toEqual(['add', 'long']);
    expect(await seen({})).toEqual([]);
  });

  it('requires a server that is not connected and has no toolsets yet', async () => {
    expect(() => toolsets.mount({} as never)).toThrow('only in a Server or McpServer of the official SDK');
    const server = new McpServer(info);
    toolsets.mount(server);
    expect(() => toolsets.mount(server)).toThrow('already');
    const connected = new McpServer(info);
    const [, far] = InMemoryTransport.createLinkedPair();
    await connected.connect(far);
    await expect(mountToolsets(connected, { catalog: {} })).rejects.toThrow('before the server is connected');
  });
});

async function serveNode(handle: RequestListener): Promise<string> {
  const server = createServer(handle).listen(0, '127.0.0.1');
  await once(server, 'listening');
  atEnd(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`;
}
