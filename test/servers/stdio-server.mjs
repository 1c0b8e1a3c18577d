// A server on stdio that answers the first questions as told. It speaks both eras unless told otherwise, and has the tools `pid`, `hang` and `tell`.
//   --discover HOW      ok | error | silent | exit | empty | garbage | older | unknown
//   --initialize HOW    ok | error | silent | exit | empty | garbage
//   --slow-start MS     nothing is read before
//   --answer-after MS   the first question is answered only then
//   --chunks FILE       every chunk it reads is appended there, as a JSON string on a line
//   --settings FILE     more of these flags, as JSON: what is not to be seen in the command line
//   --marked            has one more tool, whose schema asks for a header in a way that is not valid
//   --mute              says nothing of listChanged
//   --instructions      are a number
//   --listen HOW        ok | error | end
//   tell { methods, params }  sends these notifications
import { appendFileSync, readFileSync } from 'node:fs';
import { createServer, host, readFlags, rpcError, serveStdio, silence, text, tool } from '../fixtures/lib.mjs';

const { pid, stdin, stdout, exit, sleep } = host();
const flags = readFlags({
  name: 'stdio',
  discover: 'ok',
  initialize: 'ok',
  slowStart: 0,
  answerAfter: 0,
  chunks: '',
  settings: '',
  mute: false,
  marked: false,
  listen: 'ok',
  instructions: false,
});

if (flags.settings) Object.assign(flags, JSON.parse(readFileSync(flags.settings, 'utf8')));

const listChanged = flags.mute ? {} : { listChanged: true };
const capabilities = { tools: listChanged, logging: {} };
const answers = {
  error: () => {
    throw rpcError(-32601, 'Method not found');
  },
  silent: silence,
  exit: () => exit(3),
  empty: () => ({}),
  garbage: () => {
    stdout.write('What do you mean?\n');
    return silence();
  },
  older: () => ({ resultType: 'complete', supportedVersions: ['2025-11-25', '2025-06-18'], capabilities }),
  unknown: () => ({ resultType: 'complete', supportedVersions: ['2030-01-01'], capabilities }),
};
const instructions = flags.instructions ? 7 : undefined;
const modern = () => ({
  resultType: 'complete',
  supportedVersions: ['2026-07-28', '2025-11-25'],
  capabilities,
  instructions,
});
const complete = (result) => ({ resultType: 'complete', ...result });

const server = createServer({
  name: flags.name,
  capabilities,
  instructions,
  tools: [
    tool('pid', () => complete(text(String(pid)))),
    tool('hang', silence),
    ...(flags.marked
      ? [tool('marked', () => complete(text('fine')), { at: { type: 'object', 'x-mcp-header': 'At' } })]
      : []),
    tool('tell', ({ methods, params }) => {
      for (const method of methods) server.announce(method, params);
      return complete(text('told'));
    }),
  ],
  methods: {
    'server/discover': async () => {
      await sleep(flags.answerAfter);
      return (answers[flags.discover] ?? modern)();
    },
    'logging/setLevel': () => ({}),
    'subscriptions/listen': (_, { id, notify }) => {
      if (flags.listen === 'error') return answers.error();
      const _meta = { 'io.modelcontextprotocol/subscriptionId': id };
      notify('notifications/subscriptions/acknowledged', { _meta, notifications: { toolsListChanged: true } });
      return flags.listen === 'end' ? complete({}) : silence();
    },
  },
});
const { initialize } = server.methods;
server.methods.initialize = () => (answers[flags.initialize] ?? initialize)();

await sleep(flags.slowStart);
if (flags.chunks) stdin.on('data', (chunk) => appendFileSync(flags.chunks, `${JSON.stringify(String(chunk))}\n`));
serveStdio(server, flags);
