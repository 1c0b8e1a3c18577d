/** What TypeScript infers. The compiler checks this, not a run. */
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { expectTypeOf, it } from 'vitest';
import * as z from 'zod';
import { z as z3 } from 'zod/v3';
import {
  type CreateMcpServerOptions,
  createMcpServer,
  createPermissionBasedMcpServer,
  defineEndpoint,
  definePermissionAwareEndpoint,
  defineTool,
  type McpServerHandle,
  type McpToolDefinition,
  type ToolContext,
  type ToolSetCatalog,
} from '../../src/index.ts';

it('infers the arguments of tools from their schemas', () => {
  defineTool({
    description: 'x',
    inputSchema: z.object({ a: z.string(), b: z.number().default(1) }),
    execute(input, context) {
      expectTypeOf(input).toEqualTypeOf<{ a: string; b: number }>();
      expectTypeOf(context).toEqualTypeOf<ToolContext>();
      expectTypeOf(context.clientId).toEqualTypeOf<string | undefined>();
    },
  });
  defineTool({
    name: 'x',
    description: 'x',
    inputSchema: z.object({ a: z.string() }),
    handler: (args) => expectTypeOf(args).toEqualTypeOf<{ a: string }>(),
  });
  defineTool({
    name: 'x',
    description: 'x',
    inputSchema: { a: z.string(), b: z.coerce.number() },
    handler: (args) => expectTypeOf(args).toEqualTypeOf<{ readonly a: string; readonly b: number }>(),
  });
  defineTool({
    name: 'x',
    description: 'x',
    inputSchema: { type: 'object' },
    handler: (args) => expectTypeOf(args).toEqualTypeOf<Record<string, unknown>>(),
  });
  const loose: McpToolDefinition = { name: 'x', description: 'x', handler: ({ a }: { a: string }) => a };
  expectTypeOf(loose.handler).parameter(0).toBeAny();
});

it('infers what endpoints receive', () => {
  defineEndpoint({
    method: 'POST',
    path: '/:id',
    paramsSchema: z3.object({ id: z3.string() }),
    querySchema: z.object({ limit: z.coerce.number() }),
    bodySchema: z.object({ name: z.string() }),
    responseSchema: z.object({ ok: z.boolean() }),
    handler({ params, query, body, clientId }) {
      expectTypeOf(params).toEqualTypeOf<{ id: string }>();
      expectTypeOf(query).toEqualTypeOf<{ limit: number }>();
      expectTypeOf(body).toEqualTypeOf<{ name: string }>();
      expectTypeOf(clientId).toEqualTypeOf<string>();
      return { ok: true };
    },
  });
  defineEndpoint({
    method: 'GET',
    path: '/',
    responseSchema: z.object({ n: z.number() }),
    // @ts-expect-error: it does not fit the schema
    handler: () => ({ n: 'x' }),
  });
  definePermissionAwareEndpoint({
    method: 'GET',
    path: '/',
    handler: ({ allowedToolsets }) => expectTypeOf(allowedToolsets).toEqualTypeOf<string[]>(),
  });
});

it('knows what createServer returns, and which options exclude each other', () => {
  const create = () => createMcpServer({ catalog: {}, createServer: () => new McpServer({ name: 'a', version: '1' }) });
  expectTypeOf(create).returns.resolves.toEqualTypeOf<McpServerHandle<McpServer>>();
  const without = () => createMcpServer({ catalog: {} });
  expectTypeOf(without).returns.resolves.toEqualTypeOf<McpServerHandle<null>>();
  const typed = (options: CreateMcpServerOptions) => createMcpServer(options);
  expectTypeOf(typed).returns.resolves.toHaveProperty('start');
  // @ts-expect-error: permissions are missing
  const lacking = () => createPermissionBasedMcpServer({ catalog: {} });
  const both = () =>
    // @ts-expect-error: permissions and startup exclude each other
    createPermissionBasedMcpServer({ catalog: {}, permissions: { source: 'headers' }, startup: {} });
  expectTypeOf(lacking).toBeFunction();
  expectTypeOf(both).toBeFunction();
});

it('refuses options and members that do not exist', () => {
  const own = { name: 'Own', description: 'x' };
  const permissions = { source: 'headers' } as const;
  void [
    // @ts-expect-error: it is called authenticate.
    () => createPermissionBasedMcpServer({ catalog: { own }, permissions, authentcate: () => null }),
    // @ts-expect-error: it is called moduleLoaders.
    () => createMcpServer({ catalog: { own }, moduleLoader: {} }),
    // @ts-expect-error: it is called exposurePolicy.
    () => createMcpServer({ catalog: { own }, exposurPolicy: {} }),
    // @ts-expect-error: it is called denylist.
    () => createMcpServer({ catalog: { own }, exposurePolicy: { maxActiveToolsets: 1, denyList: ['own'] } }),
    // @ts-expect-error: it is called port.
    () => createMcpServer({ catalog: { own }, http: { host: '::', prot: 1 } }),
    // @ts-expect-error: it is called toolsets.
    () => createMcpServer({ catalog: { own }, startup: { mode: 'STATIC', toolset: ['own'] } }),
    // @ts-expect-error: it is called tools.
    () => createMcpServer({ catalog: { own: { name: 'Own', description: 'x', tols: [] } } }),
    () =>
      createMcpServer({
        // @ts-expect-error: it is called timeoutMs.
        catalog: { own: { ...own, tools: [{ name: 'a', description: 'x', timeoutMS: 1, handler: () => 1 }] } },
      }),
    () =>
      createPermissionBasedMcpServer({
        catalog: { own },
        // @ts-expect-error: it is called defaultPermissions.
        permissions: { source: 'config', defaultPermission: [] },
      }),
  ];
});

it('knows the names of toolsets and loaders', () => {
  const own = { name: 'Own', description: 'x' };
  const catalog = { own, other: own };
  const names: readonly string[] = ['from', 'a', 'file'];
  const any: ToolSetCatalog = catalog;
  void [
    () => createMcpServer({ catalog, startup: { toolsets: ['own'] }, exposurePolicy: { denylist: ['other'] } }),
    () => createMcpServer({ catalog, startup: { toolsets: names }, exposurePolicy: { denylist: names } }),
    () => createMcpServer({ catalog: any, startup: { toolsets: ['later'] } }),
    // @ts-expect-error: there is no such toolset.
    () => createMcpServer({ catalog, startup: { toolsets: ['owm'] } }),
    // @ts-expect-error: there is no such toolset.
    () => createMcpServer({ catalog, exposurePolicy: { denylist: ['othr'] } }),
    () =>
      createPermissionBasedMcpServer({
        catalog,
        permissions: { source: 'config', staticMap: { ann: ['own'] }, resolver: () => names },
      }),
    // @ts-expect-error: there is no such toolset.
    () => createPermissionBasedMcpServer({ catalog, permissions: { source: 'config', staticMap: { ann: ['owm'] } } }),
    () => createMcpServer({ catalog: { own: { ...own, modules: ['db'] } }, moduleLoaders: { db: () => [] } }),
    () => createMcpServer({ catalog: { own: { ...own, modules: names } }, moduleLoaders: { db: () => [] } }),
    // @ts-expect-error: there is no such loader.
    () => createMcpServer({ catalog: { own: { ...own, modules: ['bd'] } }, moduleLoaders: { db: () => [] } }),
    // @ts-expect-error: there are no loaders.
    () => createMcpServer({ catalog: { own: { ...own, modules: ['db'] } } }),
  ];
});

it('lets an endpoint answer with a status of its own', () => {
  defineEndpoint({
    method: 'GET',
    path: '/',
    responseSchema: z.object({ n: z.number() }),
    handler: () => (Math.random() > 1 ? { n: 1 } : Response.json({ error: 'gone' }, { status: 404 })),
  });
});
