/**
 * The program that `npx` or `uvx` would start, started directly. The runner would stay in memory for as long as the
 * server runs, 50 to 60 MB for each. It still decides everything: it installs the package, and says what it would start.
 *
 * - What `npx` said is kept on disk, and used while nothing that the answer depends on has changed. With exact versions
 *   it finds the same at every start; without them it asks the registry whether there is something newer. So does this,
 *   in one process for all servers (`npm-lookup.ts`). After a day the registry is asked for exact versions, too, because
 *   one can be withdrawn: then `npx` refuses to start it.
 * - `uvx` is asked at every start. Further processes of the same gateway do not ask again for a few minutes.
 * - An install runs third-party scripts. It gets the environment of the server without the server's own secrets, because
 *   no install needs those, except settings of npm, uv and proxies.
 */
import { closeSync, existsSync, openSync, readFileSync, readSync, realpathSync, statSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { BoundedMap } from '../base/bounded-map.ts';
import { GatewayError, messageOf } from '../base/errors.ts';
import { findExecutable } from '../base/executable.ts';
import { canonicalJson, sha256 } from '../base/hash.ts';
import { getOrMake } from '../base/memo.ts';
import type { EnvVars } from '../config/expand.ts';
import { referencesIn } from '../secrets/reference.ts';
import { looksSecret, urlSecrets } from '../secrets/secret-values.ts';
import { runProgram } from '../workers/run-program.ts';
import { lookUp } from './npm-lookup.ts';
import { type PackageCommand, packageCommandOf } from './package-command.ts';
import {
  hasNpmShell,
  type InstallEnd,
  installText,
  type PackageReport,
  REPORTING,
  shownPackages,
  startInstall,
} from './package-install.ts';
import { type PackageProgram, type ProgramRecord, type ProgramRecords, programRecords } from './program-records.ts';
import type { StdioLaunch } from './spawn.ts';

export interface ResolveOptions {
  /** The environment of the configuration, with references to secrets instead of their values. */
  readonly declared: Readonly<Record<string, string>>;
  /** The environment of the gateway. */
  readonly ours: EnvVars;
  /** Whether the server is no longer wanted. */
  isClosed(): boolean;
  /** What the runner is busy with; null when it is done. Not called if it is done soon. */
  progress(text: string | null): void;
  /** What the runner says. */
  stderr(chunk: Buffer): void;
}

/** How long a server waits for an install. The install itself goes on, and the next attempt waits for it again. */
const LONGEST = 10 * 60_000;
const CHECK = 100;
/** When the first progress is reported, and then how often. That a download has begun is reported within `LOOK`. */
const FIRST_REPORT = 2_000;
const REPORTS = 10_000;
const LOOK = 1_000;
/** How long an answer of the runner is used again in this process. */
const FRESH = 5 * 60_000;
const REMEMBERED = 200;

/** Variables that an install needs, even if their values are secret. */
const FOR_INSTALLS = /^(?:npm_\w+|NODE_AUTH_TOKEN|UV_\w+|PIP_\w+|(?:https?|all|no)_proxy)$/i;
/** Variables that decide where a runner looks. With others of the same values, its answer is the same. */
const DECIDING =
  /^(?:PATH|HOME|TMPDIR|XDG_\w+|npm_\w+|NODE_\w+|UV_\w+|PIP_\w+|(?:https?|all|no)_proxy|SSL_CERT_\w+|VIRTUAL_ENV|PYTHON\w*)$/i;
/** Settings with which the answer would not be true later, or not be ours to replace. */
const LEFT_ALONE = /^(?:npm_config_script_shell|UV_NO_CACHE|UV_ISOLATED)$/i;

/** What became of a query to a runner. */
type RunnerAnswer =
  | { readonly program: PackageProgram; readonly log: string }
  /** The command has to be started as it is written. */
  | { readonly program: null; readonly log: string }
  | { readonly problem: string; readonly log: string };

interface RunnerQuery {
  readonly answer: Promise<RunnerAnswer>;
  readonly began: number;
  /** How many servers wait for the answer. */
  waiting: number;
  downloads(): number;
}

/** Shared by all gateways of this process, as the caches of the runners are. */
const queries = new Map<string, RunnerQuery>();
const answers = new BoundedMap<string, { readonly answer: RunnerAnswer; readonly at: number }>(REMEMBERED);
/** The last query about each package. Two installs of one package would get in each other's way. */
const lastAbout = new Map<string, Promise<unknown>>();

/**
 * The launch to start instead; the same one if it has to be started as it is written. Rejects if the package cannot be
 * installed.
 */
export async function resolvePackage(launch: StdioLaunch, options: ResolveOptions): Promise<StdioLaunch> {
  if (process.platform === 'win32' || launch.keepsRunner === true) return launch;
  const command = packageCommandOf(launch);
  const runner = command === null ? null : knownRunner(command, launch);
  if (command === null || runner === null) return launch;
  const { env, withheld } = installEnvironment(launch.env, options);
  if (Object.keys(env).some((name) => LEFT_ALONE.test(name))) return launch;
  const deciding = Object.fromEntries(Object.entries(env).filter(([name]) => DECIDING.test(name)));
  const { cwd } = launch;
  const { options: flags, target, packages } = command;
  const key = sha256(canonicalJson({ runner, flags, target, cwd, env: deciding })).slice(0, 32);
  const records = programRecords(options.ours);
  const record = recordOf(command, key, records);
  if (record !== null && unsure(command, record).length === 0) return started(launch, command, record.program);
  const fresh = answers.get(key);
  const isFresh = fresh !== undefined && Date.now() - fresh.at < FRESH && isUsable(fresh.answer);
  const query = isFresh
    ? null
    : getOrMake(queries, key, () => {
        const about = `${command.runner} ${packages.join(' ')} ${env.npm_config_cache ?? env.HOME ?? ''}`;
        return ask(command, { runner, env, deciding, cwd, key, about, records });
      });
  const answer = query === null ? fresh!.answer : await wait(query, command, options);
  if (answer.log !== '' && query !== null) options.stderr(Buffer.from(`${answer.log.trimEnd()}\n`));
  if ('problem' in answer) {
    // Perhaps it needs one of them, for a private registry. Then it has to get all of them, as it is written.
    if (withheld) return launch;
    throw new GatewayError('source_unavailable', answer.problem);
  }
  return answer.program === null ? launch : started(launch, command, answer.program);
}

/** What `npx` said before; null if it has to be asked. */
function recordOf(command: PackageCommand, key: string, records: ProgramRecords | null): ProgramRecord | null {
  return command.runner === 'npx' ? (records?.read(key) ?? null) : null;
}

/** The packages for which the registry has to be asked whether the record is still true. */
function unsure({ packages, unpinned }: PackageCommand, { isRecent }: ProgramRecord): readonly string[] {
  return isRecent ? unpinned : packages;
}

function started(launch: StdioLaunch, command: PackageCommand, { file, env, lock }: PackageProgram): StdioLaunch {
  const line = command.start(file);
  const all = { ...launch, ...line, env: { ...launch.env, ...env } };
  // As uv does while its command runs, so that `uv cache clean` does not remove the program under it.
  return lock === null ? all : { ...all, file: lock.program, args: ['-s', '-F', lock.file, line.file, ...line.args] };
}

function isUsable(answer: RunnerAnswer): boolean {
  if ('problem' in answer) return false;
  return answer.program === null || existsSync(answer.program.file);
}

interface QuerySubject {
  /** The path of the runner. */
  readonly runner: string;
  readonly env: Readonly<Record<string, string>>;
  /** The part of the environment that the runner depends on. */
  readonly deciding: Readonly<Record<string, string>>;
  readonly cwd: string;
  readonly key: string;
  readonly about: string;
  readonly records: ProgramRecords | null;
}

function ask(command: PackageCommand, subject: QuerySubject): RunnerQuery {
  const { key, about } = subject;
  let downloads = () => 0;
  const before = lastAbout.get(about);
  const answer = (async (): Promise<RunnerAnswer> => {
    await before?.catch(() => {});
    try {
      const program = await confirmed(command, subject);
      if (program !== null) return { program, log: '' };
      const install = await startInstall(command, {
        file: subject.runner,
        cwd: subject.cwd,
        env: subject.env,
        mark: subject.records?.markOf(sha256(about).slice(0, 32)) ?? null,
        isWanted: () => query.waiting > 0,
      });
      if (install === null) return { problem: 'is no longer wanted', log: '' };
      downloads = install.downloads;
      return await answerOf(command, subject, await install.ended);
    } catch (error) {
      return { problem: `${command.runner} could not be started: ${messageOf(error)}`, log: '' };
    }
  })();
  const query: RunnerQuery = { answer, began: Date.now(), waiting: 0, downloads: () => downloads() };
  lastAbout.set(about, answer);
  void answer.then((given) => {
    queries.delete(key);
    if (lastAbout.get(about) === answer) lastAbout.delete(about);
    if (!('problem' in given)) answers.set(key, { answer: given, at: Date.now() });
  });
  return query;
}

/** The recorded program, if the registry still has the same packages for it. */
async function confirmed(command: PackageCommand, subject: QuerySubject): Promise<PackageProgram | null> {
  const { key, records } = subject;
  const record = recordOf(command, key, records);
  if (record === null) return null;
  const packages = unsure(command, record);
  if (packages.some((spec) => record.contents[spec] === undefined)) return null;
  const found = await lookUp({ ...subject, settings: command.settings }, packages);
  if (found === null || packages.some((spec, at) => found[at] !== record.contents[spec])) return null;
  if (!record.isRecent) records?.renew(key);
  return record.program;
}

/** Waits for the answer, but not for a server that is no longer wanted, and not for ever. */
async function wait(query: RunnerQuery, command: PackageCommand, options: ResolveOptions): Promise<RunnerAnswer> {
  const { runner } = command;
  const begin = Date.now();
  let next = begin + FIRST_REPORT;
  let look = next;
  let isDownloading = false;
  query.waiting++;
  let timer: NodeJS.Timeout | undefined;
  const stopped = new Promise<never>((_, reject) => {
    timer = setInterval(() => {
      const now = Date.now();
      if (options.isClosed()) reject(new GatewayError('source_unavailable', 'closed'));
      if (now - begin > LONGEST) {
        const text = `${runner} has been installing ${shownPackages(command)} for more than ${LONGEST / 60_000} minutes and goes on`;
        reject(new GatewayError('source_unavailable', text));
      }
      if (now < look) return;
      look = now + LOOK;
      const downloads = query.downloads();
      if (now < next && isDownloading === downloads > 0) return;
      next = now + REPORTS;
      isDownloading = downloads > 0;
      options.progress(installText(command, downloads, Math.round((now - query.began) / 1000)));
    }, CHECK);
  });
  try {
    const answer = await Promise.race([query.answer, stopped]);
    if (next > begin + FIRST_REPORT && 'program' in answer) options.progress(null);
    return answer;
  } finally {
    clearInterval(timer);
    query.waiting--;
  }
}

/** The path of the runner, if it is one that is understood: a stand-in or a wrapper may do anything. */
function knownRunner({ runner, file }: PackageCommand, { cwd, env }: StdioLaunch): string | null {
  const found = findExecutable(file, cwd, env.PATH);
  if (found.code !== undefined) return null;
  try {
    const real = realpathSync(found.path);
    return (runner === 'npx' ? isNpm(real) && hasNpmShell() : !isScript(real)) ? found.path : null;
  } catch {
    return null;
  }
}

/** Since version 7, `npx` is `npm exec`. */
function isNpm(file: string): boolean {
  if (!/\/bin\/np[mx]-cli\.js$/.test(file)) return false;
  const { name, version } = JSON.parse(readFileSync(join(dirname(file), '..', 'package.json'), 'utf8')) as {
    name?: unknown;
    version?: unknown;
  };
  return name === 'npm' && Number.parseInt(String(version), 10) >= 7;
}

function isScript(file: string): boolean {
  const opened = openSync(file, 'r');
  try {
    const start = Buffer.alloc(2);
    readSync(opened, start, 0, 2, 0);
    return start.toString('latin1') === '#!';
  } finally {
    closeSync(opened);
  }
}

/** The environment for the install, and whether something was left out of it. */
export function installEnvironment(
  env: Readonly<Record<string, string>>,
  { declared, ours }: Pick<ResolveOptions, 'declared' | 'ours'>,
): { readonly env: Record<string, string>; readonly withheld: boolean } {
  const isSecret = (name: string, text: string) =>
    !FOR_INSTALLS.test(name) && (referencesIn(text).length > 0 || looksSecret(name) || urlSecrets(text).length > 0);
  const secret = new Set(Object.entries(declared).flatMap(([name, text]) => (isSecret(name, text) ? name : [])));
  // Settings and tokens of installers, also those that the server itself does not inherit.
  const settings = Object.entries(ours).filter(
    (entry): entry is [string, string] => entry[1] !== undefined && FOR_INSTALLS.test(entry[0]),
  );
  const rest = Object.entries(env).filter(([name]) => !secret.has(name));
  return { env: { ...Object.fromEntries(settings), ...Object.fromEntries(rest) }, withheld: secret.size > 0 };
}

async function answerOf(
  command: PackageCommand,
  subject: QuerySubject,
  { report, log, problem }: InstallEnd,
): Promise<RunnerAnswer> {
  if (report === null) {
    // It ended well without subject what to run: it is not the runner that it seems to be.
    if (problem === 'exited with code 0') return { program: null, log };
    return { problem: problemText(command, problem, log), log };
  }
  const program = await programOf(command, subject, report);
  if (program !== null && command.runner === 'npx')
    await subject.records?.write(subject.key, { ...subject, command, env: report.env }, program);
  return { program, log };
}

/** Null if what the report says is not understood, or not safe to start without the runner. */
async function programOf(
  { runner, target }: PackageCommand,
  { env, cwd }: QuerySubject,
  report: PackageReport,
): Promise<PackageProgram | null> {
  const name = runner === 'npx' ? unquoted(report.command ?? '') : target.replace(/@.*$/, '');
  if (name === null || report.hasOwnShell || resolve(report.cwd) !== realpathSync(cwd)) return null;
  // uv looks into the environment of the package first, and that is the only place that is meant here.
  const path = runner === 'npx' ? report.env.PATH : report.env.PATH?.split(':')[0];
  const found = findExecutable(name, cwd, path);
  if (found.code !== undefined || isWritableByAll(found.path)) return null;
  const changed = Object.entries(report.env).filter(([one, value]) => !REPORTING.test(one) && env[one] !== value);
  const program = { file: found.path, env: Object.fromEntries(changed), lock: null };
  if (runner === 'npx') return program;
  const lock = cacheLockOf(found.path);
  if (lock === null) return program;
  const flock = await flockProgram(lock, report.env.PATH);
  return flock === null ? null : { ...program, lock: { program: flock, file: lock } };
}

/** The name of the program in the line that npm gives to its shell; null if it is more than a name. */
function unquoted(line: string): string | null {
  return /^(['"]?)([\w@.+-]+)\1$/.exec(line.trim())?.[2] ?? null;
}

function isWritableByAll(file: string): boolean {
  const real = realpathSync(file);
  return [real, dirname(real)].some((path) => (statSync(path).mode & 0o002) !== 0);
}

/** The lock that uv holds while it runs a program from its cache; null if the program is elsewhere, or uv is older. */
function cacheLockOf(file: string): string | null {
  const cache = /^(.+?)\/archive-v\d+\//.exec(realpathSync(file))?.[1];
  if (cache === undefined) return null;
  const lock = join(cache, '.lock');
  return existsSync(lock) ? lock : null;
}

/** The program that takes such a lock and becomes another program; null if the system has none. */
async function flockProgram(lock: string, path: string | undefined): Promise<string | null> {
  const found = findExecutable('flock', '/', path);
  if (found.code !== undefined) return null;
  const { code } = await runProgram({
    command: found.path,
    args: ['-s', '-F', lock, 'true'],
    cwd: '/',
    env: { PATH: process.env.PATH ?? '' },
    timeout: 5_000,
    signal: null,
  });
  return code === 0 ? found.path : null;
}

const REASONS: Readonly<Record<string, string>> = {
  E404: 'the registry does not have it',
  E401: 'the registry wants a login',
  E403: 'the registry refuses it',
  ENOTFOUND: 'the registry cannot be reached',
  ECONNREFUSED: 'the registry cannot be reached',
  ETIMEDOUT: 'the registry cannot be reached',
  ENOSPC: 'there is no space left',
  ENOTEMPTY: 'an earlier install was interrupted',
};

/** What the runner itself says may contain anything, so callers are told only what its error code means. */
function problemText(command: PackageCommand, problem: string, log: string): string {
  const code = /^npm (?:error|ERR!) code (\w+)$/m.exec(log)?.[1] ?? '';
  const folder = code === 'ENOTEMPTY' ? /\/\S+\/_npx\/[0-9a-f]{16}/.exec(log)?.[0] : undefined;
  const help = folder === undefined ? '' : `; remove ${folder}`;
  return `${command.runner} could not install ${shownPackages(command)}: ${REASONS[code] ?? `it ${problem}`}${help}`;
}
