/** `toolgate init` that is killed at any moment leaves something that `toolgate init --undo` takes back exactly. */
import { spawn } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { childEnv } from '../support/child.ts';
import { runCli } from '../support/cli.ts';
import { tempFolder } from '../support/temp.ts';
import { isSoak, isWide } from '../support/wide.ts';

const PROGRAM = fileURLToPath(new URL('../../bin/toolgate.mjs', import.meta.url));
const KILL_AT = new URL('../support/kill-at.mjs', import.meta.url).href;
const TOKEN = 's3cret-value-of-a-token';
const text = (name: string) =>
  `${JSON.stringify({ keep: [1, 2], mcpServers: { [name]: { command: name, env: { API_TOKEN: TOKEN } } } }, null, '\t')}\n`;

function machine() {
  const cwd = tempFolder({ '.mcp.json': text('team'), 'tools.toml': '# mine\ncontrols = []\n' });
  const home = tempFolder({
    '.cursor/mcp.json': text('cursor'),
    '.gemini/settings.json': text('gemini'),
    '.codex/config.toml': '# mine\n[mcp_servers.codex]\ncommand = "c" # why\n',
  });
  const env = { HOME: home };
  /** Every file, except those that are Toolgate's own. */
  const state = () =>
    Object.fromEntries(
      [cwd, home].flatMap((root) =>
        readdirSync(root, { recursive: true, encoding: 'utf8' })
          .map((path) => join(root, path))
          .filter((path) => statSync(path).isFile() && !/\.config\/toolgate|\/\.toolgate\//.test(path))
          .map((path) => [path, `${statSync(path).mode.toString(8)} ${readFileSync(path, 'utf8')}`]),
      ),
    );
  return { cwd, home, env, state };
}

type Machine = ReturnType<typeof machine>;

/**
 * Runs `toolgate init` in a process that is killed at this moment, or after so many milliseconds. It may end before the
 * last moments: how often a lock is looked at differs from run to run.
 */
function killed({ cwd, env }: Machine, args: readonly string[], at: { moment?: number; ms?: number }) {
  return new Promise<{ stderr: string }>((resolve) => {
    const child = spawn(process.execPath, ['--import', KILL_AT, PROGRAM, 'init', ...args], {
      cwd,
      env: childEnv({ ...env, KILL_AT: String(at.moment ?? 0) }),
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    let stderr = '';
    child.stderr.on('data', (chunk: Buffer) => {
      stderr += chunk.toString();
    });
    const timer = at.ms === undefined ? undefined : setTimeout(() => child.kill('SIGKILL'), at.ms);
    child.once('close', () => {
      clearTimeout(timer);
      resolve({ stderr });
    });
  });
}

/** A soak kills at every moment. */
const MOST = isSoak ? 3_600_000 : 600_000;
const INIT = ['--yes', '--point', '--move-secrets'];

/** Only what is killed has to be a process. */
const inProcess = ({ cwd, env }: Machine) => ({ cwd, env, process: false });

async function requireUndone(one: Machine, before: object, where: string) {
  const { code, stdout, stderr } = await runCli(['init', '--undo', '--yes'], inProcess(one));
  // 1: it was killed before there was anything to undo.
  expect([0, 1], `${where}\n${stdout}${stderr}`).toContain(code);
  expect(one.state(), where).toEqual(before);
  const { stdout: secrets } = await runCli(['secrets', 'list'], inProcess(one));
  expect(secrets, where).not.toMatch(/API_TOKEN.*\bset\b/);
  const journals = join(one.home, '.config/toolgate/init');
  const left = existsSync(journals) ? readdirSync(journals, { recursive: true, encoding: 'utf8' }) : [];
  for (const name of left) {
    const path = join(journals, name);
    if (statSync(path).isFile()) expect(readFileSync(path, 'utf8'), `${where} ${name}`).not.toContain(TOKEN);
  }
}

/** `count` of the moments, spread over all. The seed of the run decides which. */
function moments(all: number, count: number): number[] {
  const step = all / count;
  const start = Number(process.env.SEED ?? 0) % Math.max(1, Math.floor(step));
  return Array.from({ length: count }, (_, i) => Math.min(all, 1 + start + Math.floor(i * step)));
}

async function countMoments(args: readonly string[], one = machine()): Promise<number> {
  const { stderr } = await killed(one, args, {});
  const count = Number(/moments: (\d+)/.exec(stderr)?.[1]);
  expect(count, stderr).toBeGreaterThan(20);
  return count;
}

it(
  'is undone byte for byte wherever it was killed',
  async () => {
    const all = await countMoments(INIT);
    for (const moment of moments(all, isSoak ? all : isWide ? Math.min(all, 30) : 4)) {
      const one = machine();
      const before = one.state();
      await killed(one, INIT, { moment });
      await requireUndone(one, before, `killed at moment ${moment} of ${all}`);
    }
  },
  MOST,
);

it(
  'is undone although the undoing was killed, too',
  async () => {
    const first = machine();
    await killed(first, INIT, {});
    const all = await countMoments(['--undo', '--yes'], first);
    for (const moment of moments(all, isSoak ? all : isWide ? Math.min(all, 15) : 2)) {
      const one = machine();
      const before = one.state();
      await killed(one, INIT, {});
      await killed(one, ['--undo', '--yes'], { moment });
      await requireUndone(one, before, `undoing killed at moment ${moment} of ${all}`);
    }
  },
  MOST,
);

it.runIf(isWide || isSoak)(
  'is undone byte for byte after a kill at any time',
  async () => {
    const began = performance.now();
    await killed(machine(), INIT, {});
    const whole = performance.now() - began;
    for (let i = 0; i < (isSoak ? 30 : 10); i++) {
      const one = machine();
      const before = one.state();
      const ms = whole * (0.3 + 0.8 * Math.random());
      await killed(one, INIT, { ms });
      await requireUndone(one, before, `killed after ${ms} ms`);
    }
  },
  MOST,
);
