/**
 * A process that opens sessions and then calls a tool at a steady rate, over a few connections that stay open. It is a
 * process of its own, because its work would delay the test that drives a browser.
 */
import { Agent, request } from 'node:http';

const [origin, rate, sessionCount, toolCount] = process.argv.slice(2);
const agent = new Agent({ keepAlive: true, maxSockets: 32 });
const sessions = [];
const found = { sent: 0, answered: 0, failed: 0, problem: null, waiting: 0, most: 0, seconds: 0 };

function post(message, session) {
  const body = JSON.stringify({ jsonrpc: '2.0', ...message });
  return new Promise((resolve, reject) => {
    const made = request(
      `${origin}/mcp`,
      {
        method: 'POST',
        agent,
        headers: {
          'content-type': 'application/json',
          'content-length': Buffer.byteLength(body),
          accept: 'application/json, text/event-stream',
          ...(session && { 'mcp-session-id': session }),
        },
      },
      (response) => {
        let text = '';
        response.setEncoding('utf8');
        response.on('data', (part) => {
          text += part;
        });
        response.on('end', () => resolve({ status: response.statusCode, headers: response.headers, text }));
        response.on('error', reject);
      },
    );
    made.on('error', reject);
    made.end(body);
  });
}

async function openSession() {
  const { headers, text } = await post({
    id: 1,
    method: 'initialize',
    params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'crowd', version: '1' } },
  });
  const session = headers['mcp-session-id'];
  if (session === undefined) throw new Error(`There is no session: ${text.slice(0, 500)}`);
  await post({ method: 'notifications/initialized' }, session);
  sessions.push(session);
}

async function call(count) {
  found.waiting += 1;
  found.most = Math.max(found.most, found.waiting);
  try {
    const { status, text } = await post(
      {
        id: count,
        method: 'tools/call',
        params: { name: `s${count % toolCount}_echo`, arguments: { word: 'tea' } },
      },
      sessions[count % sessions.length],
    );
    // A tool that fails answers with status 200 too.
    if (status !== 200 || !text.includes('tea') || text.includes('"isError":true'))
      throw new Error(`${status} ${text.slice(0, 500)}`);
    found.answered += 1;
  } catch (error) {
    found.failed += 1;
    found.problem ??= String(error);
  } finally {
    found.waiting -= 1;
  }
}

for (let left = Number(sessionCount); left > 0; left -= 20)
  await Promise.all(Array.from({ length: Math.min(20, left) }, openSession));
process.send('ready');

let timer;
let started = 0;
process.on('message', (what) => {
  if (what === 'start') {
    started = Date.now();
    timer = setInterval(() => {
      // What is due is sent whether or not the calls before it were answered.
      const due = ((Date.now() - started) / 1_000) * rate;
      while (found.sent < due) void call(found.sent++);
    }, 5);
  } else {
    clearInterval(timer);
    found.seconds = (Date.now() - started) / 1_000;
    process.send(found, () => process.exit());
  }
});
process.on('disconnect', () => process.exit());
