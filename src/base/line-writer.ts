/**
 * Writes lines to a pipe or a socket. Lines of the same turn of the event loop leave in one write, because with many
 * callers the write is most of the cost of a call.
 */
import type { Writable } from 'node:stream';

/** Shorter lines are copied into the batch: a write of its own takes more than they do, also of memory while it waits. */
const SHORT = 4_096;

export class LineWriter {
  readonly #output: Writable;
  #batch = '';

  constructor(output: Writable) {
    this.#output = output;
  }

  /**
   * Writes a line and its newline. A string has one character per byte (latin1). Lines that can no longer be written
   * are dropped.
   */
  write(line: string | Buffer): void {
    if (typeof line === 'string' || line.length < SHORT) {
      if (this.#batch === '') setImmediate(this.#flush);
      this.#batch += `${typeof line === 'string' ? line : line.toString('latin1')}\n`;
      return;
    }
    this.#flush();
    if (!this.#output.writable) return;
    this.#output.write(line);
    this.#output.write('\n');
  }

  readonly #flush = (): void => {
    const output = this.#output;
    if (this.#batch !== '' && output.writable) {
      // What has to wait is kept as bytes: strings that are made of many small ones take several times as much.
      if (output.writableNeedDrain) output.write(Buffer.from(this.#batch, 'latin1'));
      else output.write(this.#batch, 'latin1');
    }
    this.#batch = '';
  };
}
