/** Checks what docs/secrets.md shows: a command on a terminal, and a program in Python. */
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect } from 'vitest';
import { onTerminal } from '../secrets/terminal.ts';
import { noPython } from '../support/python.ts';
import { type Check, toPattern } from './page.ts';

const python = fileURLToPath(new URL('../tools/python/v1/bin/python', import.meta.url));

/** What is typed is not shown: every line that ends with a colon is a question, answered the same each time. */
const terminal: Check = async (text, { env, shell }) => {
  if (noPython !== undefined) return;
  const [first = '', ...expected] = text.trim().split('\n');
  const questions = expected.filter((line) => line.endsWith(':'));
  const cwd = (await shell('pwd')).output.trim();
  const steps = questions.map((question) => [question, 'typed by nobody\r'] as const);
  const { screen } = await onTerminal(first.replace('$ toolgate ', '').split(' '), steps, { cwd, env });
  expect(screen.replaceAll('\r', '').replace(/: $/gm, ':')).toMatch(toPattern(expected.join('\n')));
};

const py: Check = async (text, { shell }) => {
  if (!existsSync(python)) return;
  const cwd = (await shell('pwd')).output.trim();
  const { stdout } = await promisify(execFile)(python, ['-c', text], { cwd });
  expect(stdout).toBe("['MEMORY_TOKEN']\n");
};

export const secretChecks: Record<string, Check> = { terminal, py };
