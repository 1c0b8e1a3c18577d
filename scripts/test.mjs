// `npm test`: runs every check and test, also on a fresh clone. The last line is always `N passed, N failed`, and the exit code
// is 0 exactly if nothing failed.
//   --wide        every combination, full loops, and processes everywhere
//   --ci          the usual tests, and then the wide ones as far as the time allows
//   --soak        the long tests
//   --only-tests  no set-up and no checks
//   --cpu         names the files that took the most CPU time
//   --root=FOLDER, --results=FOLDER, --deadlines=SOFT,HARD (in minutes)
// All other arguments go to vitest.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { appendFileSync, closeSync, mkdirSync, openSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { constants } from 'node:os';
import { dirname, join, relative, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { ensureGoPrograms } from './go.mjs';
import { ensurePrograms } from './programs.mjs';
import { ensurePython } from './python.mjs';
import { cpuMs, readResults } from './results.mjs';
import { sameInWide } from './same-in-wide.mjs';
import { ensureBuilt, ensureInstalled, ensureTestTools, root, run } from './setup.mjs';
import { stopWithNpm } from './stop-with-npm.mjs';

/**
 * When no more files are started, and when vitest is killed because a test blocks its process and never reaches its own
 * timeout. In minutes since the start of this script, and several times what a quiet machine needs.
 */
const DEADLINES = {
  test: [45, 60],
  wide: [75, 90],
  ci: [40, 60],
  soak: [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY],
};
/** How many minutes the set-up may take. */
const MOST_SET_UP = 40;
/** If more files than this fail, they are not run again: that is no accident. */
const MOST_RETRIED = 5;
/** More unsteady files than this fail the run. */
const MOST_UNSTEADY = 2;
/** If more tests of a file are skipped than this, they are counted and not named. */
const MOST_SKIPPED_NAMED = 3;
const MOST_RESULTS_KEPT = 20;
/** How many files `--cpu` names. */
const MOST_BY_CPU = 40;

const FLAGS = ['--wide', '--ci', '--soak', '--only-tests', '--cpu'];
const OPTIONS = ['--root=', '--results=', '--deadlines='];
const given = process.argv.slice(2);
const has = (flag) => given.includes(flag);
const valueAfter = (option) => given.find((argument) => argument.startsWith(option))?.slice(option.length);
const vitestArguments = given.filter(
  (argument) => !FLAGS.includes(argument) && !OPTIONS.some((option) => argument.startsWith(option)),
);
const testRoot = resolve(valueAfter('--root=') ?? root);
const resultsFolder = resolve(valueAfter('--results=') ?? join(root, 'test', 'results'));
const startedAt = Date.now() - performance.now();

const total = { passed: 0, failed: 0, skipped: 0, unsteady: 0, notRun: 0 };
/** What the last lines name, by heading. */
const named = {
  'By CPU time': [],
  Skipped: [],
  'Not run': [],
  'Unsteady, passed only when run again alone': [],
  Failed: [],
};
const resultFiles = [];
let ranOnce = 0;
let stoppedBy;
let vitest;

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => stop(signal));
stopWithNpm();
try {
  if (has('--ci')) process.env.CI ||= 'true';
  if (has('--only-tests')) await runParts();
  else await setUpAndRun();
} catch (error) {
  fail(error.message);
}
finish();

async function setUpAndRun() {
  const watchdog = setTimeout(() => {
    fail(`The set-up did not end within ${MOST_SET_UP} minutes.`);
    process.kill(process.pid, 'SIGTERM');
  }, MOST_SET_UP * 60_000);
  // At the same time, because each mostly waits for something else.
  const needs = { wide: has('--wide') || has('--ci') };
  const installed = ensureInstalled();
  const toolsInstalled = ensureTestTools(needs);
  const complaints = checkSource(installed, toolsInstalled);
  await Promise.all([
    // The types are checked with those of the tests.
    installed.then(() => ensureBuilt({ check: false })),
    toolsInstalled,
    ensurePrograms()
      .then(() => ensurePython(needs))
      .then(() => ensureGoPrograms(needs)),
  ]);
  clearTimeout(watchdog);
  await runParts();
  for (const text of await complaints) console.log(text);
}

/**
 * Returns what the checks that failed printed. It is shown after the tests, which run at the same time. The checks begin as soon
 * as what they need is installed, because an install mostly waits.
 */
async function checkSource(installed, toolsInstalled) {
  const tsc = join('typescript', 'bin', 'tsc');
  const page = join('src', 'doors', 'http', 'rest', 'page');
  // If something cannot be installed, the set-up fails and says why.
  const isThere = (promise) => promise.then(() => true).catch(() => false);
  if (!(await isThere(installed))) return [];
  const outputs = [
    await check('Lint and format', join('@biomejs', 'biome', 'bin', 'biome'), 'check', '.'),
    await check('Types of the page', tsc, '-p', page),
    await check('Types of the dashboard', tsc, '-p', 'dashboard'),
  ];
  if (!(await isThere(toolsInstalled))) return outputs.flat();
  // In one thread, because more of them take more CPU, and the tests run at the same time.
  outputs.push(await check('Types', tsc, '--noEmit', '--singleThreaded', '-p', 'tsconfig.test.json'));
  return outputs.flat();
}

/** A check that fails counts as one failed test; one that passes is not counted. */
async function check(what, bin, ...args) {
  const path = join(root, '.toolgate', `check-${process.pid}.log`);
  mkdirSync(dirname(path), { recursive: true });
  const log = openSync(path, 'w');
  const code = await run(process.execPath, [join(root, 'node_modules', bin), ...args], { stdio: ['ignore', log, log] });
  closeSync(log);
  const output = readFileSync(path, 'utf8');
  rmSync(path);
  if (code === 0) return [];
  fail(`${what}: failed, see above.`);
  return [output];
}

async function runParts() {
  const usual = { name: 'test', env: {}, deadlines: deadlinesOf('test') };
  const wide = { name: 'wide', env: { WIDE: '1', PROCESSES: '1' }, deadlines: deadlinesOf('wide') };
  if (has('--soak')) return runPart({ name: 'soak', env: { SOAK: '1' }, deadlines: deadlinesOf('soak') });
  if (!has('--ci')) return runPart(has('--wide') ? wide : usual);
  const first = await runPart(usual);
  if (stoppedBy) return;
  if (total.failed > 0) return console.log('The wide tests were not run, because the usual ones failed.');
  // It depends on the machine how many of the wide tests there is time for. Those that are not run are named.
  const proven = provenBy(first);
  ranOnce = proven.length;
  const env = { ...wide.env, TEST_PROVEN: JSON.stringify(proven) };
  await runPart({ ...wide, env, deadlines: deadlinesOf('ci'), mayEndEarly: true });
}

/** The files that the wide run need not run again: they passed whole, at the first attempt, and are the same there. */
function provenBy({ files }) {
  // If files are named, they are run as asked.
  if (vitestArguments.length > 0) return [];
  const whole = [...files].filter(([, { state, isWhole }]) => state === 'passed' && isWhole === true);
  return sameInWide(
    testRoot,
    whole.map(([file]) => file),
  );
}

function deadlinesOf(part) {
  const minutes = valueAfter('--deadlines=')?.split(',').map(Number) ?? DEADLINES[part];
  return minutes.map((minute) => startedAt + minute * 60_000);
}

async function runPart(part) {
  const path = newResults(part.name);
  const results = await runVitest(part, path, vitestArguments);
  const again = await runAgain(part, results);
  count(part, path, results, again);
  return results;
}

/** Runs files that failed again, alone, to tell real failures from unsteady tests. */
async function runAgain(part, { files, hasEnded }) {
  const failed = [...files].filter(([, { state }]) => state === 'failed' || state === 'running').map(([file]) => file);
  const isWorthIt = hasEnded && failed.length > 0 && failed.length <= MOST_RETRIED && part.name !== 'soak';
  // A busy machine runs into the first deadline, and is also where tests are unsteady. So it gets half of the time that is left.
  const [stopAt, killAt] = part.deadlines;
  const until = Math.max(stopAt, (Date.now() + killAt) / 2);
  if (!isWorthIt || stoppedBy || Date.now() > until) return new Map();
  console.log(`Running again, alone: ${failed.join(', ')}`);
  const paths = failed.map((file) => join(testRoot, file));
  // By a variable, because projects of vitest do not follow the option.
  const alone = { ...part, env: { ...part.env, VITEST_MAX_WORKERS: '1' }, deadlines: [until, killAt] };
  const { files: again } = await runVitest(alone, newResults(`${part.name}-again`), paths);
  return again;
}

function count(part, path, { files, failures, skips, errors, hasEnded, code, wasKilled }, again) {
  const nameOf = (file) => (part.name === 'test' ? file : `${part.name}: ${file}`);
  const add = ({ passed, skipped }) => {
    total.passed += passed;
    total.skipped += skipped;
  };
  const before = total.failed;
  const notRun = [];
  const unsteady = [];
  for (const [file, first] of files) {
    const failedTests = failures.filter((failure) => failure.file === file);
    const second = again.get(file);
    if (first.state === 'passed') add(first);
    else if (first.state === 'waiting') notRun.push(file);
    else if (first.state === 'cut') {
      add(first);
      notRun.push(`${file} (in part)`);
    } else if (second?.state === 'passed') {
      add(first);
      const tests = failedTests.map(({ name }) => name);
      unsteady.push(file);
      appendFileSync(path, `${JSON.stringify({ unsteady: file, tests })}\n`);
      const why = failedTests.map(({ name, message }) => `${name}\n    ${firstLine(message)}`);
      named['Unsteady, passed only when run again alone'].push(`${nameOf(file)}: ${why.join('; ') || 'did not end'}`);
    } else if (first.state === 'running' && stoppedBy) notRun.push(`${file} (in part)`);
    else {
      add(first);
      total.failed += Math.max(1, failedTests.length);
      if (first.state === 'running') named.Failed.push(`${nameOf(file)}: did not end`);
      for (const { name, message } of failedTests)
        named.Failed.push(`${nameOf(file)}: ${name}\n    ${firstLine(message)}`);
    }
  }
  for (const file of new Set(skips.map((skip) => skip.file))) {
    const inFile = skips.filter((skip) => skip.file === file);
    if (inFile.length > MOST_SKIPPED_NAMED) named.Skipped.push(`${nameOf(file)}: ${inFile.length} tests`);
    else for (const { name, note } of inFile) named.Skipped.push(`${nameOf(file)}: ${name}${note ? ` (${note})` : ''}`);
  }
  for (const file of notRun) named['Not run'].push(nameOf(file));
  if (has('--cpu')) named['By CPU time'].push(...byCpu(files).map(([file, line]) => `${line} ${nameOf(file)}`));
  total.notRun += notRun.length;
  total.unsteady += unsteady.length;
  // A worker that crashed is an error too, and its file has not ended.
  const hasCrashed = [...files.values()].some(({ state }) => state === 'running');
  if (!hasCrashed)
    for (const message of errors) fail(`${part.name}: an error outside of any test: ${firstLine(message)}`);
  if (stoppedBy) fail(`Stopped by ${stoppedBy}.`);
  else if (wasKilled) fail(`${part.name}: the tests did not end in time, and were killed.`);
  else if (files.size === 0) fail(`${part.name}: no test was run.`);
  else if (!hasEnded) fail(`${part.name}: vitest ended in the middle of the run.`);
  else if (notRun.length > 0 && !part.mayEndEarly) fail(`${part.name}: the time was up before all files were run.`);
  else if (code !== 0 && notRun.length === 0 && unsteady.length === 0 && total.failed === before)
    fail(`${part.name}: vitest failed outside of any test.`);
  if (unsteady.length > 0 && total.unsteady > MOST_UNSTEADY)
    fail(`${total.unsteady} files are unsteady; at most ${MOST_UNSTEADY} may be.`);
}

/** The files that took the most, with the seconds of CPU and of the clock. */
function byCpu(files) {
  const seconds = (ms) => (ms / 1_000).toFixed(1).padStart(6);
  const measured = [...files].filter(([, { cpuMs }]) => cpuMs > 0).sort(([, a], [, b]) => b.cpuMs - a.cpuMs);
  return measured.slice(0, MOST_BY_CPU).map(([file, { cpuMs, ms }]) => [file, `${seconds(cpuMs)}${seconds(ms)}`]);
}

async function runVitest({ env, deadlines: [stopAt, killAt] }, path, args) {
  const reporter = fileURLToPath(new URL('results-reporter.mjs', import.meta.url));
  const reporters = ['--reporter=default', `--reporter=${reporter}`];
  const program = join(root, 'node_modules', 'vitest', 'vitest.mjs');
  const limits = Number.isFinite(stopAt) ? { TEST_STOP_AT: String(Math.round(stopAt)) } : {};
  const child = spawn(process.execPath, [program, 'run', '--root', testRoot, ...reporters, ...args], {
    cwd: testRoot,
    env: { ...process.env, ...env, ...limits, TEST_RESULTS: path },
    stdio: ['ignore', 'inherit', 'inherit'],
    // A process group of its own, so that workers which are blocked can be ended with it.
    detached: true,
  });
  let wasKilled = false;
  const watchdog = () => {
    wasKilled = true;
    killGroup(child);
  };
  const timer = Number.isFinite(killAt) ? setTimeout(watchdog, Math.max(0, killAt - Date.now())) : undefined;
  vitest = child;
  const [code] = await once(child, 'close');
  vitest = undefined;
  clearTimeout(timer);
  killGroup(child);
  return { ...readResults(path), code, wasKilled };
}

function killGroup({ pid }) {
  try {
    process.kill(-pid, 'SIGKILL');
  } catch (error) {
    if (error.code !== 'ESRCH') throw error;
  }
}

function newResults(name) {
  mkdirSync(resultsFolder, { recursive: true });
  const kept = readdirSync(resultsFolder).sort();
  for (const old of kept.slice(0, -MOST_RESULTS_KEPT)) rmSync(join(resultsFolder, old), { force: true });
  const path = join(resultsFolder, `${new Date().toISOString().replaceAll(':', '-')}-${name}.jsonl`);
  resultFiles.push(path);
  return path;
}

function stop(signal) {
  if (stoppedBy) return;
  stoppedBy = signal;
  process.exitCode = 128 + constants.signals[signal];
  if (vitest) void endVitest(vitest);
  // Later, because programs of the set-up are stopped by listeners of their own.
  else setImmediate(finish);
}

async function endVitest(child) {
  child.kill('SIGTERM');
  await sleep(3_000, undefined, { ref: false });
  killGroup(child);
}

function fail(message) {
  total.failed += 1;
  named.Failed.push(message);
}

function finish() {
  for (const [heading, lines] of Object.entries(named))
    if (lines.length > 0) console.log(`\n${heading}:\n${lines.map((line) => `  ${line}`).join('\n')}`);
  if (ranOnce > 0)
    console.log(`\n${ranOnce} files were run once: nothing in them differs in the wide run, and they had passed.`);
  if (resultFiles.length > 0) console.log(`\nResults: ${resultFiles.map((path) => relative('', path)).join(', ')}`);
  const minutes = (performance.now() / 60_000).toFixed(1);
  console.log(`Took ${minutes} minutes, and ${Math.round(cpuMs() / 1_000)} seconds of CPU time in all processes.`);
  const { passed, failed, skipped, unsteady, notRun } = total;
  const more = Object.entries({ skipped, unsteady, 'not run': notRun }).filter(([, number]) => number > 0);
  console.log(
    [`${passed} passed`, `${failed} failed`, ...more.map(([what, number]) => `${number} ${what}`)].join(', '),
  );
  process.exit(process.exitCode ?? (failed > 0 ? 1 : 0));
}

function firstLine(text = '') {
  return text.split('\n')[0].slice(0, 300);
}
