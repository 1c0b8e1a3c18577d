/** Checks what docs/secrets.md shows: a command in a terminal, and a Python program. */
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect } from 'vitest';
import { onTerminal } from '../secrets/terminal.ts';
import { noPython } from '../support/python.ts';
import { type Check, toPattern } from './page.ts';

const python = fileURLToPath(new URL('../tools/python/v1/bin/python', import.meta.url));

/** Every line that ends with a colon is a prompt. Each gets the same answer, which is not echoed. */
const terminal: Check = async (text, { env, shell }) => {
  if (noPython !== undefined) return;
  const [first = '', ...expected] = text.trim().split('\n');
  const questions = expected.filter((line) => line.endsWith(':'));
  const cwd = (await shell('pwd')).output.trim();
  const steps = questions.map((question) => [question.replace('✔ ', ''), 'typed by nobody\r'] as const);
  const { shown } = await onTerminal(first.replace('$ toolgate ', '').split(' '), steps, { cwd, env });
  expect(shown).toMatch(toPattern(expected.join('\n')));
};

const py: Check = async (text, { shell }) => {
  if (!existsSync(python)) return;
  const cwd = (await shell('pwd')).output.trim();
  const { stdout } = await promisify(execFile)(python, ['-c', text], { cwd });
  expect(stdout).toBe("['MEMORY_TOKEN']\n");
};

export const secretChecks: Record<string, Check> = { terminal, py };
