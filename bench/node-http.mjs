// What a hand-written proxy costs with nothing but Node: node:http in, node:http out with kept connections, bodies are not read.
//   node-http.mjs URL

import { Agent, createServer, request } from 'node:http';
import { announce } from './announce.mjs';

const target = new URL(process.argv[2]);
const agent = new Agent({ keepAlive: true, maxSockets: 64 });
const FORWARDED = ['accept', 'content-type', 'mcp-session-id', 'mcp-protocol-version', 'mcp-method', 'mcp-name'];
const HOP_BY_HOP = new Set(['connection', 'keep-alive', 'transfer-encoding']);

const server = createServer((req, res) => {
  const parts = [];
  req.on('data', (part) => parts.push(part));
  req.on('end', () => relay(req, res, parts.length === 1 ? parts[0] : Buffer.concat(parts)));
});

function relay(req, res, body) {
  const headers = { 'content-length': body.length };
  for (const name of FORWARDED) if (req.headers[name] !== undefined) headers[name] = req.headers[name];
  const { hostname, port, pathname } = target;
  const out = request({ agent, hostname, port, path: pathname, method: req.method, headers }, (reply) => {
    const kept = Object.entries(reply.headers).filter(([name]) => !HOP_BY_HOP.has(name));
    res.writeHead(reply.statusCode, Object.fromEntries(kept));
    reply.pipe(res);
  });
  out.on('error', (error) => {
    if (!res.headersSent) res.writeHead(502);
    res.end(error.message);
  });
  out.end(body);
}

announce(server);
