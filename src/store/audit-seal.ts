/**
 * Seals on what was written together: the last line of each batch carries a hash of the batch and of the seal before, so a
 * line that was changed, taken out or put in later is found. Each gateway has a chain of its own.
 */
import { createHash } from 'node:crypto';

export interface Seals {
  /** Seals the lines in the first `size` bytes, in place; there have to be `ROOM` bytes behind them. Gives the seal, and where it ends. */
  seal(bytes: Buffer, size: number, lines: number): { readonly seal: string; readonly end: number };
  /** The batch was written: the next one follows it. */
  taken(seal: string): void;
}

export function createSeals(boot: string): Seals {
  let last = '';
  return {
    seal(bytes, size, lines) {
      // Every line ends in a brace and a line break, which the seal comes before.
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
export const ROOM = 256;

function sealOf(text: string | Buffer): string {
  return createHash('sha256').update(text).digest('base64url');
}

const SEALED = /,"chain":"([\w-]{1,64})","batch":(\d{1,7}),"prev":"([\w-]{0,43})","seal":"([\w-]{43})"\}$/;

export interface Verifier {
  /** A line of the file; gives what is wrong up to here. */
  line(text: string): SealProblem[];
  /** The file ends; another day's may follow. */
  end(): SealProblem[];
  /** Lines that are as they were written. */
  readonly sound: number;
}

export interface SealProblem {
  /** Of the file, from 1 on. */
  readonly line: number;
  readonly message: string;
}

/** No batch is that long: what follows is no longer looked at together. */
const MOST_LINES = 100_000;

export function createVerifier(): Verifier {
  const seals = new Map<string, string>();
  /** Since the last seal, and how many lines there were before. */
  let open: string[] = [];
  let before = 0;
  let sound = 0;
  let isOldest = true;

  function close(): void {
    before += open.length;
    open = [];
  }

  function unsealed(count: number): SealProblem[] {
    return count === 0 ? [] : [{ line: before + 1, message: `${linesText(count)} without a seal: added, or cut off` }];
  }

  function check(line: string, [, chain = '', batch, prev, seal = '']: RegExpExecArray): SealProblem[] {
    const extra = open.length - Number(batch);
    const text = open.slice(Math.max(0, extra)).join('\n');
    const last = seals.get(chain);
    seals.set(chain, seal);
    if (extra < 0 || sealOf(text.slice(0, text.length - line.length + line.lastIndexOf(',"seal":'))) !== seal) {
      const [from, to] = [before + 1, before + open.length];
      return [{ line: from, message: `something in lines ${from} to ${to} was changed, added or taken out` }];
    }
    const found = unsealed(extra);
    // In the oldest file a chain may go on whose beginning was removed in time.
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

function linesText(count: number): string {
  return count === 1 ? '1 line is' : `${count} lines are`;
}
