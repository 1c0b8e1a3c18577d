/** Clients of the official SDK (v1) that record what they receive, with raw access for tests about bytes. */
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import type { ClientCapabilities, JSONRPCMessage, JSONRPCNotification } from '@modelcontextprotocol/sdk/types.js';
import { type Child, within } from './child.ts';
import { atEnd } from './cleanup.ts';

/** What a client received. */
export interface Told {
  /** All messages in order of arrival, including answers. */
  readonly messages: readonly JSONRPCMessage[];
  /** All notifications in order of arrival, including those without a handler. */
  readonly notifications: JSONRPCNotification[];
  /** The number of list-changed notifications. */
  changes(kind: 'tools' | 'resources' | 'prompts'): number;
}

/** A client, and what it received. */
export interface Connection extends Told {
  readonly client: Client;
}

/** Raw access to a program, in addition to the client. */
export interface Pipe {
  /** Writes a raw line and a newline. */
  send(line: string | Uint8Array): void;
  /** Sends a request with `params` as raw JSON, and returns the raw line of the response. The client does not see it. */
  request(method: string, params?: string): Promise<Buffer>;
  /** Every received line, unchanged. */
  readonly lines: Buffer[];
}

export interface PipeConnection extends Connection, Pipe {
  /** Connects the client. */
  connect(): Promise<void>;
}

export interface HttpConnection extends Connection {
  readonly transport: StreamableHTTPClientTransport;
}

/** A client on the stdin and stdout of a program. `stray`: whether lines that are not messages are allowed. */
export function openPipe(child: Child, capabilities?: ClientCapabilities, stray?: Stray): PipeConnection {
  const { transport, ...pipe } = openTransport(child, stray);
  const connection = watch(transport, capabilities);
  return { ...connection, ...pipe, connect: () => connection.client.connect(transport) };
}

type Stray = 'refused' | 'ignored';

/** The same without the client. */
export function openTransport(child: Child, stray: Stray = 'refused'): Pipe & { readonly transport: Transport } {
  const send = (line: string | Uint8Array) => {
    child.stdin.write(Buffer.concat([Buffer.from(line), Buffer.from('\n')]));
  };
  const waiting = new Map<unknown, (line: Buffer) => void>();
  const lines: Buffer[] = [];
  const transport: Transport = {
    start: async () => {},
    send: async (message) => send(JSON.stringify(message)),
    close: async () => void child.stdin.end(),
  };
  eachLine(child, (line) => {
    lines.push(line);
    const message = parseMessage(line);
    if (message === undefined) return;
    const resolve = 'id' in message && !('method' in message) ? waiting.get(message.id) : undefined;
    if (resolve) resolve(line);
    else transport.onmessage?.(message);
  });
  child.exited.finally(() => transport.onclose?.()).catch(() => {});
  // stdout belongs to the protocol, so anything else on it fails every test.
  atEnd(async () => {
    await child.stop();
    const found = stray === 'refused' && lines.find((line) => parseMessage(line) === undefined);
    if (found) throw new Error(`not a message on stdout: ${found}`);
  });
  let count = 0;
  const request = (method: string, params = '{}') => {
    const id = `raw-${++count}`;
    const answered = new Promise<Buffer>((resolve) => waiting.set(id, resolve));
    send(`{"jsonrpc":"2.0","id":"${id}","method":${JSON.stringify(method)},"params":${params}}`);
    const ended = child.exited.then(() => {
      throw new Error(`the program ended before it answered ${method}:\n${child.stderr()}`);
    });
    return Promise.race([answered, ended]);
  };
  return { transport, send, request, lines };
}

/** An SDK client (v1) on any Streamable HTTP endpoint. */
export async function connectHttp(
  url: string,
  headers: Record<string, string> = {},
  capabilities?: ClientCapabilities,
  name?: string,
): Promise<HttpConnection> {
  let streamAnswered = () => {};
  const stream = new Promise<void>((resolve) => {
    streamAnswered = resolve;
  });
  const transport = new StreamableHTTPClientTransport(new URL(url), {
    requestInit: { headers },
    fetch: async (input, init) => {
      const response = await fetch(input, init);
      if (init?.method === 'GET') streamAnswered();
      return response;
    },
  });
  const connection = watch(transport, capabilities, name);
  await connection.client.connect(transport);
  atEnd(() => connection.client.close());
  // The SDK opens the stream in the background. Without this wait, a notification might be sent before it is open.
  await within(2000, stream);
  return { ...connection, transport };
}

/** An SDK client (v1) on an HTTP+SSE endpoint, the transport of 2024-11-05. */
export async function connectSse(url: string, capabilities?: ClientCapabilities): Promise<Connection> {
  const transport = new SSEClientTransport(new URL(url));
  const connection = watch(transport, capabilities);
  await connection.client.connect(transport);
  atEnd(() => connection.client.close());
  return connection;
}

/** A client that records what it receives. */
function watch(transport: Transport, capabilities: ClientCapabilities = {}, name = 'toolgate-test'): Connection {
  const client = new Client({ name, version: '1.0.0' }, { capabilities });
  return { client, ...overhear(transport) };
}

/** Records what arrives at a transport. The SDK keeps a handler that is set before connecting and calls it first. */
export function overhear(transport: Pick<Transport, 'onmessage'>): Told {
  const messages: JSONRPCMessage[] = [];
  const notifications: JSONRPCNotification[] = [];
  transport.onmessage = (message: JSONRPCMessage) => {
    messages.push(message);
    if ('method' in message && !('id' in message)) notifications.push(message);
  };
  const changes = (kind: string) =>
    notifications.filter(({ method }) => method === `notifications/${kind}/list_changed`).length;
  return { messages, notifications, changes };
}

function eachLine(child: Child, onLine: (line: Buffer) => void): void {
  let parts: Buffer[] = [];
  child.output.on('data', (chunk: Buffer) => {
    let start = 0;
    for (let end = chunk.indexOf(10); end >= 0; end = chunk.indexOf(10, start)) {
      onLine(Buffer.concat([...parts, chunk.subarray(start, end)]));
      parts = [];
      start = end + 1;
    }
    parts.push(chunk.subarray(start));
  });
}

function parseMessage(line: Buffer): JSONRPCMessage | undefined {
  try {
    const message: unknown = JSON.parse(line.toString());
    return typeof message === 'object' && message !== null && 'jsonrpc' in message
      ? (message as JSONRPCMessage)
      : undefined;
  } catch {
    return undefined;
  }
}
