/** An item under the name that the gateway gives it: what callers see. */
import { matchesPattern } from '../base/pattern.ts';
import { definitionFor, NO_TRAITS } from '../protocol/definition.ts';
import { splice, toBytes } from '../protocol/json.ts';
import type { Era } from '../protocol/revisions.ts';
import { hashBytes, type Item, type Kind } from './item.ts';

/** An item under the name that callers know it by. */
export interface Entry {
  readonly kind: Kind;
  /** The exposed name. */
  readonly name: string;
  /** The source it comes from; `BUILT_IN` for Toolgate's own tools. */
  readonly sourceId: number;
  readonly sourceKey: string;
  readonly namespace: string;
  /** The source's own name for it, as JSON with one character per byte, ready to be put into a request. */
  readonly upstreamName: string;
  readonly item: Item;
}

/**
 * The definition under the exposed name. It is not cached: a list is printed once, and 10,000 copies would cost memory
 * and time.
 */
export function definitionOf({ name, item }: Pick<Entry, 'name' | 'item'>, era: Era): Buffer {
  const definition = name === item.name ? item.bytes : splice(item.bytes, item.nameSpan, toBytes(name));
  return definitionFor(definition, item.traits, era);
}

/** Equal for equal definitions under the same name: shows whether a list really changed. */
export function hashOf({ name, item }: Pick<Entry, 'name' | 'item'>): string {
  return `${item.hash} ${JSON.stringify(name)}`;
}

/** `server.tool`: a tool's name wherever servers have to be distinguished, independent of its exposed name. */
export function canonicalName({ sourceKey, item }: Entry): string {
  return `${sourceKey}.${item.name}`;
}

/** The server that a canonical name begins with: the longest of these keys that fits, because keys may contain dots. */
export function serverOf(reference: string, keys: readonly string[]): string | null {
  const named = keys.filter((key) => reference.startsWith(`${key}.`));
  return named.sort((a, b) => b.length - a.length)[0] ?? null;
}

/** Whether a pattern means this server, by its key or its namespace. */
export function matchesServer(pattern: string, key: string, namespace: string): boolean {
  return matchesPattern(pattern, key) || (namespace !== '' && matchesPattern(pattern, namespace));
}

export const BUILT_IN = 0;

export interface Owner {
  readonly id: number;
  readonly key: string;
  readonly namespace: string;
}

// The last entry of each item, so that a new catalog reuses the entries of items that did not change.
const lastEntries = new WeakMap<Item, Entry>();

export function toEntry(owner: Owner, item: Item, name: string): Entry {
  const before = lastEntries.get(item);
  if (
    before !== undefined &&
    before.name === name &&
    before.sourceId === owner.id &&
    before.sourceKey === owner.key &&
    before.namespace === owner.namespace
  ) {
    return before;
  }
  const entry: Entry = Object.freeze({
    kind: item.kind,
    name,
    sourceId: owner.id,
    sourceKey: owner.key,
    namespace: owner.namespace,
    upstreamName: item.bytes.toString('latin1', item.nameSpan.start, item.nameSpan.end),
    item,
  });
  lastEntries.set(item, entry);
  return entry;
}

/**
 * Clients that offer models a search over tools keep these loaded: what is not active yet can be found through them
 * only.
 */
const ALWAYS_LOADED = { 'anthropic/alwaysLoad': true };

/** A tool of Toolgate's own. */
export function builtInEntry(definition: {
  readonly name: string;
  readonly description: string;
  readonly inputSchema?: unknown;
}): Entry {
  return ownEntry('tool', definition.name, definition.description, { ...definition, _meta: ALWAYS_LOADED });
}

/** A resource of Toolgate's own. */
export function builtInResource(definition: {
  readonly uri: string;
  readonly name: string;
  readonly description: string;
  readonly mimeType: string;
}): Entry {
  return ownEntry('resource', definition.uri, definition.description, definition);
}

function ownEntry(kind: Kind, name: string, description: string, definition: object): Entry {
  const bytes = toBytes(definition);
  const item: Item = {
    kind,
    name,
    description,
    bytes,
    nameSpan: { start: 0, end: 0 },
    hash: hashBytes(bytes),
    mirrored: null,
    traits: NO_TRAITS,
  };
  return Object.freeze({
    kind,
    name,
    sourceId: BUILT_IN,
    sourceKey: 'toolgate',
    namespace: '',
    upstreamName: '',
    item,
  });
}
