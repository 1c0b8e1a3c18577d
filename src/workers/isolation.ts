/**
 * Keeps a worker to what it needs, where the system can: bubblewrap gives it a process space of its own and shows it its
 * folder, its environment and the system's programs, all read-only, and nothing of other namespaces or of the gateway.
 */
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { dirname } from 'node:path';

export interface Needs {
  readonly folder: string;
  readonly reads: readonly string[];
  readonly writes: readonly string[];
}

export interface Isolated {
  readonly command: readonly string[];
  readonly level: 'bubblewrap' | 'process';
}

const SYSTEM = ['/usr', '/bin', '/sbin', '/lib', '/lib32', '/lib64', '/etc', '/opt'];

let available: Promise<boolean> | null = null;

/** Whether bubblewrap is there and allowed: in many containers it is not. */
export function hasBubblewrap(): Promise<boolean> {
  available ??= new Promise((resolve) => {
    execFile('bwrap', ['--unshare-all', '--share-net', '--ro-bind', '/', '/', 'true'], { timeout: 5_000 }, (error) =>
      resolve(error === null),
    );
  });
  return available;
}

export async function isolate(command: readonly string[], { folder, reads, writes }: Needs): Promise<Isolated> {
  if (!(await hasBubblewrap())) return { command, level: 'process' };
  const shown = [dirname(process.execPath), folder, ...reads].filter((path) => existsSync(path));
  return {
    level: 'bubblewrap',
    command: [
      'bwrap',
      ...['--unshare-all', '--share-net', '--die-with-parent', '--new-session'],
      ...SYSTEM.flatMap((path) => ['--ro-bind-try', path, path]),
      ...['--proc', '/proc', '--dev', '/dev', '--tmpfs', '/tmp'],
      ...shown.flatMap((path) => ['--ro-bind', path, path]),
      ...writes.flatMap((path) => ['--bind', path, path]),
      ...['--chdir', folder, '--'],
      ...command,
    ],
  };
}
