/** npm as an installer: no scripts, nothing for development, and its own words where it fails. */
import { EnvironmentError } from './environment.ts';
import { type Ended, runProgram } from './run-program.ts';

export interface NpmOptions {
  readonly cwd: string;
  readonly env: NodeJS.ProcessEnv;
  readonly timeout: number;
  readonly signal: AbortSignal | null;
}

const FLAGS = ['--omit=dev', '--ignore-scripts', '--no-audit', '--no-fund', '--no-update-notifier', '--loglevel=error'];

/** What npm goes by. An npm around us sets more for its script, and some of that would put packages elsewhere. */
const PASSED_ON =
  /^(?:PATH|HOME|LANG|LC_ALL|TMPDIR|XDG_(?:CACHE|CONFIG)_HOME|(?:https?|all|no)_proxy|SSL_CERT_(?:FILE|DIR)|NODE_EXTRA_CA_CERTS|NODE_AUTH_TOKEN|NPM_TOKEN|npm_config_(?!(?:local_)?prefix$|global$|location$|dry_run$|workspaces?$)\w+)$/i;

/** Throws an EnvironmentError that says why where it fails. */
export async function runNpm(command: 'install' | 'ci', { cwd, env, timeout, signal }: NpmOptions): Promise<void> {
  const ended = await runProgram({
    command: 'npm',
    args: [command, ...FLAGS],
    cwd,
    env: Object.fromEntries(
      Object.entries(env).filter(
        (entry): entry is [string, string] => entry[1] !== undefined && PASSED_ON.test(entry[0]),
      ),
    ),
    timeout,
    signal,
  });
  if (ended.code !== 0 || ended.problem !== null) throw new EnvironmentError(reasonOf(ended, timeout), ended.log);
}

function reasonOf({ problem, log }: Ended, timeout: number): string {
  if (problem === 'timeout') return `npm did not finish within ${timeout / 1000} s. Is the registry within reach?`;
  if (problem === 'stopped') return 'The installation was stopped.';
  if (problem?.includes('ENOENT'))
    return 'npm was not found. Install it with Node, or take the dependencies out of package.json.';
  if (problem !== null) return `npm could not be started: ${problem}`;
  // The lines in which npm says what is wrong, without those about its log.
  const lines = [...log.matchAll(/^npm (?:error|ERR!) (?:code \S+ ?)?(.+)$/gm)].map((match) => match[1]!.trim());
  const told = lines.filter((line) => line !== '' && !/complete log of this run|eresolve-report/.test(line));
  return `npm could not install the packages: ${told.slice(0, 3).join(' ') || 'it gave no reason.'}`;
}
