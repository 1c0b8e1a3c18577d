// The lower bound for HTTP to HTTP: node:http in, undici out, bodies are not read. No sessions, no checks.
//   bare-http.mjs URL

import { createServer } from 'node:http';
import { Pool } from 'undici';
import { announce } from './announce.mjs';

const target = new URL(process.argv[2]);
const pool = new Pool(target.origin, { connections: 64 });
const FORWARDED = ['accept', 'content-type', 'mcp-session-id', 'mcp-protocol-version', 'mcp-method', 'mcp-name'];
const HOP_BY_HOP = new Set(['connection', 'keep-alive', 'transfer-encoding']);
const SHORT = 16_384;

const server = createServer((req, res) => {
  const parts = [];
  req.on('data', (part) => parts.push(part));
  req.on('end', () => relay(req, res, parts.length === 1 ? parts[0] : Buffer.concat(parts)));
});

function relay(req, res, body) {
  const headers = [];
  for (const name of FORWARDED) {
    if (req.headers[name] !== undefined) headers.push(name, req.headers[name]);
  }
  let left = 0;
  let started = false;
  pool.dispatch(
    { path: target.pathname, method: req.method, headers, body: body.length === 0 ? null : body },
    {
      onRequestStart() {},
      onResponseStart(_controller, status, upstreamHeaders) {
        const reply = [];
        for (const name in upstreamHeaders) {
          if (!HOP_BY_HOP.has(name)) reply.push(name, upstreamHeaders[name]);
        }
        left = Number(upstreamHeaders['content-length'] ?? 0);
        res.writeHead(status, reply);
      },
      onResponseData(_controller, chunk) {
        left -= chunk.length;
        // A short reply is sent in one write: Node joins a string with the head.
        if (left === 0 && !started && chunk.length < SHORT) res.end(chunk.latin1Slice(), 'latin1');
        else res.write(chunk);
        started = true;
      },
      onResponseEnd() {
        if (!res.writableEnded) res.end();
      },
      onResponseError(_controller, error) {
        if (!res.headersSent) res.writeHead(502);
        res.end(error.message);
      },
    },
  );
}

announce(server);
