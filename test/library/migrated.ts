/**
 * Programs written for Toolception 0.6 according to its documentation, which use every option once. Only the import is
 * changed.
 */
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import Fastify from 'fastify';
import { z } from 'zod';
import {
  createMcpServer,
  createPermissionBasedMcpServer,
  defineEndpoint,
  definePermissionAwareEndpoint,
  type ExposurePolicy,
  type McpToolDefinition,
  type ModuleLoader,
  type PermissionConfig,
  type SessionContextConfig,
  type ToolSetCatalog,
} from '../../src/index.ts';

const priceTool = {
  name: 'price',
  description: 'The price of a symbol',
  inputSchema: {
    type: 'object',
    properties: { symbol: { type: 'string' } },
    required: ['symbol'],
  },
  handler: async ({ symbol }: { symbol: string }) => ({
    content: [{ type: 'text', text: `${symbol}: 1` }],
  }),
} as const;

const sumTool: McpToolDefinition = {
  name: 'sum',
  description: 'A sum',
  inputSchema: { a: z.number(), b: z.number() },
  annotations: {
    title: 'Sum',
    readOnlyHint: true,
    destructiveHint: false,
    idempotentHint: true,
    openWorldHint: false,
  },
  handler: async ({ a, b }: { a: number; b: number }) => ({ content: [{ type: 'text', text: String(a + b) }] }),
};

const catalog: ToolSetCatalog = {
  quotes: { name: 'Quotes', description: 'Prices', modules: ['quotes'], decisionCriteria: 'For prices' },
  math: { name: 'Math', description: 'Sums', tools: [sumTool] },
  tenant: { name: 'Tenant', description: 'Of one tenant', modules: ['tenant'] },
  secret: { name: 'Secret', description: 'Not for clients', tools: [sumTool] },
};

const moduleLoaders: Record<string, ModuleLoader> = {
  quotes: async () => [priceTool],
  tenant: async (ctx) => [
    {
      name: 'whoami',
      description: 'Who it is',
      inputSchema: {},
      handler: async () => ({ content: [{ type: 'text', text: `${ctx.baseValue} ${ctx.USER_ID}` }] }),
    },
  ],
};

export const exceeded: [string[], string[]][] = [];

const exposurePolicy: ExposurePolicy = {
  maxActiveToolsets: 2,
  namespaceToolsWithSetKey: true,
  allowlist: ['quotes', 'math', 'tenant'],
  denylist: ['secret'],
  onLimitExceeded: (attempted, active) => {
    exceeded.push([attempted, active]);
  },
};

const sessionContext: SessionContextConfig = {
  enabled: true,
  queryParam: { name: 'config', encoding: 'base64', allowedKeys: ['USER_ID'] },
  contextResolver: (request, baseContext, parsedConfig) => ({
    ...(baseContext as object),
    ...parsedConfig,
    clientId: request.clientId,
  }),
  merge: 'shallow',
};

const configSchema = {
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  type: 'object',
  properties: { USER_ID: { type: 'string', title: 'User' } },
  required: ['USER_ID'],
} as const;

const endpoint = defineEndpoint({
  method: 'GET',
  path: '/api/users',
  querySchema: z.object({
    limit: z.coerce.number().int().positive().default(10),
    role: z.enum(['admin', 'user']).optional(),
  }),
  responseSchema: z.object({ users: z.array(z.object({ id: z.string() })), limit: z.number() }),
  handler: async (req) => ({ users: [{ id: req.clientId }], limit: req.query.limit }),
});

export async function dynamic() {
  const app = Fastify();
  const { server, start, close } = await createMcpServer({
    catalog,
    moduleLoaders,
    exposurePolicy,
    context: { baseValue: 'shared' },
    sessionContext,
    startup: { mode: 'DYNAMIC' },
    registerMetaTools: true,
    http: { host: '127.0.0.1', port: 0, basePath: '/', cors: true, logger: false, app, customEndpoints: [endpoint] },
    createServer: () =>
      new McpServer(
        { name: 'my-mcp-server', version: '0.4.2' },
        { capabilities: { tools: { listChanged: true } }, instructions: 'Look for toolsets first.' },
      ),
    configSchema,
  });
  await start();
  const origin = await app.listen({ port: 0, host: '127.0.0.1' });
  return {
    server,
    origin,
    close: async () => {
      await close();
      await app.close();
    },
  };
}

export async function fixed() {
  const handle = await createMcpServer({
    catalog,
    moduleLoaders,
    startup: { mode: 'STATIC', toolsets: ['quotes', 'math'] },
    http: { port: 0 },
    createServer: () => new McpServer({ name: 'static-1', version: '0.0.0' }),
  });
  await handle.start();
  return handle;
}

export async function permitted(source: 'headers' | 'config') {
  const permissions: PermissionConfig =
    source === 'headers'
      ? { source: 'headers', headerName: 'mcp-toolset-permissions' }
      : {
          source: 'config',
          staticMap: { 'special-client': ['math'] },
          resolver: (clientId: string) => {
            if (clientId.startsWith('admin-')) return ['math', 'quotes'];
            if (clientId === 'special-client') throw new Error('not known');
            return [];
          },
          defaultPermissions: [],
        };
  const handle = await createPermissionBasedMcpServer({
    catalog,
    moduleLoaders,
    permissions,
    exposurePolicy: { namespaceToolsWithSetKey: true },
    http: {
      port: 0,
      customEndpoints: [
        definePermissionAwareEndpoint({
          method: 'GET',
          path: '/api/me',
          responseSchema: z.object({
            clientId: z.string(),
            allowedToolsets: z.array(z.string()),
            isAdmin: z.boolean(),
          }),
          handler: async (req) => ({
            clientId: req.clientId,
            allowedToolsets: req.allowedToolsets,
            isAdmin: req.allowedToolsets.includes('quotes'),
          }),
        }),
      ],
    },
    createServer: () => new McpServer({ name: 'permission-server', version: '1.0.0' }),
  });
  await handle.start();
  return handle;
}
