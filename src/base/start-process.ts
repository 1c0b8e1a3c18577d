/**
 * Starts a program so that every kind of failure is one: an error that is thrown. Node throws some of them, reports
 * others as an event, which ends our process if nobody listens, and without free descriptors returns a child that has no
 * pipes.
 */
import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process';

export function startProcess(file: string, args: readonly string[], options: SpawnOptions): ChildProcess {
  const child = spawn(file, [...args], options);
  child.on('error', () => {});
  // The pipes of a child that was not started fail too.
  for (const stream of child.stdio ?? []) stream?.on('error', () => {});
  const stdio = Array.isArray(options.stdio) ? options.stdio : [];
  const lacksPipe = stdio.some((kind, at) => kind === 'pipe' && !child.stdio?.[at]);
  if (lacksPipe) throw new Error('too many files are open; raise the limit of open files');
  return child;
}
