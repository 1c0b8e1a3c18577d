/** Servers with tasks of both eras, and a raw modern client, because no SDK client supports modern tasks. */
import type { HttpGateway } from './gateway.ts';
import { waitFor } from './processes.ts';
import { messagesOf } from './relay-clients.ts';
import { startListening } from './server.ts';

export type Fixture = 'tasks' | 'tasks-legacy';

export const TASKS = 'io.modelcontextprotocol/tasks';
export const RELATED = 'io.modelcontextprotocol/related-task';
export const TAKES_TASKS = { elicitation: {}, extensions: { [TASKS]: {} } };

/** Starts one of the fixtures over HTTP. */
export async function startTasks(name: Fixture, ...args: string[]): Promise<{ readonly url: string }> {
  const { origin } = await startListening(name, '--port', 0, ...args);
  return { url: `${origin}/mcp` };
}

export interface Task {
  readonly taskId: string;
  readonly status: string;
  readonly inputRequests?: Readonly<Record<string, { method: string; params: { message: string } }>>;
  readonly result?: { readonly content: readonly { readonly text: string }[]; readonly isError?: boolean };
  readonly error?: { readonly code: number; readonly message: string };
}

export interface Reply {
  readonly result?: Task & {
    readonly resultType: string;
    readonly content?: readonly { readonly text: string }[];
    readonly isError?: boolean;
    readonly capabilities?: object;
    readonly inputRequests?: object;
    readonly requestState?: string;
  };
  readonly error?: { readonly code: number; readonly message: string; readonly data?: object };
}

let count = 0;

export interface RequestOptions {
  /** The capabilities that the client declares. */
  readonly capabilities?: object;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
  /** More members of `_meta`. */
  readonly meta?: object;
}

export function envelope(capabilities: object = TAKES_TASKS): object {
  return {
    'io.modelcontextprotocol/protocolVersion': '2026-07-28',
    'io.modelcontextprotocol/clientInfo': { name: 'tasks-test', version: '1' },
    'io.modelcontextprotocol/clientCapabilities': capabilities,
  };
}

/** Sends a request as a modern client, and returns the raw response. */
export function send(url: string, method: string, params: object, options: RequestOptions = {}): Promise<Response> {
  const { capabilities = TAKES_TASKS, headers = {}, signal, meta } = options;
  const { name, taskId } = params as { name?: string; taskId?: string };
  const target = taskId ?? name;
  return fetch(url, {
    method: 'POST',
    body: JSON.stringify({
      jsonrpc: '2.0',
      id: ++count,
      method,
      params: { ...params, _meta: { ...envelope(capabilities), ...meta } },
    }),
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'mcp-protocol-version': '2026-07-28',
      'mcp-method': method,
      ...(target !== undefined && { 'mcp-name': target }),
      ...headers,
    },
    ...(signal && { signal }),
  });
}

export async function request(
  gateway: Pick<HttpGateway, 'url'>,
  method: string,
  params: object,
  options?: RequestOptions,
): Promise<Reply> {
  const response = await send(gateway.url, method, params, options);
  return JSON.parse((await messagesOf(response)).at(-1)!.toString()) as Reply;
}

export function call(gateway: HttpGateway, name: string, args: object = {}, options?: RequestOptions): Promise<Reply> {
  return request(gateway, 'tools/call', { name, arguments: args }, options);
}

/** Starts a task by calling a tool, and returns its id. */
export async function startTask(gateway: HttpGateway, name: string, args: object = {}, options?: RequestOptions) {
  const { result, error } = await call(gateway, name, args, options);
  if (result?.resultType !== 'task') throw new Error(`${name} started no task: ${JSON.stringify(result ?? error)}`);
  return result.taskId;
}

/** Polls a task until it is in one of these states. */
export async function until(gateway: HttpGateway, taskId: string, ...states: string[]): Promise<Task> {
  return waitFor(async () => {
    const { result, error } = await request(gateway, 'tasks/get', { taskId });
    if (error) throw new Error(error.message);
    return states.includes(result!.status) ? result! : undefined;
  });
}

export function textOf({ result }: Task): string {
  return result!.content[0]!.text;
}

/** The `[[servers]]` tables, from `command = …` or `url = …` by namespace. */
export function configOf(servers: Readonly<Record<string, string>>): string {
  const tables = Object.entries(servers).map(
    ([namespace, place]) => `[[servers]]\nnamespace = "${namespace}"\n${place}\n`,
  );
  return `controls = []\n\n${tables.join('\n')}`;
}

export const command = (line: string) => `command = ${JSON.stringify(line)}`;
export const at = (url: string) => `url = ${JSON.stringify(url)}`;
