// A very cheap MCP server over Streamable HTTP, directly on sockets. Answers with JSON, assigns a session, opens no streams.
//   --tools N   the number of tools
//   --id-last   replies end with their id
//   --era ERA   legacy (sessions), modern (2026-07-28, without) or both

import { randomUUID } from 'node:crypto';
import { createServer } from 'node:net';
import { parseArgs } from 'node:util';
import { announce } from './announce.mjs';
import { createAnswer } from './answer.mjs';
import { createReader } from './http1.mjs';

const { values } = parseArgs({
  options: { tools: { type: 'string' }, era: { type: 'string' }, 'id-last': { type: 'boolean' } },
});
const answer = createAnswer({ tools: Number(values.tools ?? 10), idLast: values['id-last'], era: values.era });

const server = createServer({ noDelay: true }, (socket) => {
  const push = createReader((head, body) => {
    if (!head.startsWith('POST ')) {
      const status = head.startsWith('DELETE ') ? '200 OK' : '405 Method Not Allowed';
      socket.write(`HTTP/1.1 ${status}\r\nContent-Length: 0\r\n\r\n`);
      return;
    }
    const message = JSON.parse(body.utf8Slice());
    const reply = answer(message);
    if (reply === undefined) {
      socket.write('HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n');
      return;
    }
    const session =
      message.method === 'initialize' && values.era !== 'modern' ? `Mcp-Session-Id: ${randomUUID()}\r\n` : '';
    const start = `HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n${session}Content-Length: `;
    if (typeof reply === 'string') {
      socket.write(`${start}${Buffer.byteLength(reply)}\r\n\r\n${reply}`);
      return;
    }
    const length = reply.reduce((sum, piece) => sum + Buffer.byteLength(piece), 0);
    socket.cork();
    socket.write(`${start}${length}\r\n\r\n${reply[0]}`);
    socket.write(reply[1]);
    socket.write(reply[2]);
    socket.uncork();
  });
  socket.on('data', push);
  socket.on('error', () => socket.destroy());
});
announce(server);
