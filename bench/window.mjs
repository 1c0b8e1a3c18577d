// A window: a client on stdio that is attached to the shared gateway of its project. Compared with a gateway of its own.

import { execFileSync } from 'node:child_process';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { stdioUpstreams, toolgateCommand } from './contenders.mjs';
import { median } from './measure.mjs';
import { PROTOCOL_VERSION } from './offer.mjs';
import { cpuOf, scratch, start, stop } from './processes.mjs';

const INITIALIZE = { protocolVersion: PROTOCOL_VERSION, capabilities: {}, clientInfo: { name: 'bench', version: '1' } };
const CALLERS = [1, 32];
/** One more process that passes bytes on: as much again as a gateway takes for a small call. */
const LIMIT = 2.5;

export async function windowCalls({ plan, progress }) {
  const upstreams = stdioUpstreams();
  const contenders = { own: await openOwn(upstreams), window: await openWindow(upstreams) };
  try {
    const rows = [];
    // Many calls first: code that has just been loaded is slow.
    for (const contender of Object.values(contenders)) await callFor(contender, 32, plan.warm.small.ms);
    for (const callers of CALLERS) {
      const samples = { own: [], window: [] };
      for (const contender of Object.values(contenders)) await callFor(contender, callers, 200);
      for (let round = 0; round < plan.rounds; round++)
        for (const [name, contender] of Object.entries(contenders)) {
          progress(`${callers} callers, ${name}: round ${round + 1} of ${plan.rounds}`);
          samples[name].push(await callFor(contender, callers, plan.ms.many));
        }
      rows.push(
        row(`CPU per call, ${callers} in flight`, 'us', samples, 'cpu', LIMIT),
        callers === 1
          ? row('latency', 'us', samples, 'latency')
          : row(`calls per second, ${callers} in flight`, '/s', samples, 'throughput'),
      );
    }
    return rows;
  } finally {
    for (const { close } of Object.values(contenders)) await close();
  }
}

function row(label, unit, samples, figure, max) {
  const values = Object.fromEntries(
    Object.entries(samples).map(([name, all]) => [name, median(all.map((sample) => sample[figure]))]),
  );
  const measured = values.window / values.own;
  const limit = max && { text: `<= ${max} x own`, max, measured };
  return { label, unit, values, ofPlain: measured, limit, rounds: samples };
}

async function openOwn(upstreams) {
  const [command, ...args] = toolgateCommand('stdio', upstreams);
  const server = start(command, [...args, '--no-shared']);
  return { ...(await openClient(server)), pids: [server.pid], close: () => stop(server) };
}

async function openWindow(upstreams) {
  const [command, ...args] = toolgateCommand('stdio', upstreams);
  const config = args.slice(args.indexOf('--config'));
  const variables = ['TOOLGATE_SHARED=1', `XDG_RUNTIME_DIR=${mkdtempSync(join(tmpdir(), 'tg-'))}`];
  // The program takes the place of env, so the process is that of the window.
  const server = start('env', [...variables, command, ...args]);
  const client = await openClient(server);
  const daemon = (verb) =>
    execFileSync('env', [...variables, command, args[0], 'daemon', verb, '--json', ...config], { cwd: scratch });
  const [{ pid }] = JSON.parse(daemon('status')).gateways;
  const close = async () => {
    await stop(server);
    daemon('stop');
  };
  return { ...client, pids: [server.pid, pid], close };
}

/** A client that reads nothing but ids. */
async function openClient({ child }) {
  const waiting = new Map();
  let rest = '';
  child.stdout.setEncoding('latin1');
  child.stdout.on('data', (chunk) => {
    const lines = (rest + chunk).split('\n');
    rest = lines.pop();
    for (const line of lines) {
      const id = /"id":(\d+)\}$/.exec(line)?.[1];
      if (id === undefined) continue;
      waiting.get(id)?.(line);
      waiting.delete(id);
    }
  });
  let count = 0;
  const ask = (method, params) =>
    new Promise((resolve) => {
      const id = String(++count);
      waiting.set(id, resolve);
      child.stdin.write(`{"jsonrpc":"2.0","id":${id},"method":"${method}","params":${JSON.stringify(params)}}\n`);
    });
  await ask('initialize', INITIALIZE);
  child.stdin.write('{"jsonrpc":"2.0","method":"notifications/initialized"}\n');
  while (!(await ask('tools/list', {})).includes('"up_echo"')) await new Promise((next) => setTimeout(next, 20));
  return { call: () => ask('tools/call', { name: 'up_echo', arguments: { text: 'hello' } }) };
}

async function callFor({ call, pids }, callers, ms) {
  const cpu = () => pids.reduce((sum, pid) => sum + cpuOf(pid), 0);
  const before = cpu();
  const began = performance.now();
  let calls = 0;
  await Promise.all(
    Array.from({ length: callers }, async () => {
      while (performance.now() - began < ms) {
        const line = await call();
        if (!line.includes('hello')) throw new Error(`a wrong answer: ${line}`);
        calls++;
      }
    }),
  );
  const took = performance.now() - began;
  return { cpu: (cpu() - before) / calls, latency: (took * 1000 * callers) / calls, throughput: (calls * 1000) / took };
}
