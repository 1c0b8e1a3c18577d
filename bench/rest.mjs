// What a call over REST costs compared with the same call over MCP. Both use one process, because CPU per call differs between two
// processes of the same program by more than the limit allows.

import { httpUpstream, stdioUpstreams } from './contenders.mjs';
import { byChance, meanOf, measure, measureGenerations, middle, ratio } from './measure.mjs';
import { stop } from './processes.mjs';

/** CPU per call, in multiples of a call in a session. */
const MAX = 1;

/** `again` is the reference once more: the others are compared with the mean of both. */
const WAYS = [
  { way: 'mcp', label: 'MCP in a session' },
  { way: 'again', label: 'the same again: the noise of this run' },
  { way: 'modern', label: 'MCP without a session', modern: true },
  { way: 'rest', label: 'REST', rest: true, limited: true },
];

const UPSTREAMS = { stdio: async () => ({ upstreams: stdioUpstreams() }), http: () => httpUpstream() };

export async function restCalls(bench, transport, kind) {
  const { generations, rounds, ms, warm } = bench.plan.modern;
  const { server, upstreams } = await UPSTREAMS[transport]();
  try {
    const entries = WAYS.map(({ way, modern = false, rest = false }, index) => ({
      ...{ key: way, contender: 'toolgate', upstreams, modern, rest },
      of: index === 0 ? undefined : WAYS[0].way,
    }));
    const { many, one } = await measureGenerations(bench, generations, entries, async (field) => {
      const crowd = { kind, callers: 32, ms: ms.many, rounds, warm: { ms: warm } };
      const single = { kind, callers: 1, ms: ms.one, rounds: 2 * rounds, warm: { ms: warm / 2 } };
      return {
        many: await measure(bench, field, { label: '32 callers', ...crowd, order: byChance }),
        one: await measure(bench, field, { label: '1 caller', ...single, order: byChance }),
      };
    });
    return [...rows(kind, '1 caller', one), ...rows(kind, '32 callers', many)];
  } finally {
    if (server) await stop(server);
  }
}

function rows(kind, callers, samples) {
  const reference = meanOf(samples.mcp, samples.again);
  return WAYS.map(({ way, label, limited }) => {
    const ofMcp = way === 'mcp' ? undefined : ratio(samples[way], way === 'again' ? samples.mcp : reference, 'cpu');
    return {
      label: `CPU per call, ${callers}, ${label}`,
      unit: 'us',
      values: { toolgate: middle(samples[way], 'cpu') },
      ofMcp,
      limit: limited && kind === 'echo' ? { text: `<= ${MAX} x MCP`, max: MAX, measured: ofMcp } : undefined,
      rounds: { toolgate: samples[way]?.map(({ cpu }) => cpu) },
    };
  });
}
