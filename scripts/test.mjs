// `npm test`: from a fresh clone to every check and test run. Its last line is always `N passed, N failed`.
// `--soak` runs the long tests instead; further arguments go to vitest.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ensurePython } from './python.mjs';
import { ensureBuilt, ensureInstalled, ensureTestTools, root, run } from './setup.mjs';
import { stopWithNpm } from './stop-with-npm.mjs';

const TIMEOUT = 13.75 * 60_000;
const soak = process.argv.includes('--soak');
const extra = process.argv.slice(2).filter((argument) => argument !== '--soak');
const total = { passed: 0, failed: 0, skipped: 0 };

try {
  stopWithNpm();
  await ensureInstalled();
  await ensureTestTools();
  await ensurePython();
  await ensureBuilt();
  await check('Types', join('typescript', 'bin', 'tsc'), '--noEmit', '-p', 'tsconfig.test.json');
  await check('Lint and format', join('@biomejs', 'biome', 'bin', 'biome'), 'check', '.');
  await runTests();
} catch (error) {
  console.error(error.message);
  total.failed += 1;
}
if (total.failed > 0) process.exitCode = 1;
console.log(`${total.passed} passed, ${total.failed} failed${total.skipped > 0 ? `, ${total.skipped} skipped` : ''}`);

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
    const report = join(folder, 'report.json');
    const args = ['run', '--reporter=default', '--reporter=json', `--outputFile.json=${report}`, ...extra];
    const code = await node(join('vitest', 'vitest.mjs'), args, soak ? { SOAK: '1' } : {});
    count(JSON.parse(readFileSync(report, 'utf8')), code);
  } catch (error) {
    if (error.code !== 'ENOENT') throw error;
    throw new Error('vitest ended without a report: it failed, or a test never came back.');
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function count(report, code) {
  const { numPassedTests, numFailedTests, numPendingTests, numTodoTests, testResults } = report;
  // A file that does not load has no tests that could fail.
  const broken = testResults.filter(
    ({ status, assertionResults }) => status === 'failed' && !assertionResults.some((test) => test.status === 'failed'),
  ).length;
  total.passed += numPassedTests;
  total.skipped += numPendingTests + numTodoTests;
  total.failed += numFailedTests + broken;
  if (total.passed + numFailedTests + broken === 0) throw new Error('No test was run.');
  // Such as an error outside of any test.
  if (code !== 0 && numFailedTests + broken === 0) throw new Error('vitest failed outside of any test.');
}

function node(bin, args, env = {}) {
  return run(process.execPath, [join(root, 'node_modules', bin), ...args], {
    env: { ...process.env, ...env },
    stdio: 'inherit',
    // A test that blocks its process cannot be stopped by its own time-out.
    timeout: soak ? undefined : TIMEOUT,
  });
}
