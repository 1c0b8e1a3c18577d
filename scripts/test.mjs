// `npm test`: runs every check and test, also on a fresh clone. The last line is always `N passed, N failed`.
// `--soak` runs the long tests instead, `--wide` runs every combination. Other arguments go to vitest.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { ensurePython } from './python.mjs';
import { ensureBuilt, ensureInstalled, ensureTestTools, root, run } from './setup.mjs';
import { stopWithNpm } from './stop-with-npm.mjs';

const TIMEOUT = 60 * 60_000;
/** If more files than this fail, they are not run again: that is no accident. */
const MOST_RETRIED = 5;
const soak = process.argv.includes('--soak');
const wide = process.argv.includes('--wide');
const extra = process.argv.slice(2).filter((argument) => argument !== '--soak' && argument !== '--wide');
const total = { passed: 0, failed: 0, skipped: 0 };

try {
  stopWithNpm();
  await ensureInstalled();
  // At the same time, because each mostly waits for something else.
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
    if (soak || failed.length === 0 || failed.length > MOST_RETRIED) return count(all.testResults, all.code);
    // Runs the failed files again, alone, to tell real failures from those of a busy machine.
    const names = failed.map(({ name }) => name);
    console.log(`Running again, alone: ${names.map((name) => relative(root, name)).join(', ')}`);
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
    throw new Error('vitest ended without a report: it crashed, or a test never ended.');
  }
}

/** Names the tests that passed only when run alone. */
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
  // A file that cannot be loaded has no tests, but counts as a failure.
  const broken = results.filter((file) => file.status === 'failed' && failures(file).length === 0).length;
  const failed = of('failed') + broken;
  total.passed += of('passed');
  total.skipped += of('skipped', 'pending', 'todo', 'disabled');
  total.failed += failed;
  if (total.passed + failed === 0) throw new Error('No test was run.');
  if (code !== 0 && failed === 0) throw new Error('vitest failed outside of any test.');
}

function node(bin, args, env = {}) {
  return run(process.execPath, [join(root, 'node_modules', bin), ...args], {
    env: { ...process.env, ...env },
    stdio: 'inherit',
    // The watchdog: a test that blocks its process never reaches its own timeout.
    timeout: soak || wide ? undefined : Math.max(1, Math.round(TIMEOUT - performance.now())),
  });
}
