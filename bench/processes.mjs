// Starts real processes, watches them through /proc, and always ends them.

import { fork, spawn } from 'node:child_process';
import { mkdtempSync, openSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

/** A folder for configurations and logs, removed at the end. */
export const scratch = mkdtempSync(join(tmpdir(), 'toolgate-bench-'));

const alive = new Set();
let nextLog = 1;

/**
 * Starts a process. Its stderr goes to a file: a pipe would make the harness work for each line that a gateway logs.
 * With `reads` false its stdout goes there too.
 */
export function start(command, args, { reads = true, cwd = scratch, env = process.env } = {}) {
  const log = join(scratch, `${nextLog++}.log`);
  const file = openSync(log, 'a');
  const child = spawn(command, args, { cwd, env, stdio: ['pipe', reads ? 'pipe' : file, file] });
  const gone = new Promise((resolve) => {
    child.once('exit', resolve);
    child.once('error', resolve);
  });
  child.stdin.on('error', () => {}); // it may be gone before its stdin is closed
  const server = { child, pid: child.pid, log, gone };
  alive.add(server);
  gone.then(() => alive.delete(server));
  return server;
}

/** The last lines that a process wrote to its log. */
export function lastWords({ log }) {
  return readFileSync(log, 'utf8').trim().split('\n').slice(-5).join('\n');
}

/** Ends a process, and returns how many of its descendants had to be killed. */
export async function stop({ child, pid, gone }) {
  const family = descendants(pid);
  child.kill('SIGTERM');
  child.stdin.end();
  if (!(await within(5000, gone))) {
    child.kill('SIGKILL');
    await gone;
  }
  for (let waited = 0; waited < 3000 && family.some(isAlive); waited += 50) await sleep(50);
  const left = family.filter(isAlive);
  for (const { pid } of left) kill(pid);
  return left.length;
}

/** Ends everything, including the load generator. */
export async function stopAll() {
  await Promise.all([...alive].map(stop));
  rmSync(scratch, { recursive: true, force: true });
}

// The last resort, when there was no time for stopAll.
process.on('exit', () => {
  for (const { pid } of alive) {
    for (const relative of descendants(pid)) kill(relative.pid);
    kill(pid);
  }
  rmSync(scratch, { recursive: true, force: true });
});

function kill(pid) {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // already gone
  }
}

async function within(ms, promise) {
  const timeout = new AbortController();
  const result = await Promise.race([
    promise.then(() => true),
    sleep(ms, false, { signal: timeout.signal }).catch(() => false),
  ]);
  timeout.abort();
  return result;
}

/** The first line that a server of the bench prints: its port. */
export async function portOf(server) {
  for await (const chunk of server.child.stdout.iterator({ destroyOnReturn: false })) {
    server.child.stdout.resume();
    return JSON.parse(chunk).port;
  }
  throw new Error(`A server did not start: ${lastWords(server)}`);
}

/** A free port, for servers that need one as an option. */
export function freePort() {
  return new Promise((resolve) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });
}

// --- /proc ---------------------------------------------------------------------------------------------------------------

/** The fields of /proc/PID/stat from the third on. The second may contain anything, so it is cut off at its last parenthesis. */
function statOf(pid) {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'latin1');
    return text.slice(text.lastIndexOf(')') + 2).split(' ');
  } catch {
    return undefined;
  }
}

const startOf = (stat) => stat?.[19];

/** A process id belongs to the same process only if the start time is the same. */
const isAlive = ({ pid, started }) => {
  const stat = statOf(pid);
  return startOf(stat) === started && stat[0] !== 'Z';
};

/** All processes below `pid`, with the command line of each. */
export function descendants(pid) {
  const byParent = new Map();
  for (const name of readdirSync('/proc')) {
    const stat = /^\d+$/.test(name) ? statOf(name) : undefined;
    if (!stat) continue;
    const siblings = byParent.get(stat[1]) ?? [];
    siblings.push({ pid: Number(name), started: startOf(stat) });
    byParent.set(stat[1], siblings);
  }
  const found = [];
  const visit = (parent) => {
    for (const child of byParent.get(String(parent)) ?? []) {
      found.push({ ...child, command: commandOf(child.pid) });
      visit(child.pid);
    }
  };
  visit(pid);
  return found;
}

function commandOf(pid) {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'latin1').replaceAll('\0', ' ').trim();
  } catch {
    return '';
  }
}

/**
 * User and system time of a process so far, in microseconds. `stat` counts in steps of 10 ms, which is coarse for a short run;
 * `schedstat` of each thread counts the same time in nanoseconds.
 */
export function cpuOf(pid) {
  try {
    let nanoseconds = 0;
    for (const thread of readdirSync(`/proc/${pid}/task`)) {
      nanoseconds += Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'latin1').split(' ')[0]);
    }
    return nanoseconds / 1000;
  } catch {
    const stat = statOf(pid);
    return stat ? (Number(stat[11]) + Number(stat[12])) * 10_000 : 0;
  }
}

/** Resident memory in bytes. */
export function memoryOf(pid) {
  return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'latin1'))[1]) * 1024;
}

// --- The load generator --------------------------------------------------------------------------------------------------

/** Starts load.mjs; the functions returned are its commands. */
export function createLoad() {
  const child = fork(new URL('./load.mjs', import.meta.url), { stdio: ['pipe', 'inherit', 'inherit', 'ipc'] });
  const gone = new Promise((resolve) => child.once('exit', resolve));
  const load = { child, pid: child.pid, gone };
  alive.add(load);
  gone.then(() => alive.delete(load));
  child.on('error', () => {}); // a message could not be sent because it is gone, which is handled below
  const waiting = new Map();
  let nextTicket = 1;
  child.on('message', ({ ticket, value, error }) => {
    const { resolve, reject } = waiting.get(ticket);
    waiting.delete(ticket);
    if (error === undefined) resolve(value);
    else reject(new Error(error));
  });
  gone.then(() => {
    for (const { reject } of waiting.values()) reject(new Error('The load generator is gone'));
  });
  const command = (name) => (options) =>
    new Promise((resolve, reject) => {
      waiting.set(nextTicket, { resolve, reject });
      child.send({ ticket: nextTicket++, command: name, options });
    });
  return Object.fromEntries(['open', 'add', 'prepare', 'run', 'close'].map((name) => [name, command(name)]));
}
