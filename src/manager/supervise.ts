/** Keeps a manager process running. It ends with this process, also if this one is killed. */
import { backoffDelay } from '../base/backoff.ts';
import { messageOf } from '../base/errors.ts';
import { startProcess } from '../base/start-process.ts';

export interface SupervisedManager {
  readonly command: readonly [string, ...string[]];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** What it writes to its log. */
  printed(text: string): void;
  /** It listens there. */
  listens(url: string): void;
  /** It ended by itself, and is started again. */
  ended(message: string): void;
}

/** Tells a manager that it ends with its input. */
export const SUPERVISED = 'TOOLGATE_SUPERVISED';
/** After this many milliseconds, an end is not counted with those before it. */
const HEALTHY = 60_000;
const STOP = 5_000;

export function superviseManager(options: SupervisedManager): { close(): Promise<void> } {
  const { command, cwd, env } = options;
  let isClosed = false;
  let failures = 0;
  let timer: NodeJS.Timeout | undefined;
  let stop: () => Promise<void> = async () => {};

  function start(): void {
    const startedAt = Date.now();
    const [file, ...args] = command;
    let output = '';
    try {
      const child = startProcess(file, args, {
        cwd,
        env: { ...env, [SUPERVISED]: '1' },
        stdio: ['pipe', 'pipe', 'pipe'],
      });
      child.stdout!.setEncoding('utf8').on('data', (text: string) => {
        // The line may come in pieces. The rest of its output, such as copies of the audit, is passed on.
        output = (output + text).slice(-4_096);
        // biome-ignore lint/suspicious/noControlCharactersInRegex: a terminal marks the address with them
        const url = /listening on (?:\u001b\[\d+m)?(http\S+?)(?:\u001b\[\d+m)?\n/.exec(output)?.[1];
        if (url === undefined) return;
        output = '';
        options.listens(url);
      });
      let last = '';
      child.stderr!.setEncoding('utf8').on('data', (text: string) => {
        last = (last + text).slice(-2_000);
        options.printed(text);
      });
      const exited = new Promise<string>((resolve) => {
        child.once('error', (error) => resolve(messageOf(error)));
        child.once('exit', (code, signal) => resolve(signal === null ? `exit code ${code}` : `signal ${signal}`));
      });
      stop = async () => {
        child.stdin!.end();
        child.kill('SIGTERM');
        const kill = setTimeout(() => child.kill('SIGKILL'), STOP);
        await exited;
        clearTimeout(kill);
      };
      void exited.then((how) => again(how, startedAt));
    } catch (error) {
      again(messageOf(error), startedAt);
    }
  }

  function again(how: string, startedAt: number): void {
    stop = async () => {};
    if (isClosed) return;
    failures = Date.now() - startedAt > HEALTHY ? 1 : failures + 1;
    const delay = backoffDelay(failures);
    options.ended(`It ended (${how}) and is started again in ${Math.round(delay / 100) / 10} s.`);
    timer = setTimeout(start, delay);
    timer.unref();
  }

  start();
  return {
    async close() {
      isClosed = true;
      clearTimeout(timer);
      await stop();
    },
  };
}
