/**
 * A thread that watches standard input, which the gateway keeps open for as long as it runs. When standard input ends,
 * the process ends, even while a tool blocks the main thread. The thread reads with events and not with a blocking
 * call, because a process cannot exit while one of its threads is in such a call.
 */
import { fstatSync } from 'node:fs';
import { Socket } from 'node:net';
import { parentPort } from 'node:worker_threads';

/** How long the main thread has to exit by itself. */
const GRACE_MS = 100;

function end(): void {
  parentPort?.postMessage('over');
  setTimeout(() => process.kill(process.pid, 'SIGKILL'), GRACE_MS);
}

const stats = fstatSync(0);
if (stats.isFIFO() || stats.isSocket()) {
  const input = new Socket({ fd: 0, readable: true, writable: false });
  input.on('error', () => {});
  input.on('close', end);
  input.resume();
} else end();
