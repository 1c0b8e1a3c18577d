/**
 * Bytes that come in parts, until somebody wants them. Every part takes a hundred bytes and more besides its own, so
 * short ones are copied together: a peer that sends one byte at a time would fill the memory with parts otherwise, long
 * before it reaches a limit on bytes.
 */

/** Shorter parts are copied. */
const SHORT = 1_024;
/** Bytes of the memory that they are copied to: of the first, and of the largest. */
const FIRST_BLOCK = 1_024;
const LAST_BLOCK = 65_536;
const NO_BYTES = Buffer.alloc(0);

export class CollectedParts {
  /** Bytes so far. */
  size = 0;
  #parts: Buffer[] = [];
  #block = NO_BYTES;
  /** Where in the block the open part starts and ends. */
  #start = 0;
  #end = 0;

  push(part: Buffer): void {
    if (part.length === 0) return;
    this.size += part.length;
    // Most messages come in one part, which is kept as it is.
    if (part.length >= SHORT || this.size === part.length) {
      this.#close();
      this.#parts.push(part);
      return;
    }
    if (this.#end + part.length > this.#block.length) {
      this.#close();
      const next = Math.min(Math.max(FIRST_BLOCK, 2 * this.#block.length), LAST_BLOCK);
      this.#block = Buffer.allocUnsafe(next);
      this.#start = 0;
      this.#end = 0;
    }
    part.copy(this.#block, this.#end);
    this.#end += part.length;
  }

  #close(): void {
    if (this.#end === this.#start) return;
    this.#parts.push(this.#block.subarray(this.#start, this.#end));
    this.#start = this.#end;
  }

  /** What has come so far. */
  get parts(): readonly Buffer[] {
    this.#close();
    return this.#parts;
  }

  /** Returns what has come, and starts from nothing. */
  take(): Buffer[] {
    this.#close();
    const parts = this.#parts;
    this.#parts = [];
    this.size = 0;
    // What was taken may be kept for long, and must not keep memory of the next ones.
    this.#block = NO_BYTES;
    this.#start = 0;
    this.#end = 0;
    return parts;
  }

  /** The same in one piece. */
  takeJoined(): Buffer {
    const parts = this.take();
    return parts.length === 1 ? parts[0]! : Buffer.concat(parts);
  }
}
