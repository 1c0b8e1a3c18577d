/**
 * Limits how many calls run at the same time. Further calls wait in a queue of bounded length and are admitted in
 * order.
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

export class Gate {
  /** Whose gate it is, for messages: `Server "git"`. */
  readonly owner: string;
  limit: number;
  /** How many calls may wait. */
  room: number;
  running = 0;
  waiting = 0;
  first: Waiting | null = null;
  last: Waiting | null = null;
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

  /** Appends to the queue. */
  join(one: Waiting): void {
    one.gate = this;
    one.before = this.last;
    one.after = null;
    if (this.last === null) this.first = one;
    else this.last.after = one;
    this.last = one;
    this.waiting++;
  }

  /** Removes from the queue. Does nothing if it is not in this queue. */
  quit(one: Waiting): void {
    if (one.gate !== this) return;
    if (one.before === null) this.first = one.after;
    else one.before.after = one.after;
    if (one.after === null) this.last = one.before;
    else one.after.before = one.before;
    one.gate = null;
    one.before = null;
    one.after = null;
    this.waiting--;
  }

  /** Refuses everything in the queue, or everything of one agent. */
  clear(error: GatewayError, agent: string | null): void {
    const all: Waiting[] = [];
    for (let one = this.first; one !== null; one = one.after) if (agent === null || one.agent === agent) all.push(one);
    // The end of one call may end another.
    for (const one of all) if (one.gate === this) one.refuse(error);
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
      while (this.first !== null && this.running < this.limit) {
        const next = this.first;
        this.quit(next);
        this.running++;
        next.admitted();
      }
    } finally {
      this.isAdmitting = false;
    }
  }
}
