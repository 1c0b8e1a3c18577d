/**
 * What a window and a shared gateway say to each other besides the messages of the client. The window begins with one line,
 * and the gateway answers with one. From then on every line is a message, except those of the gateway that begin with `#`.
 */
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
