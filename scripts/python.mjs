// Virtual environments for tests: one for each major version of the Python SDK, and for the wide tests one for Schemathesis,
// which tests REST, one with what checks deploy/, and two with libraries for agents. uv installs them, because pip takes ten times the CPU.
// Without Python, or without venv, those tests are skipped with a reason; in CI they fail.
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { once, retry, root, run, step } from './setup.mjs';

const tools = join(root, 'test', 'tools');
const folder = join(tools, 'python');
const reason = join(folder, 'missing.txt');
export const environmentOf = (name) => ({
  path: join(folder, name),
  python: join(folder, name, 'bin', 'python'),
  stamp: join(folder, name, '.stamp'),
  requirements: join(tools, `python-${name}.txt`),
});

export async function ensurePython({ wide }) {
  // uv first, because it installs the others.
  const environments = ['uv', 'v1', 'v2', ...(wide ? ['rest', 'deploy', 'agents-v1', 'agents-v2'] : [])].map(
    environmentOf,
  );
  try {
    await once(
      'python',
      () => environments.every(isCurrent),
      () => step('Installing Python packages', () => createAll(environments)),
    );
    rmSync(reason, { force: true });
  } catch (error) {
    mkdirSync(folder, { recursive: true });
    writeFileSync(reason, error.message);
    console.error(`Tests with Python do not run: ${error.message}`);
  }
}

/** Creates one environment that only some machines need. */
export function createEnvironment(name) {
  const environments = ['uv', name].map(environmentOf);
  return once(
    'python',
    () => environments.every(isCurrent),
    () => createAll(environments),
  );
}

function isCurrent({ python, stamp, requirements }) {
  // It is a link to a Python that may have been removed.
  return existsSync(python) && existsSync(stamp) && readFileSync(stamp, 'utf8') === hashOf(requirements);
}

async function createAll([uv, ...others]) {
  await create(uv, async ({ path, python, requirements }) => {
    if (!(await works('python3', ['--version']))) throw new Error('python3 is not installed.');
    await must('python3', ['-m', 'venv', path]);
    const patience = ['--retries', '5', '--timeout', '60', '--disable-pip-version-check'];
    await must(python, ['-m', 'pip', 'install', '--quiet', '--no-compile', ...patience, '-r', requirements]);
  });
  const program = join(uv.path, 'bin', 'uv');
  const results = await Promise.allSettled(
    others.map((environment) =>
      create(environment, async ({ path, python, requirements }) => {
        await must(program, ['venv', '--quiet', '--python', 'python3', path]);
        await must(program, ['pip', 'install', '--quiet', '--python', python, '-r', requirements]);
      }),
    ),
  );
  const failed = results.find(({ status }) => status === 'rejected');
  if (failed) throw failed.reason;
}

async function create(environment, install) {
  const { path, stamp, requirements } = environment;
  if (isCurrent(environment)) return;
  mkdirSync(folder, { recursive: true });
  await retry(3, () => {
    rmSync(path, { recursive: true, force: true });
    return install(environment);
  });
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
