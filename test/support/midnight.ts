/** Tests of what is counted or written per day. */
import { setTimeout as sleep } from 'node:timers/promises';

const DAY = 24 * 60 * 60 * 1000;

/** Waits for the next day if it is near, in UTC: such a test must not begin on one day and end on the next. */
export async function passMidnight(): Promise<void> {
  const left = DAY - (Date.now() % DAY);
  if (left < 20_000) await sleep(left + 100);
}
