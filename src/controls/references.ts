/** From what a model names to the references of a toolset. */
import { isMeant, type ToolReference } from '../access/toolset.ts';
import { GatewayError } from '../base/errors.ts';
import { sha256 } from '../base/hash.ts';
import { memo } from '../base/memo.ts';
import { isPattern } from '../base/pattern.ts';
import { similarNames } from '../base/text.ts';
import { awayError, awayText, awayWith } from '../catalog/away.ts';
import type { AwaySource } from '../catalog/catalog.ts';
import { isCategory } from '../catalog/category.ts';
import { canonicalName, type Entry } from '../catalog/entry.ts';
import type { ControlContext } from './control.ts';

/**
 * An id that changes with any part of the definition. The description counts too, because a compromised server would
 * use it to address the model. Cached, because hashing 10,000 definitions takes measurable time.
 */
export const refIdOf = memo((entry: Entry): string =>
  sha256(Buffer.concat([Buffer.from(`${canonicalName(entry)}\n`), entry.item.bytes])),
);

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
  const bad: string[] = [];
  const missing: string[] = [];
  const away = new Set<AwaySource>();
  const found = new Map<string, ToolReference>();
  for (const one of wanted) {
    const reference = find(one, entries);
    if (typeof reference !== 'string') {
      found.set(reference.namespacedName, reference);
      continue;
    }
    const { namespacedName } = one;
    const servers = namespacedName === undefined ? [] : awayWith(catalog, ['tool'], namespacedName);
    for (const server of servers) away.add(server);
    if (servers.length > 0) missing.push(`"${namespacedName}" (${awayText(servers)})`);
    else bad.push(reference);
  }
  const problems = [
    ...(bad.length > 0 ? [`Unknown tools: ${bad.join('; ')}.`] : []),
    ...(missing.length > 0 ? [`Not available now: ${missing.join('; ')}.`] : []),
  ];
  if (problems.length > 0) {
    const text = ['Nothing was saved.', ...problems].join(' ');
    if (away.size === 0) throw new GatewayError('item_unknown', text);
    throw awayError([...away], text, bad.length > 0 ? 'item_unknown' : null);
  }
  return [...found.values()];
}

/** The reference, or the quoted name with what may be meant. */
function find({ namespacedName: name, refId }: Partial<ToolReference>, entries: readonly Entry[]) {
  if (name === undefined) {
    const found = entries.find((entry) => refIdOf(entry) === refId);
    return found === undefined ? `refId "${refId}"` : referenceTo(found);
  }
  if (isOpen(name))
    return entries.some((entry) => isMeant(name, entry)) ? { namespacedName: name } : `"${name}" (it matches no tool)`;
  const found = entries.find((entry) => canonicalName(entry) === name) ?? entries.find((entry) => entry.name === name);
  if (found !== undefined) return referenceTo(found);
  if (entries.some(({ sourceKey }) => sourceKey === name))
    return `"${name}" (a server; "${name}.*" means all of its tools)`;
  const similar = similarNames(name, entries.map(canonicalName));
  return `"${name}"${similar.length === 0 ? '' : ` (did you mean ${similar.join(', ')}?)`}`;
}
