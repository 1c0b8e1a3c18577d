/**
 * `toolgate serve --processes N`: N replicas on one port of this machine. This process listens to none of them; it hands
 * out connections, keeps what they share if there is no store, starts one again that has ended, and passes signals on.
 */
import cluster, { type Worker } from 'node:cluster';
import { availableParallelism } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { backoffDelay } from '../base/backoff.ts';
import { GatewayError } from '../base/errors.ts';
import { openReplica, type Replica } from '../store/shared/replica.ts';
import { createUnsealed } from '../store/shared/sealing.ts';
import type { CommandIo } from './command-io.ts';
import { warn } from './terminal.ts';

const MOST = 64;

export function readProcesses(text: string): number {
  if (text === 'auto') return Math.min(MOST, availableParallelism());
  const count = /^\d{1,3}$/.test(text) ? Number(text) : 0;
  if (count >= 1 && count <= MOST) return count;
  throw new GatewayError('usage', `--processes needs a number from 1 to ${MOST}, or "auto" for one per core.`);
}

/** Whether this is one of the processes that `runProcesses` starts. */
export function isOneOfMany(): boolean {
  return cluster.isWorker;
}

/** Whether this one prints, and starts what there is one of. */
export function isFirst(): boolean {
  return cluster.worker?.id === 1;
}

/** Runs the same command in so many processes, until a signal ends them. */
export async function runProcesses(count: number, io: CommandIo): Promise<number> {
  const { createStoreHost } = await import('../store/shared/ipc-store.ts');
  const host = createStoreHost();
  cluster.setupPrimary({ serialization: 'advanced' });
  const workers = new Set<Worker>();
  let isStopping = false;
  let failures = 0;
  let firstCode = 0;

  function start(): Promise<void> {
    const worker = cluster.fork();
    workers.add(worker);
    const served = host.serve(worker as unknown as Parameters<typeof host.serve>[0]);
    const started = performance.now();
    worker.once('listening', () => {
      failures = 0;
    });
    return new Promise((resolve) => {
      worker.once('exit', async (code, signal) => {
        workers.delete(worker);
        served.ended();
        if (isStopping) {
          firstCode ||= signal === null ? code : 0;
          resolve();
          return;
        }
        // A configuration that cannot be served would fail again at once.
        if (code !== null && code > 0 && performance.now() - started < 10_000 && ++failures >= count) {
          isStopping = true;
          firstCode = code;
          for (const other of workers) other.kill('SIGTERM');
          resolve();
          return;
        }
        warn(`a process has ended (${signal ?? code}); another one is started`, io);
        await sleep(backoffDelay(Math.max(1, failures)));
        if (!isStopping) await start();
        resolve();
      });
    });
  }

  const pass = (signal: 'SIGINT' | 'SIGTERM') => () => {
    isStopping = true;
    for (const worker of workers) worker.process.kill(signal);
  };
  io.on('SIGTERM', pass('SIGTERM'));
  io.on('SIGINT', pass('SIGINT'));
  // One of them tells the others.
  io.on('SIGHUP', () => {
    const [first] = workers;
    first?.process.kill('SIGHUP');
  });
  await Promise.all(Array.from({ length: count }, start));
  return firstCode;
}

/** What this process shares with the others, if there is no store. */
export async function openProcessReplica(io: CommandIo): Promise<Replica> {
  const { openIpcStore } = await import('../store/shared/ipc-store.ts');
  const store = openIpcStore(process as unknown as Parameters<typeof openIpcStore>[0]);
  const sealing = createUnsealed(await store.key());
  return openReplica(store, sealing, { note: (message) => warn(message, io), failure: () => {} });
}
