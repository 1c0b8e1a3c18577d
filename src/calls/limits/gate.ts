/**
 * Limits how many calls run at the same time. Further calls wait in a queue of bounded length. Agents take turns, and the
 * calls of one agent are admitted in order, so that one agent with many calls does not keep the others out.
 */
import type { GatewayError } from '../../base/errors.ts';

/** Something that waits at a gate. It is a node in the linked list of one gate at a time. */
export interface Waiting {
  gate: Gate | null;
  before: Waiting | null;
  after: Waiting | null;
  /** The agent that it waits for. */
  readonly agent: string;
  /** It has reached the head of the queue and now holds a place. */
  admitted(): void;
  /** It is removed from the queue without getting a place. */
  refuse(error: GatewayError): void;
}

/** The waiting calls of one agent. */
interface AgentQueue {
  first: Waiting | null;
  last: Waiting | null;
  count: number;
}

export class Gate {
  /** Whose gate it is, for messages: `Server "git"`. */
  readonly owner: string;
  limit: number;
  /** How many calls may wait. */
  room: number;
  running = 0;
  waiting = 0;
  /** The agent whose turn is next comes first. Empty while nobody waits. */
  readonly queues = new Map<string, AgentQueue>();
  /**
   * Set while the queue is being admitted. A call that ends as soon as it is admitted must not admit the next one
   * recursively: a long queue would overflow the stack.
   */
  isAdmitting = false;

  constructor(owner: string, limit: number, room: number) {
    this.owner = owner;
    this.limit = limit;
    this.room = room;
  }

  /** Takes a place, unless all are taken or others are waiting. Returns whether it did. */
  enter(): boolean {
    if (this.running >= this.limit || this.waiting > 0) return false;
    this.running++;
    return true;
  }

  leave(): void {
    this.running--;
    if (this.waiting > 0) this.admit();
  }

  /** Whether there is no place left, not even in the queue. */
  get isFull(): boolean {
    return this.waiting >= this.room && (this.running >= this.limit || this.waiting > 0);
  }

  /**
   * Whether a call of this agent gets a place or may wait. In a full queue it takes the place of the last call of the
   * agent with the most, if that has at least two more than this one. That call is refused with `error`.
   */
  hasRoomFor(agent: string, error: (gate: Gate) => GatewayError): boolean {
    if (!this.isFull) return true;
    let most: AgentQueue | null = null;
    for (const queue of this.queues.values()) if (queue.count > (most?.count ?? 0)) most = queue;
    if (most === null || most.count < (this.queues.get(agent)?.count ?? 0) + 2) return false;
    most.last?.refuse(error(this));
    return !this.isFull;
  }

  /** Appends to the queue of its agent. */
  join(one: Waiting): void {
    let queue = this.queues.get(one.agent);
    if (queue === undefined) {
      queue = { first: null, last: null, count: 0 };
      this.queues.set(one.agent, queue);
    }
    one.gate = this;
    one.before = queue.last;
    one.after = null;
    if (queue.last === null) queue.first = one;
    else queue.last.after = one;
    queue.last = one;
    queue.count++;
    this.waiting++;
  }

  /** Removes from the queue. Does nothing if it is not in this queue. */
  quit(one: Waiting): void {
    const queue = this.queues.get(one.agent);
    if (one.gate !== this || queue === undefined) return;
    if (one.before === null) queue.first = one.after;
    else one.before.after = one.after;
    if (one.after === null) queue.last = one.before;
    else one.after.before = one.before;
    one.gate = null;
    one.before = null;
    one.after = null;
    queue.count--;
    if (queue.count === 0) this.queues.delete(one.agent);
    this.waiting--;
  }

  /** Refuses everything in the queue, or everything of one agent. */
  clear(error: GatewayError, agent: string | null): void {
    const all: Waiting[] = [];
    for (const [owner, queue] of this.queues)
      if (agent === null || owner === agent) for (let one = queue.first; one !== null; one = one.after) all.push(one);
    // The end of one call may end another.
    for (const one of all) if (one.gate === this) one.refuse(error);
  }

  /** The call whose turn it is, removed from the queue. Its agent goes to the end of the turns. */
  #next(): Waiting | null {
    for (const [agent, queue] of this.queues) {
      const { first } = queue;
      if (first === null) continue;
      this.quit(first);
      if (queue.count > 0) {
        this.queues.delete(agent);
        this.queues.set(agent, queue);
      }
      return first;
    }
    return null;
  }

  /** Changes the limits. Running calls keep their places. */
  resize(limit: number, room: number): void {
    this.limit = limit;
    this.room = room;
    if (this.waiting > 0) this.admit();
  }

  admit(): void {
    if (this.isAdmitting) return;
    this.isAdmitting = true;
    try {
      while (this.running < this.limit) {
        const next = this.#next();
        if (next === null) break;
        this.running++;
        next.admitted();
      }
    } finally {
      this.isAdmitting = false;
    }
  }
}
