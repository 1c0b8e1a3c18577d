// Replicas: what a call costs with a store, what a second process brings, and many sessions over three replicas.

import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { cpus } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { CONTENDERS, stdioUpstreams } from './contenders.mjs';
import { median } from './measure.mjs';
import { cpuOf, descendants, freePort, memoryOf, scratch, start, stop } from './processes.mjs';

/** CPU of a call in a session with Redis, in multiples of the same without. */
const WITH_REDIS = 2.2;
/** Calls of two processes, in multiples of those of one. */
const TWO = 1.7;
const KEY = { SECRETS_KEY: 'a key for the bench' };

export async function fleetCalls(bench) {
  const started = [];
  const keep = (one) => {
    started.push(one);
    return one;
  };
  try {
    const processes = await processRows(bench, keep);
    if (spawnSync('redis-server', ['--version']).status !== 0) {
      bench.note('redis-server is not installed, so only processes were measured');
      return processes;
    }
    const redis = keep(await startRedis());
    return [...(await storeRows(bench, redis, keep)), ...processes, ...(await sessionRows(bench, redis, keep))];
  } finally {
    for (const one of started.reverse()) await one.stop();
  }
}

const upstream = () => stdioUpstreams();

/** The processes of Toolgate below a process, without the servers that they start. */
const ownPids = (pid) => [
  pid,
  ...descendants(pid)
    .filter(({ command }) => command.includes('toolgate.mjs'))
    .map((one) => one.pid),
];
const cpuOfAll = (pids) => pids.reduce((sum, pid) => sum + cpuOf(pid), 0);

async function startRedis() {
  const port = await freePort();
  const args = ['--port', String(port), '--bind', '127.0.0.1', '--dir', scratch, '--save', '', '--appendonly', 'yes'];
  const server = start('redis-server', args, { reads: false });
  const url = `redis://127.0.0.1:${port}`;
  for (let tries = 0; tries < 100; tries++) {
    if ((await ask(port, 'PING')).includes('PONG')) return { port, url, pid: server.pid, stop: () => stop(server) };
    await sleep(50);
  }
  throw new Error('redis-server does not answer');
}

function ask(port, command) {
  return new Promise((resolve) => {
    let text = '';
    const socket = connect(port, '127.0.0.1', () => socket.end(`${command}\r\n`));
    socket.on('data', (data) => {
      text += data;
    });
    socket.on('error', () => resolve(''));
    socket.on('close', () => resolve(text));
  });
}

/** A started Toolgate with the load generator connected. */
async function open({ load }, keep, settings, more, options = {}) {
  const gateway = keep(await CONTENDERS.toolgate(upstream(), settings, more, KEY));
  const { sessions = 32, modern = false, url = gateway.url } = options;
  const target = await load.open({ url, paths: ['/mcp'], sessions, streams: false, modern, rest: false });
  return { gateway, target, pids: ownPids(gateway.pid) };
}

/** Rounds in turn. Each sample has the calls per second, and microseconds of CPU per call of these processes. */
async function measure({ load, plan, progress }, label, callers, ways) {
  const names = ['up_echo'];
  const samples = Object.fromEntries(ways.map(({ key }) => [key, []]));
  for (let round = -1; round < plan.rounds * 2; round++) {
    progress(`${label}: ${round < 0 ? 'warming up' : `round ${round + 1}`}`);
    for (const { key, target, pids } of round % 2 === 0 ? ways : [...ways].reverse()) {
      await load.prepare({ target, kind: 'echo', names, callers });
      const before = cpuOfAll(pids);
      const length = round < 0 ? plan.warm.small : { ms: plan.ms.many };
      const run = await load.run({ target, kind: 'echo', names, callers, ...length });
      if (round >= 0) samples[key].push({ ...run, cpu: (cpuOfAll(pids) - before) / run.calls });
    }
  }
  return samples;
}

const middle = (samples, figure) => median(samples.map((one) => one[figure]));
const quotient = (samples, others, figure) => median(samples.map((one, i) => one[figure] / others[i][figure]));

function row(label, unit, samples, figure, ofPlain, limit) {
  return {
    label,
    unit,
    values: { toolgate: middle(samples, figure) },
    ratios: {},
    ofPlain,
    limit,
    rounds: { toolgate: samples.map((one) => one[figure]) },
  };
}

async function storeRows(bench, redis, keep) {
  const plain = await open(bench, keep, '', []);
  const shared = await open(bench, keep, `[store]\nurl = "${redis.url}"\n`, []);
  const ways = [
    { key: 'plain', ...plain },
    { key: 'shared', ...shared },
    // The same again, with the CPU of Redis.
    { key: 'redis', ...shared, pids: [redis.pid] },
  ];
  const rows = [];
  for (const callers of [1, 32]) {
    const samples = await measure(bench, `${callers} callers`, callers, ways);
    const who = `${callers} caller${callers === 1 ? '' : 's'}`;
    const ofPlain = quotient(samples.shared, samples.plain, 'cpu');
    rows.push(
      row(`CPU per call in a session, ${who}, without a store`, 'us', samples.plain, 'cpu'),
      row(`CPU per call in a session, ${who}, with Redis`, 'us', samples.shared, 'cpu', ofPlain, {
        text: `<= ${WITH_REDIS} x without`,
        max: WITH_REDIS,
        measured: ofPlain,
      }),
      row(`CPU of Redis per call, ${who}`, 'us', samples.redis, 'cpu'),
    );
  }
  return rows;
}

/**
 * With more cores than two, calls per second are counted. With two, the load generator and the servers take as much of them as
 * Toolgate does, so what two busy cores would do follows from CPU per call.
 */
async function processRows(bench, keep) {
  const rows = [];
  for (const modern of [true, false]) {
    const one = await open(bench, keep, '', [], { modern });
    const two = await open(bench, keep, '', ['--processes', '2'], { modern });
    const samples = await measure(bench, `processes, ${modern ? 'no ' : ''}sessions`, 64, [
      { key: 'one', ...one },
      { key: 'two', ...two },
    ]);
    const who = modern ? 'without sessions' : 'in sessions';
    const counted = quotient(samples.two, samples.one, 'perSecond');
    const byCpu = 2 / quotient(samples.two, samples.one, 'cpu');
    const hasCores = cpus().length > 3;
    const limit = { text: `>= ${TWO} x`, min: TWO, measured: hasCores ? counted : byCpu };
    rows.push(
      row(`calls per second ${who}, one process`, '/s', samples.one, 'perSecond'),
      row(
        `calls per second ${who}, two processes`,
        '/s',
        samples.two,
        'perSecond',
        counted,
        hasCores ? limit : undefined,
      ),
      row(`CPU per call ${who}, one process`, 'us', samples.one, 'cpu'),
      row(`CPU per call ${who}, two processes`, 'us', samples.two, 'cpu', quotient(samples.two, samples.one, 'cpu')),
      {
        label: `calls of two busy cores ${who}, of those of one, by CPU per call`,
        unit: 'us',
        values: {},
        ratios: {},
        ofPlain: byCpu,
        limit: hasCores || !modern ? undefined : limit,
      },
    );
  }
  return rows;
}

/** Sessions that are opened and used in turn on three replicas behind haproxy. */
async function sessionRows(bench, redis, keep) {
  const count = bench.plan.sessions.toolgate;
  if (spawnSync('haproxy', ['-v']).status !== 0) {
    bench.note('haproxy is not installed, so sessions over three replicas were not measured');
    return [];
  }
  const settings = `[store]\nurl = "${redis.url}"\nprefix = "many"\n`;
  const gateways = [];
  for (let i = 0; i < 3; i++) gateways.push(keep(await CONTENDERS.toolgate(upstream(), settings, [], KEY)));
  const port = await freePort();
  const file = join(scratch, 'haproxy.cfg');
  const lines = [
    'defaults\n  mode http\n  timeout connect 5s\n  timeout client 60s\n  timeout server 60s\n  http-reuse safe',
    `frontend in\n  bind 127.0.0.1:${port}\n  default_backend all`,
    'backend all\n  balance roundrobin',
    ...gateways.map(({ url }, i) => `  server r${i} ${new URL(url).host}`),
  ];
  writeFileSync(file, `${lines.join('\n')}\n`);
  const haproxy = start('haproxy', ['-f', file, '-db'], { reads: false });
  keep({ stop: () => stop(haproxy) });
  while (!(await ask(port, 'GET /ready HTTP/1.0\r\n')).includes('200')) await sleep(50);
  const url = `http://127.0.0.1:${port}/mcp`;
  const openTarget = (sessions) =>
    bench.load.open({ url, paths: ['/mcp'], sessions, streams: false, modern: false, rest: false });
  const pids = gateways.map(({ pid }) => pid);
  const few = await openTarget(32);
  const memory = () => pids.reduce((sum, pid) => sum + memoryOf(pid), 0);
  const used = async () => Number(/used_memory:(\d+)/.exec(await ask(redis.port, 'INFO memory'))?.[1]);
  const before = { own: memory(), redis: await used() };
  bench.progress(`${count} sessions over three replicas`);
  const many = await openTarget(count);
  const after = { own: memory(), redis: await used() };
  const samples = await measure(bench, `${count} sessions`, 32, [
    { key: 'few', target: few, pids },
    { key: 'many', target: many, pids },
  ]);
  const ofFew = quotient(samples.many, samples.few, 'cpu');
  const bytes = (label, value) => ({ label, unit: 'B', values: { toolgate: value }, ratios: {} });
  return [
    row('CPU per call, 32 sessions over three replicas', 'us', samples.few, 'cpu'),
    row(`CPU per call, ${count} sessions over three replicas`, 'us', samples.many, 'cpu', ofFew),
    row(`calls per second, ${count} sessions over three replicas`, '/s', samples.many, 'perSecond'),
    bytes('memory of Redis per session', (after.redis - before.redis) / count),
    bytes('memory of the three replicas per session', (after.own - before.own) / count),
  ];
}
