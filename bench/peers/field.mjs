// Starts the contenders of `npm run bench:peers`, finds out what they call the tools, and measures them in turn.

import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { CONTENDERS } from '../contenders.mjs';
import { byChance } from '../measure.mjs';
import { ENVELOPE, MODERN_VERSION, PROTOCOL_VERSION } from '../offer.mjs';
import { cpuOf, descendants, freePort, lastWords, scratch, start, stop } from '../processes.mjs';
import { PEERS } from './peers.mjs';

/** Some peers import for a minute on a busy machine. They start at the same time. */
const START_PATIENCE_MS = 120_000;
const OPEN_PATIENCE_MS = 60_000;
const REPLY_PATIENCE_MS = 20_000;
const UPSTREAM = /upstream-(stdio|http)\.mjs/;

/** What policy, limits and audit are in the row of Toolgate that has them. */
const GOVERNED = `
[audit]
enabled = true
[agent_policies."*"]
allowed_servers = ["up"]
tool_overrides = { up = ["echo", "big"] }
denied_tools = { up = ["drop_*"] }
[agent_policies."*".limits]
rate = "1000000/s"
calls_per_day = 1000000000
concurrency = 1000
`;

const OWN = {
  direct: async (upstream) => ({ ...(await CONTENDERS.direct([upstream])), pid: undefined }),
  bare: (upstream) => CONTENDERS.bare([upstream]),
  toolgate: (upstream) => CONTENDERS.toolgate([upstream]),
  governed: (upstream) => CONTENDERS.toolgate([upstream], GOVERNED),
};

/** The contenders that are no peers, in the order of the table. */
export const OWN_NAMES = Object.keys(OWN);

let nextFolder = 1;

async function startPeer(name, transport, upstream) {
  const peer = PEERS[name];
  const folder = join(scratch, `peer-${nextFolder++}`);
  mkdirSync(folder);
  const port = await freePort();
  const { command, path, env = {}, ready } = peer[transport](upstream, port, folder);
  const server = start(command[0], command.slice(1), { reads: false, cwd: folder, env: { ...quiet(folder), ...env } });
  const url = `http://127.0.0.1:${port}${path}`;
  const contender = { url, paths: [path], pid: server.pid, server, rest: peer.rest, stop: () => stop(server) };
  let ended = false;
  server.gone.then(() => {
    ended = true;
  });
  let reason = 'it does not answer';
  try {
    for (const until = Date.now() + START_PATIENCE_MS; Date.now() < until && !ended; await sleep(250)) {
      try {
        await ready?.(new URL(url).origin);
        const tools = peer.rest ? { echo: 'echo', big: 'big' } : await toolsOf(url, false);
        if (peer.rest) await callRest(url);
        return { ...contender, tools };
      } catch (error) {
        reason = error.cause?.message ?? error.message;
      }
    }
    throw new Error(
      `${ended ? 'it ended' : `not ready after ${START_PATIENCE_MS / 1000} s`}: ${shortly(ended ? lastWords(server) : reason)}`,
    );
  } catch (error) {
    await stop(server);
    throw error;
  }
}

/** Nobody is told about these runs, and nothing of this user is read or written. */
function quiet(folder) {
  const { PATH, LANG, TMPDIR } = process.env;
  const off = [
    'DO_NOT_TRACK',
    'SCARF_NO_ANALYTICS',
    'OTEL_SDK_DISABLED',
    'NO_UPDATE_NOTIFIER',
    'ANONYMIZED_TELEMETRY_DISABLED',
  ];
  return {
    ...(PATH && { PATH }),
    ...(LANG && { LANG }),
    ...(TMPDIR && { TMPDIR }),
    HOME: folder,
    NODE_ENV: 'production',
    PYTHONDONTWRITEBYTECODE: '',
    ANONYMIZED_TELEMETRY: 'false',
    ...Object.fromEntries(off.map((name) => [name, name === 'OTEL_SDK_DISABLED' ? 'true' : '1'])),
  };
}

export const shortly = (text) => {
  const line =
    String(text)
      .trim()
      .split('\n')
      .filter((one) => one.trim() !== '')
      .at(-1) ?? '';
  return line.length > 240 ? `${line.slice(0, 240)}…` : line;
};

/** It was answered in the revision that was asked for, without the tools. */
class NotListed extends Error {}

/** The names under which a contender lists the two tools of the upstream. */
async function toolsOf(url, modern) {
  const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };
  const post = async (message, more = {}) => {
    const response = await fetch(url, {
      method: 'POST',
      headers: { ...headers, ...more },
      body: JSON.stringify({ jsonrpc: '2.0', ...message }),
      signal: AbortSignal.timeout(15_000),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`${message.method} was answered ${response.status}: ${text.slice(0, 200)}`);
    return [response, text];
  };
  let listed;
  if (modern) {
    const params = { _meta: JSON.parse(ENVELOPE) };
    const more = { 'mcp-protocol-version': MODERN_VERSION, 'mcp-method': 'tools/list' };
    [, listed] = await post({ id: 1, method: 'tools/list', params }, more);
  } else {
    const params = { protocolVersion: PROTOCOL_VERSION, capabilities: {}, clientInfo: { name: 'bench', version: '1' } };
    const [welcome] = await post({ id: 0, method: 'initialize', params });
    const session = welcome.headers.get('mcp-session-id');
    const more = { 'mcp-protocol-version': PROTOCOL_VERSION, ...(session && { 'mcp-session-id': session }) };
    await post({ method: 'notifications/initialized' }, more);
    [, listed] = await post({ id: 1, method: 'tools/list', params: {} }, more);
  }
  const { result } = messageIn(listed, 1);
  const find = (name) =>
    result?.tools?.map((tool) => tool.name).find((one) => one === name || new RegExp(`[^a-z]${name}$`).test(one));
  const tools = { echo: find('echo'), big: find('big') };
  if (!result) throw new Error(`tools/list was answered ${listed.slice(0, 200)}`);
  if (!tools.echo || !tools.big) throw new NotListed(`the tools of the server are not listed: ${listed.slice(0, 200)}`);
  return tools;
}

/** The answer to a request, from JSON or from an event stream. */
function messageIn(text, id) {
  const candidates = text.startsWith('{') ? [text] : [...text.matchAll(/^data: ?(\{.*)$/gm)].map(([, data]) => data);
  return candidates.map((one) => JSON.parse(one)).find((message) => message.id === id) ?? {};
}

async function callRest(url) {
  const body = JSON.stringify({ text: 'hello' });
  const response = await fetch(`${url}/echo`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body,
  });
  if (!response.ok || (await response.json()) !== 'hello') throw new Error(`a call was answered ${response.status}`);
}

/**
 * Starts contenders in front of one upstream. Returns those that run, and why the others do not. `modern`: whether they are called in
 * the revision 2026-07-28.
 */
export async function openContenders({ load, progress }, names, transport, upstream, modern) {
  const reasons = {};
  progress(`starting ${names.join(', ')}`);
  const opened = await Promise.all(
    names.map(async (name) => {
      reasons[name] = whyNot(name, transport, modern);
      if (reasons[name]) return undefined;
      let started;
      try {
        started = OWN[name] ? await OWN[name](upstream) : await startPeer(name, transport, upstream);
        const { url, paths, command, args, rest } = started;
        if (url && (OWN[name] || modern)) started.tools = await toolsOf(url, modern);
        started.tools ??= { echo: 'echo', big: 'big' };
        const open = (sessions) =>
          within(OPEN_PATIENCE_MS, load.open({ url, paths, command, args, sessions, modern, rest }));
        const one = await open(1);
        progress(`${name} runs`);
        // A pipe is one session for everybody.
        return { name, ...started, targets: { 1: one, 32: command ? one : await open(32) } };
      } catch (error) {
        reasons[name] = shortly(error.message);
        await started?.stop();
        return undefined;
      }
    }),
  );
  return { field: opened.filter((one) => one !== undefined), reasons };
}

/** Why a contender cannot do a path at all. */
function whyNot(name, transport, modern) {
  const peer = PEERS[name];
  if (peer?.why) return peer.why;
  if (peer && !peer[transport]) return NOT_DONE[transport];
  if (peer?.rest && modern) return 'it has no MCP endpoint';
  return undefined;
}

/** Why peers that run cannot be called in the revision 2026-07-28; nothing for those that can. */
export async function whyNotModern(field) {
  const reasons = {};
  for (const { name, url, rest } of field) {
    if (!PEERS[name] || rest) continue;
    try {
      await toolsOf(url, true);
    } catch (error) {
      // Some use the revision of the client towards the server too, and this one does not speak it.
      if (error instanceof NotListed) continue;
      reasons[name] = `it does not speak 2026-07-28: ${shortly(error.message)}`;
    }
  }
  return reasons;
}

const NOT_DONE = {
  http: 'it does not connect to servers over HTTP and serve them over HTTP',
  stdio: 'it does not start servers itself',
};

export async function closeContenders({ load }, field) {
  for (const { targets, ...contender } of field) {
    for (const target of new Set(Object.values(targets))) await within(5_000, load.close({ target })).catch(() => {});
    await contender.stop();
  }
}

/**
 * Rounds of calls to each contender in random order. Returns samples by name, one for each round, and why a contender was left out.
 * A contender that takes longer than the patience of the load generator, or answers wrongly, is left out from then on.
 */
export async function measureContenders({ load, progress }, field, { label, kind, callers, ms, rounds, deadline }) {
  const samples = {};
  const reasons = {};
  for (let round = -1; round < rounds; round++) {
    progress(`${label}: ${round < 0 ? 'warming up' : `round ${round + 1} of ${rounds}`}`);
    for (const contender of byChance(field)) {
      const { name, targets, tools } = contender;
      if (reasons[name] || (Date.now() > deadline && round > 0)) continue;
      const call = { target: targets[callers], kind, names: [tools[kind]], callers, patience: REPLY_PATIENCE_MS };
      try {
        await load.prepare(call);
        const read = cpuMeter(contender);
        const { calls, perSecond, p50, p99 } = await load.run({
          ...call,
          ms: round < 0 ? 2 * ms : ms,
          atLeast: callers,
        });
        const cpu = read();
        samples[name] ??= [];
        if (round >= 0)
          samples[name][round] = { perSecond, p50, p99, cpu: cpu === undefined ? undefined : cpu / calls };
      } catch (error) {
        reasons[name] = shortly(error.message);
        delete samples[name];
      }
    }
  }
  return { samples, reasons };
}

/** CPU time of a contender with its helpers, in microseconds: everything that it started, except for the upstreams. */
function cpuMeter({ pid }) {
  if (pid === undefined) return () => undefined;
  const family = () => [
    pid,
    ...descendants(pid)
      .filter(({ command }) => !UPSTREAM.test(command))
      .map((one) => one.pid),
  ];
  const before = new Map(family().map((one) => [one, cpuOf(one)]));
  return () => family().reduce((sum, one) => sum + Math.max(0, cpuOf(one) - (before.get(one) ?? 0)), 0);
}

async function within(ms, promise) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no answer in ${ms / 1000} s`)), ms);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}
