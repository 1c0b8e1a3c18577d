/** Installs npm packages into an environment: without scripts and development dependencies. */
import { realpathSync } from 'node:fs';
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { messageOf } from '../base/errors.ts';
import { findExecutable } from '../base/executable.ts';
import { isObject } from '../base/objects.ts';
import { counted } from '../base/text.ts';
import type { Packages } from '../config/folders.ts';
import { EnvironmentError, type EnvironmentRequest } from './environment.ts';
import { runInstallStep, TEMPORARY } from './installer.ts';
import { isIsolated } from './isolation.ts';
import type { ProgramResult } from './run-program.ts';

/** A package.json with its lock file. */
export interface PackageManifest {
  readonly text: string;
  readonly lock: { readonly name: string; readonly text: string } | null;
  /** The number of packages it asks for. */
  readonly count: number;
}

const LOCKS = ['npm-shrinkwrap.json', 'package-lock.json'];

/** A repository may say in its own settings which program is git, and npm would run it. */
const NO_GIT = '--git=/bin/false';

const FLAGS = ['--omit=dev', '--ignore-scripts', '--no-audit', '--no-fund', '--no-update-notifier', '--loglevel=error'];

/**
 * The variables that npm gets. If npm started Toolgate, it has set further variables for its script. Some of those
 * would install packages elsewhere.
 */
const INHERITED =
  /^(?:PATH|HOME|LANG|LC_ALL|TMPDIR|XDG_(?:CACHE|CONFIG)_HOME|(?:https?|all|no)_proxy|SSL_CERT_(?:FILE|DIR)|NODE_EXTRA_CA_CERTS|NODE_AUTH_TOKEN|NPM_TOKEN|npm_config_(?!(?:local_)?prefix$|global$|location$|dry_run$|workspaces?$)\w+)$/i;

/** Null if the folder has no package.json. With `registry`, throws if it asks for more than versions in a registry. */
export async function readManifest(folder: string, packages: Packages): Promise<PackageManifest | null> {
  const text = await readText(join(folder, 'package.json'));
  if (text === null) return null;
  let lock: PackageManifest['lock'] = null;
  for (const name of LOCKS) {
    const found = await readText(join(folder, name));
    if (found !== null) lock ??= { name, text: found };
  }
  const value = parse('package.json', text);
  if (packages === 'registry') {
    for (const section of [...INSTALLED, 'devDependencies', 'overrides']) checkSpecs(value[section], section);
    if (lock !== null) checkLock(lock.name, parse(lock.name, lock.text));
  }
  return { text, lock, count: countPackages(value) };
}

const INSTALLED = ['dependencies', 'optionalDependencies', 'peerDependencies'];

function parse(name: string, text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : {};
  } catch (error) {
    throw new EnvironmentError(`${name} is not valid JSON: ${messageOf(error)}`);
  }
}

/** A version, range, tag, reference to another dependency (`$name`), or another name for one of these. */
const OF_REGISTRY = /^(?:npm:(?:@[\w.~-]+\/)?[\w.~-]+(?:@[^/\\:]*)?|[^/\\:]*)$/;
const ARCHIVE = /\.(?:tgz|tar\.gz|tar)$/i;
const ALLOW = 'Change it, or allow it with folders.packages = "any".';

/** `overrides` may be nested. npm looks at the packages for development too, although it does not install them. */
function checkSpecs(specs: unknown, where: string): void {
  for (const [name, spec] of isObject(specs) ? Object.entries(specs) : []) {
    if (isObject(spec)) checkSpecs(spec, `${where}.${name}`);
    else if (typeof spec !== 'string' || !OF_REGISTRY.test(spec) || ARCHIVE.test(spec))
      throw new EnvironmentError(
        `package.json: "${name}" in ${where} is not a version of a package in a registry, and could run code while it is installed. ${ALLOW}`,
      );
  }
}

/** Looks at both forms of lock files. Archives have the address from which the registry served them. */
function checkLock(file: string, lock: Record<string, unknown>): void {
  for (const [name, entry] of [...entriesOf(lock.packages), ...entriesOf(lock.dependencies)]) {
    if (!isObject(entry)) continue;
    checkLock(file, { dependencies: entry.dependencies });
    const isLink = entry.link === true;
    if (isLink || [entry.resolved, entry.version].some((one) => typeof one === 'string' && !isArchiveOrVersion(one)))
      throw new EnvironmentError(`${file}: "${name}" comes from a folder or repository, not from a registry. ${ALLOW}`);
  }
}

function isArchiveOrVersion(text: string): boolean {
  return /^https?:\/\/[^#]*$/i.test(text) ? !/\.git$/i.test(text) : OF_REGISTRY.test(text);
}

function entriesOf(value: unknown): [string, unknown][] {
  return isObject(value) ? Object.entries(value) : [];
}

function countPackages(value: Record<string, unknown>): number {
  const names = new Set<string>();
  for (const section of INSTALLED) {
    const packages = value[section];
    if (typeof packages === 'object' && packages !== null) for (const name of Object.keys(packages)) names.add(name);
  }
  return names.size;
}

/** Returns facts about the environment for ready.json. Throws an EnvironmentError that says why npm failed. */
export async function installPackages(
  folder: string,
  manifest: PackageManifest | null,
  request: EnvironmentRequest,
  timeout: number,
): Promise<Record<string, unknown>> {
  await mkdir(folder, { recursive: true });
  if (manifest !== null && manifest.count > 0) {
    const { text, lock, count } = manifest;
    await writeFile(join(folder, 'package.json'), text);
    if (lock !== null) await writeFile(join(folder, lock.name), lock.text);
    request.progress(`installing ${counted(count, 'package')} with npm`);
    await runNpm(lock === null ? 'install' : 'ci', folder, request, timeout);
    await rm(join(folder, TEMPORARY), { recursive: true, force: true });
  }
  return { node: process.version, made: new Date().toISOString() };
}

async function runNpm(
  action: 'install' | 'ci',
  folder: string,
  request: EnvironmentRequest,
  timeout: number,
): Promise<void> {
  const env = Object.fromEntries(
    Object.entries(request.env).filter(
      (entry): entry is [string, string] => entry[1] !== undefined && INHERITED.test(entry[0]),
    ),
  );
  const npm = (await isIsolated(request.isolation)) ? findNpm(request.env.PATH) : { command: ['npm'], reads: [] };
  const result = await runInstallStep(request, {
    command: [...npm.command, action, ...FLAGS, ...(request.packages === 'any' ? [] : [NO_GIT])],
    cwd: folder,
    env,
    environment: folder,
    reads: npm.reads,
    installs: true,
    timeout,
  });
  if (result.code !== 0 || result.problem !== null) throw new EnvironmentError(reasonOf(result, timeout), result.log);
}

/**
 * How npm is run in a sandbox, and what it has to read. The npm of a version manager is a script that needs more than
 * that; then the one next to our Node is used.
 */
function findNpm(path: string | undefined): { readonly command: readonly string[]; readonly reads: readonly string[] } {
  const [first, ...rest] = [
    findExecutable('npm', '/', path),
    findExecutable(join(dirname(process.execPath), 'npm'), '/'),
  ]
    .filter((found) => found.code === undefined)
    .map((found) => realpathSync(found.path));
  if (first === undefined) throw new EnvironmentError(NOT_FOUND);
  const program = [first, ...rest].find((file) => file.endsWith('.js'));
  if (program === undefined) return { command: [first], reads: [first] };
  return { command: [process.execPath, program], reads: [dirname(dirname(program))] };
}

const NOT_FOUND = 'npm was not found. Install it with Node, or remove the dependencies from package.json.';

function reasonOf({ problem, log }: ProgramResult, timeout: number): string {
  if (problem === 'timeout') return `npm did not finish within ${timeout / 1000} s. Can the registry be reached?`;
  if (problem === 'stopped') return 'The installation was stopped.';
  if (problem?.includes('ENOENT')) return NOT_FOUND;
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
