// npm run bench:peers: what a call costs through Toolgate and through other published gateways, in one run. See README.md.
//   --quick           few and short rounds; prints the page
//   --only A,B        these contenders, and the bare proxy; prints the page
//   --keep            with --quick or --only: writes the page nevertheless
//   --servers KIND    only the paths to servers on http or on stdio; the page keeps the figures of the others
//   --page            measures nothing: writes the page and its plot from the kept results

import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { cpus, loadavg } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { httpUpstream, stdioUpstreams, whyNoToolgate } from '../contenders.mjs';
import { createLoad, stop, stopAll } from '../processes.mjs';
import { closeContenders, measureContenders, OWN_NAMES, openContenders, whyNotModern } from './field.mjs';
import { installPeers, readPins } from './install.mjs';
import { PEERS } from './peers.mjs';
import { PATHS, PLANS } from './plan.mjs';
import { page, plot } from './report.mjs';

const { values } = parseArgs({
  options: {
    quick: { type: 'boolean' },
    only: { type: 'string' },
    keep: { type: 'boolean' },
    servers: { type: 'string' },
    page: { type: 'boolean' },
  },
});
const root = fileURLToPath(new URL('../../', import.meta.url));
const plan = PLANS[values.quick ? 'quick' : 'full'];
const pins = readPins().peers;
const known = [...OWN_NAMES, ...Object.keys(pins)];
const chosen = values.only?.split(',');
const unknown = chosen?.filter((name) => !known.includes(name)) ?? [];
if (unknown.length > 0) {
  console.error(`Unknown: ${unknown.join(', ')}. Known: ${known.join(', ')}.`);
  process.exit(1);
}
if (values.servers !== undefined && !['http', 'stdio'].includes(values.servers)) {
  console.error(`Servers are on http or on stdio, not on ${values.servers}.`);
  process.exit(1);
}
/** In the repository, so that a test can compare the page with them. */
const keptFile = join(root, 'bench', 'peers', 'results.json');
const readKept = () => (existsSync(keptFile) ? JSON.parse(readFileSync(keptFile, 'utf8')) : undefined);
if (values.page) {
  const kept = readKept();
  if (kept === undefined) {
    console.error('There are no kept results yet: run npm run bench:peers.');
    process.exit(1);
  }
  writePage(kept);
  process.exit(0);
}
if (process.platform !== 'linux') {
  console.error('bench:peers reads CPU times from /proc, so it needs Linux.');
  process.exit(1);
}
if (whyNoToolgate()) {
  console.error(whyNoToolgate());
  process.exit(1);
}
/** A part of the contenders, or short rounds, are not what the page is about. */
const writes = values.keep || !(values.quick || chosen);
// On exit every process of the run is ended.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => process.exit(1));
const names = known.filter((name) => chosen === undefined || name === 'bare' || chosen.includes(name));

const progress = (text) => console.error(`${new Date().toISOString().slice(11, 19)} ${text}`);
const notInstalled = await installPeers(names.filter((name) => name in pins));
for (const [name, reason] of Object.entries(notInstalled)) progress(`${name} is not there: ${reason}`);
const usable = names.filter((name) => !(name in notInstalled));

const load = () => loadavg()[0].toFixed(1);
const bench = { load: createLoad(), progress };
const paths = {};
/** Why peers are not started for the modern paths, by transport: those that run were asked. */
const notModern = {};
try {
  for (const { key, title, transport, modern, runs } of PATHS) {
    if (values.servers !== undefined && transport !== values.servers) continue;
    const loadBefore = load();
    const measured = await measurePath(title, transport, modern, runs);
    paths[key] = { ...measured, ...machine(loadBefore), names, pins: pinsOf(names) };
    // After each path, so that a run that is stopped has kept what it measured.
    if (writes) keep();
  }
} finally {
  await stopAll();
}

async function measurePath(title, transport, modern, runs) {
  // It answers each request in the era of the request, because some peers use another one towards the server.
  const flags = modern ? ['--era', 'both'] : [];
  const { server, upstreams } =
    transport === 'http' ? await httpUpstream({ flags }) : { upstreams: stdioUpstreams({ flags }) };
  const left = modern ? { ...notInstalled, ...notModern[transport] } : notInstalled;
  const started = usable.filter((name) => !(name in left));
  const { field, reasons } = await openContenders(bench, started, transport, upstreams[0], modern);
  const until = Date.now() + plan.minutes * 60_000;
  const measured = {};
  const hanging = {};
  for (const [index, { key, kind, callers, title: run }] of runs.entries()) {
    const mine = Date.now() + (until - Date.now()) / (runs.length - index);
    const options = {
      label: `${title}, ${run}`,
      kind,
      callers,
      ms: plan.ms[kind],
      rounds: plan.rounds,
      deadline: mine,
    };
    const awake = field.filter(({ name }) => !(name in hanging));
    const { samples, reasons: failed } = await measureContenders(bench, awake, options);
    measured[key] = { samples, reasons: { ...failed, ...hanging } };
    // Waiting for it again would take another minute.
    for (const [name, reason] of Object.entries(failed)) if (reason.startsWith('No reply')) hanging[name] = reason;
  }
  if (!modern) notModern[transport] = { ...whyNone(reasons), ...(await whyNotModern(field)) };
  await closeContenders(bench, field);
  if (server) await stop(server);
  return { reasons: { ...reasons, ...left }, runs: measured };
}

/** What did not run in one era is not started in the other. */
function whyNone(reasons) {
  return Object.fromEntries(Object.entries(reasons).filter(([name, reason]) => name in pins && reason !== undefined));
}

/** Where and when a path was measured. */
function machine(loadBefore) {
  return {
    machine: {
      date: new Date().toISOString().slice(0, 10),
      cpu: cpus()[0].model.trim(),
      cores: cpus().length,
      node: process.versions.node,
    },
    load: [loadBefore, load()],
  };
}

function pinsOf(some) {
  return Object.fromEntries(some.filter((name) => name in pins).map((name) => [name, pins[name]]));
}

/** What this run did not measure stays as it was. */
function keep() {
  const kept = { paths: { ...readKept()?.paths, ...paths } };
  // Four digits are more than a measurement has, and keep the file small.
  const short = (_, value) => (typeof value === 'number' ? Number(value.toPrecision(4)) : value);
  writeFileSync(keptFile, `${JSON.stringify(kept, short)}\n`);
}

function writePage(results) {
  mkdirSync(join(root, 'docs', 'images'), { recursive: true });
  writeFileSync(join(root, 'docs', 'benchmark.md'), page(results, PEERS, 'images/benchmark.svg'));
  writeFileSync(join(root, 'docs', 'images', 'benchmark.svg'), plot(results, PEERS));
  console.error('docs/benchmark.md and docs/images/benchmark.svg are written');
}

const results = { paths };
mkdirSync(join(root, 'bench', 'results'), { recursive: true });
writeFileSync(join(root, 'bench', 'results', 'peers.json'), JSON.stringify(results));
if (writes) writePage(readKept());
else console.log(page(results, PEERS, 'images/benchmark.svg'));
process.exit(0);
