/** A named choice of tools of several servers. */

import { matchesPattern } from '../base/pattern.ts';
import type { Catalog } from '../catalog/catalog.ts';
import { isOfCategory } from '../catalog/category.ts';
import { canonicalName, type Entry } from '../catalog/entry.ts';

/** A tool of a toolset. */
export interface ToolReference {
  /** `server.tool`, by the server's key and its own name for the tool; in a configuration also a pattern. */
  readonly namespacedName: string;
  /** The definition that the tool had when it was chosen. */
  readonly refId?: string;
}

/** What somebody wants a model to know about a tool, beside its description. */
export interface ToolNotes {
  readonly toolRef: ToolReference;
  readonly notes: readonly { readonly name: string; readonly note: string }[];
}

/** A named choice of tools. */
export interface Toolset {
  readonly name: string;
  readonly description: string;
  readonly tools: readonly ToolReference[];
  readonly toolNotes: readonly ToolNotes[];
}

/** A tool is meant by its canonical name, by a pattern over that or the exposed one, or by its category. */
export function includesTool(toolset: Toolset, entry: Entry): boolean {
  const canonical = canonicalName(entry);
  return toolset.tools.some(({ namespacedName }) => isMeant(namespacedName, entry, canonical));
}

export function isMeant(reference: string, entry: Entry, canonical = canonicalName(entry)): boolean {
  if (reference === canonical || matchesPattern(reference, canonical)) return true;
  return matchesPattern(reference, entry.name) || isOfCategory(reference, entry);
}

/** What of a toolset somebody may know of who sees this catalog: tools that are there, or will be when their server returns. */
export function withinCatalog<T extends Toolset>(toolset: T, { claims }: Catalog): T {
  const entries = [...claims.tool.values()].filter((entry) => entry !== null);
  const isKnown = ({ namespacedName }: ToolReference) => entries.some((entry) => isMeant(namespacedName, entry));
  return {
    ...toolset,
    tools: toolset.tools.filter(isKnown),
    toolNotes: toolset.toolNotes.filter(({ toolRef }) => isKnown(toolRef)),
  };
}
