// node bench/many.mjs: thirty servers behind one gateway on stdio, each with a package of its own that npx gets from a registry
// of this bench. Prints one line of JSON per start. The first start installs all packages.
//   --direct         starts the programs with node instead of npx
//   --root FOLDER    measures another checkout that is built, for example an earlier commit
//   --starts NUMBER  how many starts with the same folder of data (2): the first one knows none of the servers

import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { PROTOCOL_VERSION } from './offer.mjs';
import { cpuOf, descendants, scratch, start, stop, stopAll } from './processes.mjs';

const { values: flags } = parseArgs({
  options: {
    root: { type: 'string', default: fileURLToPath(new URL('..', import.meta.url)) },
    starts: { type: 'string', default: '2' },
    direct: { type: 'boolean', default: false },
  },
});

// The gateway that is measured is the one that is started here, and ends with it.
process.env.TOOLGATE_SHARED = '0';

/** Ten of each, with a call that needs nothing. */
const KINDS = [
  { name: 'memory', args: [], call: ['read_graph', {}] },
  { name: 'filesystem', args: ['.'], call: ['list_allowed_directories', {}] },
  { name: 'everything', args: [], call: ['echo', { message: 'x' }] },
];
const SERVERS = Array.from({ length: 30 }, (_, i) => ({ ...KINDS[i % 3], namespace: `s${i}` }));
/** Memory is compared at the same age, because it shrinks for a while after a start. */
const AGE_MS = 20_000;

const folder = join(scratch, 'many');
mkdirSync(folder);
const programOf = (name) => import.meta.resolve(`@modelcontextprotocol/server-${name}/dist/index.js`);
/** The command line of a server. */
const lineOf = ({ name, namespace }) =>
  flags.direct ? [process.execPath, fileURLToPath(programOf(name))] : ['npx', '-y', namespace];
const registry = await startRegistry();
writeFileSync(
  join(folder, 'tools.toml'),
  `controls = []\n${SERVERS.map(
    (server) => `
[[servers]]
namespace = "${server.namespace}"
command = ${JSON.stringify(lineOf(server)[0])}
args = ${JSON.stringify([...lineOf(server).slice(1), ...server.args])}
[servers.env]
MEMORY_FILE_PATH = "${join(folder, `${server.namespace}.jsonl`)}"
npm_config_registry = "http://127.0.0.1:${registry.address().port}"
npm_config_cache = "${join(folder, 'npm')}"
`,
  ).join('')}`,
);

try {
  for (let count = 1; count <= Number(flags.starts); count++)
    console.log(JSON.stringify({ start: count, ...(await measure()) }));
} finally {
  registry.close();
  await stopAll();
}

/** A registry for npm: each package is a program that loads one of the public servers. */
async function startRegistry() {
  const tarballs = new Map(SERVERS.map(({ name, namespace }) => [namespace, pack(namespace, programOf(name))]));
  const server = createServer(({ url, headers }, response) => {
    const [, name, file] = url.split('/');
    const tarball = tarballs.get(name);
    if (tarball === undefined) return response.writeHead(404).end('{}');
    if (file !== undefined) return response.end(tarball);
    const integrity = `sha512-${createHash('sha512').update(tarball).digest('base64')}`;
    const dist = { tarball: `http://${headers.host}/${name}/package.tgz`, integrity };
    const versions = { '1.0.0': { ...manifestOf(name), dist } };
    return response.end(JSON.stringify({ name, 'dist-tags': { latest: '1.0.0' }, versions }));
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  return server;
}

function manifestOf(name) {
  return { name, version: '1.0.0', bin: { [name]: 'run.mjs' } };
}

function pack(name, program) {
  const at = join(scratch, 'packages', name);
  mkdirSync(join(at, 'package'), { recursive: true });
  writeFileSync(join(at, 'package', 'package.json'), JSON.stringify(manifestOf(name)));
  writeFileSync(join(at, 'package', 'run.mjs'), `#!/usr/bin/env node\nawait import('${program}');\n`);
  execFileSync('tar', ['czf', 'package.tgz', 'package'], { cwd: at });
  return readFileSync(join(at, 'package.tgz'));
}

/** Seconds since the spawn, seconds of CPU that the gateway itself used, and megabytes of the gateway with everything below it. */
async function measure() {
  const began = performance.now();
  const since = () => Math.round(performance.now() - began) / 1000;
  const command = [join(flags.root, 'bin', 'toolgate.mjs'), 'stdio', '--config', 'tools.toml'];
  const gateway = start(process.execPath, command, { cwd: folder });
  const ask = asker(gateway.child);
  await ask('initialize', {
    protocolVersion: PROTOCOL_VERSION,
    capabilities: {},
    clientInfo: { name: 'bench', version: '1' },
  });
  const initialize = since();
  ask.tell('notifications/initialized');
  const listed = async () => new Set((await ask('tools/list', {})).result.tools.map(({ name }) => name.split('_')[0]));
  const known = await listed();
  const list = since();
  // An answer of each server. One that is not listed yet is waited for.
  let names = known;
  for (; names.size < SERVERS.length && since() < 120; names = await listed()) await sleep(50);
  const answers = await Promise.all(
    SERVERS.map(({ namespace, call: [tool, args] }) =>
      ask('tools/call', { name: `${namespace}_${tool}`, arguments: args }),
    ),
  );
  const all = since();
  const cpu = Math.round(cpuOf(gateway.pid) / 1000) / 1000;
  const failed = answers.filter(({ result }) => result === undefined || result.isError === true).length;
  await sleep(Math.max(0, AGE_MS - (performance.now() - began)));
  const family = [gateway, ...descendants(gateway.pid)];
  const pss = Math.round(family.reduce((sum, { pid }) => sum + pssOf(pid), 0) / 1024);
  const late = readFileSync(gateway.log, 'utf8').split('did not start').length - 1;
  await stop(gateway);
  return { initialize, list, listedFirst: known.size, all, cpu, failed, late, processes: family.length, pss };
}

/** Sends requests over the pipe, and returns each answer. */
function asker({ stdin, stdout }) {
  const waiting = new Map();
  let next = 1;
  let rest = '';
  stdout.setEncoding('utf8');
  stdout.on('data', (chunk) => {
    const lines = (rest + chunk).split('\n');
    rest = lines.pop();
    for (const message of lines.map((line) => JSON.parse(line))) waiting.get(message.id)?.(message);
  });
  const send = (message) => stdin.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
  const ask = (method, params) =>
    new Promise((resolve) => {
      waiting.set(next, resolve);
      send({ id: next++, method, params });
    });
  return Object.assign(ask, { tell: (method) => send({ method }) });
}

/** In kilobytes. Shared pages count for each process by its part. */
function pssOf(pid) {
  try {
    return Number(/^Pss:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, 'latin1'))[1]);
  } catch {
    return 0; // it has ended
  }
}
