// Virtual environments for tests: one for each major version of the Python SDK, and one for Schemathesis, which tests REST.
// Without Python, or without venv, those tests are skipped with a reason; in CI they fail.
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { once, retry, root, run, step } from './setup.mjs';

const tools = join(root, 'test', 'tools');
const folder = join(tools, 'python');
const reason = join(folder, 'missing.txt');
const environments = ['v1', 'v2', 'rest'].map((name) => ({
  path: join(folder, name),
  python: join(folder, name, 'bin', 'python'),
  stamp: join(folder, name, '.stamp'),
  requirements: join(tools, `python-${name}.txt`),
}));

export async function ensurePython() {
  try {
    await once(
      'python',
      () => environments.every(isCurrent),
      () => step('Installing the Python SDK and Schemathesis', createAll),
    );
    rmSync(reason, { force: true });
  } catch (error) {
    mkdirSync(folder, { recursive: true });
    writeFileSync(reason, error.message);
    console.error(`Tests with Python do not run: ${error.message}`);
  }
}

function isCurrent({ python, stamp, requirements }) {
  // It is a link to a Python that may have been removed.
  return existsSync(python) && existsSync(stamp) && readFileSync(stamp, 'utf8') === hashOf(requirements);
}

async function createAll() {
  const results = await Promise.allSettled(environments.map(create));
  const failed = results.find(({ status }) => status === 'rejected');
  if (failed) throw failed.reason;
}

async function create(environment) {
  const { path, python, stamp, requirements } = environment;
  if (isCurrent(environment)) return;
  rmSync(path, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const patience = ['--retries', '5', '--timeout', '60', '--disable-pip-version-check'];
  if (await works('uv', ['--version'])) {
    await must('uv', ['venv', '--quiet', '--python', 'python3', path]);
    await retry(3, () => must('uv', ['pip', 'install', '--quiet', '--python', python, '-r', requirements]));
  } else {
    if (!(await works('python3', ['--version']))) throw new Error('python3 is not installed.');
    await must('python3', ['-m', 'venv', path]);
    await retry(3, () => must(python, ['-m', 'pip', 'install', '--quiet', ...patience, '-r', requirements]));
  }
  writeFileSync(stamp, hashOf(requirements));
}

async function must(command, args) {
  if ((await run(command, args, { timeout: 10 * 60_000 })) !== 0)
    throw new Error(`"${command} ${args.join(' ')}" failed; its message is above.`);
}

async function works(command, args) {
  return (await run(command, args, { stdio: 'ignore' }).catch(() => 1)) === 0;
}

function hashOf(file) {
  return createHash('sha256').update(readFileSync(file)).digest('hex');
}
