/** How long tests wait. A machine with other work on it is given more time. */
import { availableParallelism, loadavg } from 'node:os';

/** These milliseconds, times as many as there are programs for each core of the machine. */
export function patient(ms: number): number {
  return Math.round(ms * Math.max(1, loadavg()[0]! / availableParallelism()));
}
