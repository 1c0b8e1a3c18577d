/** Helpers for tests of health checks. */
import { atEnd } from '../support/cleanup.ts';
import { alive } from '../support/processes.ts';
import { logOf, received } from '../support/running-gateway.ts';
import { server } from '../support/server.ts';

export const other = { namespace: 'other', command: server('basic', '--tools', 'echo,whoami') };
export const otherTools = ['other_echo', 'other_whoami'];
export const often = { health_interval: '200ms' };
export const hang = (...args: (string | number)[]) => ({
  namespace: 'h',
  command: server('hang', ...args),
  timeout: '1s',
});
/** Only a process can be suspended or blocked. A shell starts it, so that it does not run in the process of the test. */
export const asProcess = <Entry extends { command: string }>(entry: Entry): Entry => ({
  ...entry,
  command: `exec ${entry.command}`,
});
/** The log line about a server that does not answer its checks. */
export const DOWN = 'down: does not answer';

/** Suspends a process. It is resumed at the end of the test if it still exists. */
export function halt(pid: number): void {
  process.kill(pid, 'SIGSTOP');
  atEnd(() => {
    if (alive(pid)) process.kill(pid, 'SIGCONT');
  });
}

export function methodsIn(file: string): string[] {
  return received(file).map(({ method }) => method);
}

export const downs = (gateway: { stderr(): string }) =>
  logOf(gateway).filter(({ message }) => message.startsWith('down'));
