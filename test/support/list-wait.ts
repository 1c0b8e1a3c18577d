/**
 * How long answers that switch tools wait for clients to list again. Clients of tests do not list by themselves, and each of
 * them would wait a second for that.
 */
const SHORT = 30;
let inThisFile = SHORT;

export function listWait(): number {
  return inThisFile;
}

/** At the top of a test file about that wait: it is as long as in a program. */
export function useUsualListWait(): void {
  inThisFile = 1_000;
}

/** At the end of a file: files of one worker share this module. */
export function endUseOfListWait(): void {
  inThisFile = SHORT;
}
