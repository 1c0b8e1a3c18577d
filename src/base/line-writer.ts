/**
 * Writes lines to a pipe or a socket. Lines of the same turn of the event loop leave in one write, because with many
 * callers the write is most of the cost of a call.
 */
import type { Writable } from 'node:stream';

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
    if (typeof line === 'string') {
      if (this.#batch === '') setImmediate(this.#flush);
      this.#batch += `${line}\n`;
      return;
    }
    this.#flush();
    if (!this.#output.writable) return;
    this.#output.write(line);
    this.#output.write('\n');
  }

  readonly #flush = (): void => {
    if (this.#batch !== '' && this.#output.writable) this.#output.write(this.#batch, 'latin1');
    this.#batch = '';
  };
}
