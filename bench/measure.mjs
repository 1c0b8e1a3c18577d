// Measures contenders in short alternating runs, so that other load on the machine affects all of them alike.

import { CONTENDERS, helpersOf, whyNoToolgate } from './contenders.mjs';
import { cpuOf, memoryOf } from './processes.mjs';

/**
 * Starts contenders and connects the load generator. `entries` say which contender is in front of which upstreams:
 * `{ key, contender, upstreams, sessions, streams, modern, rest }`. One that does not start is left out with a note.
 * `all` are all configured upstreams if more than those that are called; `of` is the key of an earlier entry whose process is
 * used instead of a new one; `enter` runs before each of its runs.
 */
export async function openField({ load, note, progress }, entries) {
  const field = [];
  for (const entry of entries) {
    const {
      key,
      contender,
      upstreams,
      all = upstreams,
      sessions = 32,
      streams = false,
      modern = false,
      rest = false,
    } = entry;
    if (contender === 'toolgate' && whyNoToolgate()) continue;
    progress(`starting ${key}`);
    try {
      const started = entry.of ? guestOf(field, entry.of) : await CONTENDERS[contender](all);
      const { url, paths, command, args, pid } = started;
      const target = await load.open({ url, paths, command, args, sessions, streams, modern, rest });
      const helpers = pid === undefined ? [] : helpersOf(pid);
      field.push({ ...started, key, contender, upstreams, target, helpers, enter: entry.enter });
    } catch (error) {
      note(`${key} could not be measured: ${error.message}`);
    }
  }
  return field;
}

function guestOf(field, key) {
  const host = field.find((each) => each.key === key);
  if (!host) throw new Error(`${key} is not there`);
  return { ...host, stop: async () => 0 };
}

export async function closeField({ load, note }, field) {
  for (const { key, target, ...contender } of field) {
    await load.close({ target });
    const left = await contender.stop();
    if (left > 0) note(`${key} left ${left} processes behind when it was stopped; the harness ended them`);
  }
}

/** Runs `use` with a field, and always ends the field. */
export async function withField(bench, entries, use) {
  let field = [];
  try {
    field = await openField(bench, entries);
    return await use(field);
  } finally {
    await closeField(bench, field);
  }
}

/**
 * After a warm-up (`warm.ms`, `warm.atLeast` calls), `rounds` runs of each contender in turn, with at most `perSecond` calls. Returns
 * `{ key: [sample, …] }`, one sample for each round: samples with the same index were taken within the same seconds.
 * A contender that answers wrongly is left out from then on, with a note.
 */
export async function measure({ load, note, progress }, field, options) {
  const { label, kind, callers, ms, rounds, warm, atLeast, perSecond, order = inTurn } = options;
  const samples = Object.fromEntries(field.map(({ key }) => [key, []]));
  const failed = new Set();
  for (let round = -1; round < rounds; round++) {
    const length = round < 0 ? warm : { ms, atLeast };
    progress(`${label}: ${round < 0 ? 'warming up' : `round ${round + 1} of ${rounds}`}`);
    for (const contender of order(field, Math.max(round, 0))) {
      if (failed.has(contender.key)) continue;
      const { key, target, upstreams, tool } = contender;
      const names = kind === 'list' ? [''] : upstreams.map((upstream) => tool(upstream, kind));
      try {
        await contender.enter?.(contender);
        await load.prepare({ target, kind, names, callers });
        const read = cpuMeter(contender);
        const run = await load.run({ target, kind, names, callers, perSecond, ...length });
        if (round >= 0) samples[key].push({ ...run, ...read(run.calls) });
      } catch (error) {
        failed.add(key);
        delete samples[key];
        note(`${key} failed in "${label}": ${error.message}`);
      }
    }
  }
  return samples;
}

/** Each round starts with another contender. */
function inTurn(field, round) {
  return field.map((_, turn) => field[(turn + round) % field.length]);
}

/** In random order: with a fixed order each would run after the same neighbour in nearly every round. */
export function byChance(field) {
  const left = [...field];
  return field.map(() => left.splice(Math.floor(Math.random() * left.length), 1)[0]);
}

/** Contenders whose ratio has a limit. The others are for comparison. */
const JUDGED = new Set(['bare', 'node', 'toolgate']);

/**
 * Measures several generations of processes: depending on how V8 compiles it, a process is up to 20 % faster or slower than the
 * next one of the same program, for its whole life. `use` returns samples by name; those of all generations are concatenated,
 * still with one index for each round. Contenders without a limit run only in the first generation.
 */
export async function measureGenerations(bench, count, entries, use) {
  const merged = {};
  for (let generation = 0; generation < count; generation++) {
    const chosen = generation === 0 ? entries : entries.filter(({ contender }) => JUDGED.has(contender));
    const parts = await withField(bench, chosen, (field) => use(field, generation));
    for (const [part, samples] of Object.entries(parts)) {
      merged[part] ??= {};
      const offset = Math.max(0, ...Object.values(merged[part]).map((list) => list.length));
      for (const [key, list] of Object.entries(samples)) {
        merged[part][key] ??= [];
        for (const [round, sample] of list.entries()) merged[part][key][offset + round] = sample;
      }
    }
  }
  return merged;
}

/** CPU per call of the gateway process, and separately of its helpers, without its upstreams. */
function cpuMeter({ pid, helpers }) {
  if (pid === undefined) return () => ({});
  const own = cpuOf(pid);
  const others = helpers.map((helper) => cpuOf(helper.pid));
  return (calls) => ({
    cpu: (cpuOf(pid) - own) / calls,
    helperCpu: helpers.reduce((sum, helper, index) => sum + Math.max(0, cpuOf(helper.pid) - others[index]), 0) / calls,
  });
}

/** Resident memory of each gateway process in bytes. */
export function memories(field) {
  const gateways = field.filter(({ pid }) => pid !== undefined);
  return Object.fromEntries(gateways.map(({ key, pid }) => [key, memoryOf(pid)]));
}

/** Gaps are left out. */
export function median(values) {
  const sorted = values.filter((value) => value !== undefined).sort((a, b) => a - b);
  if (sorted.length === 0) return undefined;
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

/** The median of a value over the rounds. */
export function middle(samples, figure) {
  return samples && median(samples.map((sample) => sample[figure]));
}

/** The median over the rounds of one contender's value divided by another's in the same round. */
export function ratio(samples, base, figure) {
  if (!samples || !base) return undefined;
  return median(
    samples.map((sample, round) => (sample && base[round] ? sample[figure] / base[round][figure] : undefined)),
  );
}

/** The mean of two equal contenders in each round. The reference is measured twice, because every ratio depends on it. */
export function meanOf(first, second) {
  if (!first || !second) return first;
  return first.map((sample, round) => second[round] && { cpu: (sample.cpu + second[round].cpu) / 2 });
}
