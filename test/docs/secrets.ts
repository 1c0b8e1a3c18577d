/** Checks what docs/secrets.md shows: a command in a terminal, and a Python program. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect } from 'vitest';
import { type Check, toPattern } from '../support/docs-page.ts';
import { pythonProgram } from '../support/needs.ts';
import { onTerminal } from '../support/terminal.ts';

/** Every line that ends with a colon is a prompt. Each gets the same answer, which is not echoed. */
const terminal: Check = async (text, { env, shell }) => {
  const [first = '', ...expected] = text.trim().split('\n');
  const questions = expected.filter((line) => line.endsWith(':'));
  const cwd = (await shell('pwd')).output.trim();
  const steps = questions.map((question) => [question.replace('✔ ', ''), 'typed by nobody\r'] as const);
  const { shown } = await onTerminal(first.replace('$ toolgate ', '').split(' '), steps, { cwd, env });
  expect(shown).toMatch(toPattern(expected.join('\n')));
};

const py: Check = async (text, { shell }) => {
  const cwd = (await shell('pwd')).output.trim();
  const { stdout } = await promisify(execFile)(pythonProgram('v1'), ['-c', text], { cwd });
  expect(stdout).toBe("['MEMORY_TOKEN']\n");
};

export const secretChecks: Record<string, Check> = { terminal, py };
