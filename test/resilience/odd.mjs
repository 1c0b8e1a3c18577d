// A server that is wrong in ways of its own.
//   --initialize LINE      answers initialize with that line; ID in it becomes the id
//   --late-tool            adds a tool and says so while its prompts are still being listed
//   ok                     answers with its pid
//   say { lines, times? }  writes the lines as they are (ID becomes the id of the call) so many times, then answers
//   deaf | mute            closes its stdin or its stdout, lives on and never answers
import { closeSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { plainTool, prompt } from '../fixtures/items.mjs';
import { createServer, readFlags, serveStdio, silence, text, tool } from '../fixtures/lib.mjs';

const flags = readFlags({ name: 'odd', initialize: '', lateTool: false });
const write = (line, id) => process.stdout.write(`${line.replaceAll('ID', String(id))}\n`);
const live = (fd) => {
  setInterval(() => {}, 60_000);
  closeSync(fd);
  return silence();
};

const server = createServer({
  name: flags.name,
  tools: [
    tool('ok', () => text(String(process.pid))),
    tool('say', ({ lines, times = 1 }, { id }) => {
      for (let n = 0; n < times; n++) for (const line of lines) write(line, id);
      return text('said');
    }),
    tool('deaf', () => live(0)),
    tool('mute', () => live(1)),
  ],
  prompts: [prompt(flags.name, 'one')],
  methods: {
    ...(flags.initialize && {
      initialize: (_, { id }) => {
        write(flags.initialize, id);
        return silence();
      },
    }),
    ...(flags.lateTool && {
      'prompts/list': async () => {
        await sleep(100);
        server.tools.set('late', plainTool(flags.name, 'late'));
        server.announce('notifications/tools/list_changed');
        await sleep(300);
        return { prompts: [] };
      },
    }),
  },
});
serveStdio(server, flags);
