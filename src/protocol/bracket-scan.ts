/**
 * Finds where the outermost bracket of some JSON closes. It looks at strings and brackets only, 64 bytes at a time, in
 * WebAssembly with SIMD. That is fast enough to look at every byte of a large result.
 *
 * Measured on 176 KB of JSON with many members: 41 µs (4 GB/s), against 395 µs (0.45 GB/s) for a loop in JavaScript.
 */
import { BRACKET_SCAN } from './bracket-scan-code.ts';

interface Machine {
  readonly bytes: Uint8Array;
  reset(): void;
  state(): number;
  restore(state: number): void;
  scan(end: number): number;
  quotes(): number;
  controls(end: number): number;
}

// Missing in the types of Node.
declare const WebAssembly: {
  Module: new (bytes: Uint8Array) => object;
  Instance: new (module: object) => { readonly exports: unknown };
};

const BLOCK = 64;
const PIECE = 65_536;
const SPACE = 0x20;

let machine: Machine | null = null;

/** Compiled for the first long message, not at start-up. */
function getMachine(): Machine {
  if (machine !== null) return machine;
  const { exports } = new WebAssembly.Instance(new WebAssembly.Module(Buffer.from(BRACKET_SCAN, 'base64')));
  const { memory, reset, state, restore, scan, quotes, controls } = exports as Omit<Machine, 'bytes'> & {
    memory: { buffer: ArrayBuffer };
  };
  machine = { bytes: new Uint8Array(memory.buffer), reset, state, restore, scan, quotes, controls };
  return machine;
}

/** The number of bytes up to and including the bracket that closes the first one; -1 if none does. */
export function findClosingBracket(parts: readonly Buffer[]): number {
  const { bytes, reset, scan } = getMachine();
  reset();
  let read = 0;
  let kept = 0;
  for (const part of parts) {
    for (let from = 0; from < part.length; from += PIECE) {
      const piece = part.length <= PIECE ? part : part.subarray(from, from + PIECE);
      bytes.set(piece, kept);
      const total = kept + piece.length;
      // Only whole blocks are scanned. Padding one here would separate an escape from the character it escapes.
      const scanned = total - (total % BLOCK);
      const end = scan(scanned);
      if (end >= 0) return read + end;
      bytes.copyWithin(0, scanned, total);
      read += scanned;
      kept = total - scanned;
    }
  }
  bytes.fill(SPACE, kept, BLOCK);
  const end = scan(BLOCK);
  return end < 0 ? -1 : read + end;
}

/** The same for bytes that are still coming. Several may be followed in turn. */
export class BracketFollower {
  #state = 0;
  /** Bytes that do not fill a block yet. */
  readonly #kept = new Uint8Array(BLOCK);
  #keptSize = 0;

  /** The number of bytes of this part up to and including the bracket that closes the first one of all; -1 if it is open. */
  push(part: Buffer): number {
    const { bytes, restore, scan, state } = getMachine();
    for (let from = 0; from < part.length; from += PIECE) {
      const piece = part.length <= PIECE ? part : part.subarray(from, from + PIECE);
      const kept = this.#keptSize;
      if (kept > 0) bytes.set(this.#kept.subarray(0, kept), 0);
      bytes.set(piece, kept);
      const total = kept + piece.length;
      const scanned = total - (total % BLOCK);
      restore(this.#state);
      const end = scan(scanned);
      if (end >= 0) return from + end - kept;
      this.#state = state();
      this.#keptSize = total - scanned;
      if (this.#keptSize === 0) continue;
      this.#kept.set(bytes.subarray(scanned, total));
      // The rest is looked at now, and again with what follows: an escape may be its last byte.
      bytes.copyWithin(0, scanned, total);
      bytes.fill(SPACE, this.#keptSize, BLOCK);
      const last = scan(BLOCK);
      if (last >= 0) return from + piece.length - this.#keptSize + last;
    }
    return -1;
  }
}

const OPEN = Buffer.from('[');
const CLOSE = Buffer.from(']');
const QUOTE = 0x22;

/** Whether these bytes are exactly one JSON string, quotes included. */
export function isOneString(parts: readonly Buffer[]): boolean {
  const last = parts.at(-1)!;
  if (parts[0]![0] !== QUOTE || last[last.length - 1] !== QUOTE) return false;
  const size = parts.reduce((sum, part) => sum + part.length, 0);
  return findClosingBracket([OPEN, ...parts, CLOSE]) === size + 2 && getMachine().quotes() === 2;
}

/** Fewer bytes are read faster by a loop. */
const SHORT = 256;

/** Whether the bytes contain a control character, which JSON does not allow in strings. */
export function hasControl(part: Buffer): boolean {
  if (part.length < SHORT) {
    for (const byte of part) if (byte < SPACE) return true;
    return false;
  }
  const { bytes, controls } = getMachine();
  for (let from = 0; from < part.length; from += PIECE) {
    const piece = part.subarray(from, from + PIECE);
    bytes.set(piece, 0);
    const end = Math.ceil(piece.length / BLOCK) * BLOCK;
    bytes.fill(SPACE, piece.length, end);
    if (controls(end) === 1) return true;
  }
  return false;
}
