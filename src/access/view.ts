/**
 * What one caller sees: the catalog narrowed to its selection. Listing prints these maps and calling looks in them, so
 * that nothing hidden can be called and nothing listed cannot.
 */
import { createHash } from 'node:crypto';
import type { Catalog } from '../catalog/catalog.ts';
import { definitionOf, type Entry, hashOf } from '../catalog/entry.ts';
import { KINDS, type Kind, kindWords } from '../catalog/item.ts';
import { NO_TRAITS } from '../protocol/definition.ts';
import type { Era } from '../protocol/revisions.ts';
import { annotate } from './notes.ts';
import { type Permission, permits } from './permission.ts';
import { isActive, type Selection } from './selection.ts';

export interface View {
  readonly catalog: Catalog;
  readonly selection: Selection;
  readonly entries: Readonly<Record<Kind, ReadonlyMap<string, Entry>>>;
  readonly controls: ViewControls;
  readonly permission: Permission | null;
  /** The result of the kind's list method for clients of an era: made at the first question, the same bytes ever after. */
  list(kind: Kind, era: Era): Buffer;
  /** One page of it: `size` items after the one that the cursor names. Null where there is none of that name. */
  page(kind: Kind, era: Era, size: number, cursor: string | null): Buffer | null;
  /** Changes exactly when the list does. */
  fingerprint(kind: Kind): string;
}

/** Toolgate's own words in a view. */
export interface ViewControls {
  /** Its own tools: they depend on what is visible, and come first in the list. */
  entries(catalog: Catalog, selection: Selection): readonly Entry[];
  /** What else one of them is called; undefined for any other name. */
  alias(name: string): Entry | undefined;
  /** What to do to use an item that is there but not active. */
  advice(kind: Kind, name: string): string;
  /** What to do about a name that nothing has; empty for nothing. */
  hint?(kind: Kind, name: string): string;
}

/** `permission` is null where there are no policies; otherwise the catalog holds nothing that it forbids. */
export function buildView(
  catalog: Catalog,
  selection: Selection,
  controls: ViewControls,
  permission: Permission | null = null,
): View {
  const entries = {} as Record<Kind, ReadonlyMap<string, Entry>>;
  for (const kind of KINDS) {
    const own = kind === 'tool' ? controls.entries(catalog, selection).filter((one) => permits(permission, one)) : [];
    const all = new Map(own.map((entry) => [entry.name, entry]));
    for (const [name, entry] of catalog.entries[kind])
      if (isActive(selection, entry)) all.set(name, annotate(entry, selection));
    entries[kind] = all;
  }
  const lists = { legacy: new Map<Kind, Buffer>(), modern: new Map<Kind, Buffer>() };
  const fingerprints = new Map<Kind, string>();
  let varies: boolean | null = null;
  /** One list does for both eras unless something in it differs. */
  const formOf = (kind: Kind, era: Era): Era => {
    if (kind !== 'tool') return 'legacy';
    varies ??= [...entries.tool.values()].some(({ item }) => item.traits !== NO_TRAITS);
    return varies ? era : 'legacy';
  };
  return Object.freeze({
    catalog,
    selection,
    entries: Object.freeze(entries),
    controls,
    permission,
    list: (kind: Kind, era: Era) =>
      remember(lists[formOf(kind, era)], kind, () => printList(kind, entries[kind], era, null)),
    page(kind: Kind, era: Era, size: number, cursor: string | null) {
      const names = [...entries[kind].keys()];
      const start = cursor === null ? 0 : names.indexOf(Buffer.from(cursor, 'base64url').toString()) + 1;
      if (cursor !== null && start === 0) return null;
      const shown = names.slice(start, start + size);
      const last = start + size < names.length ? Buffer.from(shown.at(-1)!).toString('base64url') : null;
      return printList(
        kind,
        shown.map((name) => [name, entries[kind].get(name)!] as const),
        era,
        last,
      );
    },
    fingerprint: (kind: Kind) => remember(fingerprints, kind, () => hashEntries(entries[kind])),
  });
}

/** Under the names that the caller knows. */
type Named = Iterable<readonly [string, Entry]>;

function remember<T>(made: Map<Kind, T>, kind: Kind, make: () => T): T {
  const known = made.get(kind);
  if (known !== undefined) return known;
  const value = make();
  made.set(kind, value);
  return value;
}

function printList(kind: Kind, entries: Named, era: Era, nextCursor: string | null): Buffer {
  const parts: Buffer[] = [Buffer.from(`{"${kindWords[kind].list}":[`)];
  let first = true;
  for (const [name, { item }] of entries) {
    if (!first) parts.push(COMMA);
    first = false;
    parts.push(definitionOf({ name, item }, era));
  }
  parts.push(nextCursor === null ? CLOSE : Buffer.from(`],"nextCursor":"${nextCursor}"}`));
  return Buffer.concat(parts);
}

const COMMA = Buffer.from(',');
const CLOSE = Buffer.from(']}');

function hashEntries(entries: Named): string {
  const hash = createHash('sha1');
  for (const [name, { item }] of entries) hash.update(hashOf({ name, item }));
  return hash.digest('base64');
}
