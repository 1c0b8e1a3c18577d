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
