/** A named set of tools, across servers. */
import { sha256 } from '../base/hash.ts';
import { memo } from '../base/memo.ts';
import { isPattern, matchesPattern } from '../base/pattern.ts';
import type { Catalog } from '../catalog/catalog.ts';
import { isCategory, isOfCategory } from '../catalog/category.ts';
import { canonicalName, type Entry } from '../catalog/entry.ts';
import { splice, toBytes } from '../protocol/json.ts';

/** A tool of a toolset. */
export interface ToolReference {
  /** `server.tool`: the server's key and its own name for the tool. In a configuration also a pattern. */
  readonly namespacedName: string;
  /** Identifies the definition that the tool had when it was chosen. */
  readonly refId?: string;
  /** Every tool of the server with this key is meant, also those that it offers later. Only in implicit toolsets. */
  readonly server?: string;
}

/** Notes for models about a tool, in addition to its description. */
export interface ToolNotes {
  readonly toolRef: ToolReference;
  readonly notes: readonly { readonly name: string; readonly note: string }[];
}

/** A named set of tools. */
export interface Toolset {
  readonly name: string;
  readonly description: string;
  readonly tools: readonly ToolReference[];
  readonly toolNotes: readonly ToolNotes[];
  /**
   * Absent for a toolset that a user made. `implicit`: nobody had to make it. `gone`: somebody has it who got it before
   * it was removed. It is empty until it is back.
   */
  readonly standing?: 'implicit' | 'gone';
}

/**
 * An id that changes with any part of the definition. The description counts too, because a compromised server would
 * use it to address the model.
 */
export function refId(canonical: string, definition: Buffer): string {
  return sha256(Buffer.concat([Buffer.from(`${canonical}\n`), definition]));
}

/** Cached, because hashing 10,000 definitions takes measurable time. */
export const refIdOf = memo((entry: Entry): string => refId(canonicalName(entry), entry.item.bytes));

/** Whether the tool is the one of a reference in everything but its name. */
export function hasDefinitionOf({ namespacedName, refId: id }: ToolReference, { item }: Entry): boolean {
  if (id === undefined) return false;
  // Keys of servers and names of tools may both contain dots.
  for (let dot = namespacedName.indexOf('.'); dot >= 0; dot = namespacedName.indexOf('.', dot + 1)) {
    const name = namespacedName.slice(dot + 1);
    const bytes = name === item.name ? item.bytes : splice(item.bytes, item.nameSpan, toBytes(name));
    if (refId(namespacedName, bytes) === id) return true;
  }
  return false;
}

/** Takes the place of a toolset that does not exist any more, or not yet. */
export function goneToolset(name: string): Toolset {
  return { name, description: '', tools: [], toolNotes: [], standing: 'gone' };
}

export function includesTool(toolset: Toolset, entry: Entry): boolean {
  const canonical = canonicalName(entry);
  return toolset.tools.some((reference) => refersTo(reference, entry, canonical));
}

/** Whether a reference of a toolset means the tool. */
export function refersTo(
  { namespacedName, server }: ToolReference,
  entry: Entry,
  canonical = canonicalName(entry),
): boolean {
  return server === undefined ? isMeant(namespacedName, entry, canonical) : entry.sourceKey === server;
}

/**
 * Whether a reference means the tool: by its canonical name, by a pattern over that or over the exposed name, or by its
 * category.
 */
export function isMeant(reference: string, entry: Entry, canonical = canonicalName(entry)): boolean {
  if (reference === canonical || matchesPattern(reference, canonical)) return true;
  return matchesPattern(reference, entry.name) || isOfCategory(reference, entry);
}

/**
 * The part of a toolset that a caller with this catalog may know: tools in the catalog, even if their server is
 * unavailable.
 */
export function withinCatalog<T extends Toolset>(toolset: T, catalog: Catalog): T {
  const isKnown = (reference: ToolReference) => referred(reference, catalog).length > 0;
  return {
    ...toolset,
    tools: toolset.tools.filter(isKnown),
    toolNotes: toolset.toolNotes.filter(({ toolRef }) => isKnown(toolRef)),
  };
}

/** The tools of a toolset that a catalog knows, even if their server is unavailable. */
export function toolsWithin({ tools }: Toolset, catalog: Catalog): readonly Entry[] {
  return [...new Set(tools.flatMap((reference) => referred(reference, catalog)))];
}

/** The tools that a reference means. Most references are names, and finding those takes no search. */
function referred({ namespacedName, server }: ToolReference, catalog: Catalog): readonly Entry[] {
  const { all, byServer, byName } = indexOf(catalog);
  if (server !== undefined) return byServer.get(server) ?? [];
  if (namespacedName === '*') return all;
  if (isPattern(namespacedName) || isCategory(namespacedName))
    return all.filter((entry) => isMeant(namespacedName, entry));
  return byName.get(namespacedName) ?? [];
}

/** All tools of a catalog, by their server and by both of their names. */
const indexOf = memo(({ claims }: Catalog) => {
  const all = [...claims.tool.values()].filter((entry) => entry !== null);
  const byServer = new Map<string, Entry[]>();
  const byName = new Map<string, Entry[]>();
  const add = (map: Map<string, Entry[]>, key: string, entry: Entry) => {
    const known = map.get(key);
    if (known === undefined) map.set(key, [entry]);
    else known.push(entry);
  };
  for (const entry of all) {
    const canonical = canonicalName(entry);
    add(byServer, entry.sourceKey, entry);
    add(byName, canonical, entry);
    if (entry.name !== canonical) add(byName, entry.name, entry);
  }
  return { all, byServer, byName };
});

/** The keys of the servers with tools in a catalog, even if the servers are unavailable. */
export function toolServers(catalog: Catalog): readonly string[] {
  return [...indexOf(catalog).byServer.keys()];
}
