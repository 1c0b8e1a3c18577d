/**
 * The Node worker: runs the TypeScript and JavaScript tools of one namespace. Started by the gateway with `--namespace`,
 * `--socket`, `--folder` and `--build`; nothing of the gateway is in here.
 */
import { chmodSync, readFileSync, realpathSync, renameSync, rmSync } from 'node:fs';
import { createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { Worker } from 'node:worker_threads';
import { type BuildManifest, MANIFEST } from '../src/tools/build-manifest.ts';
import { textOf } from '../src/tools/fault.ts';
import { loadTools } from './load.ts';
import { failCurrent } from '../src/tools/tool-run.ts';
import { type Serving, serve } from './serve.ts';

const MAX_LINE = 64 * 1024 * 1024;

const { values } = parseArgs({
  options: {
    namespace: { type: 'string' },
    socket: { type: 'string' },
    folder: { type: 'string' },
    build: { type: 'string' },
    'max-line': { type: 'string' },
  },
  // What a newer gateway says beside it is not for us.
  strict: false,
});
const namespace = required('namespace');
const path = required('socket');
// As the build has it, and with it every stack.
const folder = realpathSync(required('folder'));
const build = required('build');
const maxLine = Number(values['max-line']) || MAX_LINE;

const exit = process.exit.bind(process);
let serving: Serving | null = null;

const lifeline = new Worker(new URL('./lifeline.mjs', import.meta.url), { execArgv: [], stdin: false });
lifeline.on('message', () => exit(0));
lifeline.unref();

// It would end the calls of all others, too.
process.exit = (code) => {
  throw new Error(`process.exit(${code ?? ''}) was called; a tool returns or throws instead.`);
};
// A tool may have closed them; that nobody hears what is printed then is no error of anybody's.
for (const output of [process.stdout, process.stderr]) output.on('error', () => {});
process.on('uncaughtException', (error) => stray(error, 'An error that nobody caught'));
process.on('unhandledRejection', (error) => stray(error, 'A rejection that nobody handled'));

const manifest = JSON.parse(readFileSync(join(build, MANIFEST), 'utf8')) as BuildManifest;
// Listening comes first: whoever connects meanwhile waits for the line that says it is ready.
const loading = loadTools(build, manifest, folder);
let connected: Socket | null = null;
const server = createServer(async (socket) => {
  if (connected !== null) {
    socket.destroy();
    return;
  }
  connected = socket;
  socket.on('close', () => {
    connected = null;
    serving = null;
  });
  socket.on('error', () => {});
  const loaded = await loading;
  if (!socket.destroyed) serving = serve(socket, loaded, { namespace, folder, maxLine }, () => exit(0));
});
server.on('error', (error) => {
  console.error(`The worker of "${namespace}" cannot listen on ${path}: ${error.message}`);
  exit(1);
});
// It appears under its name when it takes connections, and not a moment before.
const draft = `${path}~`;
rmSync(draft, { force: true });
server.listen(draft, () => {
  chmodSync(draft, 0o600);
  renameSync(draft, path);
});

function stray(error: unknown, what: string): void {
  if (failCurrent(error)) return;
  console.error(`${what}:`, error);
  serving?.log('error', `${what}: ${textOf(error)}`);
}

function required(name: 'namespace' | 'socket' | 'folder' | 'build'): string {
  const value = values[name];
  if (typeof value === 'string') return value;
  console.error(`The worker needs --${name}.`);
  return process.exit(2);
}
