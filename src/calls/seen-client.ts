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

/** If a client has seen more tools than this that are gone, their places are forgotten. */
const MOST_AWAY = 10_000;

export class SeenClient {
  traits: ClientTraits;
  /** What it saw when it last listed its tools; null before the first time. */
  seen: View | null = null;
  /** The tools that it has seen, in their order, with those of servers that are away: they come back to their places. */
  order: readonly string[] = [];
  /** Whether it has let a wait pass without listing. Nothing waits for it again. */
  #isDeaf = false;
  /** Called when it has listed its tools. */
  readonly #waiting = new Set<() => void>();

  /** Milliseconds that an answer waits at most until this client has listed again. */
  readonly #longestWait: number;

  constructor(traits: ClientTraits, longestWait: number) {
    this.traits = traits;
    this.#longestWait = longestWait;
  }

  /** It lists its tools, and this is what it sees. */
  sees(view: View): void {
    if (view === this.seen) return;
    this.seen = view;
    const { tool } = view.entries;
    const isAway = (name: string) => !view.catalog.entries.tool.has(name);
    const before = this.order.filter((name) => tool.has(name) || isAway(name));
    const known = new Set(before.length > tool.size + MOST_AWAY ? before.filter((name) => tool.has(name)) : before);
    this.order = [...known, ...[...tool.keys()].filter((name) => !known.has(name))];
  }

  /** It has been sent the last page of its list of tools. */
  listed(): void {
    const waiting = [...this.#waiting];
    this.#waiting.clear();
    for (const proceed of waiting) proceed();
  }

  /**
   * Keeps a call until the client has listed its tools and had a moment to use them, because it builds its model's next
   * step as soon as it has the answer. Calls `proceed` at once if the client is not expected to list, and after the
   * longest wait in any case. The argument of `proceed` says whether it has listed.
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
    const latest = performance.now() + this.#longestWait;
    const settle = () => {
      clearTimeout(timer);
      timer = setTimeout(end, Math.min(this.traits.settle, latest - performance.now()), true);
    };
    let timer = setTimeout(() => {
      this.#waiting.delete(settle);
      this.#isDeaf = true;
      end(false);
    }, this.#longestWait);
    this.#waiting.add(settle);
    call.waiting = {
      quit: () => {
        clearTimeout(timer);
        this.#waiting.delete(settle);
      },
    };
  }
}
