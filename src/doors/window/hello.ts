/**
 * What a window and a shared gateway say to each other besides the messages of the client. The window begins with one line,
 * and the gateway answers with one. From then on every line is a message, except those of the gateway that begin with `#`.
 */
import { unlink } from 'node:fs/promises';
import { createConnection, type Socket } from 'node:net';
import { sha256 } from '../../base/hash.ts';

/** Raised when windows of older versions would not understand the gateway any more. */
export const HELLO_VERSION = 1;

/** How a window introduces itself. */
export interface WindowHello {
  readonly toolgate: number;
  readonly agent: string;
  /** As given on the command line; null if it was not. */
  readonly task: string | null;
  /** The toolset to equip; null if none was given, or if the window had a gateway before. */
  readonly toolset: string | null;
  /** From which level on it wants the log of the gateway. */
  readonly log: string;
  /** A hash of each of its environment variables. */
  readonly env: EnvHashes;
  /** How many gateways it had before this one. */
  readonly before: number;
  /** What its last gateway told it to keep; null if there was none. */
  readonly kept: unknown;
}

/** A question about the gateway instead. */
export interface WindowQuestion {
  readonly toolgate: number;
  readonly ask: 'status' | 'stop';
}

/** What the gateway answers to a question. */
export interface SharedGatewayStatus {
  readonly pid: number;
  readonly version: string;
  /** When it was started, as ISO 8601. */
  readonly started: string;
  readonly file: string | null;
  readonly windows: number;
  /** Where its log is. */
  readonly log: string;
}

export type WindowWelcome =
  | { readonly welcome: true }
  /** This gateway is not for this window: another one may be, or the window has to start one. */
  | { readonly other: 'environment' | 'stopping' }
  /** The configuration says that windows do not share. */
  | { readonly other: 'unshared' }
  | { readonly code: string; readonly message: string };

/** The first byte of a line that is not a message. */
export const ASIDE = 0x23;

/** What follows `#`: what a window keeps for its next gateway, a line of the log, or that the gateway ends as it should. */
export type Aside = { readonly keep: unknown } | { readonly log: string } | { readonly ending: true };

export function asideLine(aside: Aside): string {
  return `#${JSON.stringify(aside)}\n`;
}

export type EnvHashes = Readonly<Record<string, string>>;

/** Hashes, because the values may be secrets. */
export function hashEnv(env: Readonly<Record<string, string | undefined>>): EnvHashes {
  const hashes: Record<string, string> = {};
  for (const [name, value] of Object.entries(env))
    if (value !== undefined) hashes[name] = sha256(value, 'base64url').slice(0, 16);
  return hashes;
}

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
    const failed = () => finish(null);
    const broken = ({ code }: NodeJS.ErrnoException) => {
      if (code === 'ECONNREFUSED') unlink(path).catch(() => {});
      failed();
    };
    const read = (chunk: Buffer) => {
      const end = chunk.indexOf(NEWLINE);
      parts.push(end < 0 ? chunk : chunk.subarray(0, end));
      if (end < 0) return;
      socket.pause();
      if (end + 1 < chunk.length) socket.unshift(chunk.subarray(end + 1));
      finish({ answer: JSON.parse(Buffer.concat(parts).toString()) as T, socket });
    };
    const finish = (result: Answered<T> | null) => {
      clearTimeout(timer);
      // One by one: Node forgets what was put back if all listeners are removed at once.
      socket.off('data', read).off('end', failed).off('close', failed).off('error', broken);
      // A connection that breaks later is reported by its end.
      socket.on('error', () => {});
      if (result === null) socket.destroy();
      resolve(result);
    };
    const timer = setTimeout(finish, PATIENCE, null);
    socket.once('error', broken).once('end', failed).once('close', failed).on('data', read);
    socket.write(`${JSON.stringify(hello)}\n`);
  });
}
