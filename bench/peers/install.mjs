// Installs the peers of pins.json, each in a folder of its own, and says of each that cannot be installed why.
import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ensureGoProgram } from '../../scripts/go.mjs';
import { createEnvironment, environmentOf } from '../../scripts/python.mjs';

/** Not in the repository. */
export const INSTALLED = fileURLToPath(new URL('./installed/', import.meta.url));
const PATIENCE_MS = 10 * 60_000;

export function readPins() {
  return JSON.parse(readFileSync(new URL('./pins.json', import.meta.url), 'utf8'));
}

/** The folder in which a peer is installed, and its programs. */
export function folderOf(name) {
  return join(INSTALLED, name);
}

/** Installs what is missing. Returns why a peer is not there, by its name; nothing for those that are. */
export async function installPeers(names) {
  const { before, peers } = readPins();
  const reasons = {};
  mkdirSync(INSTALLED, { recursive: true });
  for (const name of names) {
    const pin = peers[name];
    const stamp = join(folderOf(name), '.pin');
    const wanted = JSON.stringify({ before, ...pin });
    if (existsSync(stamp) && readFileSync(stamp, 'utf8') === wanted) continue;
    console.error(`Installing ${pin.package} ${pin.version} from ${pin.registry}…`);
    try {
      rmSync(folderOf(name), { recursive: true, force: true });
      mkdirSync(folderOf(name), { recursive: true });
      await REGISTRIES[pin.registry](name, pin, before);
      writeFileSync(stamp, wanted);
    } catch (error) {
      // Without the folders of this machine.
      reasons[name] = error.message.replaceAll(/(?:\/[\w.@+-]+){2,}\/?/g, '…');
    }
  }
  return reasons;
}

const REGISTRIES = {
  /** The packages that it needs are those of the day of the pins. */
  npm: (name, { package: wanted, version }, before) =>
    must(
      'npm',
      [
        'install',
        '--prefix',
        folderOf(name),
        '--no-save',
        '--no-audit',
        '--no-fund',
        '--loglevel=error',
        '--ignore-scripts',
      ].concat(`--before=${before}`, `${wanted}@${version}`),
    ),
  /** `with`: limits to what it needs, where it runs only with an older version and does not say so. */
  async pypi(name, { package: wanted, version, python = 'python3', with: limits = [] }, before) {
    await createEnvironment('uv');
    const uv = join(environmentOf('uv').path, 'bin', 'uv');
    const into = join(folderOf(name), 'python');
    await must(uv, ['venv', '--quiet', '--python', python, into]);
    const extra = ['--quiet', '--exclude-newer', before, '--python', join(into, 'bin', 'python')];
    await must(uv, ['pip', 'install', ...extra, `${wanted}==${version}`, ...limits]);
  },
  async go(name, { package: wanted, module, version, program }) {
    // Asked first, because a build that fails prints everything that it downloads.
    await must('go', ['mod', 'download', `${module ?? wanted}@${version}`]);
    await ensureGoProgram(join(folderOf(name), program), `${wanted}@${version}`);
  },
};

/** What a failing program printed last is the reason. */
function must(command, args) {
  return new Promise((resolve, reject) => {
    const child = spawn('nice', ['-n', '10', command, ...args], {
      stdio: ['ignore', 'inherit', 'pipe'],
      timeout: PATIENCE_MS,
    });
    const printed = [];
    child.stderr.on('data', (chunk) => printed.push(chunk));
    child.once('error', reject);
    child.once('close', (code) => {
      if (code === 0) resolve();
      else reject(new Error(`it could not be installed: ${shortly(Buffer.concat(printed).toString())}`));
    });
  });
}

/** The lines that name a reason, without what is only about this machine. */
function shortly(text) {
  const lines = text.split('\n').filter((line) => line.trim() !== '');
  const telling = lines.filter((line) => /not available|No solution|cause:|E404|error/i.test(line));
  return (telling.at(-1) ?? lines.at(-1) ?? 'no message').trim().slice(0, 240);
}
