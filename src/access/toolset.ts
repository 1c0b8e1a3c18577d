/** A named set of tools, across servers. */
import { matchesPattern } from '../base/pattern.ts';
import type { Catalog } from '../catalog/catalog.ts';
import { isOfCategory } from '../catalog/category.ts';
import { canonicalName, type Entry } from '../catalog/entry.ts';

/** A tool of a toolset. */
export interface ToolReference {
  /** `server.tool`: the server's key and its own name for the tool. In a configuration also a pattern. */
  readonly namespacedName: string;
  /** Identifies the definition that the tool had when it was chosen. */
  readonly refId?: string;
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
}

export function includesTool(toolset: Toolset, entry: Entry): boolean {
  const canonical = canonicalName(entry);
  return toolset.tools.some(({ namespacedName }) => isMeant(namespacedName, entry, canonical));
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
export function withinCatalog<T extends Toolset>(toolset: T, { claims }: Catalog): T {
  const entries = [...claims.tool.values()].filter((entry) => entry !== null);
  const isKnown = ({ namespacedName }: ToolReference) => entries.some((entry) => isMeant(namespacedName, entry));
  return {
    ...toolset,
    tools: toolset.tools.filter(isKnown),
    toolNotes: toolset.toolNotes.filter(({ toolRef }) => isKnown(toolRef)),
  };
}
