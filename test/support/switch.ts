/**
 * Whether programs and servers of tests run as processes or in the process of the test. The latter is faster, and the usual
 * way. With `PROCESSES=1` everything is a process.
 */
const always = process.env.PROCESSES === '1';
let inThisFile = false;

export function usesProcesses(): boolean {
  return always || inThisFile;
}

/** At the top of a test file whose subject is processes: their ids, exits, signals or pipes. */
export function useProcesses(): void {
  inThisFile = true;
}

/** At the end of a file: files of one worker share this module. */
export function endUseOfProcesses(): void {
  inThisFile = false;
}
