// Written by `npm run api` from the examples in comments. It only has to compile; nothing runs it.
import { createServer } from 'node:http';
import { Client } from '@modelcontextprotocol/client';
import { McpServer } from '@modelcontextprotocol/server';
import { StdioServerTransport } from '@modelcontextprotocol/server/stdio';
import * as z from 'zod';
import { type Config, type Gateway, GatewayError, type McpServerHandle, type Middleware, type ToolSetCatalog, configFromValue, connectInMemory, counter, createGateway, createHttpDoor, createIdentity, createMcpServer, createPermissionBasedMcpServer, defineEndpoint, definePermissionAwareEndpoint, definePrompt, defineResource, defineTool, explainName, expressMiddleware, fastifyPlugin, fetchHandler, fromFolder, fromServer, honoMiddleware, loadConfig, logCalls, mountToolsets, openHttpDoor, openLocalDoor, openSecretStore, openStdioDoor, planTask, readAudit, taskFromValue, verifyAudit } from '../../src/index.ts';

export async function EventsExample1(gateway: Gateway): Promise<void> {
  const stop = gateway.events.on('source', ({ source, state }) => console.error(source, state));
  stop();
  void stop;
}

export async function GatewayExample1(config: Config): Promise<void> {
  const gateway = createGateway(config);
  await gateway.tried();
  for (const { key, state } of gateway.statuses()) console.log(key, state);
  await gateway.close();
  void gateway;
}

export async function GatewayErrorExample1(): Promise<void> {
  try {
    configFromValue({ servers: 1 }, { cwd: '.', env: {} });
  } catch (error) {
    if (error instanceof GatewayError && error.code === 'config_invalid') console.error(error.message);
  }
}

export async function McpServerHandleExample1(toolsets: McpServerHandle, server: McpServer, transport: StdioServerTransport): Promise<void> {
  toolsets.mount(server, { clientId: 'alice' });
  await server.connect(transport);
}

export async function McpServerHandleExample2(toolsets: McpServerHandle, Bun: { serve(options: { fetch: (request: Request) => Promise<Response> }): void }): Promise<void> {
  Bun.serve({ fetch: toolsets.fetch });
}

export async function MiddlewareExample1(gateway: Gateway): Promise<void> {
  const readOnly: Middleware = (call, next) => {
    if (call.upstreamName.startsWith('write_')) throw new GatewayError('forbidden', 'Nothing is written here.');
    return next();
  };
  gateway.use(readOnly);
  void readOnly;
}

export async function ProgramCallsExample1(gateway: Gateway): Promise<void> {
  const { content, isError } = await gateway.call('files_read_file', { path: 'notes.txt' }, { agent: 'writer' });
  void content;
  void isError;
}

export async function ProgramCallsExample2(gateway: Gateway): Promise<void> {
  const { tools } = await gateway.view({ agent: 'writer' });
  void tools;
}

export async function ToolContextExample1(): Promise<void> {
  const confirm = defineTool({
    name: 'confirm',
    description: 'Asks the user.',
    inputSchema: z.object({ question: z.string() }),
    async execute({ question }, { elicit }) {
      const asked = await elicit(question, z.object({ sure: z.boolean() }));
      return asked.action === 'accept' && asked.content.sure ? 'yes' : 'no';
    },
  });
  void confirm;
}

export async function ToolContextExample2(): Promise<void> {
  const summarize = defineTool({
    name: 'summarize',
    description: 'Summarizes a text.',
    inputSchema: z.object({ page: z.string() }),
    execute: async ({ page }, { sample }) => (await sample(`Summarize in one sentence: ${page}`)).text,
  });
  void summarize;
}

export async function configFromValueExample1(): Promise<void> {
  const config = configFromValue(
    { servers: { docs: { url: 'https://example.com/mcp' } } },
    { cwd: process.cwd(), env: process.env },
  );
  void config;
}

export async function connectInMemoryExample1(gateway: Gateway): Promise<void> {
  const client = new Client({ name: 'test', version: '1.0.0' });
  await client.connect(connectInMemory(gateway));
  const { tools } = await client.listTools();
  void client;
  void tools;
}

export async function counterExample1(gateway: Gateway): Promise<void> {
  gateway.metrics.add(() => [counter('orders_total', 'Orders placed.', 12)]);
}

export async function createHttpDoorExample1(gateway: Gateway): Promise<void> {
  const door = await createHttpDoor(gateway, { basePath: '/gateway' });
  const server = createServer((request, response) => {
    if (door.serves(request.url!)) door.handle(request, response);
    else response.end('the rest of your site');
  });
  void door;
  void server;
}

export async function createIdentityExample1(): Promise<void> {
  const ann = createIdentity('reader', { principal: 'ann@example.com' });
  void ann;
}

export async function createMcpServerExample1(): Promise<void> {
  const { start, close } = await createMcpServer({
    catalog: {
      math: { name: 'Math', description: 'Sums', tools: [defineTool({
        name: 'add',
        description: 'Adds two numbers.',
        inputSchema: z.object({ a: z.number(), b: z.number() }),
        execute: ({ a, b }) => a + b,
      })] },
    },
    http: { port: 3000 },
  });
  await start();
  void start;
  void close;
}

export async function createPermissionBasedMcpServerExample1(lookUp: (clientId: string) => Promise<{ toolsets: string[] }>, verify: (authorization: unknown) => Promise<{ clientId: string }>): Promise<void> {
  const { start } = await createPermissionBasedMcpServer({
    catalog: { admin: { name: 'Admin', description: 'For admins', tools: [] } },
    permissions: { source: 'config', resolver: async (clientId) => (await lookUp(clientId)).toolsets },
    authenticate: async ({ headers }) => verify(headers.authorization),
  });
  await start();
  void start;
}

export async function defineEndpointExample1(): Promise<void> {
  const users = defineEndpoint({
    method: 'GET',
    path: '/users/:id',
    paramsSchema: z.object({ id: z.string() }),
    handler: ({ params }) => ({ id: params.id }),
  });
  void users;
}

export async function definePermissionAwareEndpointExample1(): Promise<void> {
  const me = definePermissionAwareEndpoint({
    method: 'GET',
    path: '/me',
    handler: ({ clientId, allowedToolsets }) => ({ clientId, allowedToolsets }),
  });
  void me;
}

export async function definePromptExample1(): Promise<void> {
  const review = definePrompt({
    description: 'Reviews a text.',
    arguments: z.object({ text: z.string().describe('The text to review.') }),
    render: ({ text }) => `Review this text. Name three things to improve.\n\n${text}`,
  });
  void review;
}

export async function defineResourceExample1(): Promise<void> {
  const note = defineResource({
    uriTemplate: 'notes://{day}',
    description: 'The notes of a day.',
    read: ({ day }) => `Nothing was noted on ${day}.`,
  });
  void note;
}

export async function defineToolExample1(): Promise<void> {
  const add = defineTool({
    description: 'Adds two numbers.',
    inputSchema: z.object({ a: z.number(), b: z.number() }),
    execute: ({ a, b }) => a + b,
  });
  void add;
}

export async function explainNameExample1(gateway: Gateway): Promise<void> {
  const { catalog, config } = gateway;
  for (const { entry, allowed } of explainName(catalog, config.policy, 'ci', 'files_write_file', new Date()))
    console.log(entry.name, allowed);
  void catalog;
  void config;
}

export async function expressMiddlewareExample1(gateway: Gateway, app: { use(handler: unknown): void; register(plugin: unknown): Promise<void> }): Promise<void> {
  const door = await createHttpDoor(gateway, { basePath: '/gateway' });
  app.use(expressMiddleware(door));
  void door;
}

export async function fastifyPluginExample1(gateway: Gateway, app: { use(handler: unknown): void; register(plugin: unknown): Promise<void> }): Promise<void> {
  const door = await createHttpDoor(gateway, { basePath: '/gateway' });
  await app.register(fastifyPlugin(door));
  void door;
}

export async function fetchHandlerExample1(gateway: Gateway, token: string, Bun: { serve(options: { fetch: (request: Request) => Promise<Response> }): void }): Promise<void> {
  const door = await createHttpDoor(gateway, { token, allowedHosts: ['tools.example.com'] });
  Bun.serve({ fetch: fetchHandler(door) });
  void door;
}

export async function fromFolderExample1(): Promise<void> {
  const moduleLoaders = { own: () => fromFolder('./tools') };
  void moduleLoaders;
}

export async function fromServerExample1(): Promise<void> {
  const moduleLoaders = { files: () => fromServer({ command: 'npx', args: ['-y', 'some-mcp-server'] }) };
  void moduleLoaders;
}

export async function honoMiddlewareExample1(gateway: Gateway, app: { use(handler: unknown): void; register(plugin: unknown): Promise<void> }): Promise<void> {
  const door = await createHttpDoor(gateway, { basePath: '/gateway' });
  app.use(honoMiddleware(door));
  void door;
}

export async function loadConfigExample1(): Promise<void> {
  const config = await loadConfig({ cwd: process.cwd(), env: process.env });
  void config;
}

export async function logCallsExample1(gateway: Gateway): Promise<void> {
  gateway.use(logCalls((line) => console.error(line)));
}

export async function mountToolsetsExample1(catalog: ToolSetCatalog): Promise<void> {
  const server = new McpServer({ name: 'mine', version: '1.0.0' });
  await mountToolsets(server, { catalog });
  await server.connect(new StdioServerTransport());
  void server;
}

export async function openHttpDoorExample1(gateway: Gateway): Promise<void> {
  const http = await openHttpDoor(gateway, { host: '127.0.0.1', port: 8808 });
  console.log(http.url);
  await http.close();
  void http;
}

export async function openLocalDoorExample1(gateway: Gateway): Promise<void> {
  const door = openLocalDoor(gateway, 'all');
  const result = await door.callTool('files_read_text_file', { path: 'todo.txt' });
  console.log(JSON.parse(result.toString()).content);
  door.close();
  void door;
  void result;
}

export async function openSecretStoreExample1(config: Config): Promise<void> {
  const store = openSecretStore(config.dataDir, config.vault);
  for (const { name, status } of await store.list()) console.log(name, status);
  void store;
}

export async function openStdioDoorExample1(gateway: Gateway): Promise<void> {
  const door = openStdioDoor(gateway, process.stdin, process.stdout);
  await door.ended;
  await gateway.close();
  void door;
}

export async function planTaskExample1(gateway: Gateway): Promise<void> {
  const task = taskFromValue({ description: 'Fix the login page', type: 'frontend' });
  const plan = planTask(task, gateway.config.tasks.rules(), gateway.catalog, gateway.statuses());
  void task;
  void plan;
}

export async function readAuditExample1(config: Config): Promise<void> {
  for await (const record of readAudit(config.audit.dir, { filter: { agent: 'ci' } })) console.log(record.tool);
}

export async function verifyAuditExample1(config: Config): Promise<void> {
  const { problems } = await verifyAudit(config.audit.dir, { heads: config.audit.heads });
  void problems;
}
