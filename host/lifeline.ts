/**
 * Runs in a thread and follows standard input, which the gateway holds open for as long as it lives. When it ends, so does
 * this process, also in the middle of a tool that never comes back. Read by events and not by a blocking call, because a
 * process cannot exit while one of its threads is in such a call.
 */
import { fstatSync } from 'node:fs';
import { Socket } from 'node:net';
import { parentPort } from 'node:worker_threads';

/** What a process that is not busy needs to end by itself. */
const GRACE_MS = 100;

function over(): void {
  parentPort?.postMessage('over');
  setTimeout(() => process.kill(process.pid, 'SIGKILL'), GRACE_MS);
}

const stats = fstatSync(0);
if (stats.isFIFO() || stats.isSocket()) {
  const input = new Socket({ fd: 0, readable: true, writable: false });
  input.on('error', () => {});
  input.on('close', over);
  input.resume();
} else over();
