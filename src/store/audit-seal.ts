/**
 * Seals for the audit: the last line of each batch has a hash of the batch and of the previous seal. It shows whether a
 * line was changed, removed or inserted later. Each gateway has its own chain.
 */
import { sha256 } from '../base/hash.ts';
import { counted } from '../base/text.ts';

export interface Seals {
  /**
   * Seals the lines in the first `size` bytes, in place. `SEAL_ROOM` free bytes have to follow them. Returns the seal
   * and where it ends.
   */
  seal(bytes: Buffer, size: number, lines: number): { readonly seal: string; readonly end: number };
  /** Call it when the batch was written: the next seal refers to this one. */
  taken(seal: string): void;
}

export function createSeals(boot: string): Seals {
  let last = '';
  return {
    seal(bytes, size, lines) {
      // The seal goes before the brace and the line break that end every line.
      const about = `,"chain":"${boot}","batch":${lines},"prev":"${last}"`;
      const at = size - 2 + bytes.write(about, size - 2, 'latin1');
      const seal = sealOf(bytes.subarray(0, at));
      return { seal, end: at + bytes.write(`,"seal":"${seal}"}\n`, at, 'latin1') };
    },
    taken(seal) {
      last = seal;
    },
  };
}

/** More than a seal adds to a line. */
export const SEAL_ROOM = 256;

function sealOf(text: string | Buffer): string {
  return sha256(text, 'base64url');
}

const SEALED = /,"chain":"([\w-]{1,64})","batch":(\d{1,7}),"prev":"([\w-]{0,43})","seal":"([\w-]{43})"\}$/;

export interface Verifier {
  /** The next line of the file. Returns the problems found so far. */
  line(text: string): SealProblem[];
  /** The end of the file. The file of another day may follow. */
  end(): SealProblem[];
  /** How many lines are as they were written. */
  readonly sound: number;
}

export interface SealProblem {
  /** In the file, counted from 1. */
  readonly line: number;
  readonly message: string;
}

/** More lines than any batch has. */
const MOST_LINES = 100_000;

export function createVerifier(): Verifier {
  const seals = new Map<string, string>();
  /** The lines since the last seal, and how many came before them. */
  let open: string[] = [];
  let before = 0;
  let sound = 0;
  let isOldest = true;

  function close(): void {
    before += open.length;
    open = [];
  }

  function unsealed(count: number): SealProblem[] {
    return count === 0
      ? []
      : [{ line: before + 1, message: `${counted(count, 'line is', 'lines are')} without a seal: added, or cut off` }];
  }

  function check(line: string, [, chain = '', batch, prev, seal = '']: RegExpExecArray): SealProblem[] {
    const extra = open.length - Number(batch);
    const text = open.slice(Math.max(0, extra)).join('\n');
    const last = seals.get(chain);
    seals.set(chain, seal);
    if (extra < 0 || sealOf(text.slice(0, text.length - line.length + line.lastIndexOf(',"seal":'))) !== seal) {
      const [from, to] = [before + 1, before + open.length];
      return [{ line: from, message: `something in lines ${from} to ${to} was changed, added or removed` }];
    }
    const found = unsealed(extra);
    // The oldest file may continue a chain whose earlier files were removed after their retention.
    if (last === undefined ? !isOldest && prev !== '' : last !== prev)
      found.push({ line: before + extra + 1, message: 'what the same gateway wrote before this line is missing' });
    else sound += Number(batch);
    return found;
  }

  return {
    line(text) {
      open.push(text);
      const seal = SEALED.exec(text);
      if (seal === null && open.length < MOST_LINES) return [];
      const found = seal === null ? unsealed(open.length) : check(text, seal);
      close();
      return found;
    },
    end() {
      const found = unsealed(open.filter((line) => line !== '').length);
      open = [];
      before = 0;
      isOldest = false;
      return found;
    },
    get sound() {
      return sound;
    },
  };
}
