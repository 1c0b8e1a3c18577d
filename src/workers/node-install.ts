/** Installs npm packages into an environment: without scripts and development dependencies. */
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { messageOf } from '../base/errors.ts';
import { counted } from '../base/text.ts';
import { EnvironmentError, type EnvironmentRequest } from './environment.ts';
import { type ProgramResult, runProgram } from './run-program.ts';

/** A package.json with its lock file. */
export interface PackageManifest {
  readonly text: string;
  readonly lock: { readonly name: string; readonly text: string } | null;
  /** The number of packages it asks for. */
  readonly count: number;
}

const LOCKS = ['npm-shrinkwrap.json', 'package-lock.json'];

const FLAGS = ['--omit=dev', '--ignore-scripts', '--no-audit', '--no-fund', '--no-update-notifier', '--loglevel=error'];

/**
 * The variables that npm gets. If npm started Toolgate, it has set further variables for its script. Some of those
 * would install packages elsewhere.
 */
const INHERITED =
  /^(?:PATH|HOME|LANG|LC_ALL|TMPDIR|XDG_(?:CACHE|CONFIG)_HOME|(?:https?|all|no)_proxy|SSL_CERT_(?:FILE|DIR)|NODE_EXTRA_CA_CERTS|NODE_AUTH_TOKEN|NPM_TOKEN|npm_config_(?!(?:local_)?prefix$|global$|location$|dry_run$|workspaces?$)\w+)$/i;

/** Null if the folder has no package.json. */
export async function readManifest(folder: string): Promise<PackageManifest | null> {
  const text = await readText(join(folder, 'package.json'));
  if (text === null) return null;
  let lock: PackageManifest['lock'] = null;
  for (const name of LOCKS) {
    const found = await readText(join(folder, name));
    if (found !== null) lock ??= { name, text: found };
  }
  return { text, lock, count: countPackages(text) };
}

function countPackages(text: string): number {
  let value: Record<string, unknown> | null;
  try {
    value = JSON.parse(text) as Record<string, unknown> | null;
  } catch (error) {
    throw new EnvironmentError(`package.json is not valid JSON: ${messageOf(error)}`);
  }
  const names = new Set<string>();
  for (const section of ['dependencies', 'optionalDependencies', 'peerDependencies']) {
    const packages = value?.[section];
    if (typeof packages === 'object' && packages !== null) for (const name of Object.keys(packages)) names.add(name);
  }
  return names.size;
}

/** Returns facts about the environment for ready.json. Throws an EnvironmentError that says why npm failed. */
export async function installPackages(
  folder: string,
  manifest: PackageManifest | null,
  { env, progress, signal }: EnvironmentRequest,
  timeout: number,
): Promise<Record<string, unknown>> {
  await mkdir(folder, { recursive: true });
  if (manifest !== null && manifest.count > 0) {
    const { text, lock, count } = manifest;
    await writeFile(join(folder, 'package.json'), text);
    if (lock !== null) await writeFile(join(folder, lock.name), lock.text);
    progress(`installing ${counted(count, 'package')} with npm`);
    await runNpm(lock === null ? 'install' : 'ci', folder, env, timeout, signal);
  }
  return { node: process.version, made: new Date().toISOString() };
}

async function runNpm(
  command: 'install' | 'ci',
  cwd: string,
  env: EnvironmentRequest['env'],
  timeout: number,
  signal: AbortSignal | null,
): Promise<void> {
  const inherited = Object.entries(env).filter(
    (entry): entry is [string, string] => entry[1] !== undefined && INHERITED.test(entry[0]),
  );
  const result = await runProgram({
    command: 'npm',
    args: [command, ...FLAGS],
    cwd,
    env: Object.fromEntries(inherited),
    timeout,
    signal,
  });
  if (result.code !== 0 || result.problem !== null) throw new EnvironmentError(reasonOf(result, timeout), result.log);
}

function reasonOf({ problem, log }: ProgramResult, timeout: number): string {
  if (problem === 'timeout') return `npm did not finish within ${timeout / 1000} s. Can the registry be reached?`;
  if (problem === 'stopped') return 'The installation was stopped.';
  if (problem?.includes('ENOENT'))
    return 'npm was not found. Install it with Node, or remove the dependencies from package.json.';
  if (problem !== null) return `npm could not be started: ${problem}`;
  // The lines in which npm says what is wrong, without those about its log files.
  const lines = [...log.matchAll(/^npm (?:error|ERR!) (?:code \S+ ?)?(.+)$/gm)].map((match) => match[1]!.trim());
  const reasons = lines.filter((line) => line !== '' && !/complete log of this run|eresolve-report/.test(line));
  return `npm could not install the packages: ${reasons.slice(0, 3).join(' ') || 'it gave no reason.'}`;
}

async function readText(file: string): Promise<string | null> {
  try {
    return await readFile(file, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw new EnvironmentError(`${file} cannot be read: ${messageOf(error)}`);
  }
}
