/**
 * The types of the public interface, as programs use them. `npm run check` compiles this file, and that is the test: lines below
 * `@ts-expect-error` must not compile. Add a part here for every new export.
 */
import type { RequestListener } from 'node:http';
import { Client } from '@modelcontextprotocol/client';
import { Client as LegacyClient } from '@modelcontextprotocol/sdk/client/index.js';
import { McpServer as LegacyServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { McpServer } from '@modelcontextprotocol/server';
import { describe, expectTypeOf, it } from 'vitest';
import * as z from 'zod';
import * as mini from 'zod/mini';
import {
  type AuditRecord,
  type CallResult,
  type Config,
  configFromValue,
  connectInMemory,
  createGateway,
  createHttpDoor,
  createMcpServer,
  createPermissionBasedMcpServer,
  createVisitor,
  defineEndpoint,
  defineTool,
  type ErrorBody,
  type ErrorCode,
  type EventMap,
  type EventName,
  type Gateway,
  GatewayError,
  type HttpDoor,
  type JsonSchema,
  type Kind,
  type ListeningDoor,
  loadConfig,
  logCalls,
  type McpServerHandle,
  type Middleware,
  mountToolsets,
  openHttpDoor,
  openLocalDoor,
  readAudit,
  type Seen,
  type StandardSchema,
  type ToolCallResult,
  type ToolContext,
  type ToolDefinition,
  type ToolResult,
  type ToolSetCatalog,
  type Toolset,
  type Tracer,
} from '../../src/index.ts';

describe('defineTool', () => {
  it('infers arguments from zod, after parsing', () => {
    const tool = defineTool({
      description: 'x',
      inputSchema: z.object({ city: z.string(), days: z.number().default(1), unit: z.enum(['C', 'F']).optional() }),
      execute(input, context) {
        expectTypeOf(input).toEqualTypeOf<{ city: string; days: number; unit?: 'C' | 'F' | undefined }>();
        expectTypeOf(context).toEqualTypeOf<ToolContext>();
        return input.city;
      },
    });
    expectTypeOf(tool.execute).parameter(0).toHaveProperty('days').toEqualTypeOf<number>();
    defineTool({
      description: 'x',
      inputSchema: mini.object({ a: mini.string() }),
      execute: ({ a }) => expectTypeOf(a).toEqualTypeOf<string>() && a,
    });
  });

  it('infers arguments from any Standard Schema', () => {
    // As in valibot, arktype and others: the schema turns the input into another output.
    const schema = {} as StandardSchema<{ when: string }, { when: Date }>;
    defineTool({
      description: 'x',
      inputSchema: schema,
      execute({ when }) {
        expectTypeOf(when).toEqualTypeOf<Date>();
        return when.toISOString();
      },
    });
  });

  it('infers no arguments from a plain JSON Schema', () => {
    const tool = defineTool({
      description: 'x',
      inputSchema: { type: 'object', properties: { a: { type: 'string' } } },
      execute(input) {
        expectTypeOf(input).toEqualTypeOf<Record<string, unknown>>();
        return input.a;
      },
    });
    expectTypeOf(tool).toExtend<ToolDefinition<JsonSchema>>();
  });

  it('requires what the output schema accepts, or a complete result', () => {
    const output = z.object({ sum: z.number() });
    const result: ToolResult = { content: [{ type: 'text', text: 'x' }] };
    defineTool({ description: 'x', inputSchema: {}, outputSchema: output, execute: () => ({ sum: 1 }) });
    defineTool({ description: 'x', inputSchema: {}, outputSchema: output, execute: async () => result });
    // @ts-expect-error: it must be a number.
    defineTool({ description: 'x', inputSchema: {}, outputSchema: output, execute: () => ({ sum: '1' }) });
    // @ts-expect-error: the description is missing.
    defineTool({ inputSchema: {}, execute: () => 1 });
    // @ts-expect-error: there is no such annotation.
    defineTool({ description: 'x', inputSchema: {}, annotations: { readonly: true }, execute: () => 1 });
  });
});

describe('errors', () => {
  it('have a code from a fixed list', () => {
    const error = new GatewayError('forbidden', 'No.', { details: { tool: 'x' } });
    expectTypeOf(error).toExtend<Error>();
    expectTypeOf(error.code).toEqualTypeOf<ErrorCode>();
    expectTypeOf(error.body).toEqualTypeOf<ErrorBody>();
    expectTypeOf<'item_unknown' | 'config_invalid' | 'source_timeout' | 'cancelled'>().toExtend<ErrorCode>();
    // @ts-expect-error: there is no such code.
    new GatewayError('no_such_code', 'x');
    // @ts-expect-error: comparing with an unknown code.
    if (error.code === 'no_such_code') throw error;
  });
});

describe('a gateway', () => {
  const use = (gateway: Gateway, config: Config) => {
    gateway.apply(config);
    // @ts-expect-error: configurations come from loadConfig or configFromValue.
    gateway.apply({ servers: {} });
    // @ts-expect-error: only the gateway changes its fields.
    gateway.catalog = null as never;
    expectTypeOf(gateway.catalog.entries).toHaveProperty('tool');
    expectTypeOf(gateway.close).returns.toEqualTypeOf<Promise<void>>();
    expectTypeOf(gateway.statuses()[0]!.breaker.state).toEqualTypeOf<'closed' | 'open' | 'trying'>();
    return openLocalDoor(gateway, 'all', 'ci');
  };

  it('is created from a configuration, read from a file or written in code', () => {
    expectTypeOf(loadConfig).returns.toEqualTypeOf<Promise<Config>>();
    expectTypeOf(configFromValue).returns.toEqualTypeOf<Config>();
    expectTypeOf(configFromValue).parameter(0).toEqualTypeOf<unknown>();
    expectTypeOf(createGateway).parameter(0).toEqualTypeOf<Config>();
    expectTypeOf(createGateway).returns.toEqualTypeOf<Gateway>();
  });

  it('is used through doors', () => {
    expectTypeOf(use).returns.toHaveProperty('callTool').returns.toEqualTypeOf<Promise<Buffer>>();
    expectTypeOf(use).returns.toHaveProperty('list').parameter(0).toEqualTypeOf<Kind>();
    expectTypeOf(openHttpDoor).returns.toEqualTypeOf<Promise<ListeningDoor>>();
    // @ts-expect-error: the address is missing.
    const wrong = (gateway: Gateway) => openHttpDoor(gateway, { port: 0 });
    void wrong;
  });
});

describe('events', () => {
  it('have the fields that belong to their name', () => {
    const hear = ({ events }: Gateway) => {
      const stop = events.on('source', (event) => {
        expectTypeOf(event).toEqualTypeOf<EventMap['source']>();
        expectTypeOf(event.state).toEqualTypeOf<string>();
      });
      events.listen((name) => {
        const said: EventName = name;
        void said;
      });
      // @ts-expect-error: there is no such event.
      events.on('sources', () => {});
      // @ts-expect-error: this event has no source.
      events.on('config', ({ source }) => source);
      return stop;
    };
    expectTypeOf(hear).returns.toEqualTypeOf<() => void>();
  });
});

describe('middleware', () => {
  it('returns what it got from next, or another result', () => {
    const pass: Middleware = (_call, next) => next();
    const answer: Middleware = () => ({ content: [] });
    const change: Middleware = async ({ arguments: args, signal }, next) => {
      expectTypeOf(args).toEqualTypeOf<unknown>();
      expectTypeOf(signal).toEqualTypeOf<AbortSignal>();
      const result = await next({ path: '.' });
      expectTypeOf(result).toEqualTypeOf<CallResult>();
      expectTypeOf(result.value).toEqualTypeOf<Record<string, unknown>>();
      return { ...result.value };
    };
    const add = (gateway: Gateway) => [pass, answer, change, logCalls(() => {})].map((one) => gateway.use(one));
    expectTypeOf(add).returns.toEqualTypeOf<(() => void)[]>();
    // @ts-expect-error: a string is not a result.
    const wrong: Middleware = () => 'text';
    void wrong;
  });
});

describe('toolsets in your own server', () => {
  it('accept tools with inferred arguments', () => {
    const execute = defineTool({
      name: 'add',
      description: 'x',
      inputSchema: z.object({ a: z.number() }),
      execute: ({ a }) => a,
    });
    const handler = defineTool({
      name: 'echo',
      description: 'x',
      inputSchema: z.object({ text: z.string() }),
      handler(args) {
        expectTypeOf(args).toEqualTypeOf<{ text: string }>();
        return args.text;
      },
    });
    const catalog: ToolSetCatalog = { math: { name: 'Math', description: 'x', tools: [execute, handler] } };
    const make = () => createMcpServer({ catalog, createServer: () => new McpServer({ name: 'a', version: '1' }) });
    expectTypeOf(make).returns.resolves.toEqualTypeOf<McpServerHandle<McpServer>>();
    expectTypeOf<McpServerHandle>().toHaveProperty('gateway').toEqualTypeOf<Gateway>();
    // @ts-expect-error: there is no such mode.
    const mode = () => createMcpServer({ catalog, startup: { mode: 'LAZY' } });
    // @ts-expect-error: permissions are missing.
    const bare = () => createPermissionBasedMcpServer({ catalog });
    const options = { catalog, permissions: { source: 'config' }, startup: { mode: 'STATIC' } } as const;
    // @ts-expect-error: permissions and startup exclude each other.
    const startup = () => createPermissionBasedMcpServer(options);
    void [mode, bare, startup];
  });

  it('are mounted in servers of both SDKs', () => {
    const mount = (catalog: ToolSetCatalog) => [
      mountToolsets(new McpServer({ name: 'a', version: '1' }), { catalog }),
      mountToolsets(new LegacyServer({ name: 'a', version: '1' }), { catalog, clientId: 'me' }),
      // @ts-expect-error: this is not a server.
      mountToolsets({}, { catalog }),
    ];
    expectTypeOf(mount).returns.items.toEqualTypeOf<Promise<McpServerHandle<null>>>();
  });

  it('have endpoints whose handlers know the types of validated values', () => {
    defineEndpoint({
      method: 'POST',
      path: '/users/:id',
      paramsSchema: z.object({ id: z.string() }),
      bodySchema: z.object({ age: z.number() }),
      handler: ({ params, body }) => {
        expectTypeOf(params).toEqualTypeOf<{ id: string }>();
        expectTypeOf(body).toEqualTypeOf<{ age: number }>();
        return { id: params.id };
      },
    });
    // @ts-expect-error: there is no such method.
    defineEndpoint({ method: 'FETCH', path: '/', handler: () => ({}) });
  });
});

describe('a program around a gateway', () => {
  it('gets typed values', () => {
    const ask = (gateway: Gateway) => gateway.call<{ sum: number }>('math_add', { a: 1 }, { agent: 'ci' });
    expectTypeOf(ask).returns.resolves.toEqualTypeOf<ToolCallResult<{ sum: number }>>();
    const look = (gateway: Gateway) => gateway.view({ agent: 'ci' });
    expectTypeOf(look).returns.resolves.toEqualTypeOf<Seen>();
    // @ts-expect-error: arguments must be an object.
    const wrong = (gateway: Gateway) => gateway.call('math_add', [1]);
    void wrong;
  });

  it('connects clients of both SDKs in memory', () => {
    const connect = async (gateway: Gateway) => {
      await new Client({ name: 'a', version: '1' }).connect(connectInMemory(gateway));
      await new LegacyClient({ name: 'a', version: '1' }).connect(connectInMemory(gateway, { agent: 'ci' }));
    };
    expectTypeOf(connect).returns.toEqualTypeOf<Promise<void>>();
  });

  it('mounts the HTTP door in its own servers', () => {
    const door = (gateway: Gateway) =>
      createHttpDoor(gateway, { basePath: '/tools', identify: () => createVisitor('ci', { isAdmin: true }) });
    expectTypeOf(door).returns.resolves.toEqualTypeOf<HttpDoor>();
    expectTypeOf<HttpDoor['handle']>().toExtend<RequestListener>();
  });
});

describe('everything other than calls', () => {
  it('has types too', () => {
    expectTypeOf(readAudit).returns.toEqualTypeOf<AsyncGenerator<AuditRecord>>();
    expectTypeOf<Toolset['tools'][number]['namespacedName']>().toEqualTypeOf<string>();
    const tracer: Tracer = { start: () => null };
    expectTypeOf<Gateway['trace']>().parameter(0).toExtend<Tracer | null>();
    void tracer;
  });
});
