// Programs that tests use and npm cannot install. On Debian and Ubuntu they are installed if this runs as root, by `npm test` or
// by `sudo node scripts/programs.mjs`. Without one of them its tests are skipped; in CI they fail.
import { spawnSync } from 'node:child_process';
import {
  accessSync,
  chmodSync,
  constants,
  copyFileSync,
  mkdtempSync,
  readdirSync,
  realpathSync,
  rmSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { once, retry, run, step } from './setup.mjs';

const INSTALL = 'sudo node scripts/programs.mjs';
const PYTHON = 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 10))';
const APT = ['-qq', '-o', 'Acquire::Retries=3', '-o', 'DPkg::Lock::Timeout=300'];

/** Each with the name for messages, how it is found (undefined if it is missing), and the packages that contain it. */
export const programs = {
  python: {
    what: 'Python 3.10 or newer with venv',
    find: () => (spawnSync('python3', ['-c', PYTHON]).status === 0 ? 'python3' : undefined),
    packages: ['python3', 'python3-venv'],
  },
  chromium: {
    what: 'Chromium',
    find: () => process.env.CHROMIUM || onPath('chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable'),
    packages: ['chromium'],
  },
  bubblewrap: { what: 'bubblewrap', find: () => onPath('bwrap'), packages: ['bubblewrap'] },
  script: { what: 'script', find: () => onPath('script'), packages: ['bsdutils'] },
  openssl: { what: 'openssl', find: () => onPath('openssl'), packages: ['openssl'] },
  zsh: { what: 'zsh', find: () => onPath('zsh'), packages: ['zsh'] },
  fish: { what: 'fish', find: () => onPath('fish'), packages: ['fish'] },
  mandoc: { what: 'mandoc', find: () => onPath('mandoc'), packages: ['mandoc'] },
  dpkg: { what: 'dpkg-deb', find: () => onPath('dpkg-deb'), packages: ['dpkg'] },
  ruby: { what: 'Ruby', find: () => onPath('ruby'), packages: ['ruby'] },
  haproxy: { what: 'haproxy', find: () => onPath('haproxy'), packages: ['haproxy'] },
  // Only the programs of these, because the packages would also start services.
  nginx: { what: 'nginx', find: () => onPath('nginx'), packages: [], file: ['nginx', 'usr/sbin/nginx'] },
  promtool: {
    what: 'promtool of Prometheus',
    find: () => onPath('promtool'),
    packages: [],
    file: ['prometheus', 'usr/bin/promtool'],
  },
  redis: { what: 'redis-server', find: () => onPath('redis-server'), packages: ['redis-server'] },
};

/** Why tests that need this program cannot run; undefined if they can. */
export function whyMissing(name) {
  const { what, find } = programs[name];
  return find() === undefined ? `${what} is not installed. Install it with: ${INSTALL}` : undefined;
}

/** Never fails: tests report what is still missing. */
export async function ensurePrograms() {
  const wanted = missing();
  if (wanted.length === 0) return;
  const names = wanted.map(([, { what }]) => what).join(', ');
  if (process.getuid?.() !== 0 || !onPath('apt-get')) {
    console.error(`Not installed: ${names}. Tests that need them do not run. On Debian and Ubuntu: ${INSTALL}`);
    return;
  }
  try {
    await once(
      'programs',
      () => missing().length === 0,
      () => step(`Installing ${names}`, install),
    );
  } catch (error) {
    console.error(`${error.message} Tests that need it do not run. Try again with: ${INSTALL}`);
  }
}

function missing() {
  return Object.entries(programs).filter(([, { find }]) => find() === undefined);
}

async function install() {
  await apt(['update']);
  const packages = missing().flatMap(([, program]) => program.packages);
  if (packages.length > 0) await apt(['install', '--yes', '--no-install-recommends', ...packages]);
  for (const [, { file }] of missing()) if (file !== undefined) await installFile(...file);
}

/** Only one program of a package. What it needs is on every machine. */
async function installFile(name, path) {
  const folder = mkdtempSync(join(tmpdir(), `toolgate-${name}-`));
  try {
    // apt downloads as another user.
    chmodSync(folder, 0o777);
    await apt(['download', name], folder);
    const archive = readdirSync(folder).find((file) => file.endsWith('.deb'));
    await must('dpkg-deb', ['--extract', join(folder, archive), join(folder, 'files')]);
    const to = join('/usr/local/bin', basename(path));
    copyFileSync(join(folder, 'files', path), to);
    chmodSync(to, 0o755);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Several times, because mirrors fail now and then. */
function apt(args, cwd) {
  return retry(3, () => must('apt-get', [...APT, ...args], cwd));
}

async function must(command, args, cwd) {
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
  const code = await run(command, args, { cwd, env, timeout: 10 * 60_000 });
  if (code !== 0) throw new Error(`"${command} ${args.join(' ')}" failed; its message is above.`);
}

/** The path of the first of these programs that is on PATH. */
function onPath(...names) {
  const folders = (process.env.PATH ?? '').split(delimiter);
  return names.flatMap((name) => folders.map((folder) => join(folder, name))).find(isExecutable);
}

function isExecutable(path) {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

if (process.argv[1] && realpathSync(process.argv[1]) === fileURLToPath(import.meta.url)) {
  await ensurePrograms();
  const still = Object.keys(programs).flatMap((name) => whyMissing(name) ?? []);
  for (const line of still) console.error(line);
  if (still.length > 0) process.exitCode = 1;
}
