/** `toolgate` without a command, started by a person on a terminal or by a client on a pipe. */
import { expect, it } from 'vitest';
import { runCli } from '../support/cli.ts';
import { initialize } from '../support/raw-http.ts';
import { tempFolder } from '../support/temp.ts';
import { onTerminal } from '../support/terminal.ts';

it('says on a terminal what it waits for and what else there is, and serves', async () => {
  const cwd = tempFolder({ 'tools.toml': '' });
  const steps = [
    ['Ctrl-C ends it.', `${initialize()}\n`],
    ['"serverInfo"', '\u0003'],
  ] as const;
  const { shown, code } = await onTerminal([], steps, { cwd, env: {} });
  expect(code).toBe(0);
  expect(shown).toContain('Toolgate speaks MCP on standard input and output. It waits for a client now.');
  expect(shown).toContain(`claude mcp add toolgate -- toolgate --config ${cwd}/tools.toml\n`);
  for (const command of ['serve', 'doctor', '--help']) expect(shown).toContain(`\n  toolgate ${command} `);
});

it('says nothing on a pipe', async () => {
  const { code, stdout, stderr } = await runCli([], { config: '', input: `${initialize()}\n` });
  expect([code, stderr]).toEqual([0, '']);
  expect(JSON.parse(stdout)).toHaveProperty('result.serverInfo');
});
