/** The command line as a user runs it: arguments, an environment and a folder. */
import { type Child, childEnv, within } from './child.ts';
import { startToolgate } from './program.ts';
import { type Files, tempFolder, writeFiles } from './temp.ts';

export interface RunOptions {
  /** The text of tools.toml. */
  readonly config?: string;
  readonly files?: Files;
  readonly cwd?: string;
  readonly env?: Record<string, string>;
  /** What it reads from standard input. */
  readonly input?: string | Uint8Array;
  /** True for a process of its own, false for that of the test. */
  readonly process?: boolean;
  /** Keeps the line that says that no gateway runs, which most commands of tests would have. */
  readonly keepsNote?: boolean;
}

export interface Run {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** A command that runs until it is stopped. */
export function startCli(args: readonly string[], options: RunOptions = {}): Child {
  const cwd = options.cwd ?? tempFolder();
  writeFiles(cwd, { ...(options.config !== undefined && { 'tools.toml': options.config }), ...options.files });
  const env = childEnv({ HOME: tempFolder(), ...options.env });
  return startToolgate(args, { cwd, env, process: options.process });
}

/** A command that exits by itself. */
export async function runCli(args: readonly string[], options: RunOptions = {}): Promise<Run> {
  const child = startCli(args, options);
  child.stdin.end(options.input);
  const exit = await within(60_000, child.exited);
  if (exit === undefined) throw new Error(`toolgate ${args.join(' ')} did not end\n${child.stdout()}${child.stderr()}`);
  const stderr = options.keepsNote === true ? child.stderr() : child.stderr().replace(NONE_RUNS, '');
  return { code: exit.code, stdout: child.stdout(), stderr };
}

/** What a command says that starts servers because no gateway runs. */
export const NONE_RUNS = /^No gateway runs with .*: the servers are started for this command\.\n/gm;

/** Characters that a terminal would execute instead of showing: everything except text, tabs and line feeds. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: exactly these are meant
export const CONTROL = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/;
