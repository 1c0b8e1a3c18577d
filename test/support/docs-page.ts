/**
 * Runs a page as a reader would: every fenced block, from top to bottom, in one sandbox. The language of a block and
 * the words after it define how it is run:
 *
 *     sh                    run by a shell that keeps its folder and variables; must succeed
 *     sh checkout           the same, in the project's own folder
 *     sh background         started, and kept running until the next one or the end of the page
 *     console               lines with `$ ` are run, the lines below each are its output; `…` is a wildcard
 *     text output           the output of the previous block
 *     toml|yaml|json [FILE] written to the file, then checked: by loadConfig (which must refuse it in a folder
 *                           `broken`), or by connecting, if it is the file of a client
 *     js FILE               written to the file and run
 *     ts|python FILE        a tool file, written to its folder; the blocks that use it check what it does
 *     text layout           a tree of files, for illustration only
 *
 * Page-specific words have a check function in the test. A block of any other kind fails, so nothing is left unchecked.
 */
import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'vitest';
import { loadPolicyTests } from '../../src/config/policy-tests.ts';
import { loadConfig, loadTask } from '../../src/index.ts';
import { readMetadata } from '../../src/workers/metadata.ts';
import { type Child, childEnv, startChild } from './child.ts';
import { NONE_RUNS } from './cli.ts';
import { entryOf, entryOfClaude, toolsOf } from './client-entries.ts';
import { commandFolder, shim } from './commands.ts';
import { installer } from './installer.ts';
import { type Block, readBlocks } from './markdown.ts';
import { freePort } from './ports.ts';
import { waitFor } from './processes.ts';
import { dataDir } from './python.ts';
import { tempFolder, writeFiles } from './temp.ts';

export const root = fileURLToPath(new URL('../..', import.meta.url)).replace(/\/$/, '');

export interface Sandbox {
  readonly home: string;
  readonly env: Record<string, string>;
  /** The text of a page with its example paths and port replaced by real ones. */
  real(text: string): string;
  /** Runs a script and returns its output. */
  shell(script: string, cwd?: string): Promise<{ output: string; code: number }>;
}

/**
 * Checks a block with a page-specific word. `printed` is the output of the previous block; a returned string replaces
 * it.
 */
export type Check = (text: string, sandbox: Sandbox, printed: string) => unknown;

export interface PageOptions {
  /** Whether the home folder is empty, and has no command `toolgate` until the page installs it: for a newcomer's pages. */
  readonly isNewcomer?: boolean;
}

export async function runPage(
  page: string,
  checks: Record<string, Check> = {},
  { isNewcomer = false }: PageOptions = {},
): Promise<void> {
  const sandbox = await openSandbox(isNewcomer);
  const run = createRunner(sandbox, checks);
  const blocks = readBlocks(readFileSync(join(root, page), 'utf8'), page);
  expect(blocks, `${page} has blocks`).not.toEqual([]);
  for (const block of blocks) {
    try {
      await run(block);
    } catch (error) {
      throw new Error(`${block.place}: ${(error as Error).message}`, { cause: error });
    }
  }
}

function createRunner(sandbox: Sandbox, checks: Record<string, Check>): (block: Block) => Promise<void> {
  let printed = '';
  let background: Child | undefined;
  let token = '';

  async function runShell(text: string, tags: readonly string[]): Promise<void> {
    const cwd = tags.includes('checkout') ? root : undefined;
    if (tags.includes('background')) {
      await background?.stop();
      token = /BEARER_TOKEN=(\S+)/.exec(text)?.[1] ?? '';
      background = await startBackground(sandbox, text, cwd);
      // Without the lines that npm prints first.
      printed = background.stdout().replace(/^\n(?:> .*\n)+\n/, '');
      return;
    }
    const { output, code } = await sandbox.shell(text, cwd);
    expect(code, output).toBe(0);
    printed = output;
    const added = takeClaudeArguments(sandbox);
    if (added === undefined) return;
    if (added.includes('http')) expect(background?.stdout(), 'what serve prints').toContain(`  ${text.trim()}\n`);
    await connect(entryOfClaude(added));
  }

  async function connect(entry: NonNullable<ReturnType<typeof entryOf>>): Promise<void> {
    expect((await toolsOf(entry, sandbox.env, token)).length).toBeGreaterThan(0);
  }

  async function checkFile(text: string, [name]: readonly string[], language: string): Promise<void> {
    const { output } = await sandbox.shell('pwd');
    const file = join(output.trim(), name ?? `fragment-${language}/toolgate.${language}`);
    writeFiles(dirname(file), { [basename(file)]: text });
    if (language === 'js') printed = (await sandbox.shell(`node ${name}`)).output;
    else if (name === undefined || /^(tools|toolgate|filter|\.?mcp)\.\w+$/.test(basename(file)))
      await checkConfig(file, text);
    else if (basename(file) === 'task.toml') await loadTask(file, dirname(file));
    else if (basename(file) === 'policy-tests.toml') await loadPolicyTests(file, dirname(file));
    else if (basename(file) === 'tooldock.yaml') expect((await readMetadata(text)).problems).toEqual([]);
    // What JSON Lines and tool files do is checked in the blocks that use them.
    else if (!file.endsWith('.jsonl') && !/\/tools\/[^/]+\/[^/]+\.(ts|py)$/.test(file))
      throw new Error(`nobody knows what ${name} is`);
  }

  async function checkConfig(file: string, text: string): Promise<void> {
    const entry = file.endsWith('mcp.json') ? entryOf(JSON.parse(text)) : undefined;
    if (entry !== undefined) return connect(entry);
    const env = { ...sandbox.env, ISSUES_TOKEN: 'secret' };
    const load = loadConfig({ cwd: dirname(file), env, path: file });
    // A page about errors shows invalid configurations.
    if (dirname(file).endsWith('/broken')) await expect(load).rejects.toThrow();
    // A page about dry runs has one.
    else expect((await load).notices.filter((notice) => !notice.includes('dry_run is on'))).toEqual([]);
  }

  async function runConsole(text: string): Promise<void> {
    for (const part of text.split(/^\$ /m).slice(1)) {
      const [command, ...expected] = part.split('\n');
      const { output } = await sandbox.shell(command!);
      expect(output).toMatch(toPattern(expected.join('\n')));
    }
  }

  return async (block) => {
    const { language, tags } = block;
    const text = sandbox.real(block.text);
    const own = checks[tags[0] ?? language];
    if (own !== undefined) {
      const said = await own(text, sandbox, printed);
      if (typeof said === 'string') printed = said;
    } else if (language === 'sh') await runShell(text, tags);
    else if (language === 'console') await runConsole(text);
    else if (language === 'text' && tags[0] === 'output') expect(printed).toMatch(toPattern(text));
    else if (language === 'text' && tags[0] === 'layout') expect(text).toContain('──');
    else if (['toml', 'yaml', 'json', 'js', 'ts', 'python'].includes(language)) await checkFile(text, tags, language);
    else throw new Error(`nobody knows how to check a block "${[language, ...tags].join(' ')}"`);
  };
}

/** Matches the whole text, with `…` as a wildcard. */
export function toPattern(text: string): RegExp {
  const parts = text
    .trim()
    .split('…')
    .map((part) => part.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&'));
  return new RegExp(`^\\s*${parts.join('[^]*?')}\\s*$`);
}

async function startBackground(sandbox: Sandbox, text: string, cwd?: string): Promise<Child> {
  const folder = cwd ?? (await sandbox.shell('pwd')).output.trim();
  // `exec`, so that a signal reaches the program itself; `env`, because `exec` alone does not accept assignments.
  const child = startChild('/bin/sh', ['-c', `exec env ${text.trim()}`], { cwd: folder, env: sandbox.env });
  await waitFor(() => {
    if (child.process.exitCode !== null) throw new Error(`it ended:\n${child.stdout()}${child.stderr()}`);
    return child.stdout().includes('Serving:') && child.stdout().endsWith('\n');
  }, 60_000);
  return child;
}

/** A home folder, a PATH with the commands that pages use, and a free port. */
async function openSandbox(isNewcomer: boolean): Promise<Sandbox> {
  const home = tempFolder(isNewcomer ? {} : { 'package.json': '{ "private": true }' });
  // The folder that the servers of the pages serve.
  if (!isNewcomer) mkdirSync(join(home, 'notes'));
  const shims = commandFolder();
  const state = join(shims, 'state');
  shim(shims, 'claude', `printf '%s\\n' "$@" > "${join(home, '.claude-arguments')}"`);
  if (isNewcomer) {
    rmSync(join(shims, 'toolgate'));
    // The checkout that is tested stays as it is.
    shim(shims, 'git', `[ "$1" = pull ] || { echo "git: only pull is used here" >&2; exit 1; }`);
  } else {
    // Reuses the existing environment of Python tools, which needs the settings it was created with.
    mkdirSync(join(home, '.toolgate'));
    symlinkSync(join(dataDir, 'venvs'), join(home, '.toolgate', 'venvs'));
  }
  const port = await freePort();
  const managerPort = await freePort();
  const env = childEnv({
    ...installer,
    HOME: home,
    CORE_PORT: String(port),
    MANAGER_PORT: String(managerPort),
    npm_config_prefix: join(home, '.npm-global'),
    npm_config_update_notifier: 'false',
    npm_config_offline: 'true',
    // Commands installed by npm install take precedence over the shims.
    PATH: [join(home, '.npm-global', 'bin'), shims, process.env.PATH].join(':'),
  });
  const real = (text: string) =>
    text
      .replaceAll('8808', String(port))
      .replaceAll('8809', String(managerPort))
      .replaceAll('/home/you', home)
      .replaceAll('/path/to/toolgate', root);
  const shell = (script: string, cwd?: string): Promise<{ output: string; code: number }> => {
    const [before, after] =
      cwd === undefined ? [`. "${state}"`, `{ export -p; echo "cd '$(pwd)'"; } > "${state}"`] : ['', ''];
    const lines = ['exec 2>&1', existsSync(state) ? before : '', script, 'code=$?', after, 'exit $code'];
    return new Promise((resolve) => {
      const args = ['-c', lines.join('\n')];
      const child = execFile('/bin/sh', args, { cwd: cwd ?? home, env, timeout: 60_000 }, (error, printed) => {
        // Pages do not repeat it below every command.
        const output = printed.replace(NONE_RUNS, '');
        resolve({ output, code: typeof error?.code === 'number' ? error.code : error === null ? 0 : 1 });
      });
      child.stdin?.end();
    });
  };
  return { home, env, real, shell };
}

/** The arguments of the last `claude` command, if one was run. */
function takeClaudeArguments({ home }: Sandbox): string[] | undefined {
  const file = join(home, '.claude-arguments');
  if (!existsSync(file)) return undefined;
  const words = readFileSync(file, 'utf8').trimEnd().split('\n');
  writeFileSync(file, '');
  return words[0] === '' ? undefined : words;
}
