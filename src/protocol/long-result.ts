/**
 * Follows a long answer of a server while it comes, so that its result can be passed on before it is complete. It is
 * recognised by its beginning. Brackets are followed through every byte, and what comes after the result is read as strictly as
 * any message: nothing becomes part of the result that is not in its brackets.
 */
import { GatewayError } from '../base/errors.ts';
import { BracketFollower } from './bracket-scan.ts';
import { idText, isResponse } from './message.ts';
import { readMessage } from './read.ts';

/** Bytes. Shorter answers are read whole: that is cheap, and the URIs in them are remembered. */
export const STREAMED = 256 * 1024;
/** Longer than every beginning that is recognised. */
const BEGINNING = 64;
/** Bytes that may follow the result. */
const MOST_AFTER = 4_096;

const ID_FIRST = /^\{"jsonrpc":"2\.0","id":(\d{1,15}),"result":(?=\{)/;
const RESULT_FIRST = '{"result":';

export class LongResult {
  /** The id before the result; null if it comes after it. */
  readonly id: number | null;
  /** The bytes before the result. */
  readonly before: string;
  readonly #brackets = new BracketFollower();
  #isOpen = true;
  #after = '';

  constructor(id: number | null, before: string) {
    this.id = id;
    this.before = before;
  }

  /** The bytes of the result in this part of the message, which starts where the last one ended. Throws a GatewayError. */
  push(part: Buffer): Buffer {
    if (!this.#isOpen) {
      this.#follow(part);
      return NOTHING;
    }
    const end = this.#brackets.push(part);
    if (end < 0) return part;
    this.#isOpen = false;
    if (end < part.length) this.#follow(part.subarray(end));
    return part.subarray(0, end);
  }

  #follow(part: Buffer): void {
    if (this.#after.length + part.length > MOST_AFTER) throw broken('too much follows its result');
    this.#after += part.toString('latin1');
  }

  /** The message is complete. Returns its id. Throws a GatewayError if it is not an answer. */
  end(): number {
    if (this.#isOpen) throw broken('it ends inside its result');
    const message = readMessage(Buffer.from(`${this.before}{}${this.#after}`, 'latin1'));
    if (!isResponse(message) || message.idStart < 0 || message.errorStart >= 0) throw broken('it is not an answer');
    return Number(idText(message));
  }
}

/** The answer that starts with these bytes; null if it is not written in one of the two usual ways. */
export function startLongResult(first: Buffer): LongResult | null {
  const beginning = first.toString('latin1', 0, BEGINNING);
  const idFirst = ID_FIRST.exec(beginning);
  if (idFirst !== null) return new LongResult(Number(idFirst[1]), idFirst[0]);
  return beginning.startsWith(`${RESULT_FIRST}{`) ? new LongResult(null, RESULT_FIRST) : null;
}

function broken(what: string): GatewayError {
  return new GatewayError('parse', `The message is not valid: ${what}.`);
}

const NOTHING = Buffer.alloc(0);
