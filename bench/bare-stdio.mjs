// The lower bound for HTTP to stdio: node:http in, a child's pipe out. No sessions, no checks, and nothing is parsed if messages
// have the usual form. Only ids are replaced, because many clients share the pipe.
//   bare-stdio.mjs COUNT COMMAND ARGS…   COUNT children: POST /mcp reaches the first one, /mcp/3 the fourth

import { spawn } from 'node:child_process';
import { createServer } from 'node:http';
import { announce } from './announce.mjs';

const [count, command, ...args] = process.argv.slice(2);
const START = '{"jsonrpc":"2.0","id":';
const ID_FIRST = /^\{"jsonrpc":"2\.0","id":(\d+),/;
const ID_LAST = /,"jsonrpc":"2\.0","id":(\d+)\}$/;
const LONG = 16_384;

function openChild() {
  const child = spawn(command, args, { stdio: ['pipe', 'pipe', 'inherit'] });
  // Reused slots instead of a Map. A Map that is constantly filled and emptied is rebuilt again and again, and each dead table
  // points to the next. Once one is in the old generation, all later ones survive with every reply in them.
  const waiting = [];
  const free = [];
  let parts = []; // of a line that is not complete yet
  let batch = '';

  child.stdout.on('data', (chunk) => {
    let from = 0;
    for (let end = chunk.indexOf(10); end >= 0; end = chunk.indexOf(10, from)) {
      if (parts.length === 0) {
        relayText(chunk.latin1Slice(from, end));
      } else {
        parts.push(chunk.subarray(from, end));
        relayParts(parts);
        parts = [];
      }
      from = end + 1;
    }
    if (from < chunk.length) parts.push(chunk.subarray(from));
  });

  /** Text is decoded as latin1, so that its length is the content length. */
  function relayText(line) {
    const first = ID_FIRST.exec(line);
    if (first) return reply(first[1], (id) => START + id + line.slice(START.length + first[1].length));
    const last = line.startsWith('{"result":') && ID_LAST.exec(line.slice(-60));
    if (last) return reply(last[1], (id) => `${line.slice(0, -1 - last[1].length)}${id}}`);
    const message = JSON.parse(Buffer.from(line, 'latin1').utf8Slice());
    if (message.id === undefined) return;
    reply(String(message.id), (id) => Buffer.from(JSON.stringify({ ...message, id: JSON.parse(id) })).latin1Slice());
  }

  function reply(key, textWith) {
    const call = take(key);
    if (!call) return;
    const text = textWith(call.id);
    call.res.writeHead(200, ['content-type', 'application/json', 'content-length', text.length]);
    call.res.end(text, 'latin1');
  }

  function take(key) {
    const call = waiting[key];
    if (!call) return undefined;
    waiting[key] = undefined;
    free.push(Number(key));
    return call;
  }

  /** A long line is never joined: its parts are sent as received, with another id in the first or the last one. */
  function relayParts(parts) {
    const total = parts.reduce((sum, part) => sum + part.length, 0);
    if (parts.at(-1).length < 60) parts.push(Buffer.concat(parts.splice(-2)));
    const tail = parts.at(-1);
    const first = ID_FIRST.exec(parts[0].latin1Slice(0, 60));
    const last = !first && ID_LAST.exec(tail.latin1Slice(Math.max(0, tail.length - 60)));
    const key = (first || last)?.[1];
    if (total < LONG || !key) return relayText(Buffer.concat(parts).latin1Slice());
    const call = take(key);
    if (!call) return;
    const { id, res } = call;
    res.writeHead(200, ['content-type', 'application/json', 'content-length', total - key.length + id.length]);
    if (first) {
      res.write(START + id, 'latin1');
      parts[0] = parts[0].subarray(START.length + key.length);
    } else {
      parts[parts.length - 1] = tail.subarray(0, tail.length - key.length - 1);
    }
    for (const part of parts) res.write(part);
    if (first) res.end();
    else res.end(`${id}}`, 'latin1');
  }

  function send(body, res) {
    let text = body.latin1Slice();
    let id = ID_FIRST.exec(text)?.[1];
    if (id === undefined || text.includes('\n')) {
      const message = JSON.parse(body.utf8Slice());
      if (message.id === undefined) {
        res.writeHead(202).end();
        return;
      }
      id = JSON.stringify(message.id);
      const { id: _, jsonrpc, ...members } = message;
      text = Buffer.from(`${START}${id},${JSON.stringify(members).slice(1)}`).latin1Slice();
    }
    const key = free.pop() ?? waiting.length;
    waiting[key] = { id, res };
    write(START + key + text.slice(START.length + id.length));
  }

  // Requests of many clients in the same turn of the event loop are sent in one system call.
  function write(line) {
    if (batch === '') setImmediate(flush);
    batch += `${line}\n`;
  }

  function flush() {
    child.stdin.write(batch, 'latin1');
    batch = '';
  }

  return send;
}

const children = Array.from({ length: Number(count) }, openChild);

const server = createServer((req, res) => {
  if (req.method !== 'POST') {
    res.writeHead(405).end();
    return;
  }
  const send = children[Number(req.url.slice('/mcp/'.length))];
  const parts = [];
  req.on('data', (part) => parts.push(part));
  req.on('end', () => send(parts.length === 1 ? parts[0] : Buffer.concat(parts), res));
});
announce(server);
