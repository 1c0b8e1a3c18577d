import { onTestFinished } from 'vitest';

const left: (() => unknown)[] = [];

/** Runs `end` after the current test, or after the file if called from `beforeAll`. Not for `it.concurrent`, which has no current test. */
export function atEnd(end: () => unknown): void {
  try {
    onTestFinished(async () => {
      await end();
    });
  } catch {
    left.push(end);
  }
}

/** Runs what is left at the end of a file. */
export async function endFile(): Promise<void> {
  for (const end of left.splice(0).reverse()) await end();
}
