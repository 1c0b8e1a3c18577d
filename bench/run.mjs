// npm run bench: compares Toolgate with a bare proxy and a gateway built with the official SDK. README.md explains the output.
//   --quick          under 90 seconds: fewer and shorter rounds, smaller crowds
//   --only PATTERN   scenarios whose name contains PATTERN, or one of several patterns separated by commas
//   --json           prints the results as JSON on stdout instead of the table

import { mkdirSync, writeFileSync } from 'node:fs';
import { cpus, loadavg } from 'node:os';
import { parseArgs } from 'node:util';
import { toolgateBuild, whyNoToolgate } from './contenders.mjs';
import { createLoad, stopAll } from './processes.mjs';
import { formatTable, verdict } from './report.mjs';
import { PLANS, SCENARIOS } from './scenarios.mjs';

// Each measured Toolgate has a gateway of its own, which ends with it.
process.env.TOOLGATE_SHARED = '0';

const { values: flags } = parseArgs({
  options: { quick: { type: 'boolean' }, only: { type: 'string' }, json: { type: 'boolean' } },
});

let interrupted = false;
for (const [signal, code] of Object.entries({ SIGINT: 130, SIGTERM: 143, SIGHUP: 129 })) {
  process.on(signal, async () => {
    if (interrupted) return;
    interrupted = true;
    await stopAll();
    process.exit(code);
  });
}

try {
  await main();
} catch (error) {
  if (!interrupted) {
    console.error(error);
    process.exitCode = 1;
  }
} finally {
  if (!interrupted) {
    await stopAll();
    process.exit();
  }
}

async function main() {
  const wanted = flags.only?.split(',');
  const chosen = SCENARIOS.filter(({ name, fullOnly }) =>
    wanted ? wanted.some((part) => name.includes(part)) : !(flags.quick && fullOnly),
  );
  if (chosen.length === 0) {
    throw new Error(`No scenario matches ${flags.only}; there are ${SCENARIOS.map(({ name }) => name).join(', ')}`);
  }

  const notes = [];
  const note = (text) => {
    if (!notes.includes(text)) notes.push(text);
  };
  if (whyNoToolgate()) note(`Toolgate is left out: ${whyNoToolgate()}`);
  const busy = loadavg()[0];
  if (busy > 0.5) note(`The load average was ${busy.toFixed(1)} at the start: others are at work, trust ratios only`);

  const built = toolgateBuild();
  const began = Date.now();
  const load = createLoad();
  const scenarios = [];
  for (const { name, title, columns, run } of chosen) {
    const progress = (text) => showProgress(`${name}: ${text}`);
    const plan = flags.quick ? PLANS.quick : PLANS.full;
    const start = Date.now();
    const rows = await run({ load, plan, progress, note: (text) => note(`${name}: ${text}`) });
    scenarios.push({ name, title, columns, seconds: Math.round((Date.now() - start) / 1000), rows });
  }
  showProgress('');
  if (toolgateBuild() !== built)
    note('Toolgate was built anew during the run: these are figures of more than one version');

  const result = {
    date: new Date(began).toISOString(),
    seconds: Math.round((Date.now() - began) / 1000),
    mode: flags.quick ? 'quick' : 'full',
    node: process.version,
    cpu: `${cpus().length} x ${cpus()[0].model}`,
    notes,
    scenarios: scenarios.map((scenario) => ({
      ...scenario,
      rows: scenario.rows.map((row) => ({ ...row, verdict: verdict(row) })),
    })),
  };
  const folder = new URL('./results/', import.meta.url);
  mkdirSync(folder, { recursive: true });
  writeFileSync(new URL('latest.json', folder), `${JSON.stringify(result, null, 2)}\n`);
  console.log(flags.json ? JSON.stringify(result, null, 2) : summary(result));
}

function summary({ scenarios, notes, seconds, node, cpu, mode }) {
  const verdicts = scenarios.flatMap(({ rows }) => rows.map(verdict)).filter((word) => word !== '');
  const count = (word) => verdicts.filter((each) => each === word).length;
  return [
    formatTable(scenarios),
    ...notes.map((text) => `- ${text}`),
    `${count('ok')} ok, ${count('miss')} missed, ${count('not measured')} not measured; ${mode} run of ${seconds} s on ${cpu}, Node ${node}`,
  ].join('\n');
}

/** A status line that is overwritten, only on a terminal. */
function showProgress(text) {
  if (process.stderr.isTTY) process.stderr.write(`\r\x1b[K${text}`);
}
