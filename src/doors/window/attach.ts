/** Connects to a shared gateway at its socket, and says hello. */
import { unlink } from 'node:fs/promises';
import { createConnection, type Socket } from 'node:net';
import type { WindowHello, WindowQuestion, WindowWelcome } from './hello.ts';

const NEWLINE = 0x0a;
/** Milliseconds for the gateway to answer. It may be busy with its start. */
const PATIENCE = 30_000;

export interface Answered<T> {
  readonly answer: T;
  /** Paused, with whatever came after the answer still to be read. */
  readonly socket: Socket;
}

/**
 * Sends one line and reads the line that answers it. Null if nobody listens there, or if the gateway ended first. The socket
 * of a gateway that was killed is removed.
 */
export function sayHello<T = WindowWelcome>(
  path: string,
  hello: WindowHello | WindowQuestion,
): Promise<Answered<T> | null> {
  return new Promise((resolve) => {
    const socket = createConnection({ path, allowHalfOpen: true });
    const parts: Buffer[] = [];
    const finish = (result: Answered<T> | null) => {
      clearTimeout(timer);
      socket.removeAllListeners();
      // A connection that breaks later is reported by its end.
      socket.on('error', () => {});
      if (result === null) socket.destroy();
      resolve(result);
    };
    const timer = setTimeout(finish, PATIENCE, null);
    socket.once('error', ({ code }: NodeJS.ErrnoException) => {
      if (code === 'ECONNREFUSED') unlink(path).catch(() => {});
      finish(null);
    });
    socket.once('end', () => finish(null));
    socket.once('close', () => finish(null));
    socket.on('data', (chunk: Buffer) => {
      const end = chunk.indexOf(NEWLINE);
      parts.push(end < 0 ? chunk : chunk.subarray(0, end));
      if (end < 0) return;
      socket.pause();
      if (end + 1 < chunk.length) socket.unshift(chunk.subarray(end + 1));
      finish({ answer: JSON.parse(Buffer.concat(parts).toString()) as T, socket });
    });
    socket.write(`${JSON.stringify(hello)}\n`);
  });
}
