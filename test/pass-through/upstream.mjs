// An MCP server whose every answer is dictated by the caller, byte for byte.
// `_meta["test/answer"]` of a tools/call, resources/read or prompts/get is the text that follows the id in the response, for instance
// `"result":{…}` or `"error":{…}`; without it the answer is the whole request as it arrived, in base64.
//   --offer FILE    four lines: the arrays of tools/list, resources/list, resources/templates/list and prompts/list
//   --http json|sse     serves Streamable HTTP at /mcp on a free port and prints `listening PORT`; else stdin and stdout
//   --newline lf|cr|crlf   in --http sse: an answer with line feeds goes out as an event of several data lines that end so
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { readFlags } from '../fixtures/lib.mjs';

const flags = readFlags({ offer: '', http: '', newline: 'lf' });
const newline = { lf: '\n', cr: '\r', crlf: '\r\n' }[flags.newline];
const methods = ['tools/list', 'resources/list', 'resources/templates/list', 'prompts/list'];
const fields = ['tools', 'resources', 'resourceTemplates', 'prompts'];
const offer = readFileSync(flags.offer, 'utf8').split('\n');

/** The text of the response to one message, or nothing where none is due. */
function respond(bytes) {
  const { id, method, params } = JSON.parse(bytes);
  if (id === undefined || method === undefined) return undefined;
  return `{"jsonrpc":"2.0","id":${JSON.stringify(id)},${outcome(method, params, bytes)}}`;
}

function outcome(method, params, bytes) {
  const list = methods.indexOf(method);
  if (list >= 0) return `"result":{"${fields[list]}":${offer[list]}}`;
  if (method === 'initialize') {
    const capabilities = { tools: {}, resources: {}, prompts: {} };
    const serverInfo = { name: 'upstream', version: '1' };
    return `"result":${JSON.stringify({ protocolVersion: '2025-11-25', capabilities, serverInfo })}`;
  }
  return params?._meta?.['test/answer'] ?? `"result":${JSON.stringify({ seen: bytes.toString('base64') })}`;
}

if (flags.http) {
  const http = createServer(async (request, response) => {
    const body = Buffer.concat(await request.toArray());
    const text = request.method === 'POST' ? respond(body) : undefined;
    if (request.method !== 'POST') response.writeHead(405).end();
    else if (text === undefined) response.writeHead(202).end();
    else if (flags.http === 'json') response.writeHead(200, { 'content-type': 'application/json' }).end(text);
    else response.writeHead(200, { 'content-type': 'text/event-stream' }).end(event(text));
  });
  http.listen(0, '127.0.0.1', () => process.stdout.write(`listening ${http.address().port}\n`));
} else {
  let rest = Buffer.alloc(0);
  process.stdin.on('end', () => process.exit(0));
  process.stdin.on('data', (chunk) => {
    rest = Buffer.concat([rest, chunk]);
    for (let end = rest.indexOf(10); end >= 0; end = rest.indexOf(10)) {
      const text = respond(rest.subarray(0, end));
      rest = rest.subarray(end + 1);
      if (text !== undefined) process.stdout.write(`${text}\n`);
    }
  });
}

function event(text) {
  const lines = text.split('\n').map((line) => `data: ${line}${newline}`);
  return `event: message${newline}${lines.join('')}${newline}`;
}
