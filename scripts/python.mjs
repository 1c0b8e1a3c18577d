// The Python SDK in both its major versions, for tests with its clients and with servers that are made with it, and
// Schemathesis, which judges REST: a virtual environment each.
// A machine without Python, or without what Python needs to make one, leaves those tests out and says why.
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { once, root, run, step } from './setup.mjs';

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
      () => environments.every(isMade),
      () => step('Installing the Python SDK and Schemathesis', makeAll),
    );
    rmSync(reason, { force: true });
  } catch (error) {
    mkdirSync(folder, { recursive: true });
    writeFileSync(reason, error.message);
    console.error(`Tests with clients in Python are left out: ${error.message}`);
  }
}

function isMade({ python, stamp, requirements }) {
  // A link, to a Python that may be gone.
  return existsSync(python) && existsSync(stamp) && readFileSync(stamp, 'utf8') === hashOf(requirements);
}

async function makeAll() {
  const made = await Promise.allSettled(environments.map(make));
  const failed = made.find(({ status }) => status === 'rejected');
  if (failed) throw failed.reason;
}

async function make(environment) {
  const { path, python, stamp, requirements } = environment;
  if (isMade(environment)) return;
  rmSync(path, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const patience = ['--retries', '1', '--disable-pip-version-check'];
  if (await works('uv', ['--version'])) {
    await must('uv', ['venv', '--quiet', '--python', 'python3', path]);
    await must('uv', ['pip', 'install', '--quiet', '--python', python, '-r', requirements]);
  } else {
    if (!(await works('python3', ['--version']))) throw new Error('there is no python3.');
    await must('python3', ['-m', 'venv', path]);
    await must(python, ['-m', 'pip', 'install', '--quiet', ...patience, '-r', requirements]);
  }
  writeFileSync(stamp, hashOf(requirements));
}

async function must(command, args) {
  if ((await run(command, args, { timeout: 120_000 })) !== 0)
    throw new Error(`"${command} ${args.join(' ')}" failed; its message is above.`);
}

async function works(command, args) {
  return (await run(command, args, { stdio: 'ignore' }).catch(() => 1)) === 0;
}

function hashOf(file) {
  return createHash('sha256').update(readFileSync(file)).digest('hex');
}
