/** Hand-written HTTP, for requests that no client library would send and for sessions without the SDK. */
import { connect, type Socket } from 'node:net';
import { atEnd } from './cleanup.ts';
import type { HttpGateway } from './gateway.ts';

export interface RawReply {
  readonly status: number;
  /** Names in lower case. */
  readonly headers: ReadonlyMap<string, string>;
  readonly body: string;
}

export function openSocket(origin: string): Socket {
  const { hostname, port } = new URL(origin);
  const socket = connect(Number(port), hostname.replace(/^\[|\]$/g, ''));
  socket.on('error', () => {});
  atEnd(() => socket.destroy());
  return socket;
}

/** Writes the request verbatim and reads until the server closes, so the request must include `Connection: close`. */
export function exchange(origin: string, text: string | Uint8Array): Promise<RawReply> {
  const socket = openSocket(origin);
  socket.write(text);
  return readReply(socket);
}

export function readReply(socket: Socket): Promise<RawReply> {
  const parts: Buffer[] = [];
  socket.on('data', (part: Buffer) => parts.push(part));
  return new Promise((resolve, reject) => {
    socket.once('close', () => {
      const text = Buffer.concat(parts).toString();
      const [head = '', ...body] = text.split('\r\n\r\n');
      const [first = '', ...lines] = head.split('\r\n');
      const status = Number(/^HTTP\/1\.1 (\d{3})/.exec(first)?.[1]);
      if (Number.isNaN(status)) return reject(new Error(`no HTTP reply: ${JSON.stringify(text.slice(0, 200))}`));
      const pairs = lines
        .map((line) => /^([^:]+): ?(.*)$/.exec(line)!)
        .map((m) => [m[1]!.toLowerCase(), m[2]!] as const);
      resolve({ status, headers: new Map(pairs), body: body.join('\r\n\r\n') });
    });
  });
}

/** Posts a ping with exactly these header lines in addition to the content headers. */
export function postLines(origin: string, lines: readonly string[], body = PING): Promise<RawReply> {
  return exchange(
    origin,
    [
      'POST /mcp HTTP/1.1',
      ...lines,
      'Content-Type: application/json',
      'Accept: application/json, text/event-stream',
      `Content-Length: ${Buffer.byteLength(body)}`,
      'Connection: close',
      '',
      body,
    ].join('\r\n'),
  );
}

export const PING = '{"jsonrpc":"2.0","id":1,"method":"ping"}';

export const INITIALIZED = '{"jsonrpc":"2.0","method":"notifications/initialized"}';

export function initialize(revision = '2025-11-25', capabilities: object = {}): string {
  const params = { protocolVersion: revision, capabilities, clientInfo: { name: 'raw', version: '1' } };
  return JSON.stringify({ jsonrpc: '2.0', id: 0, method: 'initialize', params });
}

export interface RawSession {
  readonly id: string;
  readonly headers: Record<string, string>;
  /** Posts a body verbatim in the session. */
  post(body: string | Uint8Array, headers?: Record<string, string>): Promise<Response>;
  /** Sends a request by method and parameters and returns the parsed response. */
  ask(method: string, params?: unknown): Promise<Answer>;
  /** The GET stream. */
  listen(headers?: Record<string, string>): Promise<Stream>;
  end(): Promise<Response>;
}

export interface Answer {
  readonly id: unknown;
  readonly result?: Record<string, unknown>;
  readonly error?: { readonly code: number; readonly message: string; readonly data: Record<string, unknown> };
}

export interface SessionOptions {
  readonly revision?: string;
  readonly capabilities?: object;
  readonly headers?: Record<string, string>;
  /** False does not send `notifications/initialized`. */
  readonly initialized?: boolean;
}

export async function startSession(gateway: HttpGateway, options: SessionOptions = {}): Promise<RawSession> {
  const started = await gateway.post(initialize(options.revision, options.capabilities), options.headers);
  const id = started.headers.get('mcp-session-id');
  if (id === null) throw new Error(`no session: ${started.status} ${await started.text()}`);
  await started.arrayBuffer();
  const headers = { ...options.headers, 'mcp-session-id': id };
  const post = (body: string | Uint8Array, more: Record<string, string> = {}) =>
    gateway.post(body, { ...headers, ...more });
  if (options.initialized ?? true) await post(INITIALIZED);
  let count = 0;
  return {
    id,
    headers,
    post,
    async ask(method, params = {}) {
      const response = await post(JSON.stringify({ jsonrpc: '2.0', id: ++count, method, params }));
      return (await readMessages(response)).at(-1) as Answer;
    },
    listen: (more = {}) => openStream(gateway.url, { ...headers, ...more }),
    end: () => fetch(gateway.url, { method: 'DELETE', headers }),
  };
}

/** The messages of a reply, whether it was plain JSON or a stream. */
export async function readMessages(response: Response): Promise<unknown[]> {
  const text = await response.text();
  if (response.headers.get('content-type') !== 'text/event-stream') return [JSON.parse(text)];
  return [...text.matchAll(/^data: (.+)$/gm)].map((match) => JSON.parse(match[1]!) as unknown);
}

export interface Stream {
  readonly response: Response;
  /** The methods of the notifications so far. */
  methods(): string[];
  /** Whether the server has ended the stream. */
  isOver(): boolean;
  close(): void;
}

async function openStream(url: string, headers: Record<string, string>): Promise<Stream> {
  const abort = new AbortController();
  const response = await fetch(url, { headers: { accept: 'text/event-stream', ...headers }, signal: abort.signal });
  let text = '';
  let isOver = false;
  const read = async () => {
    const decoder = new TextDecoder();
    for await (const chunk of response.body ?? []) text += decoder.decode(chunk, { stream: true });
    isOver = true;
  };
  read().catch(() => {});
  atEnd(() => abort.abort());
  return {
    response,
    methods: () =>
      [...text.matchAll(/^data: (.+)$/gm)].map((match) => (JSON.parse(match[1]!) as { method: string }).method),
    isOver: () => isOver,
    close: () => abort.abort(),
  };
}
