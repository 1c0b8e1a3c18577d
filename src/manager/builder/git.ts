/**
 * Runs git on repositories of strangers. Nothing of a repository is ever checked out or run: it is cloned bare, and its
 * files are read from the object store. So there are no hooks, links, filters or submodules.
 */
import { devNull } from 'node:os';
import { GatewayError } from '../../base/errors.ts';
import { type ProgramResult, runProgram } from '../../workers/run-program.ts';

export interface GitRun {
  /** After the options that close holes. */
  readonly args: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly input?: string;
  /** Milliseconds. */
  readonly timeout: number;
  /** Bytes of output after which git is stopped. */
  readonly maxBytes: number;
  readonly signal: AbortSignal | null;
  /** Gets what git prints on stderr, in pieces. */
  printed?(text: string): void;
}

/** Settings that would run a program, or reach something else than the address that was checked. */
const CLOSED = [
  `core.hooksPath=${devNull}`,
  'core.symlinks=false',
  'core.fsmonitor=false',
  'core.askPass=',
  'core.sshCommand=false',
  'core.gitProxy=',
  'core.alternateRefsCommand=',
  'credential.helper=',
  'protocol.allow=never',
  'http.followRedirects=false',
  'submodule.recurse=false',
  'fetch.recurseSubmodules=false',
  'gc.auto=0',
  'maintenance.auto=false',
];

/** Network settings of this machine. Everything else of the environment stays out. */
const INHERITED = /^(?:PATH|LANG|https?_proxy|all_proxy|no_proxy|SSL_CERT_FILE|SSL_CERT_DIR|GIT_SSL_CAINFO)$/i;

export function runGit({ args, env, ...run }: GitRun): Promise<ProgramResult> {
  const closed = CLOSED.flatMap((setting) => ['-c', setting]);
  const own = Object.entries(env).filter(([name, value]) => INHERITED.test(name) && value !== undefined);
  return runProgram({
    ...run,
    command: 'git',
    args: [...closed, ...args],
    env: {
      ...(Object.fromEntries(own) as Record<string, string>),
      HOME: run.cwd,
      GIT_CONFIG_NOSYSTEM: '1',
      GIT_CONFIG_GLOBAL: devNull,
      GIT_ATTR_NOSYSTEM: '1',
      GIT_TERMINAL_PROMPT: '0',
      GIT_OPTIONAL_LOCKS: '0',
      GIT_LFS_SKIP_SMUDGE: '1',
      GIT_NO_LAZY_FETCH: '1',
      LC_ALL: 'C',
    },
  });
}

/** Throws unless git ended well. `doing` begins the message: "https://… could not be cloned". */
export function requireGit(result: ProgramResult, doing: string, limits: { readonly timeout: number }): Buffer {
  if (result.code === 0 && result.problem === null) return result.bytes;
  throw new GatewayError('usage', `${doing}: ${reasonOf(result, limits)}`);
}

function reasonOf({ problem, log }: ProgramResult, { timeout }: { readonly timeout: number }): string {
  if (problem?.includes('ENOENT')) return 'git is not installed. Install it where the manager runs.';
  if (problem === 'stopped') return 'it was cancelled.';
  if (problem === 'timeout') return `it took longer than ${Math.round(timeout / 1_000)} s. Raise repositories.timeout.`;
  if (problem === 'too much') return 'it has too many files.';
  if (problem !== null) return `${problem}.`;
  const said = log.trim();
  const lines = said.split(/[\r\n]+/).filter((line) => /^(?:fatal|error|remote):/.test(line));
  const reason = (lines.at(-1) ?? said.split('\n').at(-1) ?? 'git failed').replace(/^\w+:\s*/, '').slice(0, 300);
  if (/error: 30[1278]/.test(reason)) return 'the address answers with a redirect. Use the address that it leads to.';
  if (/could not read Username|Authentication failed/.test(reason))
    return 'it needs a login, or it does not exist. Only public repositories can be cloned.';
  return /[.!?]$/.test(reason) ? reason : `${reason}.`;
}
