/** Hand-written stateless requests, over HTTP and as lines. */
import { atEnd } from './cleanup.ts';
import type { HttpGateway } from './gateway.ts';
import { encode, KEYS, namedBy, REVISION } from './modern-offer.ts';

export const SUBSCRIPTION = 'io.modelcontextprotocol/subscriptionId';

export type Params = Readonly<Record<string, unknown>>;

export interface Message {
  readonly id?: unknown;
  readonly method?: string;
  readonly params?: Params & { readonly _meta?: Params; readonly notifications?: Params };
  readonly result?: Params;
  readonly error?: { readonly code: number; readonly message: string; readonly data?: Params };
}

export interface Options {
  readonly id?: number | string;
  /** Added to the default envelope; undefined removes a member. */
  readonly meta?: Params;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
}

export function requestText(method: string, params: Params = {}, { id = 1, meta = {} }: Options = {}): string {
  const _meta = {
    [KEYS.version]: REVISION,
    [KEYS.client]: { name: 'raw', version: '1' },
    [KEYS.capabilities]: {},
    ...meta,
  };
  return JSON.stringify({ jsonrpc: '2.0', id, method, params: { ...params, _meta } });
}

export function headersFor(method: string, params: Params = {}): Record<string, string> {
  const source = namedBy(method);
  return {
    'mcp-protocol-version': REVISION,
    'mcp-method': method,
    ...(source !== null && { 'mcp-name': encode(String(params[source])) }),
  };
}

/** Posts what a correct client would send. */
export function post(
  gateway: { url: string },
  method: string,
  params: Params = {},
  options: Options = {},
): Promise<Response> {
  return fetch(gateway.url, {
    method: 'POST',
    body: requestText(method, params, options),
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      ...headersFor(method, params),
      ...options.headers,
    },
    ...(options.signal && { signal: options.signal }),
  });
}

export interface Answer extends Message {
  readonly status: number;
  /** The messages before it. */
  readonly before: readonly Message[];
}

/** The same, read to the end. */
export async function ask(
  gateway: { url: string },
  method: string,
  params?: Params,
  options?: Options,
): Promise<Answer> {
  const response = await post(gateway, method, params, options);
  const text = await response.text();
  const messages =
    response.headers.get('content-type') === 'text/event-stream' ? eventsIn(text) : [JSON.parse(text) as Message];
  return { status: response.status, before: messages.slice(0, -1), ...messages.at(-1)! };
}

export function callTool(
  gateway: { url: string },
  name: string,
  args: Params = {},
  options?: Options,
): Promise<Answer> {
  return ask(gateway, 'tools/call', { name, arguments: args }, options);
}

export interface Stream {
  readonly response: Response;
  readonly messages: () => readonly Message[];
  /** Everything received so far, including comments. */
  readonly text: () => string;
  /** Resolves when the server has ended the reply, rejects if the connection broke. */
  readonly ended: Promise<void>;
  close(): void;
}

/** A reply that is read while it arrives. */
export async function open(
  gateway: { url: string },
  method: string,
  params: Params,
  options: Options = {},
): Promise<Stream> {
  const abort = new AbortController();
  atEnd(() => abort.abort());
  const response = await post(gateway, method, params, { ...options, signal: abort.signal });
  let text = '';
  const read = async () => {
    const decoder = new TextDecoder();
    for await (const chunk of response.body ?? []) text += decoder.decode(chunk, { stream: true });
  };
  const ended = read();
  ended.catch(() => {});
  return { response, text: () => text, messages: () => eventsIn(text), ended, close: () => abort.abort() };
}

export function listen(gateway: HttpGateway, notifications: Params, options?: Options): Promise<Stream> {
  return open(gateway, 'subscriptions/listen', { notifications }, options);
}

function eventsIn(text: string): Message[] {
  return [...text.matchAll(/^data: (.*)\n\n/gm)].map((match) => JSON.parse(match[1]!) as Message);
}

/** The text of a result of `tools/call`. */
export function textOf({ result }: Message): string {
  return (result?.content as { text: string }[] | undefined)?.[0]?.text ?? '';
}
