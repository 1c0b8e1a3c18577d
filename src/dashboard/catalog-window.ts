/** A window of the catalog: by words, server and category, with what each item costs and how it differs from its pin. */
import { includesTool } from '../access/toolset.ts';
import { GatewayError } from '../base/errors.ts';
import { memo } from '../base/memo.ts';
import { isObject, type JsonObject, toObject } from '../base/objects.ts';
import { didYouMean } from '../base/text.ts';
import { awayText } from '../catalog/away.ts';
import type { Catalog } from '../catalog/catalog.ts';
import { categoryOf } from '../catalog/category.ts';
import { BUILT_IN, canonicalName, type Entry } from '../catalog/entry.ts';
import { KINDS, type Kind } from '../catalog/item.ts';
import { type Deviation, deviationsOf } from '../catalog/pins.ts';
import { tokensOf } from '../catalog/tokens.ts';
import { compareLock } from '../doors/commands/lock.ts';
import { openLocalDoor } from '../doors/local.ts';
import type { Gateway } from '../gateway/gateway.ts';
import type { CatalogRow, CatalogWindow, DiffLine, ItemDetail, PinState } from './api-types.ts';
import { diffLines } from './diff-lines.ts';

export const isKind = (text: string): text is Kind => (KINDS as readonly string[]).includes(text);

/** The most that a search is asked for. More than nobody reads. */
const MOST_FOUND = 500;

export async function catalogWindow(
  gateway: Gateway,
  query: URLSearchParams,
  offset: number,
  limit: number,
): Promise<CatalogWindow> {
  const kind = query.get('kind') ?? '';
  if (kind !== '' && !isKind(kind))
    throw new GatewayError(
      'params_invalid',
      `"kind" is ${KINDS.join(', ')}, not ${JSON.stringify(kind.slice(0, 40))}.`,
    );
  const agent = query.get('agent') || null;
  const door = openLocalDoor(gateway, 'default', agent);
  const view = door.caller.view();
  door.close();
  const { catalog } = view;
  const changes = changesIn(gateway);
  const words = (query.get('q') ?? '').trim();
  const kinds = kind === '' ? KINDS : [kind as Kind];
  const all = words === '' ? everything(catalog, kinds) : await found(gateway, door.caller, catalog, kinds, words);
  const ofKind = query.get('changed') === '1' ? all.filter((entry) => changes.has(keyOf(entry))) : all;
  const server = query.get('server') ?? '';
  const category = query.get('category') ?? '';
  const isServer = (entry: Entry) => server === '' || entry.sourceKey === server;
  const isCategory = (entry: Entry) => category === '' || categoryWord(entry) === category;
  const matching = ofKind.filter((entry) => isServer(entry) && isCategory(entry));
  return {
    version: gateway.catalog.version,
    total: matching.length,
    offset,
    tokens: matching.reduce((sum, entry) => sum + tokensOf(entry), 0),
    items: matching
      .slice(offset, offset + limit)
      .map((entry) => inShort(toRow(entry, view.entries[entry.kind].has(entry.name), changes))),
    // Counted without the filter itself, so that another choice can be seen.
    servers: counted(ofKind.filter(isCategory), (entry) => entry.sourceKey).map(([one, items]) => ({
      server: one,
      items,
    })),
    categories: counted(ofKind.filter(isServer), categoryWord).map(([one, items]) => ({ category: one, items })),
    missing: catalog.away.filter(({ isListed }) => !isListed).map((source) => awayText([source])),
  };
}

const everything = (catalog: Catalog, kinds: readonly Kind[]) =>
  kinds.flatMap((kind) => [...catalog.entries[kind].values()]).filter(({ sourceId }) => sourceId !== BUILT_IN);

/** By the search index, as agents search. */
async function found(
  gateway: Gateway,
  caller: Parameters<Gateway['learning']['search']>[0],
  catalog: Catalog,
  kinds: readonly Kind[],
  words: string,
): Promise<Entry[]> {
  const search = await gateway.learning.search(caller, catalog);
  const best = search.find(words, MOST_FOUND, { kinds: new Set(kinds) }).best.map(({ entry }) => entry);
  // A part of a name is no word for the index, and people type one.
  const part = words.toLowerCase();
  const seen = new Set(best);
  const named = everything(catalog, kinds).filter(
    (entry) => !seen.has(entry) && entry.name.toLowerCase().includes(part),
  );
  return [...best, ...named];
}

function categoryWord(entry: Entry): string {
  return entry.kind === 'tool' ? categoryOf(entry).effect : entry.kind;
}

function counted(entries: readonly Entry[], wordOf: (entry: Entry) => string): [string, number][] {
  const counts = new Map<string, number>();
  for (const entry of entries) counts.set(wordOf(entry), (counts.get(wordOf(entry)) ?? 0) + 1);
  return [...counts];
}

const keyOf = (entry: Pick<Entry, 'kind' | 'sourceKey' | 'item'>) =>
  JSON.stringify([entry.sourceKey, entry.kind, entry.item.name]);

/** How items differ from what was approved, by server, kind and name. Nothing if nothing was ever approved. */
function changesIn(gateway: Gateway): ReadonlyMap<string, Deviation> {
  const { servers: pins } = gateway.config.pins;
  if (Object.keys(pins).length === 0) return new Map();
  return new Map(
    gateway
      .offers()
      .flatMap(({ key, offer }) => (Object.hasOwn(pins, key) ? deviationsOf(key, offer, pins[key]) : []))
      .map((one) => [JSON.stringify([one.server, one.kind, one.name]), one]),
  );
}

const definitionIn = memo((entry: Entry): JsonObject => toObject(JSON.parse(entry.item.bytes.toString())));

function toRow(entry: Entry, active: boolean, changes: ReadonlyMap<string, Deviation>): CatalogRow {
  const { name, kind, sourceKey: server, item } = entry;
  const { title, annotations } = definitionIn(entry);
  const shown = title ?? toObject(annotations).title;
  return {
    name,
    kind,
    server,
    title: typeof shown === 'string' ? shown : null,
    description: item.description,
    category: kind === 'tool' ? categoryWord(entry) : null,
    tokens: tokensOf(entry),
    active,
    change: changes.get(keyOf(entry))?.verdict ?? null,
    held: item.held !== undefined,
  };
}

/** A server may describe each of its tools with megabytes. A list shows a line of it, the item itself all. */
const MOST_SHOWN = 2_000;

function inShort(row: CatalogRow): CatalogRow {
  const cut = (text: string) => (text.length > MOST_SHOWN ? `${text.slice(0, MOST_SHOWN)}…` : text);
  return { ...row, title: row.title === null ? null : cut(row.title), description: cut(row.description) };
}

export async function itemDetail(gateway: Gateway, kind: string, name: string): Promise<ItemDetail> {
  await gateway.opening;
  if (!isKind(kind))
    throw new GatewayError('path_unknown', `There are no items of the kind ${JSON.stringify(kind.slice(0, 40))}.`);
  const { catalog } = gateway;
  const entry = catalog.entries[kind].get(name);
  if (entry === undefined)
    throw new GatewayError(
      'item_unknown',
      `No ${kind} is called ${JSON.stringify(name.slice(0, 200))}.${didYouMean(name, [...catalog.entries[kind].keys()])}`,
    );
  const changes = changesIn(gateway);
  const definition = definitionIn(entry);
  const asObject = (value: unknown) => (isObject(value) ? value : null);
  const usage = gateway.metrics
    .entries()
    .find(
      (one) =>
        one.server === entry.sourceKey &&
        one.name === entry.item.name &&
        one.kind === (kind === 'template' ? 'resource' : kind),
    );
  const { toolsets } = await gateway.toolsets.list();
  const door = openLocalDoor(gateway, 'default');
  const isActive = door.caller.view().entries[kind].has(name);
  door.close();
  const errors =
    usage === undefined ? 0 : usage.calls - usage.outcomes.ok - usage.outcomes.cached - usage.outcomes.cancelled;
  return {
    ...toRow(entry, isActive, changes),
    upstreamName: entry.item.name,
    definition,
    inputSchema: asObject(definition.inputSchema),
    outputSchema: asObject(definition.outputSchema),
    annotations: asObject(definition.annotations),
    toolsets:
      kind === 'tool' ? toolsets.filter((toolset) => includesTool(toolset, entry)).map((toolset) => toolset.name) : [],
    pin: await pinOf(gateway, entry, changes.get(keyOf(entry))),
    examples: gateway.config.search.examples[canonicalName(entry)] ?? gateway.config.search.examples[name] ?? [],
    usage: { calls: usage?.calls ?? 0, errors, p50: usage?.p50 ?? null, p99: usage?.p99 ?? null },
    heldReason: entry.item.held ?? null,
  };
}

async function pinOf(gateway: Gateway, entry: Entry, deviation: Deviation | undefined): Promise<PinState | null> {
  if (deviation === undefined) return null;
  const { verdict, reasons } = deviation;
  const approveName = canonicalName(entry);
  const before = textOf(deviation.before);
  const after = textOf(deviation.after);
  const diff: readonly DiffLine[] = diffLines(before ?? '', after ?? '');
  const { hash } = await compareLock(gateway, { names: [approveName] });
  return { verdict, reasons, before, after, diff, hash, approveName };
}

/** With sorted keys, so that only what differs differs. */
function textOf(value: JsonObject | string | null): string | null {
  if (value === null || typeof value === 'string') return value;
  const sorted = (one: unknown): unknown =>
    Array.isArray(one)
      ? one.map(sorted)
      : isObject(one)
        ? Object.fromEntries(
            Object.keys(one)
              .sort()
              .map((key) => [key, sorted(one[key])]),
          )
        : one;
  return JSON.stringify(sorted(value), null, 2);
}
