/**
 * Servers over HTTP+SSE, the transport of the first revision: the one of the official SDK (v1), and raw ones that
 * misbehave on purpose.
 */
import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from 'node:http';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { SSEServerTransport } from '@modelcontextprotocol/sdk/server/sse.js';
import { z } from 'zod';
import { atEnd } from './cleanup.ts';
import { freePort } from './ports.ts';

export interface SseSeen {
  readonly verb: string;
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
}

type Handler = (request: IncomingMessage, response: ServerResponse, path: string) => unknown;

/** A web server that records its requests and can be stopped and restarted. */
export async function startWeb(handle: Handler) {
  const seen: SseSeen[] = [];
  let http: Server;
  const port = await freePort();
  const start = async () => {
    http = createServer((request, response) => {
      const path = request.url ?? '';
      seen.push({ verb: request.method ?? '', path, headers: request.headers });
      handle(request, response, path);
    });
    await new Promise<void>((resolve) => http.listen(port, '127.0.0.1', resolve));
  };
  const stop = async () => {
    http.closeAllConnections();
    await new Promise((resolve) => http.close(resolve));
  };
  await start();
  atEnd(stop);
  return { seen, start, stop, origin: `http://127.0.0.1:${port}`, url: `http://127.0.0.1:${port}/sse` };
}

const said = (value: unknown) => ({ content: [{ type: 'text' as const, text: JSON.stringify(value) }] });

/** The SDK server at /sse; all other requests go to `otherwise`. Calls of `wait` never end: `waiting` counts those that have arrived, `cancelled` those that were stopped. */
export async function startSdk(otherwise = 404) {
  const transports = new Map<string, SSEServerTransport>();
  const counts = { waiting: 0, cancelled: 0 };

  const createMcp = () => {
    const server = new McpServer({ name: 'sse', version: '1.0.0' });
    server.registerTool('echo', { inputSchema: z.looseObject({}) }, (args) => said(args));
    server.registerTool('steps', {}, async ({ _meta, sendNotification }) => {
      const progressToken = _meta!.progressToken!;
      for (const progress of [1, 2, 3])
        await sendNotification({ method: 'notifications/progress', params: { progressToken, progress } });
      return said('done');
    });
    server.registerTool('wait', {}, ({ signal }) => {
      counts.waiting++;
      signal.addEventListener('abort', () => counts.cancelled++);
      return new Promise<never>(() => {});
    });
    const extra = server.registerTool('extra', {}, () => said('extra'));
    extra.disable();
    server.registerTool('toggle', {}, () => {
      extra.update({ enabled: !extra.enabled });
      return said(extra.enabled);
    });
    server.registerResource('first', 'sse://first', {}, (uri) => ({ contents: [{ uri: uri.href, text: 'a text' }] }));
    server.registerPrompt('first', {}, () => ({
      messages: [{ role: 'user', content: { type: 'text', text: 'a prompt' } }],
    }));
    return server;
  };

  const web = await startWeb(async (request, response, path) => {
    if (request.method === 'GET' && path === '/sse') {
      const transport = new SSEServerTransport('/messages', response);
      transports.set(transport.sessionId, transport);
      await createMcp().connect(transport);
    } else if (request.method === 'POST' && path.startsWith('/messages')) {
      const id = new URL(path, 'http://localhost').searchParams.get('sessionId')!;
      // It throws after it has answered, if its stream is closed.
      await transports
        .get(id)
        ?.handlePostMessage(request, response)
        .catch(() => {});
    } else {
      response.writeHead(otherwise).end('Not here');
    }
  });
  return Object.assign(web, { counts });
}

/** A stream that starts with this text and stays open. `post` answers every POST. */
export async function startRaw(text: string, post: Handler = (_, response) => response.writeHead(202).end()) {
  const web = await startWeb((request, response, path) => {
    if (request.method === 'POST') return post(request, response, path);
    response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders();
    response.write(text);
  });
  return web;
}
