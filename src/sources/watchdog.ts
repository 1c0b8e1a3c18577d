/**
 * Ends the process groups of servers when the gateway dies, however it dies. A small shell process reads from a pipe.
 * The pipe closes when the gateway is gone, even after `kill -9`. Then the shell kills every group that was reported to
 * it, and what they left behind outside of their groups. There is one watchdog per process, for all gateways in it.
 */
import type { ChildProcess } from 'node:child_process';
import type { Writable } from 'node:stream';
import { startProcess } from '../base/start-process.ts';
import { MARK_VARIABLE, OWN_MARKS } from './left-behind.ts';

const SCRIPT = `
mark=$1; shift
groups=" "
for g in "$@"; do groups="$groups$g "; done
while read -r op group; do
  case $op in
    +) groups="$groups$group " ;;
    -) kept=" "; for g in $groups; do [ "$g" = "$group" ] || kept="$kept$g "; done; groups=$kept ;;
  esac
done
for g in $groups; do kill -TERM "-$g" 2>/dev/null; done
[ "$groups" = " " ] || sleep 0.3
for g in $groups; do kill -KILL "-$g" 2>/dev/null; done
for f in $(grep -ls "$mark" /proc/[0-9]*/environ 2>/dev/null); do p=\${f#/proc/}; kill -KILL "\${p%/environ}" 2>/dev/null; done
`;

const RESTART = 1000;

/** Process groups do not exist on Windows. There, children end with their pipes. */
export const hasGroups = process.platform !== 'win32';

let watchdog: ChildProcess | null = null;
/** The reported groups, for the next watchdog if this one is killed. */
const groups = new Set<number>();

/** The pipe on which a process reports `+ GROUP`. Null if there is no watchdog. Throws if it cannot be started now. */
export function watchdogPipe(): Writable | null {
  if (!hasGroups) return null;
  watchdog ??= startWatchdog();
  return watchdog.pid === undefined ? null : watchdog.stdin;
}

export function watchGroup(group: number): void {
  groups.add(group);
}

export function unwatchGroup(group: number): void {
  groups.delete(group);
  watchdog?.stdin?.write(`- ${group}\n`);
}

function startWatchdog(): ChildProcess {
  // In a session of its own, so that Ctrl-C in a terminal does not end it before its work is done.
  const child = startProcess(
    '/bin/sh',
    ['-c', SCRIPT, 'toolgate-watchdog', `${MARK_VARIABLE}=${OWN_MARKS}`, ...[...groups].map(String)],
    {
      detached: true,
      stdio: ['pipe', 'ignore', 'ignore'],
      cwd: '/',
      env: { PATH: process.env.PATH ?? '' },
    },
  );
  const forget = () => {
    if (watchdog !== child) return;
    watchdog = null;
    // It was killed. The next one starts after a delay, because if no shell can run, it would end just as fast.
    setTimeout(restart, RESTART).unref();
  };
  child.on('error', forget);
  child.on('exit', forget);
  child.stdin?.on('error', forget);
  child.unref();
  // The pipe must not keep the gateway alive either.
  (child.stdin as unknown as { unref?: () => void } | null)?.unref?.();
  return child;
}

function restart(): void {
  if (groups.size === 0) return;
  try {
    watchdogPipe();
  } catch {
    // Nothing can be started now.
    setTimeout(restart, RESTART).unref();
  }
}

/** Signals a whole group. Does nothing if the group is gone. */
export function killGroup(group: number, signal: NodeJS.Signals): void {
  try {
    process.kill(hasGroups ? -group : group, signal);
  } catch {
    // Already gone.
  }
}
