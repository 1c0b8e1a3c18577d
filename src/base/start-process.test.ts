import { ChildProcess } from 'node:child_process';
import { constants, tmpdir } from 'node:os';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { spawnServer } from '../sources/spawn.ts';
import { runProgram } from '../workers/run-program.ts';
import { startProcess } from './start-process.ts';

// What Node itself calls to start a process. It returns the error code of the system.
const handle = Object.getPrototypeOf((new ChildProcess() as unknown as { _handle: object })._handle) as {
  spawn: (...args: unknown[]) => number;
};
const { spawn } = handle;
const errors: unknown[] = [];
const note = (error: unknown) => errors.push(error);
const env = { PATH: process.env.PATH ?? '' };

const KINDS = ['EMFILE', 'ENFILE', 'EAGAIN', 'ENOMEM', 'E2BIG', 'EACCES'] as const;

describe.each(KINDS)('a program that cannot be started because of %s', (kind) => {
  beforeEach(() => {
    process.prependListener('uncaughtException', note);
    handle.spawn = () => -constants.errno[kind];
  });
  afterEach(async () => {
    handle.spawn = spawn;
    // Node reports some failures in a later turn.
    await new Promise((resolve) => setTimeout(resolve, 20));
    process.off('uncaughtException', note);
    expect(errors.splice(0)).toEqual([]);
  });

  it('is an error or an event, and never ends the gateway', async () => {
    const attempt = () => startProcess('/bin/true', [], { stdio: ['pipe', 'pipe', 'pipe'] });
    try {
      const child = attempt();
      expect(child.pid).toBeUndefined();
    } catch (error) {
      expect((error as Error).message).toMatch(/too many files|spawn/);
    }
  });

  it('is a failed start of a server', async () => {
    const launch = { kind: 'stdio', file: '/bin/cat', args: [], env, cwd: tmpdir(), withheld: [] } as const;
    const problem = await new Promise<string>((resolve) => {
      try {
        spawnServer(launch as never).watch({ failed: resolve, exited() {}, closed() {} });
      } catch (error) {
        resolve((error as Error).message);
      }
    });
    expect(problem).not.toBe('');
  });

  it('is the end of an install, with the reason', async () => {
    const result = await runProgram({ command: '/bin/true', args: [], cwd: '/', env, timeout: 5_000, signal: null });
    expect(result).toMatchObject({
      code: expect.toBeOneOf([null, -constants.errno[kind]]),
      problem: expect.any(String),
    });
  });
});
