/** `edit-toolset`: adds and removes tools of a saved toolset, and gives it another name or description. */
import { isMeant, type ToolReference, type Toolset } from '../access/toolset.ts';
import { GatewayError } from '../base/errors.ts';
import { didYouMean } from '../base/text.ts';
import type { Entry } from '../catalog/entry.ts';
import type { LibraryToolset } from '../store/toolset-library.ts';
import { invalid, readArguments, readReferences, readText, readToolsetName } from './arguments.ts';
import type { ControlContext } from './control.ts';
import { isOpen, resolve } from './references.ts';

/** Everything is checked before anything is saved. */
export async function editToolset(context: ControlContext, args: unknown): Promise<LibraryToolset> {
  const given = readArguments(args, ['name', 'add', 'remove', 'newName', 'description', 'detail']);
  const name = readText(given, 'name', 1_000);
  const has = (key: string) => given[key] !== undefined;
  if (!['add', 'remove', 'newName', 'description'].some(has))
    throw invalid('Nothing to change: give "add", "remove", "newName" or "description".');
  const added = has('add') ? resolve(readReferences(given, 'add'), context) : [];
  const removed = has('remove') ? readReferences(given, 'remove') : [];
  const newName = has('newName') ? readToolsetName(given, 'newName') : name;
  const description = has('description') ? readText(given, 'description', 200) : null;
  const entries = [...context.catalog.claims.tool.values()].filter((entry) => entry !== null);
  return context.toolsetLibrary.change(name, (toolset) => {
    const kept = withoutTools(toolset, removed, entries, context.show(toolset));
    const names = new Set(kept.map(({ namespacedName }) => namespacedName));
    const fresh = added.filter(({ namespacedName }) => !names.has(namespacedName));
    return { ...toolset, name: newName, description: description ?? toolset.description, tools: [...kept, ...fresh] };
  });
}

/** The tools that are left. Throws if one of the removed ones is not in the toolset by itself. */
export function withoutTools(
  toolset: Toolset,
  removed: readonly Partial<ToolReference>[],
  entries: readonly Entry[],
  shown: Toolset = toolset,
): ToolReference[] {
  const gone = removed.map((one) => {
    const found = findIn(toolset, one, entries);
    if (found === undefined) throw new GatewayError('item_unknown', notIn(shown, one, entries));
    return found;
  });
  return toolset.tools.filter((tool) => !gone.includes(tool));
}

/** By the same reference, or by the exposed name of the tool. */
function findIn({ tools }: Toolset, { namespacedName, refId }: Partial<ToolReference>, entries: readonly Entry[]) {
  const isSame = (one: ToolReference) =>
    refId === undefined ? one.namespacedName === namespacedName : one.refId === refId;
  const entry = entries.find(({ name }) => name === namespacedName);
  const isNamed = (one: ToolReference) =>
    entry !== undefined && !isOpen(one.namespacedName) && isMeant(one.namespacedName, entry);
  return tools.find(isSame) ?? tools.find(isNamed);
}

function notIn(
  { name, tools }: Toolset,
  { namespacedName, refId }: Partial<ToolReference>,
  entries: readonly Entry[],
): string {
  const what = namespacedName ?? `refId ${refId}`;
  const names = tools.map((tool) => tool.namespacedName);
  const entry = entries.find((one) => isMeant(what, one));
  const pattern = entry && names.find((one) => isOpen(one) && isMeant(one, entry));
  if (pattern !== undefined)
    return `Nothing was changed. "${what}" is in "${name}" through "${pattern}". Remove that, and add the tools to keep.`;
  return `Nothing was changed. "${name}" does not have "${what}".${didYouMean(what, names)}`;
}
