/** Growing waits between attempts. */

const FIRST = 250;
const MOST = 30_000;

/** Milliseconds to wait after this many failures in a row: twice as long each time, with jitter. */
export function backoffDelay(failures: number): number {
  return withJitter(Math.min(FIRST * 2 ** (failures - 1), MOST));
}

/** Varies a delay by up to a quarter, so that attempts that started together spread out. */
export function withJitter(delay: number): number {
  return delay * (0.75 + Math.random() / 2);
}
