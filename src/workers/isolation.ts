/**
 * Isolates workers with bubblewrap, if it works on this system. A worker then has its own process space and no
 * privileges, also if the gateway runs as root. It sees its folder, its environment and the system's programs, all
 * read-only, but nothing of other namespaces or of the gateway.
 */
import { existsSync, realpathSync, statSync } from 'node:fs';
import { basename, dirname } from 'node:path';
import { GatewayError } from '../base/errors.ts';
import type { Isolation } from '../config/folders.ts';
import { runProgram } from './run-program.ts';

export interface IsolationNeeds {
  /** The working folder. */
  readonly folder: string;
  /** False: the working folder is an empty one, unless it is among the others. */
  readonly showsFolder?: boolean;
  /** Hidden also inside of a folder that is shown, except for the parts of it that are named here. */
  readonly dataDir: string;
  readonly reads: readonly string[];
  readonly writes: readonly string[];
  /** Files that cannot be read or replaced inside, also in a folder that is shown. */
  readonly hides?: readonly string[];
  /** False: it is not started unless it can be kept from the network. */
  readonly network?: boolean;
}

export type IsolationLevel = 'bubblewrap' | 'process';

const SYSTEM = ['/usr', '/bin', '/sbin', '/lib', '/lib32', '/lib64', '/opt'];

/** What programs need to find libraries, names, certificates and the time zone. Nothing else in /etc is shown: it holds keys and passwords. */
const ETC = [
  ...['alternatives', 'ca-certificates', 'crypto-policies', 'fonts', 'gai.conf', 'group', 'host.conf', 'hosts'],
  ...['ld.so.cache', 'ld.so.conf', 'ld.so.conf.d', 'localtime', 'magic', 'mime.types', 'nsswitch.conf', 'passwd'],
  ...['pki/ca-trust', 'pki/tls/cert.pem', 'pki/tls/certs', 'protocols', 'resolv.conf', 'services'],
  ...['ssl/cert.pem', 'ssl/certs', 'ssl/openssl.cnf', 'timezone'],
].map((name) => `/etc/${name}`);

/**
 * Settings of the kernel. If the gateway runs as root, a worker without any capability still owns these files, and
 * bubblewrap itself leaves them writable then.
 */
const KERNEL = ['sys', 'sysrq-trigger', 'irq', 'bus', 'fs', 'driver', 'scsi', 'acpi', 'mtrr', 'pressure'].map(
  (name) => `/proc/${name}`,
);

/** An unprivileged user and no capabilities, also if the gateway runs as root. The number is that of `nobody`. */
const UNPRIVILEGED = [
  ...['--unshare-all', '--unshare-user', '--share-net', '--uid', '65534', '--gid', '65534', '--cap-drop', 'ALL'],
  ...['--die-with-parent', '--new-session'],
];
/** No further user namespaces, in which a tool would have capabilities again. Bubblewrap has this since 0.8. */
const NO_NAMESPACES = '--disable-userns';

/** Tells a program that it is in a sandbox, and others that the program is: it is in the command of bubblewrap. */
const MARK = 'TOOLGATE_SANDBOX';

/** Whether a process with this command runs a sandbox of a gateway, of this one or another. */
export function isSandboxCommand([program = '', ...args]: readonly string[]): boolean {
  return basename(program) === 'bwrap' && args.includes(MARK);
}

/** How long a failed probe is remembered. Bubblewrap may be installed meanwhile. */
const PROBE_LASTS = 60_000;
/** How long one may take, in milliseconds. */
const PROBE_TAKES = 5_000;

let works = false;
let hasNoNamespaces = false;
let probe: Promise<string | null> | null = null;
let probedAt = 0;
let isNetworked = false;

/**
 * Why bubblewrap cannot be used, as in many containers; null if it can. Throws if that cannot be found out now: a machine
 * that is short of something for a moment must not lead to tools without a sandbox.
 */
export function bubblewrapTrouble(): Promise<string | null> {
  if (probe !== null && (works || Date.now() - probedAt < PROBE_LASTS)) return probe;
  probedAt = Date.now();
  const trying = tryBoth();
  probe = trying;
  trying.catch(() => {
    probe = null;
  });
  return trying;
}

async function tryBoth(): Promise<string | null> {
  hasNoNamespaces = (await tryBubblewrap(NO_NAMESPACES)) === null;
  const trouble = hasNoNamespaces ? null : await tryBubblewrap();
  works = trouble === null;
  return trouble;
}

/** Why it cannot run a program with these options; null if it can. */
async function tryBubblewrap(...options: readonly string[]): Promise<string | null> {
  const { code, log, problem } = await runProgram({
    command: 'bwrap',
    args: [...UNPRIVILEGED, ...options, '--ro-bind', '/', '/', 'true'],
    cwd: '/',
    env: { PATH: process.env.PATH ?? '' },
    timeout: PROBE_TAKES,
    signal: null,
  });
  if (code === 0) return null;
  if (problem === null) return log.trim().split('\n')[0] || `it exited with code ${code}`;
  if (problem.includes('ENOENT')) return 'it is not installed';
  if (problem.includes('EACCES')) return 'it may not be executed';
  const why = problem === 'timeout' ? `it took more than ${PROBE_TAKES / 1000} s` : problem;
  throw new GatewayError('source_unavailable', `could not be started: bubblewrap cannot be tried now (${why})`);
}

/** The isolation that a setting results in. Before the first probe, bubblewrap counts as unusable. */
export function levelOf(isolation: Isolation): IsolationLevel {
  return isolation !== 'off' && works ? 'bubblewrap' : 'process';
}

/** Throws a GatewayError if the setting asks for a sandbox that does not work here, or for no network. */
export async function requireIsolation(isolation: Isolation, network = true): Promise<void> {
  const trouble = isolation === 'off' ? 'isolation is "off"' : await bubblewrapTrouble();
  if (trouble === null) return;
  if (isolation === 'required')
    throw new GatewayError(
      'source_unavailable',
      `isolation is "required", but bubblewrap does not work here (${trouble}). Install bubblewrap, or set folders.isolation = "auto"`,
    );
  if (!network)
    throw new GatewayError(
      'source_unavailable',
      `its tooldock.yaml has network: false, which needs bubblewrap (${trouble}). Install bubblewrap, or remove that line`,
    );
}

/** The command that runs `command` with the isolation that the setting asks for. */
export async function isolate(
  command: readonly string[],
  needs: IsolationNeeds,
  isolation: Isolation,
): Promise<readonly string[]> {
  await requireIsolation(isolation, needs.network);
  if (!(await isIsolated(isolation))) return command;
  if (process.geteuid?.() === 0) requireOpenToRoot([needs.folder, ...needs.reads, ...needs.writes]);
  return sandboxed(command, needs);
}

/**
 * In a sandbox root has no privileges, so it can use only what is its own or open to everybody. Bubblewrap would end
 * with an error that does not say why.
 */
function requireOpenToRoot(paths: readonly string[]): void {
  for (const path of new Set(paths)) {
    const closed = [...foldersAround(path), path].find((one) => {
      const stats = statSync(one, { throwIfNoEntry: false });
      if (stats === undefined || stats.uid === 0 || !stats.isDirectory()) return false;
      return (stats.mode & (stats.gid === 0 ? 0o010 : 0o001)) === 0;
    });
    if (closed === undefined) continue;
    const { uid } = statSync(closed);
    throw new GatewayError(
      'source_unavailable',
      `the gateway runs as root, and ${closed} is open only to the user ${uid}: in its sandbox not even root may enter it. Run the gateway as that user, or give the folder to root`,
    );
  }
}

/** From the root down, without the path itself. */
function foldersAround(path: string): string[] {
  const above = dirname(path);
  return above === path ? [] : [...foldersAround(above), above];
}

/** Whether a sandbox of this process shares the network with it, or did. */
export function hasNetworkedSandbox(): boolean {
  return isNetworked;
}

/** For tests, which have many gateways in one process: as if none had been tried or used. All gateways have to be closed. */
export function forgetSandboxes(): void {
  isNetworked = false;
  probe = null;
  works = false;
}

/** Whether the setting results in a sandbox here. */
export async function isIsolated(isolation: Isolation): Promise<boolean> {
  return isolation !== 'off' && (await bubblewrapTrouble()) === null;
}

/** The command that runs `command` in a sandbox. Bubblewrap has to work. */
export function sandboxed(
  command: readonly string[],
  { folder, showsFolder = true, dataDir, reads, writes, hides = [], network = true }: IsolationNeeds,
): readonly string[] {
  if (network) isNetworked = true;
  const shown = [dirname(process.execPath), ...(showsFolder ? [folder] : []), ...reads].filter(existsSync);
  const hidden = existsSync(dataDir) ? realpathSync(dataDir) : null;
  const isAround = (path: string) => hidden !== null && isBelow(hidden, path);
  const covered = hides.filter((path) => existsSync(path) && [...shown, ...writes].some((one) => isBelow(path, one)));
  const writable = (path: string) => ['--bind', path, path];
  const readOnly = (path: string) => ['--ro-bind', path, path];
  const readOnlyIfThere = (path: string) => ['--ro-bind-try', path, path];
  return [
    'bwrap',
    ...UNPRIVILEGED.filter((option) => network || option !== '--share-net'),
    ...(hasNoNamespaces ? [NO_NAMESPACES] : []),
    ...[...SYSTEM, ...ETC].flatMap(readOnlyIfThere),
    ...['--proc', '/proc', ...KERNEL.flatMap(readOnlyIfThere), '--dev', '/dev', '--tmpfs', '/tmp'],
    ...(showsFolder ? [] : ['--dir', folder]),
    ...shown.filter(isAround).flatMap(readOnly),
    ...writes.filter(isAround).flatMap(writable),
    ...(hidden === null ? [] : ['--tmpfs', hidden]),
    ...shown.filter((path) => !isAround(path)).flatMap(readOnly),
    ...writes.filter((path) => !isAround(path)).flatMap(writable),
    ...covered.flatMap((path) => ['--ro-bind', '/dev/null', path]),
    ...['--setenv', MARK, '1', '--chdir', folder, '--'],
    ...command,
  ];
}

function isBelow(path: string, folder: string): boolean {
  return path.startsWith(folder.endsWith('/') ? folder : `${folder}/`);
}
