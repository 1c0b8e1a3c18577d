/** Hand-written requests of an agent at every door, with no client library in between. */
import { once } from 'node:events';
import { PassThrough } from 'node:stream';
import type { Kind } from '../../src/catalog/item.ts';
import { type Gateway, GatewayError, openLocalDoor, openStdioDoor } from '../../src/index.ts';
import { readMembers } from '../../src/protocol/json.ts';
import { atEnd } from './cleanup.ts';
import { enveloped, mirrored } from './modern.ts';

export interface Reply {
  readonly result?: Record<string, unknown>;
  readonly error?: { readonly code: number; readonly message: string };
}

/** Parameters that are text are sent as they are. */
export type Ask = (method: string, params?: object | string) => Promise<Reply>;

function written(params: object | string): string {
  return typeof params === 'string' ? params : JSON.stringify(params);
}

export const DOORS = ['stdio', 'modern stdio', 'http', 'modern http', 'sse', 'rest', 'local'] as const;

/** Doors that offer only tools. */
export const TOOLS_ONLY: readonly string[] = ['rest', 'local'];

/**
 * Ways to a tool besides the doors: the dashboard in the name of an agent, `call_tool` of the control `search`, and a
 * replica that another one has opened the session for.
 */
type Way = 'page' | 'call_tool' | 'replica';
export type Door = (typeof DOORS)[number] | Way;

/** Whether requests of this method can be made there. */
export function isOffered(door: Door, method: string): boolean {
  if (TOOLS_ONLY.includes(door) || door === 'call_tool') return method === 'tools/call';
  if (door === 'page') return method in TRIED;
  // Subscriptions without a session are asked for in another way.
  return !(door.startsWith('modern') && method === 'resources/subscribe');
}

/** The key of the operator, for the dashboard. */
export const OPERATOR = 'the-key-of-the-operator';

const INITIALIZE = {
  protocolVersion: '2025-11-25',
  capabilities: {},
  clientInfo: { name: 'asking', version: '1' },
};
const JSON_HEADERS = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };

/** `headers` identify the agent over HTTP. `other`: where another replica is. */
export async function openAsk(
  door: Door,
  gateway: Gateway,
  origin: string,
  agent: string,
  headers: Record<string, string>,
  other = origin,
): Promise<Ask> {
  switch (door) {
    case 'stdio':
      return overPipe(gateway, agent, false);
    case 'modern stdio':
      return overPipe(gateway, agent, true);
    case 'http':
      return overSession(origin, headers);
    case 'modern http':
      return overHttp(origin, headers);
    case 'sse':
      return overSse(origin, headers);
    case 'rest':
      return overRest(origin, headers);
    case 'local':
      return inProcess(gateway, agent);
    case 'page':
      return overPage(origin, agent);
    case 'call_tool':
      return throughCall(await overSession(origin, headers));
    case 'replica':
      return overSession(origin, headers, other);
    default:
      return door satisfies never;
  }
}

let count = 0;

function requestText(id: number, method: string, params: string): string {
  return `{"jsonrpc":"2.0","id":${id},"method":"${method}","params":${params}}`;
}

/** Replies by id. */
function createWaiting() {
  const waiting = new Map<unknown, (reply: Reply) => void>();
  return {
    next(id: number): Promise<Reply> {
      return new Promise((resolve) => waiting.set(id, resolve));
    },
    take(text: string): void {
      const reply = JSON.parse(text) as Reply & { readonly id?: unknown };
      // A message that cannot be read has no id. Its sender asks one thing at a time.
      const id = reply.id ?? (reply.error === undefined ? null : [...waiting.keys()].at(-1));
      waiting.get(id)?.(reply);
      waiting.delete(id);
    },
  };
}

async function overPipe(gateway: Gateway, agent: string, modern: boolean): Promise<Ask> {
  const input = new PassThrough();
  const output = new PassThrough();
  const door = openStdioDoor(gateway, input, output, agent);
  atEnd(() => door.close());
  const waiting = createWaiting();
  let rest = '';
  output.on('data', (chunk: Buffer) => {
    const lines = (rest + chunk.toString()).split('\n');
    rest = lines.pop()!;
    for (const line of lines) waiting.take(line);
  });
  const ask: Ask = (method, params = {}) => {
    const id = ++count;
    const text = written(params);
    const answer = waiting.next(id);
    input.write(`${requestText(id, method, modern ? enveloped(text) : text)}\n`);
    return answer;
  };
  if (!modern) await ask('initialize', INITIALIZE);
  return ask;
}

async function read(response: Response): Promise<Reply> {
  const text = await response.text();
  return JSON.parse(text.startsWith('{') ? text : (/^data: (\{.+)$/m.exec(text)?.[1] ?? '{}')) as Reply;
}

/** The session is opened at `origin` and used at `other`. */
async function overSession(origin: string, who: Record<string, string>, other = origin): Promise<Ask> {
  const post = (body: string, headers = {}, at = origin) =>
    fetch(`${at}/mcp`, { method: 'POST', headers: { ...JSON_HEADERS, ...who, ...headers }, body });
  const opened = await post(requestText(0, 'initialize', JSON.stringify(INITIALIZE)));
  const session = { 'mcp-session-id': opened.headers.get('mcp-session-id') ?? '' };
  await opened.text();
  await post('{"jsonrpc":"2.0","method":"notifications/initialized"}', session);
  return async (method, params = {}) => read(await post(requestText(++count, method, written(params)), session, other));
}

async function overHttp(origin: string, who: Record<string, string>): Promise<Ask> {
  return async (method, params = {}) => {
    const text = written(params);
    const headers = { ...JSON_HEADERS, ...who, ...mirrored(method, text) };
    const body = requestText(++count, method, enveloped(text));
    return read(await fetch(`${origin}/mcp`, { method: 'POST', headers, body }));
  };
}

async function overSse(origin: string, who: Record<string, string>): Promise<Ask> {
  const abort = new AbortController();
  atEnd(() => abort.abort());
  const headers = { accept: 'text/event-stream', ...who };
  const response = await fetch(`${origin}/sse`, { headers, signal: abort.signal });
  const waiting = createWaiting();
  const endpoint = new PassThrough({ objectMode: true });
  void (async () => {
    let rest = '';
    for await (const chunk of response.body!) {
      const events = (rest + Buffer.from(chunk as Uint8Array).toString()).split('\n\n');
      rest = events.pop()!;
      for (const event of events) {
        const data = /^data: (.*)$/m.exec(event)?.[1] ?? '';
        if (event.includes('event: endpoint')) endpoint.write(data);
        else if (data.startsWith('{')) waiting.take(data);
      }
    }
  })().catch(() => {});
  const [path] = (await once(endpoint, 'data')) as [string];
  const post = async (body: string) => {
    const headers = { 'content-type': 'application/json', ...who };
    const response = await fetch(`${origin}${path}`, { method: 'POST', headers, body });
    return { ok: response.ok, status: response.status, text: await response.text() };
  };
  const ask: Ask = async (method, params = {}) => {
    const id = ++count;
    const answer = waiting.next(id);
    const { ok, status, text } = await post(requestText(id, method, written(params)));
    return ok ? answer : { error: { code: status, message: text } };
  };
  await ask('initialize', { ...INITIALIZE, protocolVersion: '2024-11-05' });
  await post('{"jsonrpc":"2.0","method":"notifications/initialized"}');
  return ask;
}

/** Lists and calls tools. Listed tools must be in the OpenAPI document too. */
function overRest(origin: string, who: Record<string, string>): Ask {
  return async (method, params = {}) => {
    if (method === 'tools/list') {
      type Tools = { name: string }[];
      const listed = (await (await fetch(`${origin}/tools`, { headers: who })).json()) as Tools | { tools: Tools };
      const tools = Array.isArray(listed) ? listed : listed.tools;
      const document = await (await fetch(`${origin}/openapi.json`, { headers: who })).json();
      const documented = Object.keys((document as { paths: object }).paths);
      if (JSON.stringify(documented) !== JSON.stringify(tools.map(({ name }) => `/tools/${encodeURIComponent(name)}`)))
        throw new Error(`listed are ${JSON.stringify(tools)}, documented ${JSON.stringify(documented)}`);
      return { result: { tools } };
    }
    const text = Buffer.from(written(params));
    const { name } = JSON.parse(text.toString()) as { name: string };
    const args = readMembers(text)!.findLast(({ key }) => key === 'arguments');
    const headers = { 'content-type': 'application/json', ...who };
    const body = args === undefined ? '{}' : text.toString('utf8', args.start, args.end);
    const response = await fetch(`${origin}/tools/${encodeURIComponent(name)}`, { method: 'POST', headers, body });
    const value = (await response.json()) as { message?: string };
    return response.ok ? { result: { value } } : { error: { code: response.status, message: value.message ?? '' } };
  };
}

const LISTS: Readonly<Record<string, [Kind, string]>> = {
  'tools/list': ['tool', 'tools'],
  'resources/list': ['resource', 'resources'],
  'resources/templates/list': ['template', 'resourceTemplates'],
  'prompts/list': ['prompt', 'prompts'],
};

/** Lists and calls tools, which is what a program can do here. */
function inProcess(gateway: Gateway, agent: string): Ask {
  const door = openLocalDoor(gateway, 'own', agent);
  atEnd(() => door.close());
  return async (method, params = {}) => {
    const list = LISTS[method];
    if (list !== undefined) return { result: { [list[1]]: await door.list(list[0]) } };
    const { name, arguments: args } = JSON.parse(written(params)) as { name: string; arguments?: unknown };
    try {
      return { result: JSON.parse((await door.callTool(name, args ?? {})).toString()) as Record<string, unknown> };
    } catch (error) {
      if (!(error instanceof GatewayError)) throw error;
      return { error: { code: error.rpcCode, message: error.message } };
    }
  };
}

const TRIED: Readonly<Record<string, string>> = {
  'tools/call': 'tool',
  'prompts/get': 'prompt',
  'resources/read': 'resource',
};

/** The name or URI that a request is for, and its arguments as they are written. */
function targetOf(params: object | string): { readonly name: string; readonly args: string } {
  const text = Buffer.from(written(params));
  const { name, uri } = JSON.parse(text.toString()) as { name?: string; uri?: string };
  const args = readMembers(text)!.findLast(({ key }) => key === 'arguments');
  return { name: name ?? uri ?? '', args: args === undefined ? '{}' : text.toString('utf8', args.start, args.end) };
}

/** What a person tries on the dashboard as this agent. */
function overPage(origin: string, agent: string): Ask {
  const headers = { 'content-type': 'application/json', authorization: `Bearer ${OPERATOR}` };
  return async (method, params = {}) => {
    const { name, args } = targetOf(params);
    const asked = JSON.stringify({ kind: TRIED[method], name, agent });
    const body = `${asked.slice(0, -1)},"arguments":${args}}`;
    const response = await fetch(`${origin}/admin/tries`, { method: 'POST', headers, body });
    const text = await response.text();
    const told = (event: string) => new RegExp(`^event: ${event}\\ndata: (.*)$`, 'm').exec(text)?.[1];
    const result = told('result');
    if (result !== undefined) return JSON.parse(result) as Reply;
    return { error: { code: response.status, message: told('failed') ?? text } };
  };
}

function throughCall(ask: Ask): Ask {
  return (_, params = {}) => {
    const { name, args } = targetOf(params);
    return ask('tools/call', `{"name":"call_tool","arguments":{"name":${JSON.stringify(name)},"arguments":${args}}}`);
  };
}
