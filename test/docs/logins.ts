/** Checks what docs/login.md shows: a login, with a real authorization server and a browser that agrees to everything. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'vitest';
import { startProvider } from '../support/authorization-server.ts';
import { type Check, toPattern } from '../support/docs-page.ts';
import { startGuarded } from '../support/guarded-server.ts';

const browser = fileURLToPath(new URL('../logins/browser.mjs', import.meta.url));

/** The address of the example stands for that of a server on this machine, from here to the end of the page. */
const login: Check = async (text, { shell }) => {
  const [command = '', ...expected] = text.trim().split('\n');
  const { issuer } = await startProvider();
  const { url } = await startGuarded(issuer);
  const cwd = (await shell('pwd')).output.trim();
  const file = join(cwd, 'tools.toml');
  writeFileSync(file, readFileSync(file, 'utf8').replace(/url = ".*"/, `url = ${JSON.stringify(url)}`));
  const program = join(cwd, 'browser.sh');
  const line = `exec ${process.execPath} ${browser} ada@example.com "$@"`;
  writeFileSync(program, `#!/bin/sh\n${line}\n`, { mode: 0o755 });
  const { output, code } = await shell(`BROWSER=${program} ${command.replace('$ ', '')} 2>&1`);
  expect(code, output).toBe(0);
  expect(output).toMatch(toPattern(expected.join('\n')));
};

export const loginChecks: Record<string, Check> = { login };
