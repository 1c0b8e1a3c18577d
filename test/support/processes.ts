/** Processes according to the operating system (Linux only: /proc), because a program's own report proves nothing. */
import { readdirSync, readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { patient } from './patience.ts';

/** Whether the process runs. A zombie does not. */
export function alive(pid: number): boolean {
  const state = readStat(pid)?.state;
  return state !== undefined && state !== 'Z' && state !== 'X';
}

/** All living processes below `pid`, at any depth. Orphans are no longer below it: see `running`. */
export function descendants(pid: number): number[] {
  const children = new Map<number, number[]>();
  for (const id of processes()) {
    const parent = readStat(id)?.parent;
    if (parent !== undefined) children.set(parent, [...(children.get(parent) ?? []), id]);
  }
  const found: number[] = [];
  for (const queue = [pid]; queue.length > 0; ) {
    const below = children.get(queue.shift()!) ?? [];
    found.push(...below);
    queue.push(...below);
  }
  return found.filter(alive);
}

/** All living processes with `text` in their command lines, including orphans. Give a fixture a unique `--name` or path to find it. */
export function running(text: string): number[] {
  return processes().filter((pid) => pid !== process.pid && readProc(pid, 'cmdline')?.includes(text) && alive(pid));
}

/** In milliseconds: many times what a quiet machine needs. */
const USUAL_WAIT = 45_000;
/** Less than the time-out of a test, so that the condition is named. */
const LONGEST_WAIT = 150_000;

/** Waits until the condition returns something other than false, null or undefined, and returns that. */
export async function waitFor<T>(
  condition: () => T | Promise<T>,
  ms = USUAL_WAIT,
): Promise<Exclude<T, false | null | undefined>> {
  const most = Math.max(ms, Math.min(patient(ms), LONGEST_WAIT));
  const end = performance.now() + most;
  // Growing pauses: conditions that list tools or read /proc took a good part of the processor from what they waited for.
  for (let pause = 5; ; pause = Math.min(pause * 1.3, 50)) {
    const value = await condition();
    if (value !== false && value !== null && value !== undefined) {
      return value as Exclude<T, false | null | undefined>;
    }
    if (performance.now() > end) throw new Error(`not within ${most} ms: ${condition}`);
    await sleep(pause);
  }
}

function processes(): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number);
}

function readStat(pid: number): { state: string; parent: number } | undefined {
  const stat = readProc(pid, 'stat');
  if (stat === undefined) return undefined;
  // The second field is the name of the program in parentheses, and may itself contain spaces and parentheses.
  const [state, parent] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return { state: state!, parent: Number(parent) };
}

/** Undefined if the process is gone. */
function readProc(pid: number, file: string): string | undefined {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'utf8');
  } catch {
    return undefined;
  }
}
