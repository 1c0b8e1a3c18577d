/** The result of a call that is passed on while it comes. What is counted and recorded of it is its size and its two ends. */
import type { ResultStream } from '../protocol/contract.ts';
import { endsWithError, SEARCHED, startsWithError } from '../protocol/tool-error.ts';
import { OK, TOOL_ERROR } from './outcome.ts';

/** The part of a call that is needed here. */
interface StreamingCall {
  readonly isOver: boolean;
  readonly entry: { readonly kind: string };
  /** The whole result has been passed on. Returns false if the call was over before. */
  streamed(outcome: number, bytes: number): boolean;
}

export class StreamedResult implements ResultStream {
  readonly #call: StreamingCall;
  readonly #inner: ResultStream;
  #size = 0;
  #isError = false;
  /** The last bytes. */
  #end: Buffer = Buffer.alloc(0);

  constructor(call: StreamingCall, inner: ResultStream) {
    this.#call = call;
    this.#inner = inner;
  }

  write(part: Buffer): void {
    if (this.#call.isOver) return;
    if (this.#size === 0) this.#isError = startsWithError(part);
    this.#size += part.length;
    this.#end =
      part.length >= SEARCHED ? part.subarray(-SEARCHED) : Buffer.concat([this.#end, part]).subarray(-SEARCHED);
    this.#inner.write(part);
  }

  end(): void {
    const isError = this.#call.entry.kind === 'tool' && (this.#isError || endsWithError(this.#end));
    if (this.#call.streamed(isError ? TOOL_ERROR : OK, this.#size)) this.#inner.end();
  }
}
