/**
 * What one caller sees: the catalog narrowed to its selection. Listing prints these maps and calling looks in them, so
 * nothing hidden can be called, and everything listed can.
 */
import { createHash } from 'node:crypto';
import { GatewayError } from '../base/errors.ts';
import { getOrMake } from '../base/memo.ts';
import type { Catalog } from '../catalog/catalog.ts';
import { canonicalName, definitionOf, type Entry, hashOf } from '../catalog/entry.ts';
import { hashBytes, type Item, KINDS, type Kind, kindWords } from '../catalog/item.ts';
import { listedUri, type UriStyle } from '../catalog/uris.ts';
import { NO_TRAITS } from '../protocol/definition.ts';
import { findMember, splice, toBytes } from '../protocol/json.ts';
import { type ClientTraits, UNKNOWN_CLIENT } from '../protocol/known-clients.ts';
import type { Era } from '../protocol/revisions.ts';
import { type Permission, permits } from './permission.ts';
import { isActive, type Selection } from './selection.ts';

export interface View {
  readonly catalog: Catalog;
  readonly selection: Selection;
  readonly entries: Readonly<Record<Kind, ReadonlyMap<string, Entry>>>;
  readonly controls: ViewControls;
  readonly permission: Permission | null;
  /** The kind of client that the lists are printed for. */
  readonly client: ClientTraits;
  /** How URIs are listed. Every style is accepted. */
  readonly uriStyle: UriStyle;
  /** The result of the kind's list method for clients of an era. Printed once; later calls return the same bytes. */
  list(kind: Kind, era: Era): Buffer;
  /** One page of the list: `size` items after the one that the cursor names. Null if no item has that name. */
  page(kind: Kind, era: Era, size: number, cursor: string | null): Buffer | null;
  /** Changes exactly when the list does. */
  fingerprint(kind: Kind): string;
}

/** Toolgate's own tools and advice in a view. */
export interface ViewControls {
  /** The tools: they depend on what is visible and on the client, and come first in the list. */
  entries(catalog: Catalog, selection: Selection, client: ClientTraits): readonly Entry[];
  /** The resources. They can be read but are not listed: lists contain what servers offer. */
  resources?(catalog: Catalog, selection: Selection, client: ClientTraits): readonly Entry[];
  /** What models should know about these tools from the start; empty for nothing. */
  instructions?(catalog: Catalog): string;
  /** The tool with this other name; undefined if there is none. */
  alias(name: string): Entry | undefined;
  /** What to do to use an item that is not active. `entry` is the item, under the name that the caller knows. */
  advice(kind: Kind, name: string, entry: Entry): string;
  /** Whether a caller that sees these tools can switch on every tool that it may use. Absent: it cannot. */
  switches?(tools: ReadonlyMap<string, Entry>): boolean;
  /** What to do about a name that no item has; empty for no advice. */
  hint?(kind: Kind, name: string): string;
}

/**
 * The catalog is already narrowed to `permission`, which is null if there are no policies. Tools that the client has seen
 * keep their order (`seen`), and the others follow.
 */
export function buildView(
  catalog: Catalog,
  selection: Selection,
  controls: ViewControls,
  permission: Permission | null = null,
  client: ClientTraits = UNKNOWN_CLIENT,
  uriStyle: UriStyle = 'join',
  seen: readonly string[] = [],
): View {
  const entries = {} as Record<Kind, ReadonlyMap<string, Entry>>;
  for (const kind of KINDS) {
    const all = new Map<string, Entry>();
    if (kind === 'tool')
      for (const own of controls.entries(catalog, selection, client))
        if (permits(permission, own)) all.set(own.name, own);
    for (const [name, entry] of catalog.entries[kind])
      if (isActive(selection, entry)) all.set(name, annotate(entry, selection));
    entries[kind] = kind === 'tool' && seen.length > 0 ? inOrder(all, seen) : all;
  }
  const unlisted = (controls.resources?.(catalog, selection, client) ?? []).filter((own) => permits(permission, own));
  const usable =
    unlisted.length === 0
      ? entries
      : { ...entries, resource: new Map([...entries.resource, ...unlisted.map((own) => [own.name, own] as const)]) };
  const lists = { legacy: new Map<Kind, Buffer>(), modern: new Map<Kind, Buffer>() };
  const fingerprints = new Map<Kind, string>();
  let varies: boolean | null = null;
  /** One list serves both eras unless a definition in it differs. */
  const formOf = (kind: Kind, era: Era): Era => {
    if (kind !== 'tool') return 'legacy';
    varies ??= [...entries.tool.values()].some(({ item }) => item.traits !== NO_TRAITS);
    return varies ? era : 'legacy';
  };
  const listed = (kind: Kind, all: Iterable<readonly [string, Entry]> = entries[kind]) =>
    uriStyle === 'join' ? all : restyled({ catalog, uriStyle }, all);
  return Object.freeze({
    catalog,
    selection,
    entries: Object.freeze(usable),
    controls,
    permission,
    client,
    uriStyle,
    list: (kind: Kind, era: Era) =>
      getOrMake(lists[formOf(kind, era)], kind, () => printList(kind, listed(kind), era, null)),
    page(kind: Kind, era: Era, size: number, cursor: string | null) {
      const names = [...entries[kind].keys()];
      const start = cursor === null ? 0 : names.indexOf(Buffer.from(cursor, 'base64url').toString()) + 1;
      if (cursor !== null && start === 0) return null;
      const shown = names.slice(start, start + size);
      const last = start + size < names.length ? Buffer.from(shown.at(-1)!).toString('base64url') : null;
      const inPage = shown.map((name) => [name, entries[kind].get(name)!] as const);
      return printList(kind, listed(kind, inPage), era, last);
    },
    fingerprint: (kind: Kind) => getOrMake(fingerprints, kind, () => hashEntries(listed(kind))),
  });
}

function inOrder(all: ReadonlyMap<string, Entry>, names: readonly string[]): Map<string, Entry> {
  const known = names.flatMap((name) => {
    const entry = all.get(name);
    return entry === undefined ? [] : [[name, entry] as const];
  });
  return new Map([...known, ...all]);
}

/** The same entries under the URIs that are listed. */
function* restyled(
  view: Pick<View, 'catalog' | 'uriStyle'>,
  entries: Iterable<readonly [string, Entry]>,
): Generator<readonly [string, Entry]> {
  for (const [name, entry] of entries) {
    const uri = listedUri(view, name, entry);
    if (uri !== null) yield [uri, entry];
  }
}

/** `entries` are under the names that the caller knows. */
function printList(
  kind: Kind,
  entries: Iterable<readonly [string, Entry]>,
  era: Era,
  nextCursor: string | null,
): Buffer {
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

function hashEntries(entries: Iterable<readonly [string, Entry]>): string {
  const hash = createHash('sha1');
  for (const [name, { item }] of entries) hash.update(hashOf({ name, item }));
  return hash.digest('base64');
}

/** The notes of the equipped toolset on a tool, shown where models look: at the end of its description. */
function annotate(entry: Entry, { toolset }: Selection): Entry {
  if (toolset === null || toolset.toolNotes.length === 0 || entry.kind !== 'tool') return entry;
  const canonical = canonicalName(entry);
  const notes = toolset.toolNotes
    .filter(({ toolRef }) => toolRef.namespacedName === canonical)
    .flatMap((one) => one.notes);
  if (notes.length === 0) return entry;
  const lines = notes.map(({ name, note }) => `- ${name}: ${note}`);
  return {
    ...entry,
    item: withDescription(entry.item, [entry.item.description, '', 'Notes:', ...lines].join('\n').trim()),
  };
}

function withDescription(item: Item, description: string): Item {
  const text = toBytes(description);
  const member = findMember(item.bytes, 'description');
  const bytes =
    member === null
      ? Buffer.concat([item.bytes.subarray(0, -1), Buffer.from(',"description":'), text, Buffer.from('}')])
      : splice(item.bytes, member, text);
  const nameMember = findMember(bytes, 'name')!;
  return { ...item, description, bytes, hash: hashBytes(bytes), nameSpan: nameMember };
}

/** The lists that clients are notified of. Resources and their templates are one list. */
export type ListKind = 'tools' | 'resources' | 'prompts';

export const LIST_KINDS: readonly ListKind[] = ['tools', 'resources', 'prompts'];

export function listOf(kind: Kind): ListKind {
  if (kind === 'tool') return 'tools';
  return kind === 'prompt' ? 'prompts' : 'resources';
}

/** Changes exactly when the list does. */
export function fingerprint(view: View, kind: ListKind): string {
  switch (kind) {
    case 'tools':
      return view.fingerprint('tool');
    case 'prompts':
      return view.fingerprint('prompt');
    case 'resources':
      return view.fingerprint('resource') + view.fingerprint('template');
    default:
      return kind satisfies never;
  }
}

/** Whether this is all of a list or its last page: then it ends with the array and not with a cursor. */
export function isLastPage(page: Buffer): boolean {
  return page.at(-2) === CLOSE[0];
}

/** A page of the list, or all of it if pages have no size. */
export function pageOf(view: View, kind: Kind, era: Era, size: number | null, cursor: string | null): Buffer {
  if (size === null && cursor === null) return view.list(kind, era);
  const page = size === null ? null : view.page(kind, era, size, cursor);
  if (page !== null) return page;
  throw new GatewayError('params_invalid', 'The cursor is unknown: the list may have changed. List from the start.');
}
