/** Terminal output: colour only if it is wanted, and no control characters from a server. */
import { fileURLToPath } from 'node:url';
import { stripVTControlCharacters } from 'node:util';
import { describe, expect, it } from 'vitest';
import { CONTROL, runCli } from '../support/cli.ts';
import { server, serversToml } from '../support/server.ts';
import { tempFolder } from '../support/temp.ts';

const config = `active_toolsets = ["*"]\n${serversToml({ up: server('basic') })}`;
const ESCAPE = '\u001b[';

describe('colour', () => {
  it.each(['list', 'doctor'])('is off in a pipe: %s', async (command) => {
    expect((await runCli([command], { config })).stdout).not.toContain(ESCAPE);
  });

  it.each(['list', 'doctor'])('is on with FORCE_COLOR: %s', async (command) => {
    // In one folder, because `doctor` prints the path of the configuration.
    const cwd = tempFolder({ 'tools.toml': config });
    const { stdout } = await runCli([command], { cwd, env: { FORCE_COLOR: '1' } });
    expect(stdout).toContain(`${ESCAPE}32m`);
    // Without the colour codes it is the same text.
    expect(stripVTControlCharacters(stdout)).toBe((await runCli([command], { cwd })).stdout);
  });

  it('is off with NO_COLOR, which takes precedence over FORCE_COLOR', async () => {
    const env = { FORCE_COLOR: '1', NO_COLOR: '1' };
    expect((await runCli(['list'], { config, env })).stdout).not.toContain(ESCAPE);
  });

  it('is never used in JSON, or in errors written to a pipe', async () => {
    const { stdout } = await runCli(['list', '--json'], { config, env: { FORCE_COLOR: '1' } });
    expect(() => JSON.parse(stdout) as unknown).not.toThrow();
    expect((await runCli(['nonsense'])).stderr).not.toContain(ESCAPE);
    expect((await runCli(['nonsense'], { env: { FORCE_COLOR: '1' } })).stderr).toContain(`${ESCAPE}31m`);
  });
});

describe('the escape sequences of a server', () => {
  const script = fileURLToPath(new URL('escape-server.mjs', import.meta.url));
  const evil = serversToml({ evil: `${process.execPath} ${script}` });

  it.each([
    [['list'], 'evil_name\\u001b[31m'],
    [['list'], 'evil_two\\u000alines'],
    [['list'], 'evil_\\u202ereversed'],
    [['list', 'resources'], 'evil_evil://red \\u001b[31m'],
    [['list', 'prompts'], 'evil_promptred \\u001b[31m'],
    [['list', 'servers'], 'evil'],
    [['call', 'evil_say'], 'red ?[31m title ?]0;owned? csi ?2J back ??? over'],
    [['call', 'evil_say', '--json'], 'csi \\u009b2J'],
    [['call', 'evil_say', '--json'], 'and \\u202eback'],
    [['call', 'evil_fail'], 'red ?[31m title'],
    [['call', 'evil_reject'], 'red ?[31m title'],
    [['call', 'evil_nam'], 'Did you mean "evil_name?[31m"'],
    [['list', '--log-level', 'debug'], 'evil_say'],
  ])('are removed from what %j shows', async (args, shown) => {
    const { stdout, stderr } = await runCli(args, { config: evil });
    expect(stdout + stderr).toContain(shown);
    expect(stdout + stderr).not.toMatch(CONTROL);
    expect(stdout + stderr).not.toMatch(/[\u202a-\u202e\u2066-\u2069]/);
  });

  it('do not change the result: the JSON of a call is that of the server', async () => {
    const { stdout } = await runCli(['call', 'evil_say', '--json'], { config: evil });
    expect((JSON.parse(stdout) as { content: { text: string }[] }).content[0]!.text).toContain('and \u202eback');
  });

  it('nor does a name of 100 kB fill the list', async () => {
    const { stdout } = await runCli(['list'], {
      config: serversToml({ evil: `${process.execPath} ${script} --long` }),
    });
    expect(stdout).toMatch(/evil_long-x+ … \d+ characters left out … x+-end/);
    expect(stdout.length).toBeLessThan(10_000);
  });

  it('are kept, escaped, in output for programs', async () => {
    const { stdout } = await runCli(['list', '--json'], { config: evil });
    expect(stdout).not.toContain('\u001b');
    expect((JSON.parse(stdout) as { name: string }[]).map(({ name }) => name)).toContain('evil_name\u001b[31m');
  });
});
