// A server to measure clients with: its instructions and the description of its tool are long lines of numbers, so that what
// arrives at the model tells how much the client passes on.
import { createInterface } from 'node:readline';

const LENGTH = 20_000;
/** Each number says how many characters are before it. */
const numbers = (mark) =>
  Array.from({ length: LENGTH / 8 }, (_, i) => `${mark}${String(i * 8).padStart(6, '0')} `).join('');

const answers = {
  initialize: ({ protocolVersion }) => ({
    protocolVersion: protocolVersion > '2025-11-25' ? '2025-11-25' : protocolVersion,
    capabilities: { tools: {} },
    serverInfo: { name: 'ruler', version: '1.0.0' },
    instructions: numbers('i'),
  }),
  ping: () => ({}),
  'tools/list': () => ({
    tools: [
      {
        name: 'measure',
        description: numbers('d'),
        inputSchema: { type: 'object' },
        _meta: { 'anthropic/alwaysLoad': true },
      },
    ],
  }),
};

createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method, params } = JSON.parse(line);
  if (id === undefined) return;
  const answer = answers[method];
  const body = answer ? { result: answer(params) } : { error: { code: -32601, message: 'Method not found' } };
  process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', id, ...body })}\n`);
});
