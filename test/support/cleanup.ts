import { afterAll, onTestFinished } from 'vitest';

const left: (() => unknown)[] = [];

// Registered while the test file loads, because a hook cannot register another.
afterAll(async () => {
  for (const end of left.splice(0).reverse()) await end();
});

/** Runs `end` when the present test is over; when called from `beforeAll`, when the file is. Not for `it.concurrent`, which has no present test. */
export function atEnd(end: () => unknown): void {
  try {
    onTestFinished(async () => {
      await end();
    });
  } catch {
    left.push(end);
  }
}
