/**
 * Isolates workers with bubblewrap, if it works on this system. A worker then has its own process space. It sees its
 * folder, its environment and the system's programs, all read-only, but nothing of other namespaces or of the gateway.
 */
import { execFile } from 'node:child_process';
import { existsSync, realpathSync } from 'node:fs';
import { dirname } from 'node:path';
import { GatewayError } from '../base/errors.ts';
import type { Isolation } from '../config/folders.ts';

export interface IsolationNeeds {
  readonly folder: string;
  /** Hidden also inside of a folder that is shown, except for the parts of it that are named here. */
  readonly dataDir: string;
  readonly reads: readonly string[];
  readonly writes: readonly string[];
}

export type IsolationLevel = 'bubblewrap' | 'process';

const SYSTEM = ['/usr', '/bin', '/sbin', '/lib', '/lib32', '/lib64', '/etc', '/opt'];

/** How long a failed probe is remembered. Bubblewrap may be installed meanwhile. */
const PROBE_LASTS = 60_000;

let works = false;
let probe: Promise<string | null> | null = null;
let probedAt = 0;

/** Why bubblewrap cannot be used, as in many containers; null if it can. */
export function bubblewrapTrouble(): Promise<string | null> {
  if (probe !== null && (works || Date.now() - probedAt < PROBE_LASTS)) return probe;
  probedAt = Date.now();
  probe = new Promise((resolve) => {
    const args = ['--unshare-all', '--share-net', '--ro-bind', '/', '/', 'true'];
    execFile('bwrap', args, { timeout: 5_000 }, (error, _, stderr) => {
      works = error === null;
      if (error === null) resolve(null);
      else if (error.code === 'ENOENT') resolve('it is not installed');
      else resolve(stderr.trim().split('\n')[0] || error.message);
    });
  });
  return probe;
}

/** The isolation that a setting results in. Before the first probe, bubblewrap counts as unusable. */
export function levelOf(isolation: Isolation): IsolationLevel {
  return isolation !== 'off' && works ? 'bubblewrap' : 'process';
}

/** The command that runs `command` with the isolation that the setting asks for. */
export async function isolate(
  command: readonly string[],
  { folder, dataDir, reads, writes }: IsolationNeeds,
  isolation: Isolation,
): Promise<readonly string[]> {
  const trouble = isolation === 'off' ? '' : await bubblewrapTrouble();
  if (trouble !== null && isolation === 'required')
    throw new GatewayError(
      'source_unavailable',
      `isolation is "required", but bubblewrap does not work here (${trouble}). Install bubblewrap, or set folders.isolation = "auto"`,
    );
  if (trouble !== null) return command;
  const shown = [dirname(process.execPath), folder, ...reads].filter((path) => existsSync(path));
  const hidden = existsSync(dataDir) ? realpathSync(dataDir) : null;
  const isAround = (path: string) => hidden?.startsWith(`${path}/`) === true;
  const readOnly = (path: string) => ['--ro-bind', path, path];
  return [
    'bwrap',
    ...['--unshare-all', '--share-net', '--die-with-parent', '--new-session'],
    ...SYSTEM.flatMap((path) => ['--ro-bind-try', path, path]),
    ...['--proc', '/proc', '--dev', '/dev', '--tmpfs', '/tmp'],
    ...shown.filter(isAround).flatMap(readOnly),
    ...(hidden === null ? [] : ['--tmpfs', hidden]),
    ...shown.filter((path) => !isAround(path)).flatMap(readOnly),
    ...writes.flatMap((path) => ['--bind', path, path]),
    ...['--chdir', folder, '--'],
    ...command,
  ];
}
