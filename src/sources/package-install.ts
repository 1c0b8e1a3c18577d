/**
 * Lets `npx` or `uvx` install a package, and asks what it would start: the program and its environment. The runner does
 * all of it as usual, with the user's settings, registries and caches. Only in the last step it runs a reporter instead
 * of the program: npm gets one as its shell, uv as the command to run.
 *
 * An install is never killed, neither by `start_timeout` nor when the gateway stops. A killed `npx` leaves a half-filled
 * folder in its cache, or a lock: later starts fail in it, or wait for it. So the install runs in a session of its own,
 * writes to files instead of pipes that could break, and ends by itself.
 */
import type { ChildProcess, SpawnOptions } from 'node:child_process';
import {
  closeSync,
  fstatSync,
  mkdtempSync,
  openSync,
  readFileSync,
  readSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { mkdir, readFile, stat, unlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { messageOf } from '../base/errors.ts';
import { findExecutable } from '../base/executable.ts';
import { createFile } from '../base/files.ts';
import { isAlive } from '../base/lock.ts';
import { ownFile } from '../base/own-files.ts';
import { startProcess } from '../base/start-process.ts';
import { counted } from '../base/text.ts';
import type { PackageCommand } from './package-command.ts';

/** What the runner would start. */
export interface PackageReport {
  /** As npm would give it to a shell, or null if the runner was told the program. */
  readonly command: string | null;
  readonly cwd: string;
  /** The environment that the program would get. */
  readonly env: Readonly<Record<string, string>>;
  /** Whether the user's npm has a shell of their own for scripts. */
  readonly hasOwnShell: boolean;
}

/** How it ended. */
export interface InstallEnd {
  /** Null if the runner failed. */
  readonly report: PackageReport | null;
  /** What the runner said, without the lines that only we asked for. */
  readonly log: string;
  /** Why it failed, in a few words. */
  readonly problem: string;
}

export interface Install {
  readonly ended: Promise<InstallEnd>;
  /** How many packages were downloaded so far. */
  downloads(): number;
}

export interface InstallOptions {
  /** The runner's path. */
  readonly file: string;
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  /** Marks the install for other gateways of this user; null if there is no place for the mark. */
  readonly mark: string | null;
  /** Whether a server still waits for it. */
  isWanted(): boolean;
}

/** Before the report. No variable and no argument can contain it. */
const MARK = '\0toolgate-package-report\0';
/**
 * The reporter: prints what it was told to run, where, and its environment, each followed by a zero byte. A shell,
 * because a Node for each server would take a tenth of what `npx` takes.
 */
const REPORTER = `printf '${MARK.replaceAll('\0', '\\0')}%s\\0%s\\0' "$1" "$(pwd -P)"; /usr/bin/env -0 || true`;

/** Becomes npm, which finds its own process id in its environment. */
const AS_NPM = 'export TOOLGATE_REPORT_NPM=$$; exec "$@"';
const DOWNLOADED = { npx: /^npm http fetch GET 200 \S+\.tgz\b/gm, uvx: /^ *(?:Downloaded|Built) /gm };
/** Lines of npm that are there only because downloads are counted. */
const COUNTED = /^npm http .*\n?/gm;
const KEPT = 64 * 1024;
/** A mark that is older belongs to a process that got the id of an install. */
const OLDEST_MARK = 30 * 60_000;
const LOOK = 200;

/** Variables that only the reporter needs, or that a shell sets for itself. They say nothing about the program. */
export const REPORTING =
  /^(?:TOOLGATE_.*|npm_config_script_shell|npm_config_loglevel|npm_lifecycle_script|_|SHLVL|PWD|OLDPWD)$/;

/** Starts the runner. Null if nobody wants it any more. Throws if it cannot be started. */
export async function startInstall(command: PackageCommand, options: InstallOptions): Promise<Install | null> {
  const mark = command.runner === 'npx' ? await takeMark(options) : null;
  try {
    if (options.isWanted()) return run(command, options, mark);
  } catch (error) {
    mark?.done();
    throw error;
  }
  mark?.done();
  return null;
}

function run(
  { runner, options: flags, target }: PackageCommand,
  { file, cwd, env }: InstallOptions,
  mark: Mark | null,
): Install {
  const isNpx = runner === 'npx';
  const report = { TOOLGATE_REPORT_CODE: REPORTER };
  // uv is told the package, and runs our reporter in its environment.
  const from = flags.some((flag) => /^--from(?:=|$)/.test(flag)) ? [] : ['--from', target];
  const [program, ...args] = isNpx
    ? ['/bin/sh', '-c', AS_NPM, 'sh', file, ...flags, target]
    : [file, ...flags, ...from, '/bin/sh', '-c', REPORTER];
  const output = openUnnamed();
  const child = startRunner(program!, args, output, {
    cwd,
    env: isNpx ? { npm_config_loglevel: 'http', ...env, ...report, npm_config_script_shell: npmShell() } : env,
  });
  child.unref();
  if (child.pid !== undefined) mark?.names(child.pid);
  const ended = new Promise<InstallEnd>((resolve) => {
    const end = (problem: string, isOver: boolean) => {
      try {
        const log = withoutCredentials(readEnd(output.stderr).replace(COUNTED, ''));
        const found = isOver ? readReport(readEnd(output.stdout, Number.POSITIVE_INFINITY)) : null;
        resolve({ report: found, log, problem });
      } catch (error) {
        // What a script of the package printed may look like a report, and a disk may fail.
        resolve({ report: null, log: '', problem: `has no report that can be read: ${messageOf(error)}` });
      }
      closeSync(output.stdout);
      closeSync(output.stderr);
      mark?.done();
    };
    child.once('error', (error) => child.pid === undefined && end(error.message, false));
    child.once('exit', (code, signal) =>
      end(signal === null ? `exited with code ${code}` : `was ended by ${signal}`, code === 0),
    );
  });
  let isOver = false;
  void ended.then(() => {
    isOver = true;
  });
  const downloads = () => (isOver ? 0 : (readEnd(output.stderr).match(DOWNLOADED[runner])?.length ?? 0));
  return { ended, downloads };
}

function startRunner(
  program: string,
  args: readonly string[],
  output: { readonly stdout: number; readonly stderr: number },
  options: Pick<SpawnOptions, 'cwd' | 'env'>,
): ChildProcess {
  try {
    const stdio: SpawnOptions['stdio'] = ['ignore', output.stdout, output.stderr];
    return startProcess(program, args, { ...options, stdio, detached: true });
  } catch (error) {
    closeSync(output.stdout);
    closeSync(output.stderr);
    throw error;
  }
}

/** What npm runs instead of a shell. */
function npmShell(): string {
  return ownFile('bin/npx-shell.sh');
}

/** Whether npm can be asked. It cannot if our files are in an archive, or on a disk from which nothing may be run. */
export function hasNpmShell(): boolean {
  return findExecutable(npmShell(), '/').code === undefined;
}

/** Two files without names: they are gone with the last process that has them open, however it ends. */
function openUnnamed(): { readonly stdout: number; readonly stderr: number } {
  const folder = mkdtempSync(join(tmpdir(), 'toolgate-install-'));
  let stdout: number | null = null;
  try {
    stdout = openSync(join(folder, 'stdout'), 'a+', 0o600);
    return { stdout, stderr: openSync(join(folder, 'stderr'), 'a+', 0o600) };
  } catch (error) {
    if (stdout !== null) closeSync(stdout);
    throw error;
  } finally {
    remove(folder);
  }
}

function readEnd(file: number, most = KEPT): string {
  const { size } = fstatSync(file);
  const bytes = Buffer.alloc(Math.min(size, most));
  const length = readSync(file, bytes, 0, bytes.length, size - bytes.length);
  return bytes.toString('utf8', 0, length);
}

/** Null if there is none, or if this system cannot print its environment that way. */
function readReport(stdout: string): PackageReport | null {
  // The last one: a script of the package could print such a mark, too.
  const at = stdout.lastIndexOf(MARK);
  if (at === -1) return null;
  const [command, cwd, ...variables] = stdout
    .slice(at + MARK.length)
    .split('\0')
    .slice(0, -1);
  if (cwd === undefined || variables.length === 0) return null;
  const env = Object.fromEntries(
    variables.map((one) => [one.slice(0, one.indexOf('=')), one.slice(one.indexOf('=') + 1)]),
  );
  return { command: command || null, cwd, env, hasOwnShell: hasOwnShell(env, cwd) };
}

/** Looks in the configuration files of npm, because the setting with which npm was started hides theirs. */
function hasOwnShell(env: Readonly<Record<string, string>>, cwd: string): boolean {
  const own = join(env.npm_config_local_prefix || cwd, '.npmrc');
  const files = [env.npm_config_userconfig, env.npm_config_globalconfig, own];
  return files.some((file) => {
    try {
      return /^\s*script-shell\s*=/m.test(readFileSync(file ?? '', 'utf8'));
    } catch {
      return false;
    }
  });
}

/** What an operator sees while it runs. */
export function installText(command: PackageCommand, downloads: number, seconds: number): string {
  const { runner } = command;
  const what = shownPackages(command);
  if (downloads === 0) return `waiting for ${runner} to find ${what} (${seconds} s)`;
  return `installing ${what} with ${runner}: ${counted(downloads, 'package')} downloaded (${seconds} s)`;
}

export function shownPackages({ packages }: PackageCommand): string {
  return withoutCredentials(packages.join(', '));
}

/** The address of a repository or registry may contain them. */
function withoutCredentials(text: string): string {
  return text.replace(/(:\/\/)[^/@\s]+@/g, '$1***@');
}

/** Says which process installs, so that no other gateway of this user installs the same at the same time. */
interface Mark {
  names(pid: number): void;
  done(): void;
}

/**
 * Waits until no other process installs the same packages. npm itself has a lock only in its newest versions; with the
 * others two installs in one folder break it. Another gateway may have left its install running.
 */
async function takeMark({ mark: file, isWanted }: InstallOptions): Promise<Mark | null> {
  if (file === null) return null;
  try {
    await mkdir(dirname(file), { recursive: true, mode: 0o700 });
    while (!(await createFile(file, markOf(process.pid)))) {
      if (!isWanted()) return null;
      // Must not keep the gateway alive.
      if (await isInstalling(file)) await new Promise((resolve) => setTimeout(resolve, LOOK).unref());
      else await unlink(file).catch(() => {});
    }
  } catch {
    // Nothing can be written there. Then npm's own lock has to do.
    return null;
  }
  return {
    // At once, because the gateway may be killed before it gets to anything else, and the install goes on.
    names(pid) {
      const temporary = `${file}.${pid}.tmp`;
      try {
        writeFileSync(temporary, markOf(pid), { mode: 0o600 });
        renameSync(temporary, file);
      } catch {
        // The mark goes on naming this process, which is right for as long as this process lives.
        remove(temporary);
      }
    },
    done: () => remove(file),
  };
}

/** A mark that stays is ignored once the process that it names has ended. */
function remove(path: string): void {
  try {
    rmSync(path, { recursive: true, force: true });
  } catch {
    // The disk fails, or is read-only.
  }
}

async function isInstalling(file: string): Promise<boolean> {
  const mark = await readFile(file, 'utf8').catch(() => '');
  const { mtimeMs } = await stat(file).catch(() => ({ mtimeMs: 0 }));
  const pid = Number.parseInt(mark, 10);
  return Date.now() - mtimeMs < OLDEST_MARK && isAlive(pid) && markOf(pid) === mark;
}

/** The id of a process, and when it was started if the system says so: ids are used again. */
function markOf(pid: number): string {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return `${pid} ${stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19]}`;
  } catch {
    return String(pid);
  }
}
