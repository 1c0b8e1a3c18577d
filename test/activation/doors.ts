/** Both doors with one face, so that a test about what a client sees is written once. */
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Client } from '@modelcontextprotocol/sdk/client/index.js';
import type { McpError } from '@modelcontextprotocol/sdk/types.js';
import { beforeAll, expect } from 'vitest';
import { readMembers } from '../../src/protocol/json.ts';
import type { Connection } from '../support/connection.ts';
import { type GatewayOptions, type HttpGateway, startHttp, startStdio } from '../support/gateway.ts';
import { waitFor } from '../support/processes.ts';

export type Door = 'stdio' | 'http';
export const doors: Door[] = ['stdio', 'http'];

/** A client at a gateway. */
export interface Guest extends Connection {
  readonly cwd: string;
  /** The gateway's log. */
  stderr(): string;
  /** The result or the error of a request with `params` as raw text, raw as well. */
  raw(method: string, params: string): Promise<{ readonly result?: string; readonly error?: string }>;
}

/** A gateway with one client. Over HTTP it is ready, unless told otherwise. */
export async function enter(door: Door, options: GatewayOptions & { readonly ready?: boolean }): Promise<Guest> {
  if (door === 'stdio') {
    const gateway = await startStdio(options);
    return { ...gateway, raw: async (method, params) => rawAnswer(await gateway.request(method, params)) };
  }
  return visit(await startHttp(options));
}

/**
 * For the tests of one `describe`: each call gives a client with a fresh selection. Over HTTP that is a session of one
 * gateway for all, over stdio a gateway of its own. `options` is called where files may be made.
 */
export function useGateway(door: Door, options: () => GatewayOptions): () => Promise<Guest> {
  if (door === 'stdio') return () => enter(door, options());
  let gateway: HttpGateway;
  beforeAll(async () => {
    gateway = await startHttp(options());
  });
  return () => visit(gateway);
}

/** A new session at a gateway that is there. */
export async function visit(gateway: HttpGateway): Promise<Guest> {
  const connection = await gateway.connect();
  const session = { 'mcp-session-id': connection.transport.sessionId ?? '' };
  let count = 0;
  const raw = async (method: string, params: string) => {
    const id = `raw-${++count}`;
    const response = await gateway.post(
      `{"jsonrpc":"2.0","id":"${id}","method":"${method}","params":${params}}`,
      session,
    );
    const text = await response.text();
    return rawAnswer(Buffer.from(text.startsWith('{') ? text : (/^data: (.*)$/m.exec(text)?.[1] ?? '')));
  };
  return { ...connection, raw, cwd: gateway.cwd, stderr: gateway.stderr };
}

function rawAnswer(message: Buffer): { result?: string; error?: string } {
  const members = readMembers(message) ?? [];
  const raw = (name: string) =>
    members
      .filter(({ key }) => key === name)
      .map(({ start, end }) => [name, message.toString('utf8', start, end)] as const);
  return Object.fromEntries([...raw('result'), ...raw('error')]);
}

export interface Lists {
  readonly tools_on?: string[];
  readonly tools_off?: string[];
  readonly resources_on?: string[];
  readonly resources_off?: string[];
}

export interface ToolResult {
  readonly content: { readonly type: string; readonly text: string }[];
  readonly isError?: boolean;
}

export async function call(client: Client, name: string, args: Record<string, unknown> = {}): Promise<ToolResult> {
  return (await client.callTool({ name, arguments: args })) as unknown as ToolResult;
}

/** The text of a call that went well. */
export async function callText(client: Client, name: string, args?: Record<string, unknown>): Promise<string> {
  const { content, isError } = await call(client, name, args);
  expect(isError, content[0]?.text).toBeFalsy();
  return content[0]!.text;
}

/** Calls the activation tool; lists that are not given are empty. */
export function activate(client: Client, lists: Lists): Promise<ToolResult> {
  return call(client, 'toolman_activate', {
    tools_on: [],
    tools_off: [],
    resources_on: [],
    resources_off: [],
    ...lists,
  });
}

/** Calls the activation tool and expects it to agree. */
export async function activated(client: Client, lists: Lists): Promise<string> {
  const { content, isError } = await activate(client, lists);
  expect(isError, content[0]?.text).toBeFalsy();
  return content[0]!.text;
}

export interface OwnError {
  readonly success: unknown;
  readonly result: unknown;
  readonly code: string;
  readonly message: string;
}

/** The error of Toolgate's own in a result, checked for its form. */
export function ownError({ content, isError }: ToolResult): OwnError {
  expect(isError).toBe(true);
  expect(content).toHaveLength(1);
  const body = JSON.parse(content[0]!.text) as OwnError;
  expect(Object.keys(body)).toEqual(['success', 'result', 'code', 'message']);
  expect([body.success, body.result]).toEqual([false, null]);
  return body;
}

/** The error that a request other than a call is answered with. */
export async function refusal(request: Promise<unknown>): Promise<McpError> {
  return request.then(
    () => {
      throw new Error('it was accepted');
    },
    (error: McpError) => error,
  );
}

/** All names of a client's tools but the activation tool's. */
export async function toolNames(client: Client): Promise<string[]> {
  const [first, ...others] = (await client.listTools()).tools.map(({ name }) => name);
  expect(first).toBe('toolman_activate');
  return others;
}

export async function resourceUris(client: Client): Promise<string[]> {
  return (await client.listResources()).resources.map(({ uri }) => uri);
}

export async function templateUris(client: Client): Promise<string[]> {
  return (await client.listResourceTemplates()).resourceTemplates.map(({ uriTemplate }) => uriTemplate);
}

export async function promptNames(client: Client): Promise<string[]> {
  return (await client.listPrompts()).prompts.map(({ name }) => name);
}

/** The lines of the catalog in the activation tool's description: `*` and all. */
export async function catalogLines(client: Client): Promise<{ tools: string[]; resources: string[] }> {
  const { tools } = await client.listTools();
  const [, tool = '', resource = ''] = /\nTools:\n(.*)\n\nResources:\n(.*)$/s.exec(tools[0]?.description ?? '') ?? [];
  return { tools: tool.split('\n'), resources: resource.split('\n') };
}

export interface Received {
  readonly method: string;
  readonly params?: Record<string, unknown>;
}

/** What a fixture with `--log` was sent, of one method. */
export function received(log: string, method: string): Received[] {
  const lines = readFileSync(log, 'utf8').trimEnd().split('\n');
  return lines.map((line) => JSON.parse(line) as Received).filter((message) => message.method === method);
}

/** Expects so many list-changed notifications, no fewer and, when all is quiet, no more. */
export async function expectTold({ changes }: Guest, tools: number, resources: number, prompts: number): Promise<void> {
  const told = () => [changes('tools'), changes('resources'), changes('prompts')];
  const expected = [tools, resources, prompts];
  // If they do not come, the comparison below says more than a time-out.
  await waitFor(() => told().every((count, i) => count >= expected[i]!)).catch(() => {});
  await sleep(150);
  expect(told()).toEqual(expected);
}
