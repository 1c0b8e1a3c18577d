/** The command line on a terminal, driven by Python. */
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect } from 'vitest';
import { childEnv } from '../support/child.ts';
import { bin } from '../support/gateway.ts';

const driver = fileURLToPath(new URL('terminal.py', import.meta.url));

type Step = readonly [waitFor: string, type: string | { readonly kill: NodeJS.Signals }];

export async function onTerminal(
  args: readonly string[],
  steps: readonly Step[],
  { cwd, env }: { cwd: string; env: Record<string, string> },
): Promise<{ screen: string; code: number }> {
  const all = [driver, JSON.stringify(steps), process.execPath, bin, ...args];
  const { stdout } = await promisify(execFile)('python3', all, { cwd, env: childEnv({ HOME: cwd, ...env }) });
  const { screen, left, code } = JSON.parse(stdout) as { screen: string; left: Step[]; code: number };
  expect(left, screen).toEqual([]);
  return { screen, code };
}
