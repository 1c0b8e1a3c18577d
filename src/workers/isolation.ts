/**
 * Keeps a worker to what it needs, where the system can: bubblewrap gives it a process space of its own and shows it its
 * folder, its environment and the system's programs, all read-only, and nothing of other namespaces or of the gateway.
 */
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { dirname } from 'node:path';
import { GatewayError } from '../base/errors.ts';
import type { Isolation } from '../config/config.ts';

export interface Needs {
  readonly folder: string;
  readonly reads: readonly string[];
  readonly writes: readonly string[];
}

export type IsolationLevel = 'bubblewrap' | 'process';

const SYSTEM = ['/usr', '/bin', '/sbin', '/lib', '/lib32', '/lib64', '/etc', '/opt'];

/** After this long it is looked again whether bubblewrap has come. */
const AGAIN = 60_000;

let works = false;
let asked: Promise<string | null> | null = null;
let askedAt = 0;

/** Why bubblewrap cannot be used, as in many containers; null where it can. */
export function bubblewrapTrouble(): Promise<string | null> {
  if (asked !== null && (works || Date.now() - askedAt < AGAIN)) return asked;
  askedAt = Date.now();
  asked = new Promise((resolve) => {
    const probe = ['--unshare-all', '--share-net', '--ro-bind', '/', '/', 'true'];
    execFile('bwrap', probe, { timeout: 5_000 }, (error, _, stderr) => {
      works = error === null;
      if (error === null) resolve(null);
      else if (error.code === 'ENOENT') resolve('it is not installed');
      else resolve(stderr.trim().split('\n')[0] || error.message);
    });
  });
  return asked;
}

/** What keeps a process of that setting apart, as far as it is known yet. */
export function levelOf(isolation: Isolation): IsolationLevel {
  return isolation !== 'off' && works ? 'bubblewrap' : 'process';
}

/** The command that runs `command` as apart as the setting says. */
export async function isolate(
  command: readonly string[],
  { folder, reads, writes }: Needs,
  isolation: Isolation,
): Promise<readonly string[]> {
  const trouble = isolation === 'off' ? '' : await bubblewrapTrouble();
  if (trouble !== null && isolation === 'required')
    throw new GatewayError(
      'source_unavailable',
      `isolation is "required", and bubblewrap does not work here (${trouble}). Install bubblewrap, or set folders.isolation = "auto"`,
    );
  if (trouble !== null) return command;
  const shown = [dirname(process.execPath), folder, ...reads].filter((path) => existsSync(path));
  return [
    'bwrap',
    ...['--unshare-all', '--share-net', '--die-with-parent', '--new-session'],
    ...SYSTEM.flatMap((path) => ['--ro-bind-try', path, path]),
    ...['--proc', '/proc', '--dev', '/dev', '--tmpfs', '/tmp'],
    ...shown.flatMap((path) => ['--ro-bind', path, path]),
    ...writes.flatMap((path) => ['--bind', path, path]),
    ...['--chdir', folder, '--'],
    ...command,
  ];
}
