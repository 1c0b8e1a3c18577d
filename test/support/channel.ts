/** A channel between two processes, in one. */
import { EventEmitter } from 'node:events';
import type { Channeled } from '../../src/store/shared/ipc-store.ts';

/** Its two ends. Messages are copied, as between processes. */
export function openChannel(): [Channeled, Channeled] {
  const [one, other] = [new EventEmitter(), new EventEmitter()];
  const end = (from: EventEmitter, to: EventEmitter): Channeled => ({
    send: (message) => setImmediate(() => to.emit('message', structuredClone(message))),
    on: (event, listener) => from.on(event, listener),
  });
  return [end(one, other), end(other, one)];
}
