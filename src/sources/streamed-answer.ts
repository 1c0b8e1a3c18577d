/** An answer that is passed on while it comes. Its request stays pending, so that it can time out and be cancelled. */
import { messageOf } from '../base/errors.ts';
import type { ResultStream } from '../protocol/contract.ts';
import type { LongResult } from '../protocol/long-result.ts';
import type { PendingRequest } from './pending.ts';

export class StreamedAnswer {
  readonly #pending: PendingRequest;
  readonly #result: LongResult;
  readonly #stream: ResultStream;
  #isOver = false;

  constructor(pending: PendingRequest, result: LongResult, stream: ResultStream) {
    this.#pending = pending;
    this.#result = result;
    this.#stream = stream;
  }

  /** Whether nobody waits for the rest any more: it is only skipped. */
  get #isDropped(): boolean {
    const { table, id } = this.#pending;
    return this.#isOver || table.get(id) !== this.#pending;
  }

  push(part: Buffer): void {
    if (this.#isDropped) return;
    this.#pending.extend();
    try {
      const bytes = this.#result.push(part);
      if (bytes.length > 0) this.#stream.write(bytes);
    } catch (error) {
      this.#break(messageOf(error));
    }
  }

  end(): void {
    if (this.#isDropped) return;
    const { id, table } = this.#pending;
    try {
      if (this.#result.end() !== id) this.#break('It answers another request than it seemed to.');
      else if (table.withdraw(id)) this.#stream.end();
    } catch (error) {
      this.#break(messageOf(error));
    }
  }

  #break(problem: string): void {
    this.#isOver = true;
    this.#pending.breakOff(problem);
  }
}
