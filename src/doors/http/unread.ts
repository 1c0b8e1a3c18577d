/** What clients have been sent and have not read. It stays in memory, so each of them has a limit, and all together too. */
import type { ServerResponse } from 'node:http';
import type { LimitsConfig } from '../../config/config.ts';
import { SLOW } from '../answer.ts';

export interface Unread {
  /** Something was written: looks whether too much waits there now, or everywhere. */
  written(response: ServerResponse): void;
  /** Whether a client has so much to read that it gets no further messages. */
  isTooMuch(response: ServerResponse): boolean;
  close(): void;
}

/** A slow client that reads nothing at all for this long is gone. */
const STALLED = 60_000;
const TICK = 1_000;

interface Slow {
  read: number;
  since: number;
}

/** `limits` is asked each time, because it may be replaced. `cut` is told of each client that was left. */
export function createUnread(limits: () => LimitsConfig, cut: (bytes: number) => void): Unread {
  const slow = new Map<ServerResponse, Slow>();
  let timer: NodeJS.Timeout | null = null;

  function leave(response: ServerResponse): void {
    slow.delete(response);
    cut(response.writableLength);
    response.destroy();
  }

  function tick(): void {
    const now = Date.now();
    for (const [response, before] of slow) {
      const read = response.socket?.bytesWritten ?? 0;
      if (response.destroyed || response.writableLength < SLOW) slow.delete(response);
      else if (read !== before.read) slow.set(response, { read, since: now });
      else if (now - before.since > STALLED) leave(response);
    }
    if (slow.size > 0 || timer === null) return;
    clearInterval(timer);
    timer = null;
  }

  function makeRoom(): void {
    let sum = 0;
    let worst: ServerResponse | null = null;
    for (const response of slow.keys()) {
      sum += response.writableLength;
      if (worst === null || response.writableLength > worst.writableLength) worst = response;
    }
    if (worst === null || sum <= limits().unreadTotal) return;
    leave(worst);
    makeRoom();
  }

  return {
    written(response) {
      if (response.writableLength < SLOW || response.destroyed) return;
      if (!slow.has(response)) slow.set(response, { read: response.socket?.bytesWritten ?? 0, since: Date.now() });
      timer ??= setInterval(tick, TICK).unref();
      makeRoom();
    },
    isTooMuch(response) {
      if (response.writableLength <= limits().unread) return false;
      leave(response);
      return true;
    },
    close() {
      if (timer !== null) clearInterval(timer);
      slow.clear();
    },
  };
}
