// What a page of the dashboard costs the gateway: the same process without the dashboard, with it, and with an open page.
// What goes on at other moments than a call costs most, because at this rate a process mostly sleeps. So nothing of what
// came before may reach into a run. A change of the settings leaves work behind for many seconds, most of it old objects
// to collect: there are two changes in a round, and calls that are not measured follow each.

import { readFileSync, writeFileSync } from 'node:fs';
import { Agent, get } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { stdioUpstreams } from './contenders.mjs';
import { byChance, meanOf, measure, measureGenerations, middle, ratio } from './measure.mjs';
import { cpuOf } from './processes.mjs';

const TOOLS = 10_000;
const SESSIONS = 1_000;
const RATE = 500;
/** CPU per call, in multiples of a call without the dashboard. */
const MOST_OPEN = 1.05;
const MOST_CLOSED = 1.03;

const OFF = '[http]\ndashboard = false\n';
const ON = '[http]\ndashboard = true\n';

/** Each way with a limit is compared with two others that are equal, in the same round. */
const WITHOUT = ['off', 'again'];
const CLOSED = ['closed', 'closed again'];
const WAYS = [
  { way: 'off', label: 'without the dashboard', settings: OFF },
  { way: 'again', label: 'the same again: the noise of this run', settings: OFF, of: ['off'] },
  { way: 'closed', label: 'with it, and no page open', settings: ON, of: WITHOUT, most: MOST_CLOSED },
  { way: 'closed again', label: 'the same again: the noise of this run', settings: ON, of: ['closed'] },
  { way: 'overview', label: 'with the overview open', settings: ON, topics: [], of: CLOSED, most: MOST_OPEN },
  { way: 'calls', label: 'with live calls open', settings: ON, topics: ['calls'], of: CLOSED, most: MOST_OPEN },
];

/** What every view of the page listens to. */
const TOPICS = ['ticks', 'servers', 'sessions', 'approvals', 'catalog', 'toolsets', 'logins'];
/** How often it asks for the rest, and how long a run is, so that every run has one of these. */
const ASKS_EVERY = 5_000;
const WARM = 1_000;
const CALLERS = 16;
/** Milliseconds of calls after a change. */
const SETTLE = 8_000;

const KEY = 'the-operator-key-of-the-bench';
const HEADERS = { authorization: `Bearer ${KEY}` };
const PATIENCE_MS = 60_000;

export async function dashboardCalls(bench) {
  process.env.TOOLGATE_OPERATOR_KEY = KEY;
  const { generations, rounds } = bench.plan.modern;
  const upstreams = stdioUpstreams({ flags: ['--tools', String(TOOLS)] });
  const pages = new Map();
  const [first] = WAYS;
  const entries = WAYS.map(({ way, settings, topics }) => ({
    key: way,
    contender: 'toolgate',
    upstreams,
    sessions: way === first.way ? SESSIONS : 32,
    of: way === first.way ? undefined : first.way,
    async enter(contender) {
      pages.get(contender.pid)?.close();
      pages.delete(contender.pid);
      if (textOf(contender, settings) !== readFileSync(contender.config, 'utf8')) {
        await apply(contender, settings);
        await settle(bench, contender);
      }
      if (topics) pages.set(contender.pid, await openPage(contender, [...TOPICS, ...topics]));
      // What a page asks for when it opens is not what it costs.
      await calm(contender);
    },
  }));
  const options = { kind: 'echo', callers: CALLERS, rounds, order: inBlocks };
  const paced = { ...options, label: `${RATE} calls a second`, ms: ASKS_EVERY, perSecond: RATE, warm: { ms: WARM } };
  try {
    const { samples } = await measureGenerations(bench, Math.min(2, generations), entries, async (field) => ({
      samples: await measure(bench, field, paced),
    }));
    return WAYS.map((way) => row(way, samples));
  } finally {
    for (const page of pages.values()) page.close();
    delete process.env.TOOLGATE_OPERATOR_KEY;
  }
}

/** Those with the same settings one after the other, in random order: otherwise each would come after the same one. */
function inBlocks(field, round) {
  const blocks = [OFF, ON].map((settings) =>
    byChance(field.filter(({ key }) => WAYS.find(({ way }) => way === key).settings === settings)),
  );
  return (round % 2 === 0 ? blocks : blocks.reverse()).flat();
}

/** Calls that are not measured, at the same rate, until what a change has left behind is done. */
async function settle({ load }, { target, upstreams, tool }) {
  const names = upstreams.map((upstream) => tool(upstream, 'echo'));
  const calls = { target, kind: 'echo', names, callers: CALLERS };
  await load.prepare(calls);
  await load.run({ ...calls, perSecond: RATE, ms: SETTLE });
}

const MARK = '# settings of the run\n';

function textOf({ config }, settings) {
  const [servers] = readFileSync(config, 'utf8').split(MARK);
  return `${servers}${MARK}${settings}`;
}

/** Applies other settings. The time for that is not measured. */
async function apply(contender, settings) {
  const { config, url, pid } = contender;
  writeFileSync(config, textOf(contender, settings));
  // Otherwise it waits whether more is written.
  process.kill(pid, 'SIGHUP');
  const wanted = settings === ON ? 200 : 404;
  for (const until = Date.now() + PATIENCE_MS; Date.now() < until; await sleep(20)) {
    const { status } = await fetch(`${new URL(url).origin}/admin/session`, { headers: HEADERS });
    if (status === wanted) return;
  }
  throw new Error('The settings were not applied');
}

/** Microseconds of CPU within `LOOK_MS` of a process that does nothing but tell a page each second how it is. */
const CALM = 3_000;
const LOOK_MS = 100;
const MOST_LOOKS = 30;

/** Waits until a process has done what is left of a change. */
async function calm({ pid }) {
  let isCalm = false;
  for (let looks = 0; looks < MOST_LOOKS; looks++) {
    const before = cpuOf(pid);
    await sleep(LOOK_MS);
    const wasCalm = isCalm;
    isCalm = cpuOf(pid) - before < CALM;
    if (wasCalm && isCalm) return;
  }
}

/** Does over HTTP what the page does: one stream of events, and the overview every few seconds. */
async function openPage({ url }, topics) {
  const origin = new URL(url).origin;
  // As a browser, which keeps its connections.
  const agent = new Agent({ keepAlive: true });
  const options = { headers: HEADERS, agent };
  const ask = (path) =>
    new Promise((resolve, reject) => {
      get(`${origin}/admin/${path}`, options, (response) => {
        if (response.statusCode === 200) resolve(response);
        else reject(new Error(`The dashboard answered ${response.statusCode} to ${path}`));
      }).on('error', reject);
    });
  const stream = await ask(`events?topics=${topics.join(',')}`);
  stream.resume().on('error', () => {});
  const asking = setInterval(
    () =>
      // It has all seconds before from the stream.
      Promise.all([ask('session'), ask(`overview?since=${Date.now() - 1_000}`)]).then(
        (all) => all.forEach((one) => void one.resume()),
        () => {},
      ),
    ASKS_EVERY,
  );
  return {
    close() {
      clearInterval(asking);
      stream.destroy();
      agent.destroy();
    },
  };
}

function row({ way, label, of = [], most }, samples) {
  const ofPlain =
    of.length === 0 ? undefined : ratio(samples[way], meanOf(...of.map((other) => samples[other])), 'cpu');
  const text = of === CLOSED ? `<= ${most} x closed` : `<= ${most} x without`;
  return {
    label: `CPU per call, ${label}`,
    unit: 'us',
    values: { toolgate: middle(samples[way], 'cpu') },
    ratios: {},
    ofPlain,
    limit: most === undefined ? undefined : { text, max: most, measured: ofPlain },
    rounds: { toolgate: samples[way]?.map(({ cpu }) => cpu) },
  };
}
