/** Creates a virtual environment: with uv if it is installed, otherwise with venv and pip. */
import { realpathSync } from 'node:fs';
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { findExecutable } from '../base/executable.ts';
import { counted } from '../base/text.ts';
import { EnvironmentError, type EnvironmentRequest } from './environment.ts';
import { runInstallStep, TEMPORARY } from './installer.ts';
import type { Interpreter } from './python-interpreter.ts';
import type { Requirements } from './requirements.ts';
import type { ProgramResult } from './run-program.ts';

/** The versions that the host program works with. */
export const FASTMCP = 'fastmcp>=3.4,<5';

/** The file in an environment that names the one that it was built on. */
const BASE = 'base.txt';

/** The folder of the environment that this one was built on; null if it stands alone. */
export async function baseOf(folder: string): Promise<string | null> {
  return readFile(join(folder, BASE), 'utf8').then(
    (text) => text.trim(),
    () => null,
  );
}

export interface Installation {
  readonly request: EnvironmentRequest;
  /** For each step, in milliseconds. */
  readonly timeout: number;
  readonly python: Interpreter;
  /** Null to install only FastMCP. */
  readonly requirements: Requirements | null;
  /** The folder of the environment that this one may be built on; null for the base itself. */
  readonly base: (() => Promise<string>) | null;
  readonly folder: string;
}

/** Milliseconds between two reports of an installer that is still busy. */
const PROGRESS_PAUSE = 3_000;

/** The variables that installers get. Settings that would install packages elsewhere are not among them. */
const INHERITED = [
  /^(?:PATH|HOME|LANG|LC_ALL|TMPDIR|XDG_CACHE_HOME|XDG_CONFIG_HOME|NETRC)$/,
  /^(?:https?|all|no)_proxy$/i,
  /^(?:SSL_CERT_FILE|SSL_CERT_DIR|REQUESTS_CA_BUNDLE|CURL_CA_BUNDLE)$/,
  /^(?:PIP|UV)_(?!(?:USER|TARGET|PREFIX|ROOT|PYTHON|REQUIRE_VIRTUALENV|PROJECT_ENVIRONMENT)$)/,
];

/** Returns facts about the environment for ready.json. */
export async function install(job: Installation): Promise<Record<string, unknown>> {
  const { folder, python, requirements, request } = job;
  const uv = await findUv(job);
  const base = uv === null && job.base !== null ? await job.base() : null;
  await mkdir(folder, { recursive: true });
  const constraints = join(folder, 'constraints.txt');
  await writeFile(constraints, `${FASTMCP}\n`);

  request.progress(`creating a virtual environment with Python ${python.version}`);
  const made =
    uv === null
      ? await installStep(job, [python.executable, '-m', 'venv', folder])
      : await installStep(job, [uv, 'venv', '--quiet', '--allow-existing', '--python', python.executable, folder]);
  if (made.code !== 0) throw failure(job, 'The virtual environment could not be created', made);

  const inside = join(folder, 'bin', 'python');
  if (base !== null) await layOver(job, base, inside);
  const count = requirements?.count ?? 0;
  const packages = count === 0 ? '' : counted(count, 'package');
  const fastmcp = base === null ? 'FastMCP' : '';
  request.progress(`installing ${[packages, fastmcp].filter(Boolean).join(' and ')}`);
  // As a constraint, so that a folder that pins another version fails here with a clear message.
  const wanted = [...(requirements === null ? [] : ['-r', 'requirements.txt']), 'fastmcp', '-c', constraints];
  const isAny = request.packages === 'any';
  const pip = [
    inside,
    '-I',
    '-m',
    'pip',
    'install',
    '--progress-bar',
    'off',
    ...(isAny ? [] : ['--only-binary', ':all:']),
  ];
  const uvPip = [uv ?? '', 'pip', 'install', '--python', inside, ...(isAny ? [] : ['--no-build'])];
  const installed = await installStep(job, [...(uv === null ? pip : uvPip), ...wanted], progressOf(job));
  if (installed.code !== 0) throw failure(job, 'The packages could not be installed', installed);
  // Now, because a worker cannot write there. pip does it itself. Some packages have files that are not for this Python.
  if (uv !== null) await ownStep(job, [inside, '-I', '-m', 'compileall', '-q', '-j', '0', join(folder, 'lib')]);

  const check = 'import fastmcp; from fastmcp.tools import tool; assert callable(tool); print(fastmcp.__version__)';
  const checked = await ownStep(job, [inside, '-I', '-c', check]);
  if (checked.code !== 0) throw failure(job, 'FastMCP does not run with these packages', checked);
  await rm(join(folder, TEMPORARY), { recursive: true, force: true });
  return { python: python.version, fastmcp: checked.stdout.trim(), installer: uv === null ? 'pip' : 'uv' };
}

/**
 * Makes the packages of the base visible in the environment, after its own. pip then installs only what is missing, or
 * another version of it. uv would not look there.
 */
async function layOver(job: Installation, base: string, inside: string): Promise<void> {
  const where = 'import sysconfig; print(sysconfig.get_path("purelib"))';
  const [own, below] = await Promise.all(
    [inside, join(base, 'bin', 'python')].map((python) => ownStep(job, [python, '-I', '-c', where], [base])),
  );
  for (const found of [own!, below!])
    if (found.code !== 0) throw failure(job, 'The virtual environment does not run', found);
  const line = `import site; site.addsitedir(${JSON.stringify(below!.stdout.trim())})\n`;
  await writeFile(join(own!.stdout.trim(), 'toolgate-base.pth'), line);
  await writeFile(join(job.folder, BASE), `${base}\n`);
}

/** Reports how far an installer is, from what it prints. Not more often than every few seconds. */
function progressOf({ request }: Installation): (text: string) => void {
  let collected = 0;
  let last = Date.now();
  let isDownloaded = false;
  return (text) => {
    if (isDownloaded) return;
    collected += text.match(/^Collecting /gm)?.length ?? 0;
    const known = /^Installing collected packages: (.*)$/m.exec(text)?.[1]?.split(',').length;
    const resolved = /^Resolved (\d+) packages?/m.exec(text)?.[1];
    isDownloaded = known !== undefined;
    if (known !== undefined) request.progress(`installing ${counted(known, 'package')}, all of them downloaded`);
    else if (resolved !== undefined) request.progress(`installing ${counted(Number(resolved), 'package')}`);
    else if (collected > 0 && Date.now() - last > PROGRESS_PAUSE)
      request.progress(`installing packages: ${collected} found so far`);
    else return;
    last = Date.now();
  };
}

/** The path of uv; null to use pip. In a sandbox a shim may not run: then uv counts as missing. */
async function findUv(job: Installation): Promise<string | null> {
  const configured = job.request.env.TOOLGATE_UV || null;
  if (configured === 'off') return null;
  const found = findExecutable(configured ?? 'uv', job.request.folder, job.request.env.PATH);
  if (found.code === undefined) {
    const uv = realpathSync(found.path);
    if ((await installStep(job, [uv, '--version'])).code === 0) return uv;
  }
  if (configured === null) return null;
  throw new EnvironmentError(`TOOLGATE_UV is "${configured}", which does not run. Correct it, or set it to "off".`);
}

/** Runs a program of the installer. None of the packages' code runs in it, unless the folder may ask for any package. */
function installStep(job: Installation, command: readonly string[], printed?: (text: string) => void) {
  return step(job, command, [], true, printed);
}

/** Runs the Python of the environment, and with it code of its packages. */
function ownStep(job: Installation, command: readonly string[], reads: readonly string[] = []) {
  return step(job, command, reads, false);
}

async function step(
  { request, timeout, python, folder }: Installation,
  command: readonly string[],
  reads: readonly string[],
  installs: boolean,
  printed?: (text: string) => void,
): Promise<ProgramResult> {
  const base = await baseOf(folder);
  return runInstallStep(request, {
    command,
    // Paths in requirements.txt are relative to the folder of tools.
    cwd: request.folder,
    env: installerEnv(request.env),
    environment: folder,
    reads: [command[0]!, ...python.prefixes, ...(base === null ? [] : [base]), ...reads],
    installs,
    timeout,
    ...(printed !== undefined && { printed }),
  });
}

function installerEnv(env: EnvironmentRequest['env']): Record<string, string> {
  const passed = Object.entries(env).filter(
    (entry): entry is [string, string] => entry[1] !== undefined && INHERITED.some((names) => names.test(entry[0])),
  );
  return {
    HOME: homedir(),
    TMPDIR: tmpdir(),
    PIP_RETRIES: '2',
    ...Object.fromEntries(passed),
    PIP_DISABLE_PIP_VERSION_CHECK: '1',
    PIP_NO_INPUT: '1',
  };
}

function failure(job: Installation, what: string, { log, problem }: ProgramResult): EnvironmentError {
  const { requirements, request, timeout } = job;
  const failed = requirements === null ? what : `${what} for "${request.namespace}"`;
  if (problem === 'timeout')
    return new EnvironmentError(`${failed}: it took longer than ${Math.round(timeout / 1000)} s.`, log);
  if (/no space left on device|disk quota exceeded/i.test(log))
    return new EnvironmentError(`${failed}: the disk is full.`, log);
  if (/ensurepip is not available/.test(log))
    return new EnvironmentError(
      `${failed}: this Python has no venv module. Install it (python3-venv), or install uv.`,
      log,
    );
  if (pinsFastmcp(requirements) && /conflict|no solution found|unsatisfiable/i.test(log))
    return new EnvironmentError(
      `requirements.txt asks for a version of FastMCP that tools in a folder cannot use; it has to be ${FASTMCP}. Change or remove that line.`,
      log,
    );
  const reason = `${failed}: ${reasonIn(log) ?? problem ?? 'it gave no reason'}`;
  const hint =
    request.packages === 'registry' && NO_WHEEL.test(log)
      ? ' Only wheels are installed; folders.packages = "any" also builds source packages.'
      : '';
  return new EnvironmentError(reason + hint, log);
}

/** What pip and uv say if there are only source packages. pip says it too if there is nothing. */
const NO_WHEEL =
  /No matching distribution found|no usable wheels|building (?:source distributions )?is disabled|--no-build/i;

function pinsFastmcp(requirements: Requirements | null): boolean {
  return [...(requirements?.files.values() ?? [])].some((text) => /^\s*fastmcp\b/im.test(text));
}

/** The line in which an installer says what is wrong, or else its last line. */
function reasonIn(log: string): string | null {
  const lines = log
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '');
  // uv uses two lines, and the second says more.
  const cause = lines.findLast((line) => /^(?:cause:|╰─▶)/.test(line));
  const line = cause ?? lines.findLast((text) => /^(?:error\b|×)/i.test(text)) ?? lines.at(-1);
  return line === undefined ? null : line.replace(/^(?:error:?|×|cause:|╰─▶)\s*/i, '').slice(0, 500);
}
