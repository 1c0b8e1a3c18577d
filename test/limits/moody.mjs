// An MCP server over HTTP (2025-11-25) whose calls end as its mood is: GET /be/MOOD changes it, GET /calls counts them.
//   fine      a result     unhappy   a result with isError     wrong     an error of the protocol
//   broken    status 500   silent    no answer at all; what has not been answered stays so
import { createServer as createHttpServer } from 'node:http';
import { answer, createServer, listen, rpcError, silence, text, tool } from '../fixtures/lib.mjs';

let mood = 'fine';
let calls = 0;
const server = createServer({
  name: 'moody',
  tools: [
    tool('do', () => {
      if (mood === 'silent') return silence();
      if (mood === 'wrong') throw rpcError(-32050, 'no');
      return { ...text(mood), ...(mood === 'unhappy' && { isError: true }) };
    }),
  ],
});

const http = createHttpServer(async (request, response) => {
  const body = Buffer.concat(await request.toArray()).toString();
  const send = (status, text) => response.writeHead(status, { 'content-type': 'application/json' }).end(text);
  if (request.url.startsWith('/be/')) {
    mood = request.url.slice('/be/'.length);
    return send(200, '{}');
  }
  if (request.url === '/calls') return send(200, String(calls));
  if (request.method !== 'POST') return send(405, '{}');
  const message = JSON.parse(body);
  if (message.method === 'tools/call') {
    calls++;
    if (mood === 'broken') return send(500, '');
  }
  const bytes = await answer(server, message, () => {});
  if (bytes === undefined) response.writeHead(202).end();
  else send(200, bytes);
});
listen(http, 0);
