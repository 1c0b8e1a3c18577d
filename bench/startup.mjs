// Measures the time from the start of an MCP server on stdio until its tools are known.

import { PROTOCOL_VERSION } from './offer.mjs';
import { lastWords, start, stop } from './processes.mjs';

const PATIENCE_MS = 30_000;
const INITIALIZE = { protocolVersion: PROTOCOL_VERSION, capabilities: {}, clientInfo: { name: 'bench', version: '1' } };

/** Milliseconds from spawn to the reply to tools/list that contains a tool whose name ends with `tool`. */
export async function timeToList(command, args, tool) {
  const began = performance.now();
  const server = start(command, args);
  const { stdin, stdout } = server.child;
  const send = (message) => stdin.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
  send({ id: 1, method: 'initialize', params: INITIALIZE });
  try {
    return await new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error(`No ${tool} in ${PATIENCE_MS / 1000} s`)), PATIENCE_MS);
      server.gone.then(() => {
        clearTimeout(timer);
        reject(new Error(`It ended: ${lastWords(server)}`));
      });
      let rest = '';
      stdout.setEncoding('utf8');
      stdout.on('data', (chunk) => {
        const lines = (rest + chunk).split('\n');
        rest = lines.pop();
        for (const line of lines) {
          const { id, method, result } = JSON.parse(line);
          if (method !== undefined) continue;
          if (id === 1) send({ method: 'notifications/initialized' });
          if (id > 1 && result?.tools.some(({ name }) => name.endsWith(tool))) {
            clearTimeout(timer);
            resolve(performance.now() - began);
            return;
          }
          // A gateway may answer before its upstream does. Then it has no tools yet, and is asked again.
          if (id === 1) send({ id: 2, method: 'tools/list' });
          else setTimeout(() => send({ id: id + 1, method: 'tools/list' }), 10);
        }
      });
    });
  } finally {
    await stop(server);
  }
}
