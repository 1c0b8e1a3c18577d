// A program with toolsets for the scenario `library`. Loaders receive the id of the client, so nothing is shared by clients.

import { createMcpServer, defineEndpoint } from '../dist/index.js';

const schema = { type: 'object', properties: { text: { type: 'string' } }, required: ['text'] };
const description = 'Says it again, for as long as it takes to describe a tool as they are usually described.';
const toolsFor = (prefix) => async (context) =>
  Array.from({ length: 5 }, (_, i) => ({
    name: `${prefix}_${i}`,
    description,
    inputSchema: schema,
    handler: ({ text }) => `${context?.tenant ?? 'all'} ${text}`,
  }));

const set = (key) => ({ name: key, description: 'Tools of a client', modules: [key] });

const server = await createMcpServer({
  catalog: { read: set('read'), write: set('write') },
  moduleLoaders: { read: toolsFor('read'), write: toolsFor('write') },
  sessionContext: { queryParam: { encoding: 'json', allowedKeys: ['tenant'] } },
  clients: { most: 100_000 },
  http: {
    port: 0,
    customEndpoints: [
      defineEndpoint({
        method: 'GET',
        path: '/figures',
        handler() {
          global.gc();
          global.gc();
          const { heapUsed, external } = process.memoryUsage();
          return { memory: heapUsed + external };
        },
      }),
    ],
  },
});
await server.start();
process.stdout.write(`${JSON.stringify({ url: server.url })}\n`);
process.stdin.resume();
process.stdin.on('end', () => process.exit(0));
