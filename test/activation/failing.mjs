// A server that answers with errors given by the caller: fail { error } answers a call with that JSON-RPC error, byte
// for byte, and refuse { text } with a result that has isError set. Reading fail:ERROR and getting the prompt
// fail { error } do the same.
import { createServer, readFlags, serveStdio, silence, text, tool } from '../fixtures/lib.mjs';

const flags = readFlags({ name: 'failing' });

/** Answers with exactly these bytes. */
function fail(error, { id, write }) {
  write(Buffer.from(`{"jsonrpc":"2.0","id":${JSON.stringify(id)},"error":${error}}\n`));
  return silence();
}

serveStdio(
  createServer({
    name: flags.name,
    tools: [
      tool('fail', ({ error }, context) => fail(error, context)),
      tool('refuse', (args) => ({ ...text(args.text), isError: true, structuredContent: args, _meta: { kept: true } })),
    ],
    templates: [
      {
        definition: { uriTemplate: 'fail:{+error}', name: 'fail' },
        matches: (uri) => uri.startsWith('fail:'),
        read: (uri, context) => fail(decodeURIComponent(uri.slice(5)), context),
      },
    ],
    prompts: [{ definition: { name: 'fail' }, get: ({ error }, context) => fail(error, context) }],
  }),
  flags,
);
