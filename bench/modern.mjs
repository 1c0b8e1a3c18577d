// What the modern era (2026-07-28, without sessions) costs compared with the legacy era (with sessions), on either side.

import { httpUpstream, stdioUpstreams } from './contenders.mjs';
import { byChance, meanOf, measure, measureGenerations, middle, ratio } from './measure.mjs';
import { stop } from './processes.mjs';

/** CPU per call, in multiples of legacy to legacy. */
const MAX = 1.1;

/**
 * The combinations of eras. All use the same process, because CPU per call differs between two processes of the same program by
 * more than the limit allows. `again` is the reference once more: it shows how much equal runs differ, and the others are compared
 * with the mean of both.
 */
const WAYS = [
  { way: 'legacy', label: 'legacy client, legacy server', client: 'legacy', server: 'legacy' },
  { way: 'again', label: 'the same again: the noise of this run', client: 'legacy', server: 'legacy' },
  { way: 'inward', label: 'modern client, legacy server', client: 'modern', server: 'legacy', limited: true },
  { way: 'modern', label: 'modern client, modern server', client: 'modern', server: 'modern', limited: true },
  { way: 'outward', label: 'legacy client, modern server', client: 'legacy', server: 'modern' },
];

/** What bare can relay without translation: its upstream answers each request in the revision of the request. */
const RELAYED = ['legacy', 'again', 'modern'];

const UPSTREAMS = {
  stdio: async (era) => ({ upstreams: stdioUpstreams({ namespace: era, flags: ['--era', era] }) }),
  http: (era) => httpUpstream({ namespace: era, flags: ['--era', era] }),
};

/** Small calls with 1 and with 32 callers. */
export async function modernCalls(bench, transport) {
  const { rounds, ms, warm } = bench.plan.modern;
  const { many, one } = await measureWays(bench, transport, {
    many: { label: '32 callers', kind: 'echo', callers: 32, ms: ms.many, rounds, warm: { ms: warm } },
    one: { label: '1 caller', kind: 'echo', callers: 1, ms: ms.one, rounds: 2 * rounds, warm: { ms: warm / 2 } },
  });
  return [...rows('1 caller', one, MAX), ...rows('32 callers', many, MAX)];
}

/** Results of 1 MB, 1 caller: reported, without a limit. */
export async function modernBig(bench, transport) {
  const { rounds, ms, warm } = bench.plan.modern;
  const one = { label: '1 caller', kind: 'big', callers: 1, ms: ms.big, rounds, warm: { ms: warm } };
  return rows('1 caller', (await measureWays(bench, transport, { one })).one);
}

/** Samples by run and by way, `contender@way`. */
function measureWays(bench, transport, runs) {
  return withUpstreams(transport, (entries) =>
    measureGenerations(bench, bench.plan.modern.generations, entries, async (field) => {
      const samples = {};
      for (const [name, run] of Object.entries(runs))
        samples[name] = await measure(bench, field, { ...run, order: byChance });
      return samples;
    }),
  );
}

async function withUpstreams(transport, use) {
  const opened = {};
  try {
    for (const era of ['legacy', 'modern', 'both']) opened[era] = await UPSTREAMS[transport](era);
    return await use(entriesFor(opened));
  } finally {
    for (const { server } of Object.values(opened)) if (server) await stop(server);
  }
}

function entriesFor({ legacy, modern, both }) {
  const all = [...legacy.upstreams, ...modern.upstreams];
  const through = (contender, way, upstreams, rest) => ({
    key: `${contender}@${way}`,
    contender,
    upstreams,
    of: way === WAYS[0].way ? undefined : `${contender}@${WAYS[0].way}`,
    ...rest,
  });
  return [
    ...WAYS.map(({ way, client, server }) => {
      const { upstreams } = server === 'modern' ? modern : legacy;
      return through('toolgate', way, upstreams, { all, modern: client === 'modern' });
    }),
    ...WAYS.filter(({ way }) => RELAYED.includes(way)).map(({ way, client }) =>
      through('bare', way, both.upstreams, { modern: client === 'modern' }),
    ),
  ];
}

function rows(callers, samples, max) {
  const byContender = (of) => {
    const entries = ['bare', 'toolgate'].map((contender) => [contender, of(contender)]);
    return Object.fromEntries(entries.filter(([, value]) => value !== undefined));
  };
  const reference = byContender((contender) => meanOf(samples[`${contender}@legacy`], samples[`${contender}@again`]));
  return WAYS.map(({ way, label, limited }) => {
    const list = (contender) => samples[`${contender}@${way}`];
    const ofLegacy = byContender((contender) => {
      if (way === 'legacy') return undefined;
      const base = way === 'again' ? samples[`${contender}@legacy`] : reference[contender];
      return ratio(list(contender), base, 'cpu');
    });
    return {
      label: `CPU per call, ${callers}, ${label}`,
      unit: 'us',
      values: byContender((contender) => middle(list(contender), 'cpu')),
      ratios: byContender((contender) => ratio(list(contender), list('bare'), 'cpu')),
      ofLegacy,
      limit: limited && max ? { text: `<= ${max} x legacy`, max, measured: ofLegacy.toolgate } : undefined,
      rounds: byContender((contender) => list(contender)?.map(({ cpu }) => cpu)),
    };
  });
}
