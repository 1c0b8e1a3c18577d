/** Help, and the errors for an invalid command line. */
import { describe, expect, it } from 'vitest';
import { commands, parseCommandLine } from '../../src/cli/commands.ts';
import { commandHelp, helpText } from '../../src/cli/help.ts';
import type { Command } from '../../src/cli/options.ts';
import { VERSION } from '../../src/index.ts';
import { runCli } from '../support/cli.ts';

/** Without line breaks and alignment. */
const unwrapped = (text: string) => text.replace(/\s+/g, ' ');
const names = Object.keys(commands) as (keyof typeof commands)[];

describe('toolgate help', () => {
  it.each([['--help'], ['-h'], ['help']])(
    '%s lists every command and the locations of the configuration',
    async (flag) => {
      const { code, stdout, stderr } = await runCli([flag]);
      expect([code, stderr]).toEqual([0, '']);
      for (const [name, { summary }] of Object.entries(commands))
        expect(unwrapped(stdout)).toContain(` ${name} ${summary} `);
      expect(unwrapped(stdout)).toContain(
        'tools.toml, toolgate.toml, toolgate.yaml, toolgate.yml, toolgate.json, .mcp.json',
      );
    },
  );

  it.each(names)('toolgate %s --help shows its usage and every option', async (name) => {
    for (const flag of ['--help', '-h']) {
      const { code, stdout, stderr } = await runCli([name, flag], flag === '--help' ? { process: true } : {});
      expect([code, stderr]).toEqual([0, '']);
      expect(unwrapped(stdout)).toContain(commands[name].usage);
      for (const option of [...commands[name].options, 'help'])
        expect(stdout).toMatch(new RegExp(`^  --${option}\\b`, 'm'));
    }
  });

  it.each(['toolgate', ...names])('%s --help fits into 80 columns', (name) => {
    const text = name === 'toolgate' ? helpText() : commandHelp(name as keyof typeof commands);
    expect(text.split('\n').filter((line) => line.length > 80 || line !== line.trimEnd())).toEqual([]);
  });

  it('shows examples that are valid command lines', () => {
    const examples = Object.entries<Command>(commands).flatMap(([name, command]) =>
      (command.examples ?? []).map((example) => [name, example] as const),
    );
    expect(examples.length).toBeGreaterThan(12);
    for (const [name, example] of examples) {
      // What comes before is set in the environment, or is the command of a client.
      const [, ...args] = example.slice(example.search(/toolgate(?! --)/)).match(/'[^']*'|"[^"]*"|\S+/g) ?? [];
      expect(parseCommandLine(args).command, example).toBe(name);
    }
  });

  it('toolgate --version shows the version', async () => {
    expect(await runCli(['--version'])).toEqual({ code: 0, stdout: `${VERSION}\n`, stderr: '' });
    expect((await runCli(['list', '--version'])).stdout).toBe(`${VERSION}\n`);
  });
});

describe('an invalid command line', () => {
  it.each([
    [['lst'], 'There is no command "lst". Did you mean "list"? See toolgate --help.'],
    [['docter'], 'Did you mean "doctor"?'],
    [['sevre'], 'Did you mean "serve"?'],
    [['zebra'], 'There is no command "zebra". See toolgate --help.'],
    [['xyzzy'], 'There is no command "xyzzy". See toolgate --help.'],
    [['toString'], 'There is no command "toString".'],
    [['constructor', '--help'], 'There is no command "constructor".'],
    [['list', '--jsn'], 'toolgate list has no option --jsn. Did you mean "json"? See toolgate list --help.'],
    [['--confg', 'x'], 'toolgate stdio has no option --confg. Did you mean "config"?'],
    [['schema', '--config', 'x'], 'toolgate schema has no option --config.'],
    [['list', '--config'], "'--config <value>' argument missing"],
    [['list', '--json=yes'], "'--json' does not take an argument"],
    [
      ['list', '--log-level', 'loud'],
      'The log level (--log-level or LOG_LEVEL) is one of debug, info, warn, error, silent, not "loud".',
    ],
    [['serve', '--port', 'x'], '--port is a number from 0 to 65535, not "x".'],
    [['serve', '--port', '65536'], '--port is a number from 0 to 65535, not "65536".'],
  ])('%j gets an error with the correct usage', async (args, message) => {
    const { code, stdout, stderr } = await runCli(args, { config: '' });
    expect([code, stdout]).toEqual([2, '']);
    expect(stderr).toContain(message);
    expect(stderr).toMatch(/^toolgate: /);
    expect(stderr).not.toContain('    at ');
  });
});
