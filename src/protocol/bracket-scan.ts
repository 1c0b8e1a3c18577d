/**
 * Where the outermost bracket of some JSON closes: strings and brackets, and nothing else, looked at natively fast. Ten
 * times the speed of a loop in JavaScript, which is what makes it possible to look at every byte of a large result.
 */

import { SKELETON } from './bracket-scan-code.ts';
import { sizeOf } from './parts.ts';

interface Machine {
  readonly bytes: Uint8Array;
  reset(): void;
  scan(end: number): number;
  quotes(): number;
}

// The types of Node leave it out.
declare const WebAssembly: {
  Module: new (bytes: Uint8Array) => object;
  Instance: new (module: object) => { readonly exports: unknown };
};

const BLOCK = 64;
const PIECE = 65_536;
const SPACE = 0x20;

let machine: Machine | null = null;

/** Made when the first long message comes: most gateways see none in their first second. */
function getMachine(): Machine {
  if (machine !== null) return machine;
  const { exports } = new WebAssembly.Instance(new WebAssembly.Module(Buffer.from(SKELETON, 'base64')));
  const { memory, reset, scan, quotes } = exports as Omit<Machine, 'bytes'> & { memory: { buffer: ArrayBuffer } };
  machine = { bytes: new Uint8Array(memory.buffer), reset, scan, quotes };
  return machine;
}

/** The number of bytes up to and with the bracket that closes the first one; -1 where it stays open. */
export function findClosingBracket(parts: readonly Buffer[]): number {
  const { bytes, reset, scan } = getMachine();
  reset();
  let read = 0;
  let held = 0;
  for (const part of parts) {
    for (let from = 0; from < part.length; from += PIECE) {
      const piece = part.length <= PIECE ? part : part.subarray(from, from + PIECE);
      bytes.set(piece, held);
      const total = held + piece.length;
      // Whole blocks only: an escape at the end of a part reaches into the next one.
      const whole = total - (total % BLOCK);
      const end = scan(whole);
      if (end >= 0) return read + end;
      bytes.copyWithin(0, whole, total);
      read += whole;
      held = total - whole;
    }
  }
  bytes.fill(SPACE, held, BLOCK);
  const end = scan(BLOCK);
  return end < 0 ? -1 : read + end;
}

const OPEN = Buffer.from('[');
const CLOSE = Buffer.from(']');
const QUOTE = 0x22;

/** Whether these bytes, with their quotes, are one string and nothing else. */
export function isOneString(parts: readonly Buffer[]): boolean {
  const last = parts.at(-1)!;
  if (parts[0]![0] !== QUOTE || last[last.length - 1] !== QUOTE) return false;
  return findClosingBracket([OPEN, ...parts, CLOSE]) === sizeOf(parts) + 2 && getMachine().quotes() === 2;
}
