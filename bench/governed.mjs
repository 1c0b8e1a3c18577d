// What policy, limits and audit cost together: the same process, alternately with and without them.

import { readFileSync, writeFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { stdioUpstreams } from './contenders.mjs';
import { byChance, measure, measureGenerations, middle, ratio } from './measure.mjs';

/** CPU per call, in multiples of a call without them. */
const MAX = 1.05;

const PLAIN = '[audit]\nenabled = false\n';
const GOVERNED = `
[audit]
enabled = true

[exposed_tools]
up = ["nothing"]

[agent_policies."*"]
allowed_servers = ["up"]
tool_overrides = { up = ["echo", "big"] }
denied_tools = { up = ["drop_*"] }

[agent_policies."*".limits]
rate = "1000000/s"
calls_per_day = 1000000000
concurrency = 1000

[[conditions]]
tools = ["up.drop_*"]
annotations = { destructiveHint = false }
`;

/** In one process, because CPU per call differs between two processes of the same program by more than the limit allows. */
const WAYS = [
  { way: 'plain', label: 'without', settings: PLAIN },
  { way: 'again', label: 'the same again: the noise of this run', settings: PLAIN },
  { way: 'governed', label: 'with policy, limits and audit', settings: GOVERNED, limited: true },
];

export async function governedCalls(bench) {
  const { rounds, ms, warm, generations } = bench.plan.modern;
  const upstreams = stdioUpstreams();
  const entries = WAYS.map(({ way, settings }) => ({
    key: way,
    contender: 'toolgate',
    upstreams,
    of: way === WAYS[0].way ? undefined : WAYS[0].way,
    enter: (contender) => apply(contender, settings),
  }));
  const samples = await measureGenerations(bench, generations, entries, async (field) => ({
    many: await measure(bench, field, run('32 callers', 32, ms.many, rounds, warm)),
    one: await measure(bench, field, run('1 caller', 1, ms.one, 2 * rounds, warm / 2)),
  }));
  return [...rows('1 caller', samples.one), ...rows('32 callers', samples.many)];
}

const run = (label, callers, ms, rounds, warm) => ({
  label,
  kind: 'echo',
  callers,
  ms,
  rounds,
  warm: { ms: warm },
  order: byChance,
});

const MARK = '# settings of the run\n';

/** Applies other settings. The time for that is not measured. */
async function apply({ config }, settings) {
  const [servers] = readFileSync(config, 'utf8').split(MARK);
  const text = `${servers}${MARK}${settings}`;
  if (readFileSync(config, 'utf8') === text) return;
  writeFileSync(config, text);
  await sleep(600);
}

function rows(callers, samples) {
  return WAYS.map(({ way, label, limited }) => {
    const ofPlain = way === 'plain' ? undefined : ratio(samples[way], samples.plain, 'cpu');
    return {
      label: `CPU per call, ${callers}, ${label}`,
      unit: 'us',
      values: { toolgate: middle(samples[way], 'cpu') },
      ratios: {},
      ofPlain,
      limit: limited ? { text: `<= ${MAX} x without`, max: MAX, measured: ofPlain } : undefined,
      rounds: { toolgate: samples[way]?.map(({ cpu }) => cpu) },
    };
  });
}
