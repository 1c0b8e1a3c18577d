/**
 * Runs git on repositories of strangers. Nothing of a repository is ever checked out or run: it is cloned bare, and its
 * files are read from the object store. So there are no hooks, links, filters or submodules.
 */
import { devNull } from 'node:os';
import { GatewayError, messageOf } from '../../base/errors.ts';
import { startProcess } from '../../base/start-process.ts';

export interface GitRun {
  /** After the options that close holes. */
  readonly args: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly input?: string;
  /** Milliseconds. */
  readonly timeout: number;
  /** Bytes of output after which git is stopped. */
  readonly maxOutput: number;
  readonly signal: AbortSignal | null;
  /** Gets what git prints on stderr, in pieces. */
  printed?(text: string): void;
}

export interface GitResult {
  /** Null if it was stopped. */
  readonly code: number | null;
  readonly stdout: Buffer;
  /** The end of what it said. */
  readonly said: string;
  readonly problem: 'timeout' | 'stopped' | 'output' | string | null;
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

const KEPT = 8 * 1024;

/** Network settings of this machine. Everything else of the environment stays out. */
const INHERITED = /^(?:PATH|LANG|https?_proxy|all_proxy|no_proxy|SSL_CERT_FILE|SSL_CERT_DIR|GIT_SSL_CAINFO)$/i;

export function runGit({ args, cwd, env, input, timeout, maxOutput, signal, printed }: GitRun): Promise<GitResult> {
  const closed = CLOSED.flatMap((setting) => ['-c', setting]);
  const own = Object.entries(env).filter(([name, value]) => INHERITED.test(name) && value !== undefined);
  return new Promise((resolve) => {
    const chunks: Buffer[] = [];
    let size = 0;
    let said = '';
    let problem: string | null = signal?.aborted ? 'stopped' : null;
    const done = (code: number | null) => resolve({ code, stdout: Buffer.concat(chunks), said: said.trim(), problem });
    if (problem !== null) return done(null);
    let child: ReturnType<typeof startProcess>;
    try {
      child = startProcess('git', [...closed, ...args], {
        cwd,
        // git starts helpers such as git-remote-https. In one group, they can all be ended.
        detached: true,
        env: {
          ...(Object.fromEntries(own) as Record<string, string>),
          HOME: cwd,
          GIT_CONFIG_NOSYSTEM: '1',
          GIT_CONFIG_GLOBAL: devNull,
          GIT_ATTR_NOSYSTEM: '1',
          GIT_TERMINAL_PROMPT: '0',
          GIT_OPTIONAL_LOCKS: '0',
          GIT_LFS_SKIP_SMUDGE: '1',
          GIT_NO_LAZY_FETCH: '1',
          LC_ALL: 'C',
        },
        stdio: ['pipe', 'pipe', 'pipe'],
      });
    } catch (error) {
      problem = messageOf(error);
      return done(null);
    }
    const kill = () => {
      try {
        if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL');
      } catch {
        // It has ended.
      }
    };
    const stop = (why: string) => {
      problem ??= why;
      kill();
    };
    const aborted = () => stop('stopped');
    const timer = setTimeout(stop, timeout, 'timeout');
    signal?.addEventListener('abort', aborted, { once: true });
    process.once('exit', kill);
    child.stdout?.on('data', (chunk: Buffer) => {
      size += chunk.length;
      if (size > maxOutput) stop('output');
      else chunks.push(chunk);
    });
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      said = (said + text).slice(-KEPT);
      printed?.(text);
    });
    child.once('error', (error: NodeJS.ErrnoException) => {
      problem ??= error.code === 'ENOENT' ? 'missing' : messageOf(error);
    });
    child.once('close', (code) => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', aborted);
      process.off('exit', kill);
      done(problem === null ? code : null);
    });
    child.once('exit', kill);
    child.stdin?.end(input ?? '');
  });
}

/** Throws unless git ended well. `doing` begins the message: "https://… could not be cloned". */
export function requireGit(result: GitResult, doing: string, limits: { readonly timeout: number }): Buffer {
  if (result.code === 0) return result.stdout;
  throw new GatewayError('usage', `${doing}: ${reasonOf(result, limits)}`);
}

function reasonOf({ problem, said }: GitResult, { timeout }: { readonly timeout: number }): string {
  if (problem === 'missing') return 'git is not installed. Install it where the manager runs.';
  if (problem === 'stopped') return 'it was cancelled.';
  if (problem === 'timeout') return `it took longer than ${Math.round(timeout / 1_000)} s. Raise repositories.timeout.`;
  if (problem === 'output') return 'it has too many files.';
  if (problem !== null) return `${problem}.`;
  const lines = said.split(/[\r\n]+/).filter((line) => /^(?:fatal|error|remote):/.test(line));
  const reason = (lines.at(-1) ?? said.split('\n').at(-1) ?? 'git failed').replace(/^\w+:\s*/, '').slice(0, 300);
  if (/error: 30[1278]/.test(reason)) return 'the address answers with a redirect. Use the address that it leads to.';
  if (/could not read Username|Authentication failed/.test(reason))
    return 'it needs a login, or it does not exist. Only public repositories can be cloned.';
  return /[.!?]$/.test(reason) ? reason : `${reason}.`;
}
