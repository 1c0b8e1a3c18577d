/**
 * Seals for the audit: the last line of each batch has a hash of the batch and of the previous seal. It shows whether a
 * line was changed, removed or inserted later. Each run of a gateway has its own chain, which begins at the last seal of
 * the run before. With a key the seal is a code (`mac`) that nobody can compute without that key.
 */
import { createHmac } from 'node:crypto';
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

/** What the first seal of all refers to. Runs from before there were heads refer to nothing. */
export const FIRST = sha256('toolgate audit', 'base64url');

/** `prev` is the seal that the first one refers to. */
export function createSeals(boot: string, prev = '', key: string | null = null): Seals {
  let last = prev;
  return {
    seal(bytes, size, lines) {
      // The seal goes before the brace and the line break that end every line.
      const about = `,"chain":"${boot}","batch":${lines},"prev":"${last}"`;
      const at = size - 2 + bytes.write(about, size - 2, 'latin1');
      const seal = sealOf(bytes.subarray(0, at), key);
      const name = key === null ? 'seal' : 'mac';
      return { seal, end: at + bytes.write(`,"${name}":"${seal}"}\n`, at, 'latin1') };
    },
    taken(seal) {
      last = seal;
    },
  };
}

/** More than a seal adds to a line. */
export const SEAL_ROOM = 256;

function sealOf(text: string | Buffer, key: string | null): string {
  return key === null ? sha256(text, 'base64url') : createHmac('sha256', key).update(text).digest('base64url');
}

const SEALED = /,"chain":"([\w-]{1,64})","batch":(\d{1,7}),"prev":"([\w-]{0,43})","(seal|mac)":"([\w-]{43})"\}$/;

/** A batch whose seal is right. */
export interface SealedBatch {
  readonly chain: string;
  readonly seal: string;
  readonly prev: string;
  readonly lines: number;
  readonly isKeyed: boolean;
  /** Of its first line, counted from 1. */
  readonly line: number;
  /** Whether it is the first of its chain. */
  readonly isFirst: boolean;
}

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

export interface VerifierOptions {
  /** Null without a key. */
  readonly key?: string | null;
  /** Called for each batch whose seal is right. */
  batch?(batch: SealedBatch): void;
  /** Whether a chain may begin in the middle, because its earlier files were removed after their retention. */
  mayContinue?(chain: string): boolean;
}

/** More lines than any batch has. */
const MOST_LINES = 100_000;

export function createVerifier({ key = null, batch: found, mayContinue }: VerifierOptions = {}): Verifier {
  const seals = new Map<string, string>();
  const all = new Set<string>([FIRST]);
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

  function check(line: string, parts: RegExpExecArray): SealProblem[] {
    const [, chain = '', batch, prev = '', name = '', seal = ''] = parts;
    const isKeyed = name === 'mac';
    const extra = open.length - Number(batch);
    const text = open.slice(Math.max(0, extra)).join('\n');
    const last = seals.get(chain);
    seals.set(chain, seal);
    all.add(seal);
    if (isKeyed && key === null)
      return [{ line: before + 1, message: 'is sealed with a key: set audit.key to the one that wrote it' }];
    const sealed = text.slice(0, text.length - line.length + line.lastIndexOf(`,"${name}":`));
    if (extra < 0 || sealOf(sealed, isKeyed ? key : null) !== seal) {
      const [from, to] = [before + 1, before + open.length];
      return [{ line: from, message: `something in lines ${from} to ${to} was changed, added or removed` }];
    }
    const problems = unsealed(extra);
    const first = before + Math.max(0, extra) + 1;
    const isFirst = last === undefined;
    // The oldest file may continue a chain whose earlier files were removed after their retention.
    if (isFirst ? prev !== '' && !all.has(prev) && !isOldest && mayContinue?.(chain) !== true : last !== prev)
      problems.push({
        line: first,
        message: isFirst
          ? 'what was written before this line is missing: the end of the run before, or the beginning of this one'
          : 'what the same gateway wrote before this line is missing',
      });
    else sound += Number(batch);
    found?.({ chain, seal, prev, lines: Number(batch), isKeyed, line: first, isFirst });
    return problems;
  }

  return {
    line(text) {
      open.push(text);
      const seal = SEALED.exec(text);
      if (seal === null && open.length < MOST_LINES) return [];
      const problems = seal === null ? unsealed(open.length) : check(text, seal);
      close();
      return problems;
    },
    end() {
      const problems = unsealed(open.filter((line) => line !== '').length);
      open = [];
      before = 0;
      isOldest = false;
      return problems;
    },
    get sound() {
      return sound;
    },
  };
}
