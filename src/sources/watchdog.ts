/**
 * Ends the servers' process groups when the gateway dies, however it dies. A tiny shell process holds the other end of a
 * pipe: when the pipe closes, the gateway is gone (also after `kill -9`), and it kills every group it was told of.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import type { Writable } from 'node:stream';

const SCRIPT = `
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
`;

let dog: ChildProcess | null = null;
/** For the next one, should it be ended. */
const groups = new Set<number>();

const RESTART = 1000;

/** Process groups exist only there; elsewhere children end with their pipes. */
export const hasGroups = process.platform !== 'win32';

/** The pipe on which it is told `+ GROUP`, for a process that does that itself. Null where there is no watchdog. */
export function watchdogPipe(): Writable | null {
  if (!hasGroups) return null;
  dog ??= startDog();
  return dog.pid === undefined ? null : dog.stdin;
}

export function watchGroup(group: number): void {
  groups.add(group);
}

export function unwatchGroup(group: number): void {
  groups.delete(group);
  dog?.stdin?.write(`- ${group}\n`);
}

function startDog(): ChildProcess {
  // In a session of its own, so that Ctrl-C in a terminal does not reach it before its work is done.
  const child = spawn('/bin/sh', ['-c', SCRIPT, 'toolgate-watchdog', ...[...groups].map(String)], {
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
    cwd: '/',
    env: { PATH: process.env.PATH ?? '' },
  });
  const forget = () => {
    if (dog !== child) return;
    dog = null;
    // Somebody ended it. Not at once, because where no shell can run the next would end as soon.
    setTimeout(() => groups.size > 0 && watchdogPipe(), RESTART).unref();
  };
  child.on('error', forget);
  child.on('exit', forget);
  child.stdin?.on('error', forget);
  child.unref();
  // The pipe must not keep the gateway alive either.
  (child.stdin as unknown as { unref?: () => void } | null)?.unref?.();
  return child;
}

/** Signals a whole group; a group that is gone is fine. */
export function killGroup(group: number, signal: NodeJS.Signals): void {
  try {
    process.kill(hasGroups ? -group : group, signal);
  } catch {
    // Already gone.
  }
}
