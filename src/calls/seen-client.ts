/**
 * One client of a caller: what it has listed, and whether it lists again when it is told that its list has changed. A
 * session has one. A caller without sessions has one for each `clientInfo` that its requests carry.
 */
import type { View } from '../access/view.ts';
import { type ClientTraits, missesNewTools } from '../protocol/known-clients.ts';

/** A call that can be kept. Ending it ends the wait. */
interface WaitingCall {
  waiting: { quit(): void } | null;
}

export class SeenClient {
  /** Milliseconds that an answer waits at most until its client has listed again. Tests of other things shorten it. */
  static longestWait = 1_000;
  traits: ClientTraits;
  /** What it saw when it last listed its tools; null before the first time. */
  seen: View | null = null;
  /** Whether it has let a wait pass without listing. Nothing waits for it again. */
  #isDeaf = false;
  /** Called when it has listed its tools. */
  readonly #waiting = new Set<() => void>();

  constructor(traits: ClientTraits) {
    this.traits = traits;
  }

  /** It has been sent the last page of its list of tools. */
  listed(): void {
    const waiting = [...this.#waiting];
    this.#waiting.clear();
    for (const proceed of waiting) proceed();
  }

  /**
   * Keeps a call until the client has listed its tools and had a moment to use them, because it builds its model's next
   * step as soon as it has the answer. Calls `proceed` at once if the client is not expected to list, and after a
   * second in any case. The argument of `proceed` says whether it has listed.
   */
  whenListed(call: WaitingCall, hears: boolean, proceed: (hasListed: boolean) => void): void {
    if (!hears || this.#isDeaf || missesNewTools(this.traits)) {
      proceed(false);
      return;
    }
    const end = (hasListed: boolean) => {
      call.waiting = null;
      proceed(hasListed);
    };
    const latest = performance.now() + SeenClient.longestWait;
    const settle = () => {
      clearTimeout(timer);
      timer = setTimeout(end, Math.min(this.traits.settle, latest - performance.now()), true);
    };
    let timer = setTimeout(() => {
      this.#waiting.delete(settle);
      this.#isDeaf = true;
      end(false);
    }, SeenClient.longestWait);
    this.#waiting.add(settle);
    call.waiting = {
      quit: () => {
        clearTimeout(timer);
        this.#waiting.delete(settle);
      },
    };
  }
}
