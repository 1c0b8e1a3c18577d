/**
 * `toolgate` as tests start it. By default it runs in the process of the test, from src/, with streams, an environment and a
 * folder of its own: tests of gateways take a third of the time. A process of its own, from dist/, runs where the process itself is the
 * subject (its pid, signals, exit, memory, crash, bundle), and everywhere with PROCESSES=1.
 */
import { EventEmitter } from 'node:events';
import { PassThrough } from 'node:stream';
import { setImmediate as turn } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { CommandIo } from '../../src/cli/command-io.ts';
import { type Child, type Ending, type Exit, startChild, textOf, within } from './child.ts';
import { atEnd } from './cleanup.ts';
import { spawn, spawnHere } from './in-process-server.ts';
import { listWait } from './list-wait.ts';
import { toolgateIsProcess } from './switch.ts';

/** The command line program. */
export const bin = fileURLToPath(new URL('../../bin/toolgate.mjs', import.meta.url));

export interface ToolgateOptions {
  readonly cwd: string;
  readonly env: Record<string, string>;
  readonly ending?: Ending;
  /**
   * True for a process of its own, false for that of the test. Default: as the switch says. `'with servers'`: it and its
   * fixture servers in the process of the test, whatever the switch says.
   */
  readonly process?: boolean | 'with servers' | undefined;
  /** Instead of bin/toolgate.mjs, in a process of its own. */
  readonly bin?: string;
}

/** Starts a command. It is stopped at the end of the test. */
export function startToolgate(args: readonly string[], options: ToolgateOptions): Child {
  const { bin: program, process: where = program !== undefined || toolgateIsProcess() } = options;
  if (where !== true) return startInProcess(args, options);
  return startChild(process.execPath, [program ?? bin, ...args], options);
}

function startInProcess(args: readonly string[], options: ToolgateOptions): Child {
  const { cwd, env, ending = 'SIGTERM' } = options;
  const name = `toolgate ${args.join(' ')}`;
  const events = new EventEmitter();
  const stdin = new PassThrough();
  const stdout = new PassThrough();
  const stderr = new PassThrough();
  const written = { stdout: [] as Buffer[], stderr: [] as Buffer[] };
  stdout.on('data', (chunk: Buffer) => written.stdout.push(chunk));
  stderr.on('data', (chunk: Buffer) => written.stderr.push(chunk));
  // Tests write to ended programs on purpose.
  stdin.on('error', () => {});
  let exit = (_code: number) => {};
  const exitCalled = new Promise<number>((resolve) => {
    exit = resolve;
  });
  const program: CommandIo = Object.assign(events, {
    env,
    cwd: () => cwd,
    stdin,
    stdout,
    stderr,
    spawn: options.process === 'with servers' ? spawnHere : spawn,
    listWait: listWait(),
    exit(code: number) {
      events.emit('exit');
      exit(code);
    },
  });
  const exited = Promise.race([run(args, program), exitCalled]).then(async (code): Promise<Exit> => {
    // By then its streams have passed on what it wrote.
    await turn();
    await turn();
    return { code, signal: null };
  });
  exited.catch(() => {});
  let stopping: Promise<Exit> | undefined;
  const end = async (how: Ending): Promise<Exit> => {
    if (how === 'stdin') stdin.end();
    else {
      await Promise.race([exited, within(20_000, listened(events, how))]);
      if ((await within(0, exited)) === undefined) signal(how);
    }
    const result = await within(10_000, exited);
    if (result) return result;
    throw new Error(`${name} did not end within 10 s. Its stderr:\n${textOf(written.stderr)}`);
  };
  const signal = (how: NodeJS.Signals): void => {
    if (!events.emit(how, how))
      throw new Error(`${name} has no listener for ${how}, which would end its process. ${ADVICE}`);
  };
  const started: Child = {
    get process(): never {
      throw new Error(`${name} has no process of its own. ${ADVICE}`);
    },
    get pid(): never {
      throw new Error(`${name} has no process of its own. ${ADVICE}`);
    },
    stdin,
    output: stdout,
    stdout: () => textOf(written.stdout),
    stderr: () => textOf(written.stderr),
    exited,
    signal,
    stop: (how = ending) => {
      stopping ??= end(how);
      return stopping;
    },
  };
  atEnd(() => started.stop());
  return started;
}

const ADVICE = 'Call useProcesses() of test/support/switch.ts at the top of the test file.';

async function run(args: readonly string[], program: CommandIo): Promise<number> {
  const main = await import('../../src/cli/main.ts');
  return main.run(args, program);
}

/** Resolves when there is a listener for the event. */
function listened(events: EventEmitter, event: string): Promise<void> {
  if (events.listenerCount(event) > 0) return Promise.resolve();
  return new Promise((resolve) => {
    events.on('newListener', (name) => name === event && resolve());
  });
}
