// `npm test`: from a fresh clone to every check and test run. Its last line is always `N passed, N failed`.
// `--soak` runs the long tests instead, `--wide` goes through every combination; further arguments go to vitest.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { ensurePython } from './python.mjs';
import { ensureBuilt, ensureInstalled, ensureTestTools, root, run } from './setup.mjs';
import { stopWithNpm } from './stop-with-npm.mjs';

const TIMEOUT = 60 * 60_000;
/** More files than these are no accident. */
const SECOND_LOOK = 5;
const soak = process.argv.includes('--soak');
const wide = process.argv.includes('--wide');
const extra = process.argv.slice(2).filter((argument) => argument !== '--soak' && argument !== '--wide');
const total = { passed: 0, failed: 0, skipped: 0 };

try {
  stopWithNpm();
  await ensureInstalled();
  // Each waits for something else most of the time.
  await Promise.all([ensureTestTools(), ensurePython(), checkSource()]);
  await runTests();
} catch (error) {
  console.error(error.message);
  total.failed += 1;
}
if (total.failed > 0) process.exitCode = 1;
console.log(`${total.passed} passed, ${total.failed} failed${total.skipped > 0 ? `, ${total.skipped} skipped` : ''}`);

async function checkSource() {
  await ensureBuilt();
  await check('Types', join('typescript', 'bin', 'tsc'), '--noEmit', '-p', 'tsconfig.test.json');
  await check(
    'Types of the page',
    join('typescript', 'bin', 'tsc'),
    '-p',
    join('src', 'doors', 'http', 'rest', 'page'),
  );
  await check('Lint and format', join('@biomejs', 'biome', 'bin', 'biome'), 'check', '.');
}

/** A check that fails counts as one failed test; one that passes is not counted. */
async function check(what, bin, ...args) {
  const code = await node(bin, args);
  if (code === 0) return;
  console.error(`${what}: failed`);
  total.failed += 1;
}

async function runTests() {
  const folder = mkdtempSync(join(tmpdir(), 'toolgate-test-'));
  try {
    const all = await vitest(join(folder, 'all.json'), extra);
    const failed = all.testResults.filter(({ status }) => status === 'failed');
    if (soak || failed.length === 0 || failed.length > SECOND_LOOK) return count(all.testResults, all.code);
    // Whether it was the code or the crowd: these files once more, with the machine to themselves.
    const names = failed.map(({ name }) => name);
    console.log(`Once more, alone: ${names.map((name) => relative(root, name)).join(', ')}`);
    const alone = await vitest(join(folder, 'alone.json'), [...names, '--maxWorkers=1']);
    report(failed, alone.testResults);
    count([...all.testResults.filter(({ name }) => !names.includes(name)), ...alone.testResults], alone.code);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function vitest(file, args) {
  const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${file}`];
  const code = await node(join('vitest', 'vitest.mjs'), ['run', ...reporters, ...args], {
    ...(soak && { SOAK: '1' }),
    ...(wide && { WIDE: '1' }),
  });
  try {
    return { ...JSON.parse(readFileSync(file, 'utf8')), code };
  } catch (error) {
    if (error.code !== 'ENOENT') throw error;
    throw new Error('vitest ended without a report: it failed, or a test never came back.');
  }
}

/** Says which tests passed only alone: they wait for something that a busy machine does later. */
function report(before, after) {
  const stillFailed = new Set(after.flatMap(failures));
  for (const name of before.flatMap(failures)) {
    if (!stillFailed.has(name)) console.log(`Unsteady, passed when run alone: ${name}`);
  }
}

function failures({ assertionResults }) {
  return assertionResults.filter(({ status }) => status === 'failed').map(({ fullName }) => fullName);
}

function count(results, code) {
  const tests = results.flatMap(({ assertionResults }) => assertionResults);
  const of = (...statuses) => tests.filter(({ status }) => statuses.includes(status)).length;
  // A file that does not load has no tests that could fail.
  const broken = results.filter((file) => file.status === 'failed' && failures(file).length === 0).length;
  const failed = of('failed') + broken;
  total.passed += of('passed');
  total.skipped += of('skipped', 'pending', 'todo', 'disabled');
  total.failed += failed;
  if (total.passed + failed === 0) throw new Error('No test was run.');
  // Such as an error outside of any test.
  if (code !== 0 && failed === 0) throw new Error('vitest failed outside of any test.');
}

function node(bin, args, env = {}) {
  return run(process.execPath, [join(root, 'node_modules', bin), ...args], {
    env: { ...process.env, ...env },
    stdio: 'inherit',
    // A test that blocks its process cannot be stopped by its own time-out.
    timeout: soak || wide ? undefined : Math.max(1, Math.round(TIMEOUT - performance.now())),
  });
}
