import { ChildProcess } from 'node:child_process';
import { constants } from 'node:os';
import { afterEach, expect, it } from 'vitest';
import { bubblewrapTrouble, forgetSandboxes, isIsolated, isolate } from './isolation.ts';

// What Node itself calls to start a process. It returns the error code of the system.
const handle = Object.getPrototypeOf((new ChildProcess() as unknown as { _handle: object })._handle) as {
  spawn: (...args: unknown[]) => number;
};
const { spawn } = handle;

afterEach(() => {
  handle.spawn = spawn;
});

it.each(['EMFILE', 'ENFILE', 'EAGAIN', 'ENOMEM'] as const)(
  'a sandbox that cannot be tried because of %s is not given up: nothing is started without it, and it is tried again',
  async (kind) => {
    // What is known of bubblewrap is known for the whole process.
    forgetSandboxes();
    const needs = { folder: '/tmp', dataDir: '/nowhere', reads: [], writes: [] };
    handle.spawn = () => -constants.errno[kind];
    await expect(isolate(['true'], needs, 'auto')).rejects.toThrow('bubblewrap cannot be tried now');
    await expect(isIsolated('auto')).rejects.toThrow('could not be started');
    handle.spawn = spawn;
    const trouble = await bubblewrapTrouble();
    expect((await isolate(['true'], needs, 'auto'))[0]).toBe(trouble === null ? 'bwrap' : 'true');
  },
);
