/** How many calls run at one time. Those beyond that wait for their turn, in order; so many of them and no more. */
import type { GatewayError } from '../../base/errors.ts';

/** Whoever waits at a gate. It stands in the row of one gate at a time, as a link of it. */
export interface Waiting {
  gate: Gate | null;
  before: Waiting | null;
  after: Waiting | null;
  /** Its turn has come: it is in. */
  admitted(): void;
  /** It waits no longer, and does not get in. */
  refuse(error: GatewayError): void;
}

export class Gate {
  /** Whose it is, for messages: `Server "git"`. */
  readonly owner: string;
  limit: number;
  /** How many may wait. */
  room: number;
  running = 0;
  waiting = 0;
  first: Waiting | null = null;
  last: Waiting | null = null;
  /** One that gets in and is over at once must not let in the next: a long row would overflow the stack. */
  isAdmitting = false;

  constructor(owner: string, limit: number, room: number) {
    this.owner = owner;
    this.limit = limit;
    this.room = room;
  }

  /** Goes in, unless it is full or others wait. */
  enter(): boolean {
    if (this.running >= this.limit || this.waiting > 0) return false;
    this.running++;
    return true;
  }

  leave(): void {
    this.running--;
    if (this.waiting > 0) this.admit();
  }

  /** Whether there is no place left, not even to wait. */
  get isFull(): boolean {
    return this.waiting >= this.room && (this.running >= this.limit || this.waiting > 0);
  }

  /** Waits at the end of the row. */
  join(one: Waiting): void {
    one.gate = this;
    one.before = this.last;
    one.after = null;
    if (this.last === null) this.first = one;
    else this.last.after = one;
    this.last = one;
    this.waiting++;
  }

  /** Waits no longer; nothing happens where it does not wait here. */
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

  /** Nobody is to wait. */
  clear(error: GatewayError): void {
    while (this.first !== null) this.first.refuse(error);
  }

  /** Others hold from here on; those who are in stay. */
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
