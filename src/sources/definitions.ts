/**
 * Notices definitions that a server changes: what a model was shown, and a person may have approved, is then something
 * else. What was removed stays known, so that it cannot come back different unnoticed.
 */
import { canonicalJson, sha256 } from '../base/hash.ts';
import { toObject } from '../base/objects.ts';
import type { Item, Kind, Offer } from '../catalog/item.ts';

/** A definition that differs from the one that was known. */
export interface ChangedDefinition {
  readonly kind: Kind | 'instructions';
  /** Empty for the instructions of the server. */
  readonly name: string;
  /** The fields that differ, in alphabetical order. */
  readonly fields: readonly string[];
  /** SHA-256 of the definition with its keys sorted. */
  readonly before: string;
  readonly after: string;
}

/** More names than any server has. A server that invents names without end is not followed further. */
const MOST = 20_000;

export class KnownDefinitions {
  readonly #items = new Map<string, Item>();
  #instructions: string | null = null;

  /** Takes the definitions of an earlier run as known. */
  recall({ items, instructions }: Offer): void {
    for (const item of items) this.#items.set(keyOf(item), item);
    this.#instructions = instructions;
  }

  /** What differs from what was known. From now on the new definitions are known. */
  compare({ items, instructions }: Offer): ChangedDefinition[] {
    const changed: ChangedDefinition[] = [];
    for (const item of items) {
      const key = keyOf(item);
      const known = this.#items.get(key);
      if (known === item || known?.hash === item.hash) continue;
      if (known !== undefined || this.#items.size < MOST) this.#items.set(key, item);
      const change = known === undefined ? null : compareItems(known, item);
      if (change !== null) changed.push(change);
    }
    const before = this.#instructions;
    this.#instructions = instructions;
    if (before !== null && before !== instructions)
      changed.push({
        kind: 'instructions',
        name: '',
        fields: ['instructions'],
        before: sha256(before),
        after: sha256(instructions),
      });
    return changed;
  }
}

function keyOf({ kind, name }: Item): string {
  return `${kind} ${name}`;
}

/** Null if only the order of keys or the white space differs. */
function compareItems(known: Item, item: Item): ChangedDefinition | null {
  const [old, now] = [known, item].map(({ bytes }) => toObject(JSON.parse(bytes.toString())));
  const fields = [...new Set([...Object.keys(old!), ...Object.keys(now!)])]
    .filter((field) => canonicalJson(old![field]) !== canonicalJson(now![field]))
    .sort();
  if (fields.length === 0) return null;
  const [before, after] = [old, now].map((definition) => sha256(canonicalJson(definition)));
  return { kind: item.kind, name: item.name, fields, before: before!, after: after! };
}
