// What is compared: each function starts one contender in front of the given upstreams and returns how to reach it.
//   url, paths, tool(upstream, name)   for the load generator
//   pid                                the gateway process; direct has none

import { existsSync, mkdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { descendants, freePort, lastWords, portOf, scratch, start, stop } from './processes.mjs';

const here = (name) => fileURLToPath(new URL(name, import.meta.url));
const TOOLGATE = here('../bin/toolgate.mjs');
const BUILT = here('../dist/cli/main.js');
const START_PATIENCE_MS = 60_000;
/** The environment that Python folders share. That of the tests, because building one takes long. */
export const VENVS = here('../test/tools/python/data/venvs/_base');

/** Why Toolgate cannot be measured, or undefined. */
export function whyNoToolgate() {
  for (const file of [TOOLGATE, BUILT]) {
    if (!existsSync(file)) return `${file} does not exist yet: run npm run build`;
  }
  return undefined;
}

/** When Toolgate was built. Changes if it is built during a measurement. */
export function toolgateBuild() {
  return whyNoToolgate() ? undefined : statSync(BUILT).mtimeMs;
}

/** `count` upstreams on stdio. The gateways start them. */
export function stdioUpstreams({
  count = 1,
  flags = [],
  namespace = 'up',
  script = here('./upstream-stdio.mjs'),
} = {}) {
  return Array.from({ length: count }, (_, index) => ({
    namespace: count === 1 ? namespace : `${namespace}${index}`,
    command: process.execPath,
    args: [script, ...flags],
  }));
}

/** One upstream over HTTP, started here. All contenders use it, one after the other. */
export async function httpUpstream({ flags = [], namespace = 'up' } = {}) {
  const server = start(process.execPath, [here('./upstream-http.mjs'), ...flags]);
  return { server, upstreams: [{ namespace, url: `http://127.0.0.1:${await portOf(server)}/mcp` }] };
}

export const CONTENDERS = {
  direct: async ([upstream]) => ({ ...upstream, paths: ['/mcp'], tool: (_, name) => name, stop: async () => 0 }),

  async bare(upstreams) {
    const [{ url, command, args }] = upstreams;
    const server = url
      ? start(process.execPath, [here('./bare-http.mjs'), url])
      : start(process.execPath, [here('./bare-stdio.mjs'), String(upstreams.length), command, ...args]);
    const paths = upstreams.length === 1 ? ['/mcp'] : upstreams.map((_, index) => `/mcp/${index}`);
    return contender(server, await portOf(server), { paths, tool: (_, name) => name });
  },

  /** Only in front of HTTP. */
  async node([{ url }]) {
    const server = start(process.execPath, [here('./node-http.mjs'), url]);
    return contender(server, await portOf(server), { tool: (_, name) => name });
  },

  async sdk(upstreams) {
    const server = start(process.execPath, [here('./sdk-gateway.mjs'), JSON.stringify(upstreams)]);
    return contender(server, await portOf(server));
  },

  /** `more` are arguments of the command, `env` variables that it needs. */
  async toolgate(upstreams, settings = '', more = [], env = {}) {
    const port = await freePort();
    const [command, ...args] = toolgateCommand('serve', upstreams, settings);
    const server = start(command, [...args, '--host', '127.0.0.1', '--port', String(port), ...more], {
      reads: false,
      env: { ...process.env, ...env },
    });
    try {
      await ready(server, `http://127.0.0.1:${port}/ready`);
      for (const { namespace, files = {} } of upstreams) if (Object.keys(files).length > 0) await up(server, namespace);
    } catch (error) {
      await stop(server);
      throw error;
    }
    const config = args[args.indexOf('--config') + 1];
    return { ...contender(server, port), config, folder: dirname(config) };
  },
};

function contender(server, port, { paths = ['/mcp'], tool = ({ namespace }, name) => `${namespace}_${name}` } = {}) {
  return { url: `http://127.0.0.1:${port}/mcp`, paths, tool, pid: server.pid, server, stop: () => stop(server) };
}

/** The helper processes of a gateway, such as a watchdog, without the upstreams that it started. */
export function helpersOf(pid) {
  return descendants(pid).filter(
    ({ command }) => !/upstream-stdio\.mjs|server-everything|fastmcp-server|host\.mjs|start\.py/.test(command),
  );
}

let nextConfig = 1;

/** The command line of Toolgate, with a configuration for these upstreams in a new folder. */
export function toolgateCommand(door, upstreams, settings = '') {
  const folder = join(scratch, `toolgate-${nextConfig++}`);
  mkdirSync(folder);
  const file = join(folder, 'toolgate.toml');
  const servers = upstreams.map(({ namespace, url, command, args, files }) => {
    if (files) return dropFolder(folder, namespace, files);
    const where = url ? { url } : { command, args };
    const lines = Object.entries({ namespace, ...where }).map(([key, value]) => `${key} = ${JSON.stringify(value)}`);
    return `[[servers]]\n${lines.join('\n')}\n`;
  });
  writeFileSync(file, `controls = []\n${servers.join('\n')}${settings}`);
  return [process.execPath, TOOLGATE, door, '--log-level', 'info', '--config', file];
}

/** A folder of tools, which needs no configuration. */
function dropFolder(folder, namespace, files) {
  const data = join(folder, '.toolgate');
  mkdirSync(join(data, 'tools', namespace), { recursive: true });
  mkdirSync(VENVS, { recursive: true });
  mkdirSync(join(data, 'venvs'), { recursive: true });
  if (!existsSync(join(data, 'venvs/_base'))) symlinkSync(VENVS, join(data, 'venvs/_base'));
  for (const [name, text] of Object.entries(files)) writeFileSync(join(data, 'tools', namespace, name), text);
  return '';
}

/** Start-up does not wait for folders. The log says when they are served. */
async function up(server, namespace) {
  const line = `"source":"${namespace}","message":"up`;
  for (const until = Date.now() + START_PATIENCE_MS; Date.now() < until; await sleep(50))
    if (readFileSync(server.log, 'utf8').includes(line)) return;
  throw new Error(`${namespace} was not up: ${lastWords(server)}`);
}

async function ready(server, url) {
  let ended = false;
  server.gone.then(() => {
    ended = true;
  });
  let last = 'nothing';
  for (const until = Date.now() + START_PATIENCE_MS; Date.now() < until && !ended; await sleep(50)) {
    try {
      const response = await fetch(url, { signal: AbortSignal.timeout(2000) });
      if (response.status === 200) return;
      last = String(response.status);
    } catch {
      // not listening yet
    }
  }
  throw new Error(`${ended ? 'It ended' : `It was not ready (${last})`}: ${lastWords(server)}`);
}
