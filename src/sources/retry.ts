/** Milliseconds before a server that failed so often in a row is tried again: twice as long each time, and never all at once. */
export function retryPause(failures: number): number {
  return Math.min(FIRST * 2 ** (failures - 1), MOST) * (0.75 + Math.random() / 2);
}

const FIRST = 250;
const MOST = 30_000;
