// A server that writes down every call that it carries out, in a file that outlives it:
//   --runs FILE                     a line with the tool and the key of each call
//   read, write { key, ms, steps }  sends so many steps of progress during ms, and returns the key; `read` says that it only reads
//   ask { key }                     asks its client for a word, and returns it with the key
import { appendFileSync } from 'node:fs';
import { createServer, encode, host, readFlags, serveStdio, text, tool } from '../fixtures/lib.mjs';

const flags = readFlags({ name: 'counted', runs: '' });
const { stdin, sleep, pid } = host();
const open = new Map();
let count = 0;

async function run(name, { key, ms = 0, steps = 0 }, { token, notify }) {
  appendFileSync(flags.runs, `${name} ${key}\n`);
  for (let n = 1; n <= steps; n++) {
    await sleep(ms / steps);
    if (token !== undefined) notify('notifications/progress', { progressToken: token, progress: n, total: steps });
  }
  if (steps === 0 && ms > 0) await sleep(ms);
  return text(key);
}

const properties = { key: { type: 'string' }, ms: { type: 'number' }, steps: { type: 'number' } };
const read = tool('read', (args, context) => run('read', args, context), properties);
read.definition.annotations = { readOnlyHint: true };
const write = tool('write', (args, context) => run('write', args, context), properties);
const ask = tool(
  'ask',
  async ({ key }, context) => {
    appendFileSync(flags.runs, `ask ${key}\n`);
    const id = `q-${pid}-${++count}`;
    const params = {
      message: key,
      requestedSchema: { type: 'object', properties: { word: { type: 'string' } } },
    };
    context.write(encode({ jsonrpc: '2.0', id, method: 'elicitation/create', params }));
    const { word } = await new Promise((resolve) => open.set(id, resolve));
    return text(`${key} ${word}`);
  },
  properties,
);

stdin.on('data', (chunk) => {
  for (const line of chunk.toString().split('\n').filter(Boolean)) {
    const { id, method, result } = JSON.parse(line);
    if (method === undefined && open.has(id)) open.get(id)(result?.content ?? {});
  }
});
serveStdio(createServer({ name: flags.name, tools: [read, write, ask] }), flags);
