/** One interface for every door, so that a test about what a client sees is written only once. */
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { beforeAll, expect } from 'vitest';
import { readMembers } from '../../src/protocol/json.ts';
import { type Ending, type Exit, withMembers } from './child.ts';
import type { Told } from './connection.ts';
import { type GatewayOptions, type HttpGateway, startHttp, startModernStdio, startStdio } from './gateway.ts';
import { enveloped, mirrored } from './modern.ts';
import { waitFor } from './processes.ts';
import { isAboutProcesses } from './switch.ts';
import { onePart, some } from './wide.ts';

/** The modern doors use clients of SDK v2, pinned to the revision without sessions. The others use clients of v1. */
export const allDoors = ['stdio', 'http', 'modern stdio', 'modern http'] as const;
export type Door = (typeof allDoors)[number];
const USUAL: readonly Door[] = ['stdio', 'modern http'];
export const doors: readonly Door[] = some(allDoors, USUAL);

/** The door at which gateways of a wide run are processes of their own: the other one of the two after some commits. */
const PROCESS_DOOR = USUAL[Number(process.env.SEED) % USUAL.length];

/**
 * A wide run has all doors, and gateways in processes of their own at one of them. A process makes the same difference at the
 * others, and starting one takes longer than most tests.
 */
function processAt(door: Door): GatewayOptions['process'] {
  return door === PROCESS_DOOR || isAboutProcesses() ? undefined : 'with servers';
}

/**
 * For a file about what is the same at every door. The usual run takes one of two doors, which differ most: not the same
 * one for all files, and the other one after some commits.
 */
export function doorsOf(file: string): readonly Door[] {
  const letters = [...file].reduce((sum, letter) => sum + letter.codePointAt(0)!, 0);
  return letters % 2 === 0 ? onePart(doors.length, doors) : onePart(doors.length, doors.toReversed());
}

export function isModern(door: Door): boolean {
  return door.startsWith('modern');
}

/** Whether requests arrive in the order in which they are sent. */
export function isPipe(door: Door): boolean {
  return door.endsWith('stdio');
}

/** The common interface of the clients of both SDKs. */
export interface Client {
  getServerCapabilities(): object | undefined;
  listTools(params?: { cursor?: string }): Promise<{ tools: ListedTool[] }>;
  callTool(params: { name: string; arguments?: Record<string, unknown> }): Promise<object>;
  listResources(): Promise<{ resources: { uri: string }[] }>;
  listResourceTemplates(): Promise<{ resourceTemplates: { uriTemplate: string }[] }>;
  readResource(params: { uri: string }): Promise<{ contents: object[] }>;
  listPrompts(): Promise<{ prompts: { name: string }[] }>;
  getPrompt(params: { name: string; arguments?: Record<string, string> }): Promise<{ messages: { content: object }[] }>;
  close(): Promise<void>;
}

interface ListedTool {
  name: string;
  description?: string | undefined;
  inputSchema: { properties?: Record<string, unknown> | undefined };
}

/** A client connected to a gateway. */
export interface Guest extends Told {
  readonly client: Client;
  readonly cwd: string;
  /** The gateway's log. */
  stderr(): string;
  /** Stops the gateway. */
  stop(how: Ending): Promise<Exit>;
  /** How the listening stream ended, at the modern doors. */
  readonly subscription?: { readonly closed: Promise<string> };
  /** Sends a request with `params` as raw text and returns the raw result or error. */
  raw(method: string, params: string): Promise<RawAnswer>;
}

export interface RawAnswer {
  readonly result?: string;
  readonly error?: string;
}

/** Starts a gateway with one client. Over HTTP it waits until the gateway is ready, unless told otherwise. */
export async function enter(door: Door, given: GatewayOptions & { readonly ready?: boolean }): Promise<Guest> {
  const options = { process: processAt(door), ...given };
  if (!isPipe(door)) return (isModern(door) ? visitModern : visit)(await startHttp(options));
  const gateway = isModern(door) ? await startModernStdio(options) : await startStdio(options);
  const asSent = isModern(door) ? enveloped : (params: string) => params;
  const raw = async (method: string, params: string) => rawAnswer(await gateway.request(method, asSent(params)));
  return withMembers(gateway, { raw });
}

/**
 * For the tests of one `describe`: each call returns a client with a fresh selection. With sessions, a new session is
 * enough. At the other doors the selection belongs to the agent, so each client gets its own gateway. `options` is
 * called at a time when files may be created.
 */
export function useGateway(door: Door, options: () => GatewayOptions): () => Promise<Guest> {
  if (door !== 'http') return () => enter(door, options());
  let gateway: HttpGateway;
  beforeAll(async () => {
    gateway = await startHttp({ process: processAt(door), ...options() });
  });
  return () => visit(gateway);
}

/** Opens a new session at a running gateway. */
export async function visit(gateway: HttpGateway): Promise<Guest> {
  const { transport, ...connection } = await gateway.connect();
  const session = { 'mcp-session-id': transport.sessionId ?? '' };
  return {
    ...connection,
    raw: (method, params) => rawPost(gateway, method, params, session),
    cwd: gateway.cwd,
    stderr: gateway.stderr,
    stop: gateway.stop,
  };
}

/** Connects a new client without a session to a running gateway. */
export async function visitModern(gateway: HttpGateway, headers: Record<string, string> = {}): Promise<Guest> {
  return {
    ...(await gateway.connectModern(headers)),
    raw: (method, params) => rawPost(gateway, method, enveloped(params), { ...headers, ...mirrored(method, params) }),
    cwd: gateway.cwd,
    stderr: gateway.stderr,
    stop: gateway.stop,
  };
}

let posted = 0;

async function rawPost(gateway: HttpGateway, method: string, params: string, headers: Record<string, string>) {
  const id = `raw-${++posted}`;
  const response = await gateway.post(
    `{"jsonrpc":"2.0","id":"${id}","method":"${method}","params":${params}}`,
    headers,
  );
  const text = await response.text();
  return rawAnswer(Buffer.from(text.startsWith('{') ? text : (/^data: (.+)$/m.exec(text)?.[1] ?? '')));
}

function rawAnswer(message: Buffer): RawAnswer {
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

/** The text of a call, which must succeed. */
export async function callText(client: Client, name: string, args?: Record<string, unknown>): Promise<string> {
  const { content, isError } = await call(client, name, args);
  expect(isError, content[0]?.text).toBeFalsy();
  return content[0]!.text;
}

/** Calls the activation tool. Lists that are not given are empty. */
export function activate(client: Client, lists: Lists): Promise<ToolResult> {
  return call(client, 'toolman_activate', {
    tools_on: [],
    tools_off: [],
    resources_on: [],
    resources_off: [],
    ...lists,
  });
}

/** Calls the activation tool and expects success. */
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

/** Toolgate's own error in a result, with its form checked. */
export function ownError({ content, isError }: ToolResult): OwnError {
  expect(isError).toBe(true);
  expect(content).toHaveLength(1);
  const body = JSON.parse(content[0]!.text) as OwnError;
  expect(Object.keys(body)).toEqual(['success', 'result', 'code', 'message']);
  expect([body.success, body.result]).toEqual([false, null]);
  return body;
}

/** A protocol error, from either SDK. */
export interface Refusal extends Error {
  readonly code: number;
  readonly data?: unknown;
}

/** The error that answers a request other than a tool call. */
export async function refusal(request: Promise<unknown>): Promise<Refusal> {
  return request.then(
    () => {
      throw new Error('it was accepted');
    },
    (error: Refusal) => error,
  );
}

/** The names of all tools of a client except the activation tool. */
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

/** The lines of the catalog in the activation tool's description, including the `*`. */
export async function catalogLines(client: Client): Promise<{ tools: string[]; resources: string[] }> {
  const { tools } = await client.listTools();
  const [, tool = '', resource = ''] = /\nTools:\n(.*)\n\nResources:\n(.*)$/s.exec(tools[0]?.description ?? '') ?? [];
  return { tools: tool.split('\n'), resources: resource.split('\n') };
}

export interface Received {
  readonly method: string;
  readonly params?: Record<string, unknown>;
}

/** The messages of one method that a fixture started with `--log` has received. */
export function received(log: string, method: string): Received[] {
  const lines = readFileSync(log, 'utf8').trimEnd().split('\n');
  return lines.map((line) => JSON.parse(line) as Received).filter((message) => message.method === method);
}

/** Expects exactly this many list-changed notifications, and no more once everything is quiet. */
export async function expectTold({ changes }: Guest, tools: number, resources: number, prompts: number): Promise<void> {
  const told = () => [changes('tools'), changes('resources'), changes('prompts')];
  const expected = [tools, resources, prompts];
  // If they do not arrive, the comparison below fails with a better message than a timeout.
  await waitFor(() => told().every((count, i) => count >= expected[i]!)).catch(() => {});
  await sleep(150);
  expect(told()).toEqual(expected);
}
