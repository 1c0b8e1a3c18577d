/** Runs the command line in a terminal, driven by Python. */
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify, stripVTControlCharacters } from 'node:util';
import { expect } from 'vitest';
import { childEnv } from './child.ts';
import { bin } from './gateway.ts';

const driver = fileURLToPath(new URL('terminal.py', import.meta.url));

type Step = readonly [waitFor: string, type: string | { readonly kill: NodeJS.Signals }];

interface TerminalRun {
  /** Every byte that was written to the terminal. */
  readonly screen: string;
  /** The final text on the screen, without escape sequences and overwritten lines. */
  readonly shown: string;
  readonly code: number;
  /** Whether the terminal again echoes, reads by line and shows its cursor, as before. */
  readonly isSane: boolean;
}

export async function onTerminal(
  args: readonly string[],
  steps: readonly Step[],
  { cwd, env }: { cwd: string; env: Record<string, string> },
): Promise<TerminalRun> {
  const all = [driver, JSON.stringify(steps), process.execPath, bin, ...args];
  const { stdout } = await promisify(execFile)('python3', all, { cwd, env: childEnv({ HOME: cwd, ...env }) });
  const run = JSON.parse(stdout) as { screen: string; left: Step[]; code: number; cooked: boolean };
  const { screen, left, code, cooked } = run;
  expect(left, screen).toEqual([]);
  const lines = screen.replaceAll('\r\n', '\n').split('\n');
  const shown = lines.map((line) => stripVTControlCharacters(line.split('\u001b[2K').at(-1)!).trimEnd()).join('\n');
  const isCursorShown = screen.lastIndexOf('\u001b[?25h') >= screen.lastIndexOf('\u001b[?25l');
  return { screen, shown, code, isSane: cooked && isCursorShown };
}
