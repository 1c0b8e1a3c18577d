/**
 * The host program of a Node worker: runs the TypeScript and JavaScript tools of one namespace. The gateway starts it
 * with `--namespace`, `--socket`, `--folder` and `--build`. Its bundle contains no gateway code.
 */
import { chmodSync, readFileSync, realpathSync, renameSync, rmSync } from 'node:fs';
import { createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { Worker } from 'node:worker_threads';
import { type BuildManifest, MANIFEST } from '../src/tools/build-manifest.ts';
import { textOf } from '../src/tools/fault.ts';
import { failCurrent } from '../src/tools/tool-run.ts';
import { attributeOutput } from './attribute.ts';
import { HostConnection } from './connection.ts';
import { loadItems } from './load.ts';

const MAX_LINE = 64 * 1024 * 1024;

const { values } = parseArgs({
  options: {
    namespace: { type: 'string' },
    socket: { type: 'string' },
    folder: { type: 'string' },
    build: { type: 'string' },
    'max-line': { type: 'string' },
  },
  // A newer gateway may pass more options.
  strict: false,
});
const namespace = required('namespace');
const path = required('socket');
// The build uses real paths, and so do stack traces.
const folder = realpathSync(required('folder'));
const build = required('build');
const maxLine = Number(values['max-line']) || MAX_LINE;

const exit = process.exit.bind(process);
let connection: HostConnection | null = null;

const lifeline = new Worker(new URL('./lifeline.mjs', import.meta.url), { execArgv: [], stdin: false });
lifeline.on('message', () => exit(0));
lifeline.unref();

// A tool that exits would end the calls of all other tools too.
process.exit = (code) => {
  throw new Error(`process.exit(${code ?? ''}) was called; a tool returns or throws instead.`);
};
// A tool may have closed them. A lost line of output must not end the worker.
for (const output of [process.stdout, process.stderr]) output.on('error', () => {});
if (process.env.TOOLGATE_ATTRIBUTE === '1') attributeOutput();
process.on('uncaughtException', (error) => reportUncaught(error, 'Uncaught error'));
process.on('unhandledRejection', (error) => reportUncaught(error, 'Unhandled rejection'));

const manifest = JSON.parse(readFileSync(join(build, MANIFEST), 'utf8')) as BuildManifest;
// Listens before the tools are loaded. A client that connects early waits for the `ready` line.
const loading = loadItems(build, manifest, folder);
let connected: Socket | null = null;
const server = createServer(async (socket) => {
  if (connected !== null) {
    socket.destroy();
    return;
  }
  connected = socket;
  socket.on('close', () => {
    connected = null;
    connection = null;
  });
  socket.on('error', () => {});
  const loaded = await loading;
  if (!socket.destroyed) connection = new HostConnection(socket, loaded, { namespace, folder, maxLine }, () => exit(0));
});
server.on('error', (error) => {
  console.error(`The worker of "${namespace}" cannot listen on ${path}: ${error.message}`);
  exit(1);
});
// The socket gets its name only when it accepts connections.
const draft = `${path}~`;
rmSync(draft, { force: true });
server.listen(draft, () => {
  chmodSync(draft, 0o600);
  renameSync(draft, path);
});

function reportUncaught(error: unknown, what: string): void {
  if (failCurrent(error)) return;
  console.error(`${what}:`, error);
  connection?.logGeneral('error', `${what}: ${textOf(error)}`);
}

function required(name: 'namespace' | 'socket' | 'folder' | 'build'): string {
  const value = values[name];
  if (typeof value === 'string') return value;
  console.error(`The worker needs --${name}.`);
  return process.exit(2);
}
