/**
 * Ends the servers' process groups when the gateway dies, however it dies. A tiny shell process holds the other end of a
 * pipe: when the pipe closes, the gateway is gone (also after `kill -9`), and it kills every group it was told of.
 */
import { type ChildProcess, spawn } from 'node:child_process';

const SCRIPT = `
groups=" "
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

/** Process groups exist only there; elsewhere children end with their pipes. */
export const hasGroups = process.platform !== 'win32';

export function watchGroup(group: number): void {
  if (!hasGroups) return;
  dog ??= startDog();
  dog.stdin?.write(`+ ${group}\n`);
}

export function unwatchGroup(group: number): void {
  dog?.stdin?.write(`- ${group}\n`);
}

function startDog(): ChildProcess {
  // In a session of its own, so that Ctrl-C in a terminal does not reach it before its work is done.
  const child = spawn('/bin/sh', ['-c', SCRIPT], {
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
    cwd: '/',
    env: { PATH: process.env.PATH ?? '' },
  });
  const forget = () => {
    if (dog === child) dog = null;
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
