// Contenders side by side: short runs in turn, round after round, so that what else the machine does hits all of them alike.

import { CONTENDERS, helpersOf, whyNoToolgate } from './contenders.mjs';
import { cpuOf, memoryOf } from './processes.mjs';

/**
 * Starts contenders and connects the load generator. `entries` say who stands in front of what:
 * `{ key, contender, upstreams, sessions, streams, modern, rest }`. One that does not start is left out with a note.
 * `all` are the upstreams where not only those are there that are called; `of` is the key of an entry further up whose
 * process is used in place of a new one; `enter` is done before each of its runs.
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

/** Runs `use` with a field, and ends that whatever happens. */
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
 * After a warm-up (`warm.ms`, `warm.atLeast` calls), `rounds` runs of each contender in turn. Returns
 * `{ key: [sample, …] }`, one sample for each round: samples with the same index were taken within the same seconds.
 * A contender that answers wrongly is left out from then on, with a note.
 */
export async function measure({ load, note, progress }, field, options) {
  const { label, kind, callers, ms, rounds, warm, atLeast, order = inTurn } = options;
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
        const run = await load.run({ target, kind, names, callers, ...length });
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

/** Another one goes first in each round. */
function inTurn(field, round) {
  return field.map((_, turn) => field[(turn + round) % field.length]);
}

/** By chance: in turn, each one has the same neighbour in front of it in nearly every round. */
export function byChance(field) {
  const left = [...field];
  return field.map(() => left.splice(Math.floor(Math.random() * left.length), 1)[0]);
}

/** Those whose ratio is held to a limit; the others are there for comparison. */
const JUDGED = new Set(['bare', 'toolgate']);

/**
 * Measures several generations of processes: how V8 happens to compile one process makes it up to 20 % cheaper or dearer than
 * the next one of the same program, for all its life. `use` returns samples by name; those of all generations are put
 * behind each other, still with one index for each round. Who is not judged runs in the first generation only.
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

/** CPU per call of the gateway process, and apart from it of its helpers; its upstreams are not counted. */
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

/** The median of a figure over the rounds. */
export function middle(samples, figure) {
  return samples && median(samples.map((sample) => sample[figure]));
}

/** The median over the rounds of one contender's figure divided by another's in the same round. */
export function ratio(samples, base, figure) {
  if (!samples || !base) return undefined;
  return median(samples.map((sample, round) => base[round] && sample[figure] / base[round][figure]));
}

/** Round by round the mean of two that are the same: half of what is compared is the reference, so it is measured twice. */
export function meanOf(first, second) {
  if (!first || !second) return first;
  return first.map((sample, round) => second[round] && { cpu: (sample.cpu + second[round].cpu) / 2 });
}
