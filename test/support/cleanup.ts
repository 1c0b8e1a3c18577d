import { onTestFinished } from 'vitest';

const left: (() => unknown)[] = [];

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

/** What is left at the end of a file. */
export async function endFile(): Promise<void> {
  for (const end of left.splice(0).reverse()) await end();
}
