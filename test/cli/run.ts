/** The command line as a user runs it: a process with arguments, an environment and a folder. */
import { fileURLToPath } from 'node:url';
import { type Child, childEnv, startChild, within } from '../support/child.ts';
import { type Files, tempFolder, writeFiles } from '../support/temp.ts';

const bin = fileURLToPath(new URL('../../bin/toolgate.mjs', import.meta.url));

export interface RunOptions {
  /** The text of tools.toml. */
  readonly config?: string;
  readonly files?: Files;
  readonly cwd?: string;
  readonly env?: Record<string, string>;
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
  return startChild(process.execPath, [bin, ...args], { cwd, env });
}

/** A command that exits by itself. */
export async function runCli(args: readonly string[], options: RunOptions = {}): Promise<Run> {
  const child = startCli(args, options);
  child.process.stdin.end();
  const exit = await within(20_000, child.exited);
  if (exit === undefined) throw new Error(`toolgate ${args.join(' ')} did not end\n${child.stdout()}${child.stderr()}`);
  return { code: exit.code, stdout: child.stdout(), stderr: child.stderr() };
}

/** Characters that a terminal would execute instead of showing: everything except text, tabs and line feeds. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: exactly these are meant
export const CONTROL = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/;
