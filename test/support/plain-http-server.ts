/**
 * A hand-written MCP server over HTTP in the test process, which can misbehave on purpose. Its methods decide its era;
 * `modernMethods` and `legacyMethods` are the usual ones. It records what it was sent.
 */
import { createServer, type IncomingHttpHeaders, type Server, type ServerResponse } from 'node:http';
import { atEnd } from './cleanup.ts';
import { freePort } from './ports.ts';

export interface Message {
  readonly id?: number | string;
  readonly method: string;
  readonly params?: Readonly<Record<string, unknown>>;
}

export interface Seen {
  readonly verb: string;
  readonly headers: IncomingHttpHeaders;
  readonly message: Message;
  /** Whether the reply was over before the client closed the connection. */
  ended: 'no' | 'answered' | 'dropped';
}

export interface Context {
  readonly headers: IncomingHttpHeaders;
  readonly id: number | string;
  readonly token: unknown;
  readonly response: ServerResponse;
  /** Sends a notification before the answer, which turns the reply into a stream. */
  notify(method: string, params: object): void;
}

/**
 * Returns the result. Throws a `Fault` for an error. Returns `SILENCE` if it uses `response` itself or never answers.
 */
export type Method = (params: Readonly<Record<string, unknown>>, context: Context) => unknown;
export type Methods = Readonly<Record<string, Method>>;

export const SILENCE = Symbol('silence');

/** An error as the answer, with an HTTP status. */
export class Fault extends Error {
  readonly code: number;
  readonly status: number;
  readonly data: unknown;

  constructor(code: number, message: string, { status = 400, data }: { status?: number; data?: unknown } = {}) {
    super(message);
    this.code = code;
    this.status = status;
    this.data = data;
  }
}

export interface HttpServer {
  readonly url: string;
  readonly seen: Seen[];
  /** Replaces the methods. */
  methods: Methods;
  /** The requests of a method, in order. */
  of(method: string): Seen[];
  /** Open replies to `subscriptions/listen` and to GET. */
  readonly streams: Set<ServerResponse>;
  /** Sends a notification on all of them. */
  announce(method: string): void;
  stop(): Promise<void>;
  /** Listens again at the same address. */
  start(): Promise<void>;
}

/** `front` may answer a request before its body is read. */
export async function startServer(
  methods: Methods,
  front: (verb: string, response: ServerResponse, headers: IncomingHttpHeaders) => boolean = () => false,
): Promise<HttpServer> {
  let http: Server;
  const port = await freePort();
  const open = async () => {
    // After Node's five seconds a busy machine may use a connection at the moment in which it is closed.
    http = createServer({ keepAliveTimeout: 120_000 }, async (request, response) => {
      const { method: verb = '', headers } = request;
      const body = Buffer.concat(await request.toArray()).toString();
      const message: Message = body === '' ? { method: '' } : JSON.parse(body);
      const seen: Seen = { verb, headers, message, ended: 'no' };
      server.seen.push(seen);
      response.on('close', () => {
        seen.ended = response.writableFinished ? 'answered' : 'dropped';
        server.streams.delete(response);
      });
      if (front(verb, response, headers)) return;
      if (verb === 'POST') await answer(server.methods, message, headers, response);
      else response.writeHead(405).end();
      const isStream = verb === 'GET' || message.method === 'subscriptions/listen';
      if (isStream && !response.writableEnded) server.streams.add(response);
    });
    await new Promise<void>((resolve) => http.listen(port, '127.0.0.1', resolve));
  };
  const server: HttpServer = {
    get url() {
      return `http://127.0.0.1:${port}/mcp`;
    },
    seen: [],
    methods,
    of: (method) => server.seen.filter(({ message }) => message.method === method),
    streams: new Set(),
    announce(method) {
      for (const response of server.streams) sendEvent(response, { jsonrpc: '2.0', method });
    },
    start: open,
    async stop() {
      http.closeAllConnections();
      await new Promise((resolve) => http.close(resolve));
    },
  };
  await open();
  atEnd(() => server.stop());
  return server;
}

async function answer(methods: Methods, message: Message, headers: IncomingHttpHeaders, response: ServerResponse) {
  const { id, method, params = {} } = message;
  if (id === undefined) return void response.writeHead(202).end();
  const context: Context = {
    headers,
    id,
    token: (params._meta as { progressToken?: unknown } | undefined)?.progressToken,
    response,
    notify(name, body) {
      openStream(response);
      sendEvent(response, { jsonrpc: '2.0', method: name, params: body });
    },
  };
  try {
    const handle = methods[method];
    if (handle === undefined) throw new Fault(-32_601, `Method not found: ${method}`, { status: 404 });
    const result = await handle(params, context);
    if (result === SILENCE) return;
    if (!response.headersSent) sendJson(response, 200, { jsonrpc: '2.0', id, result });
    else sendEvent(response, { jsonrpc: '2.0', id, result });
    response.end();
  } catch (error) {
    if (!(error instanceof Fault)) throw error;
    const { code, status, data, message } = error;
    sendJson(response, status, { jsonrpc: '2.0', id, error: { code, message, data } });
  }
}

function sendJson(response: ServerResponse, status: number, value: object): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value));
}

export function openStream(response: ServerResponse): void {
  if (!response.headersSent) response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders();
}

export function sendEvent(response: ServerResponse, message: object): void {
  response.write(`event: message\ndata: ${JSON.stringify(message)}\n\n`);
}

export interface Tool {
  readonly name: string;
  readonly inputSchema: object;
}

export function tool(name: string, properties: object = {}): Tool {
  return { name, inputSchema: { type: 'object', properties } };
}

export const text = (value: unknown) => ({
  content: [{ type: 'text', text: typeof value === 'string' ? value : JSON.stringify(value) }],
});

const kept = { resultType: 'complete', ttlMs: 0, cacheScope: 'public' };

/** The tool `echo` of a modern server; `more` adds methods and replaces them. */
export function modernMethods(more: Methods = {}, capabilities: object = { tools: { listChanged: true } }): Methods {
  return {
    'server/discover': () => ({
      ...kept,
      supportedVersions: ['2026-07-28'],
      capabilities,
      _meta: { 'io.modelcontextprotocol/serverInfo': { name: 'hand-made', version: '1.0.0' } },
    }),
    'tools/list': () => ({ ...kept, tools: [tool('echo')] }),
    'tools/call': ({ arguments: args = {} }) => ({ resultType: 'complete', ...text(args) }),
    'subscriptions/listen': (_, { notify, id }) => {
      const _meta = { 'io.modelcontextprotocol/subscriptionId': id };
      notify('notifications/subscriptions/acknowledged', { _meta, notifications: { toolsListChanged: true } });
      return SILENCE;
    },
    ...more,
  };
}

/** The same for a legacy server. It has no sessions. */
export function legacyMethods(more: Methods = {}): Methods {
  return {
    initialize: () => ({
      protocolVersion: '2025-11-25',
      capabilities: { tools: {} },
      serverInfo: { name: 'hand-made', version: '1.0.0' },
    }),
    'tools/list': () => ({ tools: [tool('echo')] }),
    'tools/call': ({ arguments: args = {} }) => text(args),
    ...more,
  };
}

/** The same methods, but requests of the other era are refused as the modern revision prescribes. */
export function only(era: 'legacy' | 'modern', methods: Methods): Methods {
  const closed = (method: Method): Method => {
    return (params, context) => {
      const requested = context.headers['mcp-protocol-version'] ?? 'none';
      const supported = [era === 'modern' ? '2026-07-28' : '2025-11-25'];
      const isOther = (requested === '2026-07-28') !== (era === 'modern');
      if (isOther) throw new Fault(-32_022, 'Unsupported protocol version', { data: { supported, requested } });
      return method(params, context);
    };
  };
  return Object.fromEntries(Object.entries(methods).map(([name, method]) => [name, closed(method)]));
}
