/**
 * Limits the data that clients have been sent but have not read. It is held in memory, so each client has a limit, and
 * all clients together have one.
 */
import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { LimitsConfig } from '../../../config/limits.ts';

export interface Backpressure {
  /** The number of open streams. */
  readonly streams: number;
  opened(response: ServerResponse): void;
  /** Call it after each write. It disconnects the slowest clients while the total of unread data is above the limit. */
  written(response: ServerResponse): void;
  /** Whether a client has more unread data than allowed. If so, its connection is closed. */
  isTooMuch(response: ServerResponse): boolean;
  close(): void;
}

/** Milliseconds after which a slow client that reads nothing at all is disconnected. */
const STALLED = 60_000;
const TICK = 1_000;
/** Bytes. A connection with less unread data is not tracked. */
const LITTLE = 64 * 1024;

/** A connection with unread data. A client that pipelines requests has several replies on one connection. */
interface SlowConnection {
  readonly replies: Set<ServerResponse>;
  /** Unread bytes when it was last measured. */
  size: number;
  /** Bytes that the client had read at the last measurement, and when that number last changed. */
  read: number;
  since: number;
}

/**
 * `limits` is read each time, because the configuration may be replaced. `dropped` is called for each client that was
 * disconnected.
 */
export function createBackpressure(limits: () => LimitsConfig, dropped: (bytes: number) => void): Backpressure {
  const slow = new Map<Socket, SlowConnection>();
  /**
   * The sum of all sizes. It may be too large but never too small: data read since is subtracted at the next
   * measurement.
   */
  let sum = 0;
  let timer: NodeJS.Timeout | null = null;
  let streams = 0;

  function measure(one: SlowConnection): void {
    let size = 0;
    for (const reply of one.replies) {
      if (reply.destroyed || reply.writableLength === 0) one.replies.delete(reply);
      else size += reply.writableLength;
    }
    sum += size - one.size;
    one.size = size;
  }

  function forget(socket: Socket, one: SlowConnection): void {
    slow.delete(socket);
    sum -= one.size;
  }

  function drop(socket: Socket, one: SlowConnection): void {
    forget(socket, one);
    dropped(one.size);
    for (const reply of one.replies) reply.destroy();
    // A reply that is queued behind another does not own the socket yet, so destroying the reply would not close it.
    socket.destroy();
  }

  function tick(): void {
    const now = Date.now();
    for (const [socket, one] of slow) {
      measure(one);
      const read = bytesRead(socket);
      if (socket.destroyed || one.size < LITTLE) forget(socket, one);
      else if (read !== one.read) Object.assign(one, { read, since: now });
      else if (now - one.since > STALLED) drop(socket, one);
    }
    if (slow.size > 0 || timer === null) return;
    clearInterval(timer);
    timer = null;
  }

  function makeRoom(): void {
    const limit = limits().unreadTotal;
    if (sum <= limit) return;
    for (const [socket, one] of slow) {
      measure(one);
      if (socket.destroyed) forget(socket, one);
    }
    while (sum > limit && slow.size > 0) {
      const [socket, worst] = [...slow].reduce((a, b) => (b[1].size > a[1].size ? b : a));
      drop(socket, worst);
    }
  }

  return {
    get streams() {
      return streams;
    },
    opened(response) {
      streams++;
      response.once('close', () => streams--);
    },
    written(response) {
      const { writableLength, req } = response;
      const { socket } = req;
      let one = slow.get(socket);
      if (one === undefined) {
        // A reply without a socket is queued behind others. There may be many of those, so each one is tracked.
        const isLittle = writableLength < (response.socket === null ? 1 : LITTLE);
        if (isLittle || socket.destroyed) return;
        one = { replies: new Set(), size: 0, read: bytesRead(socket), since: Date.now() };
        slow.set(socket, one);
        timer ??= setInterval(tick, TICK).unref();
      }
      one.replies.add(response);
      measure(one);
      makeRoom();
    },
    isTooMuch(response) {
      if (response.writableLength <= limits().unread) return false;
      const { socket } = response.req;
      const one = slow.get(socket) ?? { replies: new Set([response]), size: 0, read: 0, since: 0 };
      measure(one);
      drop(socket, one);
      return true;
    },
    close() {
      if (timer !== null) clearInterval(timer);
      slow.clear();
      sum = 0;
    },
  };
}

/**
 * The bytes that the client has read. Node's `bytesWritten` includes data still queued here, and only the handle knows
 * how much is left of a long write in progress.
 */
function bytesRead(socket: Socket): number {
  const { bytesWritten, writableLength, _handle } = socket as Socket & { readonly _handle?: WriteQueue | null };
  return bytesWritten - writableLength - (_handle?.writeQueueSize ?? 0);
}

interface WriteQueue {
  readonly writeQueueSize?: number;
}
