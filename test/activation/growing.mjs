// A server that gains its last tool while it is being listed: it announces the change between its answer to tools/list
// and its slow answer to prompts/list.
import { setTimeout as sleep } from 'node:timers/promises';
import { createServer, readFlags, serveStdio, text, tool } from '../fixtures/lib.mjs';

const server = createServer({
  name: 'growing',
  tools: [tool('early', () => text('early'))],
  prompts: [{ definition: { name: 'p' }, get: () => ({ messages: [] }) }],
  methods: {
    'prompts/list': async () => {
      server.tools.set(
        'late',
        tool('late', () => text('late')),
      );
      server.announce('notifications/tools/list_changed');
      await sleep(300);
      return { prompts: [{ name: 'p' }] };
    },
  },
});
serveStdio(server, readFlags({ name: 'growing' }));
