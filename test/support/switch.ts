/**
 * Whether programs and servers of tests run as processes or in the process of the test. The latter is faster, and the usual
 * way. With `PROCESSES=1` everything is a process.
 */
const always = process.env.PROCESSES === '1';
let inThisFile: 'nothing' | 'servers' | 'everything' = 'nothing';

export function toolgateIsProcess(): boolean {
  return always || inThisFile === 'everything';
}

/** Whether this file is about processes. */
export function isAboutProcesses(): boolean {
  return inThisFile !== 'nothing';
}

export function serversAreProcesses(): boolean {
  return always || inThisFile !== 'nothing';
}

/**
 * At the top of a test file whose subject is processes: their ids, exits, signals or pipes. If it is about those of servers
 * only, Toolgate still runs in the process of the test.
 */
export function useProcesses(of: 'servers' | 'everything' = 'everything'): void {
  inThisFile = of;
}

/** At the end of a file: files of one worker share this module. */
export function endUseOfProcesses(): void {
  inThisFile = 'nothing';
}
