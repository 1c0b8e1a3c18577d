// An MCP server of either era whose every answer is dictated by the caller, byte for byte. In the `_meta` of a tools/call, resources/read or
// prompts/get:
//   test/answer     the text that follows the id in the response, for instance `"result":{…}` or `"error":{…}`; without it the answer is
//                   the whole request as it arrived, in base64
//   test/progress   so many progress notifications come first
//   test/spread     those go out over several lines
//   test/order      how the response is written: `id first` (the usual way), `id last`, or `odd`
//   test/cuts       where the answer is cut into pieces that are written one by one, in bytes
// A call whose envelope does not fit the era is refused, so every test is one of the envelope too.
//   --offer FILE          four lines: the arrays of tools/list, resources/list, resources/templates/list and prompts/list
//   --era legacy|modern   on stdin and stdout
//   --http                serves Streamable HTTP on a free port, at /ERA/json and /ERA/sse, and prints `listening PORT`. With
//                         ?newline=cr or crlf the data lines of an event end so
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { host, listen, readFlags } from '../fixtures/lib.mjs';

const flags = readFlags({ offer: '', era: 'legacy', http: false });
const { stdin, stdout, exit, sleep } = host();
const methods = ['tools/list', 'resources/list', 'resources/templates/list', 'prompts/list'];
const fields = ['tools', 'resources', 'resourceTemplates', 'prompts'];
const offer = readFileSync(flags.offer, 'utf8').split('\n');
const capabilities = { tools: {}, resources: {}, prompts: {} };
const envelope = 'io.modelcontextprotocol/';

/** The texts that go out for one message, the response last, and where to cut; null where nothing is due. */
function respond(era, bytes, headers) {
  const { id, method, params } = JSON.parse(bytes);
  if (id === undefined || method === undefined) return null;
  const meta = params?._meta ?? {};
  const texts = Array.from({ length: meta['test/progress'] ?? 0 }, (_, i) => {
    const progress = `{"progress":${i + 1},"progressToken":${JSON.stringify(meta.progressToken ?? null)},"message":"1.0"}`;
    const text = `{"jsonrpc":"2.0","method":"notifications/progress","params":${progress}}`;
    return meta['test/spread'] ? text.replaceAll(',', '\n,\n') : text;
  });
  const refusal = refuse(era, method, params, headers);
  const text = refusal === null ? outcome(era, method, meta, bytes) : error(-32600, refusal);
  return { texts: [...texts, orders[meta['test/order'] ?? 'id first'](id, text)], cuts: meta['test/cuts'] ?? [] };
}

const orders = {
  'id first': (id, text) => `{"jsonrpc":"2.0","id":${JSON.stringify(id)},${text}}`,
  'id last': (id, text) => `{${text},"jsonrpc":"2.0","id":${JSON.stringify(id)}}`,
  odd: (id, text) => ` { "id" : ${JSON.stringify(id)} , ${text} ,"jsonrpc":"2.0" }`,
};

function outcome(era, method, meta, bytes) {
  const first = era === 'modern' ? '"resultType":"complete",' : '';
  const kept = era === 'modern' ? '"ttlMs":60000,"cacheScope":"public",' : '';
  const list = methods.indexOf(method);
  if (list >= 0) return `"result":{${first}${kept}"${fields[list]}":${offer[list]}}`;
  const info = { name: 'upstream', version: '1' };
  if (method === 'initialize' && era === 'legacy')
    return `"result":${JSON.stringify({ protocolVersion: '2025-11-25', capabilities, serverInfo: info })}`;
  if (method === 'server/discover' && era === 'modern') {
    const known = { supportedVersions: ['2026-07-28'], capabilities, _meta: { [`${envelope}serverInfo`]: info } };
    return `"result":{${first}${kept}${JSON.stringify(known).slice(1)}`;
  }
  if (!['tools/call', 'resources/read', 'prompts/get'].includes(method)) return error(-32601, 'unknown method');
  return meta['test/answer'] ?? `"result":{${first}"seen":"${bytes.toString('base64')}"}`;
}

/** Why a server of that era does not take the request; null where it does. */
function refuse(era, method, params, headers) {
  const meta = params?._meta ?? {};
  const found = Object.keys(meta).filter((key) => key.startsWith(envelope));
  // Anybody may be asked which era it is of.
  if (era === 'legacy') return found.length > 0 && method !== 'server/discover' ? `legacy, and got ${found}` : null;
  const version = meta[`${envelope}protocolVersion`];
  if (version !== '2026-07-28') return `modern, and got the version ${version}`;
  if (meta[`${envelope}clientInfo`]?.name !== 'toolgate') return 'modern, and the gateway does not say who it is';
  if (typeof meta[`${envelope}clientCapabilities`] !== 'object') return 'modern, and got no capabilities';
  if (headers === null) return null;
  const expected = { 'mcp-protocol-version': version, 'mcp-method': method, 'mcp-name': params.name ?? params.uri };
  const wrong = Object.keys(expected).find((name) => headers[name] !== expected[name]);
  return wrong === undefined ? null : `modern, and the header ${wrong} is ${headers[wrong]}`;
}

function error(code, message) {
  return `"error":${JSON.stringify({ code, message })}`;
}

/** Writes in so many pieces that those who read get them one by one. */
async function write(out, text, cuts) {
  const bytes = Buffer.from(text);
  let from = 0;
  for (const cut of cuts) {
    out.write(bytes.subarray(from, cut));
    from = cut;
    await sleep(2);
  }
  out.write(bytes.subarray(from));
}

function event(text, newline) {
  const lines = text.split('\n').map((line) => `data: ${line}${newline}`);
  return `event: message${newline}${lines.join('')}${newline}`;
}

const newlines = { cr: '\r', crlf: '\r\n' };

async function serve(request, response) {
  const { pathname, searchParams } = new URL(request.url, 'http://localhost');
  const [, era, kind] = pathname.split('/');
  const body = Buffer.concat(await request.toArray());
  if (request.method !== 'POST') return response.writeHead(405).end();
  const answer = respond(era, body, request.headers);
  if (answer === null) return response.writeHead(202).end();
  const newline = newlines[searchParams.get('newline')] ?? '\n';
  const text = kind === 'json' ? answer.texts.at(-1) : answer.texts.map((one) => event(one, newline)).join('');
  response.writeHead(200, { 'content-type': kind === 'json' ? 'application/json' : 'text/event-stream' });
  // In one piece it goes out with its length, as most servers do it.
  if (answer.cuts.length > 0) await write(response, text, answer.cuts);
  response.end(answer.cuts.length > 0 ? undefined : text);
}

if (flags.http) {
  const http = createServer(serve);
  listen(http, 0);
} else {
  let rest = Buffer.alloc(0);
  // One answer after the other: the pieces of two would make one broken line.
  let written = Promise.resolve();
  stdin.on('end', () => exit(0));
  stdin.on('data', (chunk) => {
    rest = Buffer.concat([rest, chunk]);
    for (let end = rest.indexOf(10); end >= 0; end = rest.indexOf(10)) {
      const answer = respond(flags.era, rest.subarray(0, end), null);
      rest = rest.subarray(end + 1);
      if (answer === null) continue;
      written = written.then(() => write(stdout, `${answer.texts.join('\n')}\n`, answer.cuts));
    }
  });
}
