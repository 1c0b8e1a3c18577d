// What is measured. Each scenario returns rows: the values of the contenders, and for some a limit for Toolgate.

import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { basename } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { httpUpstream, stdioUpstreams, toolgateCommand, whyNoToolgate } from './contenders.mjs';
import { dashboardCalls } from './dashboard.mjs';
import { dockDrop, dockPython, dockTypescript } from './dock.mjs';
import { fleetCalls } from './fleet.mjs';
import { governedCalls } from './governed.mjs';
import { libraryClients } from './library.mjs';
import { measure, measureGenerations, median, memories, middle, ratio, withField } from './measure.mjs';
import { modernBig, modernCalls } from './modern.mjs';
import { memoryOf, stop } from './processes.mjs';
import { restCalls } from './rest.mjs';
import { timeToList } from './startup.mjs';
import { windowCalls } from './window.mjs';

const CONTENDERS = ['direct', 'bare', 'toolgate', 'sdk'];
const isGateway = (contender) => contender !== 'direct';
const hasSessions = (contender) => contender === 'toolgate' || contender === 'sdk';
/** For a second kind of run on warm processes. */
const SHORT_WARM = { ms: 200 };
const number = (value) => value.toLocaleString('en-US');

/** How long and how often, for the full and for the quick run. */
export const PLANS = {
  full: {
    patient: CONTENDERS, // the contenders of scenarios in which the slow ones take long
    generations: 3,
    rounds: 3, // in each generation
    ms: { one: 250, many: 500 },
    warm: { small: { ms: 1200, atLeast: 8000 }, large: { ms: 1000 } },
    toolCounts: [10, 1000, 10_000],
    upstreams: 100,
    sessions: { toolgate: 10_000, sdk: 2000 },
    streams: 2000,
    settle: 5000,
    starts: 9,
    modern: { generations: 3, rounds: 4, ms: { one: 150, many: 300, big: 250 }, warm: 600 },
  },
  quick: {
    patient: ['bare', 'toolgate'],
    generations: 1,
    rounds: 3,
    ms: { one: 120, many: 200 },
    warm: { small: { ms: 400, atLeast: 1500 }, large: { ms: 400 } },
    toolCounts: [10, 10_000],
    upstreams: 10,
    sessions: { toolgate: 2000, sdk: 0 },
    streams: 0,
    settle: 1000,
    starts: 3,
    modern: { generations: 1, rounds: 4, ms: { one: 100, many: 200, big: 150 }, warm: 400 },
  },
};

export const SCENARIOS = [
  { name: 'stdio-small', title: 'HTTP to stdio, small results', run: (bench) => calls(bench, stdio(), 'echo') },
  {
    name: 'http-small',
    title: 'HTTP to HTTP, small results',
    run: async (bench) => calls(bench, await http(), 'echo'),
    columns: 'http',
  },
  { name: 'stdio-1mb', title: 'HTTP to stdio, results of 1 MB', run: (bench) => calls(bench, stdio(), 'big') },
  {
    name: 'http-1mb',
    title: 'HTTP to HTTP, results of 1 MB',
    run: async (bench) => calls(bench, await http(), 'big'),
    columns: 'http',
  },
  {
    name: 'http-1mb-id-last',
    title: 'HTTP to HTTP, results of 1 MB, the id behind them',
    run: async (bench) => calls(bench, await http({ flags: ['--id-last'] }), 'big'),
    columns: 'http',
    fullOnly: true,
  },
  {
    name: 'stdio-1mb-id-last',
    title: 'HTTP to stdio, results of 1 MB, the id behind them',
    run: (bench) => calls(bench, stdio(['--id-last']), 'big'),
    fullOnly: true,
  },
  { name: 'tools', title: 'With many tools on the upstream (HTTP to stdio)', run: manyTools },
  { name: 'upstreams', title: 'With many upstreams on stdio, called in turn', run: manyUpstreams },
  { name: 'sessions', title: 'With many open sessions, used in turn (HTTP to stdio)', run: manySessions },
  {
    name: 'modern-stdio',
    title: '2026-07-28 beside the revisions with sessions (HTTP to stdio)',
    run: (bench) => modernCalls(bench, 'stdio'),
    columns: 'eras',
    fullOnly: true,
  },
  {
    name: 'modern-http',
    title: '2026-07-28 beside the revisions with sessions (HTTP to HTTP)',
    run: (bench) => modernCalls(bench, 'http'),
    columns: 'eras',
    fullOnly: true,
  },
  {
    name: 'modern-1mb',
    title: 'The same with results of 1 MB (HTTP to stdio)',
    run: (bench) => modernBig(bench, 'stdio'),
    columns: 'eras',
    fullOnly: true,
  },
  {
    name: 'rest-small',
    title: 'REST beside MCP, small results (HTTP to HTTP)',
    run: (bench) => restCalls(bench, 'http', 'echo'),
    columns: 'rest',
    fullOnly: true,
  },
  {
    name: 'rest-stdio',
    title: 'REST beside MCP, small results (HTTP to stdio)',
    run: (bench) => restCalls(bench, 'stdio', 'echo'),
    columns: 'rest',
    fullOnly: true,
  },
  {
    name: 'rest-1mb',
    title: 'REST beside MCP, results of 1 MB (HTTP to stdio)',
    run: (bench) => restCalls(bench, 'stdio', 'big'),
    columns: 'rest',
    fullOnly: true,
  },
  {
    name: 'governed',
    title: 'Policy, limits and audit (HTTP to stdio)',
    run: governedCalls,
    columns: 'governed',
    fullOnly: true,
  },
  {
    name: 'fleet',
    title: 'Replicas (HTTP to stdio)',
    run: fleetCalls,
    columns: 'governed',
    fullOnly: true,
  },
  {
    name: 'dashboard',
    title: 'The dashboard, with 10,000 tools, 1,000 sessions and 500 calls a second',
    run: dashboardCalls,
    columns: 'governed',
    fullOnly: true,
  },
  {
    name: 'library',
    title: 'Toolsets inside a program, each client with its own',
    run: libraryClients,
    columns: 'library',
    fullOnly: true,
  },
  {
    name: 'dock-python',
    title: 'A Python tool in a folder, and on stdio',
    run: dockPython,
    columns: 'dock',
    fullOnly: true,
  },
  {
    name: 'dock-typescript',
    title: 'A TypeScript tool in a folder, and a server on stdio',
    run: dockTypescript,
    columns: 'dock',
    fullOnly: true,
  },
  { name: 'dock-drop', title: 'A folder of tools that is dropped in', run: dockDrop, columns: 'dock', fullOnly: true },
  {
    name: 'window',
    title: 'A client on stdio: a window of the shared gateway',
    run: windowCalls,
    columns: 'window',
    fullOnly: true,
  },
  { name: 'startup', title: 'Start on stdio, until tools/list is answered', run: startup },
];

const stdio = (flags) => ({ upstreams: stdioUpstreams({ flags }) });
const http = httpUpstream;

// --- Rows ----------------------------------------------------------------------------------------------------------------

const byContender = (entries) => Object.fromEntries(entries.filter(([, value]) => value !== undefined));

/** A row about one value of samples, by contender. */
function row(label, unit, samples, figure, limit) {
  const names = Object.keys(samples);
  const ratios = byContender(names.map((name) => [name, ratio(samples[name], samples.bare, figure)]));
  return {
    label,
    unit,
    values: byContender(names.map((name) => [name, middle(samples[name], figure)])),
    ratios,
    limit: limit && timesBare(limit, ratios.toolgate),
    rounds: byContender(names.map((name) => [name, samples[name]?.map((sample) => sample[figure])])),
  };
}

const timesBare = (max, measured) => ({ text: `<= ${max} x bare`, max, measured });

const smallCalls = ({ ms, rounds, warm }) => ({
  label: 'calls',
  kind: 'echo',
  callers: 32,
  ms: ms.many,
  rounds,
  warm: warm.small,
});

// --- Scenarios -----------------------------------------------------------------------------------------------------------

async function calls(bench, { upstreams, server }, kind) {
  const { generations, rounds, ms, warm, patient } = bench.plan;
  const limits = kind === 'big' ? { cpu: 1.15, p50: 1.5 } : { cpu: 1.5, p50: 1.3 };
  const gateways = kind === 'big' ? patient : CONTENDERS;
  // Over HTTP also a proxy with nothing but Node: with small results that is what the limits are about.
  const contenders = server ? ['node', ...gateways] : gateways;
  const entries = contenders.map((contender) => ({ key: contender, contender, upstreams }));
  const heat = kind === 'big' ? warm.large : warm.small;
  let memory;
  const { many, one } = await measureGenerations(bench, generations, entries, async (field, generation) => {
    const crowd = { label: '32 callers', kind, callers: 32, ms: ms.many, rounds, warm: heat };
    // The core of a process changes from run to run and matters most here, so there are more and shorter runs.
    const single = { label: '1 caller', kind, callers: 1, ms: ms.one, rounds: 2 * rounds, warm: SHORT_WARM };
    const many = await measure(bench, field, crowd);
    memory ??= memories(field);
    if (kind === 'echo' && generation === 0) noteHelpers(bench, field, many.toolgate);
    return { many, one: await measure(bench, field, single) };
  });
  if (server) await stop(server);
  return [
    row('p50, 1 caller', 'us', one, 'p50', limits.p50),
    row('p99, 1 caller', 'us', one, 'p99'),
    cpuRow('CPU per call, 1 caller', one, limits.cpu, kind === 'echo' ? ofCaller(server, 0.75, 1.05) : null),
    row('calls per second, 32 callers', '/s', many, 'perSecond'),
    row('p50, 32 callers', 'us', many, 'p50'),
    cpuRow('CPU per call, 32 callers', many, limits.cpu, kind === 'echo' ? ofCaller(server, 0.6, 0.9) : null),
    { label: 'memory after 32 callers', unit: 'B', values: memory },
  ];
}

/** The limit of small calls: over HTTP as a ratio to a proxy with nothing but Node, on stdio to bare. */
const ofCaller = (server, ofNode, ofBare) => (server ? { base: 'node', max: ofNode } : { base: 'bare', max: ofBare });

/** A row about CPU. `other` is a limit in place of the usual one. */
function cpuRow(label, samples, max, other) {
  const made = row(label, 'us', withoutDirect(samples), 'cpu', max);
  const ofNode = ratio(samples.toolgate, samples.node, 'cpu');
  if (other === null) return { ...made, ofNode };
  const measured = ratio(samples.toolgate, samples[other.base], 'cpu');
  return { ...made, ofNode, limit: { text: `<= ${other.max} x ${other.base}`, max: other.max, measured } };
}

const withoutDirect = ({ direct: _, ...gateways }) => gateways;

function noteHelpers({ note }, field, samples) {
  const toolgate = field.find(({ contender }) => contender === 'toolgate');
  if (!toolgate || toolgate.helpers.length === 0) return;
  const each = toolgate.helpers.map(({ pid, command }) => {
    const [program, argument = ''] = command.split(/\s+/);
    return `"${basename(program)} ${basename(argument)}" (${(memoryOf(pid) / 1e6).toFixed(0)} MB)`;
  });
  const cpu = middle(samples, 'helperCpu');
  note(`Beside its own process Toolgate runs ${each.join(', ')}; CPU of those per call: ${cpu?.toFixed(1) ?? '?'} us`);
}

async function manyTools(bench) {
  const { generations, rounds, ms, toolCounts, patient } = bench.plan;
  const entries = toolCounts.flatMap((count) => {
    const upstreams = stdioUpstreams({ flags: ['--tools', String(count)] });
    return patient.filter(isGateway).map((contender) => ({ key: `${contender}@${count}`, contender, upstreams }));
  });
  const { calls, lists } = await measureGenerations(bench, generations, entries, async (field, generation) => {
    const list = { label: 'lists', kind: 'list', callers: 1, ms: ms.one, rounds, warm: SHORT_WARM, atLeast: 3 };
    const calls = await measure(bench, field, smallCalls(bench.plan));
    return generation === 0 ? { calls, lists: await measure(bench, field, list) } : { calls };
  });
  for (const key of Object.keys(lists)) {
    const expected = Number(key.split('@')[1]);
    const { tools } = lists[key][0];
    if (tools !== expected) bench.note(`${key} lists ${tools} tools`);
  }
  const few = at(calls, toolCounts[0]).toolgate;
  return toolCounts.flatMap((count) => {
    const called = at(calls, count);
    const listed = at(lists, count);
    const limit = { text: '<= 1.1 x with 10 tools', max: 1.1, measured: ratio(called.toolgate, few, 'cpu') };
    return [
      {
        ...row(`CPU per call, 32 callers, ${number(count)} tools`, 'us', called, 'cpu'),
        limit: count === toolCounts[0] ? undefined : limit,
      },
      row(`tools/list p50, ${number(count)} tools`, 'us', listed, 'p50'),
      row(`tools/list CPU, ${number(count)} tools`, 'us', listed, 'cpu'),
    ];
  });
}

/** The samples of `contender@size` for one size, by contender. */
function at(samples, size) {
  return byContender(CONTENDERS.map((contender) => [contender, samples[`${contender}@${size}`]]));
}

async function manyUpstreams(bench) {
  const { upstreams: count, patient } = bench.plan;
  const entries = [1, count].flatMap((size) => {
    const upstreams = stdioUpstreams({ count: size });
    return patient.filter(isGateway).map((contender) => ({
      key: `${contender}@${size}`,
      contender,
      upstreams,
      // bare reaches its upstreams by path, and a session belongs to a path
      sessions: contender === 'bare' ? Math.max(32, size) : 32,
    }));
  });
  return withField(bench, entries, async (field) => {
    const many = await measure(bench, field, { ...smallCalls(bench.plan), rounds: 2 * bench.plan.rounds });
    const memory = memories(field);
    return [1, count].flatMap((size) => [
      row(`CPU per call, 32 callers, ${size} upstream${size === 1 ? '' : 's'}`, 'us', at(many, size), 'cpu', 1.5),
      row(`calls per second, ${size} upstream${size === 1 ? '' : 's'}`, '/s', at(many, size), 'perSecond'),
      { label: `memory, ${size} upstream${size === 1 ? '' : 's'}`, unit: 'B', values: at(memory, size) },
    ]);
  });
}

async function manySessions(bench) {
  const { plan, progress, note } = bench;
  const upstreams = stdioUpstreams();
  const stateful = plan.patient.filter(hasSessions);
  const entries = [
    { key: 'bare@1', contender: 'bare', upstreams, sessions: 1 },
    ...stateful.flatMap((contender) => [
      { key: `${contender}@1`, contender, upstreams, sessions: 1 },
      { key: `${contender}@many`, contender, upstreams, sessions: 1 },
    ]),
  ];
  return withField(bench, entries, async (field) => {
    const perSession = {};
    for (const contender of field.filter(({ key }) => key.endsWith('@many'))) {
      const count = plan.sessions[contender.contender];
      progress(`${number(count)} sessions on ${contender.contender}`);
      try {
        perSession[contender.contender] = await memoryPerSession(bench, contender, count);
      } catch (error) {
        note(`${contender.contender} did not open ${number(count)} sessions: ${error.message}`);
      }
    }
    const many = await measure(bench, field, { ...smallCalls(plan), rounds: 2 * plan.rounds });
    const one = at(many, 1);
    const full = at(many, 'many');
    const { toolgate, sdk } = plan.sessions;
    const counts = `${number(toolgate)} sessions${sdk > 0 ? ` (sdk: ${number(sdk)})` : ''}`;
    const rows = [
      row('CPU per call, 32 callers, 1 session', 'us', one, 'cpu'),
      {
        ...row(`CPU per call, 32 callers, ${counts}`, 'us', full, 'cpu'),
        limit: { text: '<= 1.1 x with 1 session', max: 1.1, measured: ratio(full.toolgate, one.toolgate, 'cpu') },
      },
      {
        label: `memory per idle session, ${counts}`,
        unit: 'B',
        values: perSession,
        limit: { text: '<= 20 KB', max: 20_000, measured: perSession.toolgate, unit: 'B' },
      },
    ];
    if (plan.streams > 0) rows.push(await memoryWithStreams(bench, upstreams));
    return rows;
  });
}

/** The same for sessions that keep a stream open, as most real clients do. This is mostly the cost of a socket in node:http. */
async function memoryWithStreams(bench, upstreams) {
  const count = bench.plan.streams;
  const entries = bench.plan.patient
    .filter(hasSessions)
    .map((contender) => ({ key: contender, contender, upstreams, sessions: 1, streams: true }));
  return withField(bench, entries, async (field) => {
    const values = {};
    for (const contender of field) {
      bench.progress(`${number(count)} sessions with a stream on ${contender.key}`);
      try {
        values[contender.key] = await memoryPerSession(bench, contender, count);
      } catch (error) {
        bench.note(`${contender.key} did not open ${number(count)} streams: ${error.message}`);
      }
    }
    return { label: `memory per idle session with a stream, ${number(count)} sessions`, unit: 'B', values };
  });
}

/**
 * The growth of resident memory for each of `count` more sessions. Some are opened before the first measurement, so that the fixed
 * cost of sessions is not counted. No calls are made, because they leave far more in the heap.
 */
async function memoryPerSession({ load, plan }, { target, pid }, count) {
  await load.add({ target, sessions: Math.ceil(count * 0.3) });
  await sleep(plan.settle);
  const before = memoryOf(pid);
  await load.add({ target, sessions: count });
  await sleep(plan.settle);
  return (memoryOf(pid) - before) / count;
}

/** Milliseconds that a gateway may add to a start. Node 20 does not keep compiled code. */
const START_MS = Number(process.versions.node.split('.')[0]) >= 22 ? 80 : 120;
const IDLE_MB = 60;
const VERSION_MS = 60;

/** Upstreams for start-up: a fast upstream shows best how fast the gateway itself is. */
const STARTERS = [
  { label: 'a quick upstream', upstream: stdioUpstreams()[0], tool: 'echo' },
  {
    label: 'an upstream that needs 500 ms',
    upstream: stdioUpstreams({ flags: ['--start-delay', '500'] })[0],
    tool: 'echo',
  },
  {
    label: 'server-everything',
    upstream: stdioUpstreams({
      script: fileURLToPath(
        new URL('../node_modules/@modelcontextprotocol/server-everything/dist/index.js', import.meta.url),
      ),
      flags: ['stdio'],
    })[0],
    tool: 'echo',
  },
];

async function startup({ plan, note, progress }) {
  const rows = [];
  for (const { label, upstream, tool } of STARTERS) {
    if (!existsSync(upstream.args[0])) continue;
    const alone = [];
    const through = [];
    try {
      for (let round = 0; round < plan.starts; round++) {
        progress(`${label}: start ${round + 1} of ${plan.starts}`);
        alone.push(await timeToList(upstream.command, upstream.args, tool));
        if (whyNoToolgate()) continue;
        const [command, ...args] = toolgateCommand('stdio', [upstream]);
        through.push(await timeToList(command, args, tool));
      }
    } catch (error) {
      note(`The start with ${label} could not be measured: ${error.message}`);
    }
    rows.push({
      label,
      unit: 'ms',
      values: byContender([
        ['direct', median(alone)],
        ['toolgate', median(through)],
      ]),
      limit: {
        text: `<= upstream + ${START_MS} ms`,
        max: START_MS,
        measured: median(through.map((ms, round) => ms - alone[round])),
        unit: 'ms',
      },
      rounds: { direct: alone, toolgate: through },
    });
  }
  if (!whyNoToolgate()) rows.push(versionRow(plan), await idleRow({ plan, note, progress }));
  return rows;
}

/** `toolgate --version`, next to a Node that does nothing. In a checkout it also looks whether the build is old. */
function versionRow({ starts }) {
  const run = (args) => {
    const began = performance.now();
    spawnSync(process.execPath, args);
    return performance.now() - began;
  };
  const [bin] = toolgateCommand('--version', []).slice(1);
  const rounds = Array.from({ length: starts }, () => ({
    direct: run(['-e', '0']),
    toolgate: run([bin, '--version']),
  }));
  const toolgate = median(rounds.map((round) => round.toolgate));
  return {
    label: 'toolgate --version (direct: node -e 0)',
    unit: 'ms',
    values: { direct: median(rounds.map(({ direct }) => direct)), toolgate },
    limit: { text: `<= ${VERSION_MS} ms`, max: VERSION_MS, measured: toolgate, unit: 'ms' },
  };
}

/** Resident memory with one server, before the first call. */
async function idleRow(bench) {
  const entries = [{ key: 'toolgate', contender: 'toolgate', upstreams: stdioUpstreams(), sessions: 1 }];
  return withField({ ...bench, load: IDLE_LOAD }, entries, async (field) => {
    await sleep(bench.plan.settle);
    const { toolgate } = memories(field);
    const limit = { text: `<= ${IDLE_MB} MB`, max: IDLE_MB * 1e6, measured: toolgate, unit: 'B' };
    return { label: 'memory when idle', unit: 'B', values: { toolgate }, limit };
  });
}

/** Nobody is connected. */
const IDLE_LOAD = { open: async () => 0, close: async () => {} };
