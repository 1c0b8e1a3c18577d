// A typical gateway with the official SDK: a low-level Server and a transport for each session, one Client for each upstream,
// prefixed names, and a list that is read once at the start. All options have their defaults, so replies are event streams.
//   sdk-gateway.mjs JSON   [{"namespace": "up", "url": "…"} or {"namespace": "up", "command": "…", "args": […]}, …]

import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { Server } from '@modelcontextprotocol/sdk/server/index.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import { CallToolRequestSchema, ListToolsRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { announce } from './announce.mjs';

const info = { name: 'sdk-gateway', version: '1' };
const tools = [];
const routes = new Map();

await Promise.all(
  JSON.parse(process.argv[2]).map(async ({ namespace, url, command, args }) => {
    const client = new Client(info);
    await client.connect(
      url ? new StreamableHTTPClientTransport(new URL(url)) : new StdioClientTransport({ command, args }),
    );
    for (const tool of (await client.listTools()).tools) {
      const name = `${namespace}_${tool.name}`;
      tools.push({ ...tool, name });
      routes.set(name, { client, name: tool.name });
    }
  }),
);

const sessions = new Map();

async function openSession() {
  const server = new Server(info, { capabilities: { tools: {} } });
  server.setRequestHandler(ListToolsRequestSchema, () => ({ tools }));
  server.setRequestHandler(CallToolRequestSchema, (request) => {
    const route = routes.get(request.params.name);
    if (!route) throw new Error(`Unknown tool ${request.params.name}`);
    return route.client.callTool({ ...request.params, name: route.name });
  });
  const transport = new StreamableHTTPServerTransport({
    sessionIdGenerator: randomUUID,
    onsessioninitialized: (id) => sessions.set(id, transport),
  });
  await server.connect(transport);
  return transport;
}

const server = createServer(async (req, res) => {
  const parts = [];
  for await (const part of req) parts.push(part);
  const body = parts.length === 0 ? undefined : JSON.parse(Buffer.concat(parts).toString());
  const transport = sessions.get(req.headers['mcp-session-id']) ?? (await openSession());
  await transport.handleRequest(req, res, body);
});
announce(server);
