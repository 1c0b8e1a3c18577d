/** Values that every replica has in memory, by name. They are JSON, and their source is the store. */
import type { Sealing } from './sealing.ts';
import type { SharedStore } from './shared-store.ts';

export interface SharedMap {
  get(key: string): unknown;
  entries(): Iterable<readonly [string, unknown]>;
  /** Null removes it. Resolves when every replica that is alive knows it, or after a second. */
  set(key: string, value: unknown): Promise<void>;
}

/** What a map needs of its replica. */
export interface MapUser {
  readonly store: SharedStore;
  readonly sealing: Sealing;
  /** Tells all replicas of a change in the step that writes it. */
  told(write: (news: Buffer) => Promise<void>, body: Readonly<Record<string, unknown>>): Promise<void>;
  changed(key: string, value: unknown): void;
}

export class MirroredMap implements SharedMap {
  readonly #name: string;
  readonly #user: MapUser;
  readonly #values = new Map<string, { readonly text: string; readonly value: unknown }>();
  /** What has changed since the entries were asked for: what is loaded may be older. */
  #fresh: Set<string> | null = null;

  constructor(name: string, user: MapUser) {
    this.#name = name;
    this.#user = user;
  }

  get(key: string): unknown {
    return this.#values.get(key)?.value;
  }

  *entries(): Iterable<readonly [string, unknown]> {
    for (const [key, { value }] of this.#values) yield [key, value];
  }

  set(key: string, value: unknown): Promise<void> {
    this.take(key, value, false);
    const { store, sealing, told } = this.#user;
    const sealed = value === null ? null : sealing.seal(JSON.stringify(value), this.#placeOf(key));
    return told((news) => store.setEntry(this.#name, key, sealed, news), { map: this.#name, key, value });
  }

  take(key: string, value: unknown, isNews: boolean): void {
    this.#fresh?.add(key);
    this.#put(key, value, isNews);
  }

  async load(isNews: boolean): Promise<void> {
    const { store, sealing } = this.#user;
    const fresh = new Set<string>();
    this.#fresh = fresh;
    const found = await store.entries(this.#name).finally(() => {
      if (this.#fresh === fresh) this.#fresh = null;
    });
    for (const key of [...this.#values.keys()]) if (!found.has(key) && !fresh.has(key)) this.#put(key, null, isNews);
    for (const [key, sealed] of found) {
      const plain = fresh.has(key) ? null : sealing.open(sealed, this.#placeOf(key));
      if (plain !== null) this.#put(key, JSON.parse(plain.toString()), isNews);
    }
  }

  #put(key: string, value: unknown, isNews: boolean): void {
    const text = value == null ? null : JSON.stringify(value);
    if ((this.#values.get(key)?.text ?? null) === text) return;
    if (text === null) this.#values.delete(key);
    else this.#values.set(key, { text, value });
    if (isNews) this.#user.changed(key, value ?? null);
  }

  #placeOf(key: string): string {
    return `map:${this.#name}:${key}`;
  }
}
