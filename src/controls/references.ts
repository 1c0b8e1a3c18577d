/** From what a model names to the references of a toolset. */
import { isMeant, refIdOf, type ToolReference } from '../access/toolset.ts';
import { isPattern } from '../base/pattern.ts';
import { similarNames } from '../base/text.ts';
import { isCategory } from '../catalog/category.ts';
import { canonicalName, type Entry } from '../catalog/entry.ts';
import type { ControlContext } from './control.ts';
import { createNameProblems, meantHint, requireFewPatterns } from './name-problems.ts';

export function referenceTo(entry: Entry): ToolReference {
  return { namespacedName: canonicalName(entry), refId: refIdOf(entry) };
}

/** Whether a reference stands for all tools that it fits, also those that come later. */
export function isOpen(name: string): boolean {
  return isPattern(name) || isCategory(name);
}

/**
 * Completes the references. A pattern or a category stays one. Throws if one of them means no tool, so that nothing is
 * saved.
 */
export function resolve(wanted: readonly Partial<ToolReference>[], context: ControlContext): ToolReference[] {
  const { catalog } = context;
  // A tool whose server is not up is known from before.
  const entries = [...catalog.claims.tool.values()].filter((entry) => entry !== null);
  const patterns = wanted.filter(({ namespacedName: name }) => name !== undefined && isOpen(name));
  requireFewPatterns(patterns.length, entries.length);
  const problems = createNameProblems(catalog);
  const found = new Map<string, ToolReference>();
  for (const one of wanted) {
    const { namespacedName: name, refId } = one;
    const reference = name === undefined ? byRefId(refId, entries) : byName(name, entries);
    if (reference !== null) found.set(reference.namespacedName, reference);
    else if (name === undefined) problems.add([], '', `refId "${refId}"`, () => '');
    else problems.add(['tool'], name, `"${name}"`, () => hintFor(name, entries));
  }
  problems.refuse('Nothing was saved.', 'tools');
  return [...found.values()];
}

function byRefId(refId: string | undefined, entries: readonly Entry[]): ToolReference | null {
  const found = entries.find((entry) => refIdOf(entry) === refId);
  return found === undefined ? null : referenceTo(found);
}

function byName(name: string, entries: readonly Entry[]): ToolReference | null {
  if (isOpen(name)) return entries.some((entry) => isMeant(name, entry)) ? { namespacedName: name } : null;
  const found = entries.find((entry) => canonicalName(entry) === name) ?? entries.find((entry) => entry.name === name);
  return found === undefined ? null : referenceTo(found);
}

/** What may be meant by an unknown name. */
function hintFor(name: string, entries: readonly Entry[]): string {
  if (isOpen(name)) return ' (it matches no tool)';
  if (entries.some(({ sourceKey }) => sourceKey === name)) return ` (a server; "${name}.*" means all of its tools)`;
  return meantHint(similarNames(name, entries.map(canonicalName)));
}
