/** Completion in real shells, pages of the documentation with `toolgate help`, and the manual page. */
import { execFileSync, spawnSync } from 'node:child_process';
import { chmodSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { commands } from '../../src/cli/commands.ts';
import { manPage } from '../../src/cli/man.ts';
import { runCli } from '../support/cli.ts';
import { root } from '../support/docs-page.ts';
import { isMissing } from '../support/needs.ts';
import { bin } from '../support/program.ts';
import { useProcesses } from '../support/switch.ts';
import { tempFolder, writeFiles } from '../support/temp.ts';
import { THREE, toolsetsToml } from '../support/toolsets.ts';
import { some } from '../support/wide.ts';

useProcesses();

/** Prints what a shell offers for the last of these words. */
const SHELLS = {
  bash: {
    program: 'bash',
    isMissing: () => false,
    script: (words: readonly string[]) =>
      `source ./script.bash; complete -p toolgate >/dev/null; COMP_WORDS=(toolgate ${quoted(words)}); COMP_CWORD=${words.length}; _toolgate; printf '%s\\n' "\${COMPREPLY[@]}"`,
    args: ['--norc', '-c'],
  },
  zsh: {
    program: 'zsh',
    isMissing: () => isMissing('zsh'),
    script: (words: readonly string[]) =>
      `autoload -Uz compinit; compinit -u -D; source ./script.zsh; [[ "$_comps[toolgate]" = _toolgate ]] || exit 9; compadd() { shift; print -rl -- "$@" }; _files() { }; words=(toolgate ${quoted(words)}); CURRENT=${words.length + 1}; _toolgate`,
    args: ['-f', '-c'],
  },
  fish: {
    program: 'fish',
    isMissing: () => isMissing('fish'),
    script: (words: readonly string[]) =>
      `source ./script.fish; complete -C ${quoted([['toolgate', ...words].join(' ')])}`,
    args: ['--no-config', '-c'],
  },
} as const;

function quoted(words: readonly string[]): string {
  return words.map((word) => `'${word}'`).join(' ');
}

/** One project for all shells, with their scripts in it. Its commands run in the process of the test. */
const cwd = tempFolder();
const home = tempFolder();
const path = tempFolder();

beforeAll(async () => {
  writeFileSync(join(path, 'toolgate'), `#!/bin/sh\nexec '${process.execPath}' '${bin}' "$@"\n`);
  chmodSync(join(path, 'toolgate'), 0o755);
  writeFiles(cwd, { 'tools.toml': toolsetsToml(THREE, '[toolsets.fixed]\ntools = ["git.status"]\n') });
  const run = (...args: string[]) => runCli(args, { cwd, env: { HOME: home }, process: false });
  // Afterwards it is known what the servers offer.
  await run('toolsets', 'create', 'dev', 'git.log');
  for (const shell of Object.keys(SHELLS))
    writeFiles(cwd, { [`script.${shell}`]: (await run('completion', shell)).stdout });
}, 60_000);

describe.each(Object.entries(SHELLS))('in %s', (_, { program, script, args, isMissing: isAway }) => {
  const offered = (...words: string[]) =>
    execFileSync(program, [...args, script(words)], {
      cwd,
      env: { HOME: home, PATH: `${path}:${process.env.PATH}`, TERM: 'dumb' },
      encoding: 'utf8',
      timeout: 60_000,
    })
      .split('\n')
      .filter((line) => line !== '');

  it.skipIf(isAway())(
    'completes commands, verbs, options and names',
    () => {
      const cases: readonly (readonly [string[], string[]])[] = [
        [[''], [...Object.keys(commands), 'help'].sort()],
        [
          ['toolsets', 'equip', ''],
          ['dev', 'fixed'],
        ],
        [
          ['call', 'git_'],
          ['git_commit', 'git_log', 'git_status'],
        ],
        [['doctor', '--f'], ['--fix']],
        [['do'], ['doctor']],
        [
          ['toolsets', 'e'],
          ['edit', 'equip'],
        ],
        [
          ['toolsets', 'create', 'more', 'docker.'],
          ['docker.images', 'docker.ps'],
        ],
        [['serve', '--log-level', 'd'], ['debug']],
        [['lock', 'diff', 'l'], ['linear']],
        [['help', 'trouble'], ['troubleshooting']],
        // The shell completes names of files. Only fish prints them here.
        [['policy', 'test', 'tool'], program === 'fish' ? ['tools.toml'] : []],
      ];
      for (const [words, expected] of some(cases, cases.slice(0, 2))) expect(offered(...words)).toEqual(expected);
    },
    120_000,
  );
});

describe('toolgate completion', () => {
  const words = async (files: Record<string, string>, ...line: string[]) =>
    (await runCli(['completion', 'words', '--', ...line], { files, process: false })).stdout.split('\n').slice(0, -1);

  it.each([
    [['toolsets', 'rename', ''], 'dev fixed'],
    [['toolsets', 'rename', 'dev', ''], ''],
    [['toolsets', 'create', ''], ''],
    [['toolsets', 'create', 'more', 'git.log', 'docker.'], 'docker.images docker.ps'],
    [['call', 'git_'], 'git_commit git_log git_status'],
    [['call', 'git_log', 'git_'], ''],
    [['lock', 'diff', 'git', 'l'], 'linear'],
    [['disable', 'l'], 'linear'],
    [['toolset', 'equip', 'd'], 'dev'],
    [['serve', '--log-level', 'd'], 'debug'],
    [['plan', '--format', ''], 'configmap json toml'],
    [['list', '--equip-toolset', 'd'], 'dev'],
    [['audit', '--server', 'l'], 'linear'],
    [['toolsets', 'edit', 'dev', '--add', 'git.l'], 'git.log'],
    [['doctor', '--f'], '--fix'],
    [['help', 'trouble'], 'troubleshooting'],
    [['policy', 'test', 'tool'], ''],
  ])('offers for %j: %s', async (line, expected) => {
    const { stdout } = await runCli(['completion', 'words', '--', ...line], {
      cwd,
      env: { HOME: home },
      process: false,
    });
    expect(stdout.split('\n').slice(0, -1).join(' ')).toBe(expected);
  });

  it('offers nothing, and says nothing, without a configuration and for unknown commands', async () => {
    expect(await words({}, 'call', '')).toEqual([]);
    expect(await words({}, 'nothing', '')).toEqual([]);
    expect(await words({ 'tools.toml': 'x = = 1' }, 'toolsets', 'equip', '')).toEqual([]);
  });

  it('does not offer names that a shell would run', async () => {
    const config = toolsetsToml({}, '[agents."ci"]\n').concat('[agent_policies."$(touch x)"]\n[agent_policies.good]\n');
    expect(await words({ 'tools.toml': config }, 'list', '--agent', '')).toEqual(['ci', 'good']);
  });

  it('offers an option once, unless it may be repeated', async () => {
    expect(await words({}, 'doctor', '--json', '--j')).toEqual([]);
    expect(await words({}, 'toolsets', 'edit', 'dev', '--add', 'git.log', '--ad')).toEqual(['--add']);
  });

  it('wants one of the shells', async () => {
    const { code, stderr } = await runCli(['completion', 'tcsh'], { process: false });
    expect([code, stderr]).toEqual([2, expect.stringContaining('bash, zsh or fish')]);
  });
});

describe('toolgate help', () => {
  const help = (...args: string[]) => runCli(['help', ...args], { process: false });

  it('prints pages of the documentation, and lists them', async () => {
    expect((await help('troubleshooting')).stdout).toBe(readFileSync(join(root, 'docs/troubleshooting.md'), 'utf8'));
    expect((await help('topics')).stdout).toMatch(/^ {2}pins +Pins: what you approved stays what you approved$/m);
  });

  it('prints the help of a command, and says if there is a page about it too', async () => {
    const { stdout } = await help('toolsets');
    expect(stdout).toMatch(/^toolgate toolsets \[list/);
    expect(stdout).toMatch(/\nThere is a page about it: toolgate help toolsets page\n$/);
    expect((await help('toolsets', 'page')).stdout).toMatch(/^# /);
    expect((await help('doctor')).stdout).not.toContain('There is a page');
  });

  it('suggests a topic for one that does not exist', async () => {
    const { code, stderr } = await help('polices');
    expect([code, stderr]).toEqual([2, expect.stringContaining('Did you mean "policies"')]);
  });
});

describe('the manual page', () => {
  const file = join(root, 'dist/toolgate.1');

  it('is that of the commands as they are', async () => {
    expect(readFileSync(file, 'utf8')).toBe(manPage());
    expect((await runCli(['help', 'man'], { process: false })).stdout).toBe(manPage());
  });

  it.skipIf(isMissing('mandoc'))('has no mistakes, and names every command', () => {
    const { stdout } = spawnSync('mandoc', ['-T', 'lint', '-W', 'warning', file], { encoding: 'utf8' });
    // A date would make two builds of one version differ.
    expect(stdout.split('\n').filter((line) => line !== '' && !line.includes('missing date'))).toEqual([]);
    const printed = execFileSync('mandoc', ['-T', 'utf8', '-O', 'width=200', file], { encoding: 'utf8' });
    // Bold characters are printed twice, with a step back between them.
    const shown = printed.replaceAll(new RegExp(`.${String.fromCharCode(8)}`, 'g'), '');
    for (const name of Object.keys(commands))
      expect(shown).toContain(`toolgate ${name === 'stdio' ? '[stdio]' : name}`);
  });
});
