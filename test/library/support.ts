/** Servers with toolsets in this process, and clients of both eras. */
import type { CallToolResult } from '@modelcontextprotocol/sdk/types.js';
import {
  type CreateMcpServerOptions,
  type CreatePermissionBasedMcpServerOptions,
  createMcpServer,
  createPermissionBasedMcpServer,
  type McpServerHandle,
} from '../../src/index.ts';
import { atEnd } from '../support/cleanup.ts';
import { connectHttp } from '../support/connection.ts';
import { connectModernHttp } from '../support/modern.ts';

type Given<Options> = Omit<Options, 'http'> & { readonly http?: CreateMcpServerOptions['http'] };

/** A server on a free port. */
export async function startServer(options: Given<CreateMcpServerOptions>): Promise<McpServerHandle & { url: string }> {
  return started(await createMcpServer({ ...options, http: { port: 0, ...options.http } }));
}

export async function startPermitted(
  options: Given<CreatePermissionBasedMcpServerOptions>,
): Promise<McpServerHandle & { url: string }> {
  return started(await createPermissionBasedMcpServer({ ...options, http: { port: 0, ...options.http } }));
}

async function started(handle: McpServerHandle): Promise<McpServerHandle & { url: string }> {
  atEnd(() => handle.close());
  await handle.start();
  return handle as McpServerHandle & { url: string };
}

/** What tests do with a client of either era. */
export interface TestClient {
  /** The names of the tools that it sees. */
  names(): Promise<string[]>;
  call(name: string, args?: Record<string, unknown>): Promise<CallToolResult>;
  /** The text of a tool's result, or its JSON. */
  text(name: string, args?: Record<string, unknown>): Promise<string>;
  json(name: string, args?: Record<string, unknown>): Promise<Record<string, unknown>>;
  /** How often it was notified that its tools changed. */
  changes(): number;
  server(): { name: string; version: string } | undefined;
  close(): Promise<void>;
  /** Ends the session if there is one. */
  leave(): Promise<void>;
}

export type Era = 'v1 (sessions)' | 'v2 (no sessions)';
export const ERAS: readonly Era[] = ['v1 (sessions)', 'v2 (no sessions)'];

export async function connect(era: Era, url: string, headers: Record<string, string>): Promise<TestClient> {
  if (era === 'v1 (sessions)') {
    const { client, changes, transport } = await connectHttp(url, headers);
    return testClient(client as unknown as SomeClient, changes, () => transport.terminateSession());
  }
  const { client, changes } = await connectModernHttp(url, headers);
  return testClient(client as unknown as SomeClient, changes);
}

export interface SomeClient {
  listTools(): Promise<{ tools: { name: string }[] }>;
  callTool(call: { name: string; arguments: Record<string, unknown> }): Promise<unknown>;
  getServerVersion(): { name: string; version: string } | undefined;
  close(): Promise<void>;
}

export function testClient(
  client: SomeClient,
  changes: (kind: 'tools') => number,
  terminate: () => Promise<void> = async () => {},
): TestClient {
  const call = async (name: string, args: Record<string, unknown> = {}) =>
    (await client.callTool({ name, arguments: args })) as CallToolResult;
  const text = async (name: string, args: Record<string, unknown> = {}) => textOf(await call(name, args));
  return {
    names: async () => (await client.listTools()).tools.map(({ name }) => name),
    call,
    text,
    json: async (name, args) => JSON.parse(await text(name, args)) as Record<string, unknown>,
    changes: () => changes('tools'),
    server: () => client.getServerVersion(),
    close: () => client.close(),
    async leave() {
      await terminate();
      await client.close();
    },
  };
}

export function textOf({ content }: CallToolResult): string {
  return content.map((block) => (block.type === 'text' ? block.text : '')).join('');
}

export const withId = (id: string) => ({ 'mcp-client-id': id });

export const META = ['list_tools', 'list_toolsets', 'enable_toolset', 'disable_toolset', 'describe_toolset'];
