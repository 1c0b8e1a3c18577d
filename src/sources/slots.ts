/**
 * A table of pending things by ids that it assigns. It is an array whose slots are reused, and not a Map: V8 rebuilds a
 * Map that is constantly filled and emptied, and each dead table points to its successor. Once one of them is in the
 * old generation, all later calls survive young collections because of it.
 */
export interface Numbered {
  readonly id: number;
}

export class Slots<T extends Numbered> {
  #slots: (T | undefined)[] = new Array<T | undefined>(64).fill(undefined);
  #lastId = 0;
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** An id that was never assigned before, and whose slot is free. */
  nextId(): number {
    if (this.#size * 2 >= this.#slots.length) this.#grow();
    do {
      this.#lastId++;
    } while (this.#slots[this.#lastId & (this.#slots.length - 1)] !== undefined);
    return this.#lastId;
  }

  put(item: T): void {
    this.#slots[item.id & (this.#slots.length - 1)] = item;
    this.#size++;
  }

  get(id: number): T | undefined {
    const item = this.#slots[id & (this.#slots.length - 1)];
    return item?.id === id ? item : undefined;
  }

  take(id: number): T | undefined {
    const item = this.get(id);
    if (item === undefined) return undefined;
    this.#slots[id & (this.#slots.length - 1)] = undefined;
    this.#size--;
    return item;
  }

  all(): T[] {
    return this.#slots.filter((item) => item !== undefined);
  }

  /** Doubles the array until no two ids share a slot. */
  #grow(): void {
    const items = this.all();
    let length = this.#slots.length;
    let slots: (T | undefined)[];
    do {
      length *= 2;
      slots = new Array<T | undefined>(length).fill(undefined);
      for (const item of items) slots[item.id & (length - 1)] = item;
    } while (slots.filter((item) => item !== undefined).length < items.length);
    this.#slots = slots;
  }
}
