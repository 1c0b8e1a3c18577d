/** What clients have been sent and have not read. It stays in memory, so each of them has a limit, and all together too. */
import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { LimitsConfig } from '../../../config/limits.ts';

export interface Backpressure {
  /** Streams that are open. */
  readonly streams: number;
  opened(response: ServerResponse): void;
  /** Something was written: looks whether too much waits there now, or everywhere. */
  written(response: ServerResponse): void;
  /** Whether a client has so much to read that it gets no further messages. */
  isTooMuch(response: ServerResponse): boolean;
  close(): void;
}

/** A slow client that reads nothing at all for this long is gone. */
const STALLED = 60_000;
const TICK = 1_000;
/** Less than this is not worth counting. */
const LITTLE = 64 * 1024;

/** A connection with something to read. There are several replies on it where a client does not wait for one after the other. */
interface Slow {
  readonly replies: Set<ServerResponse>;
  /** What waited there when it was last looked at. */
  size: number;
  read: number;
  since: number;
}

/** `limits` is asked each time, because it may be replaced. `cut` is told of each client that was left. */
export function createBackpressure(limits: () => LimitsConfig, cut: (bytes: number) => void): Backpressure {
  const slow = new Map<Socket, Slow>();
  /** Of all sizes. Never too small, because what was read since is not yet taken off. */
  let sum = 0;
  let timer: NodeJS.Timeout | null = null;
  let streams = 0;

  function measure(one: Slow): void {
    let size = 0;
    for (const reply of one.replies) {
      if (reply.destroyed || reply.writableLength === 0) one.replies.delete(reply);
      else size += reply.writableLength;
    }
    sum += size - one.size;
    one.size = size;
  }

  function forget(socket: Socket, one: Slow): void {
    slow.delete(socket);
    sum -= one.size;
  }

  function leave(socket: Socket, one: Slow): void {
    forget(socket, one);
    cut(one.size);
    for (const reply of one.replies) reply.destroy();
    // A reply whose turn has not come has no hold on it.
    socket.destroy();
  }

  function tick(): void {
    const now = Date.now();
    for (const [socket, one] of slow) {
      measure(one);
      const read = readOf(socket);
      if (socket.destroyed || one.size < LITTLE) forget(socket, one);
      else if (read !== one.read) Object.assign(one, { read, since: now });
      else if (now - one.since > STALLED) leave(socket, one);
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
      leave(socket, worst);
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
        // One that waits for its turn may be one of many.
        const isLittle = writableLength < (response.socket === null ? 1 : LITTLE);
        if (isLittle || socket.destroyed) return;
        one = { replies: new Set(), size: 0, read: readOf(socket), since: Date.now() };
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
      leave(socket, one);
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
 * Changes when the other side takes something. `bytesWritten` counts what waits here, too, and of a long piece that is on
 * its way only the handle knows how much is left.
 */
function readOf(socket: Socket): number {
  const { bytesWritten, writableLength, _handle } = socket as Socket & { readonly _handle?: WriteQueue | null };
  return bytesWritten - writableLength - (_handle?.writeQueueSize ?? 0);
}

interface WriteQueue {
  readonly writeQueueSize?: number;
}
