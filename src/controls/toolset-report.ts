/** Reports which tools of a toolset are available, which are not, and why. */
import { refersTo, type Toolset } from '../access/toolset.ts';
import { quotedList } from '../base/text.ts';
import { canonicalName, type Entry, serverOf } from '../catalog/entry.ts';
import type { ControlContext } from './control.ts';

export interface ToolsetReport {
  readonly entries: readonly Entry[];
  /** Servers with tools in the toolset that are not available. */
  readonly unavailableServers: readonly string[];
  /** One sentence for each missing server or tool. */
  readonly warnings: readonly string[];
}

/** The reference to every tool of every server. */
const EVERYTHING = '*';

export function reportOn(toolset: Toolset, { catalog, servers }: ControlContext): ToolsetReport {
  const all = [...catalog.entries.tool.values()];
  const keys = servers.map(({ key }) => key);
  const found = new Set<Entry>();
  const skipped = new Map<string, string[]>();
  const warnings: string[] = [];
  for (const reference of toolset.tools) {
    const { namespacedName } = reference;
    const meant = all.filter((entry) => refersTo(reference, entry));
    for (const entry of meant) found.add(entry);
    if (namespacedName === EVERYTHING) {
      for (const { key, present } of servers) if (!present) skipped.set(key, [`${key}.*`]);
      continue;
    }
    if (meant.length > 0) continue;
    const key = reference.server ?? serverOf(namespacedName, keys);
    const server = servers.find((one) => one.key === key);
    if (server === undefined)
      warnings.push(`No server of the configuration has "${namespacedName}".${placeHint(namespacedName, all)}`);
    else if (server.present) warnings.push(`Server "${server.key}" does not offer "${namespacedName}".`);
    else skipped.set(server.key, [...(skipped.get(server.key) ?? []), namespacedName]);
  }
  for (const [key, names] of skipped) {
    const { state, detail } = servers.find((one) => one.key === key)!;
    if (state === 'starting') {
      warnings.push(`Server "${key}" is still starting. These can be used when it is up: ${names.join(', ')}.`);
      continue;
    }
    const why = detail === '' ? state : `${state}: ${detail}`;
    warnings.push(
      `Server "${key}" is not available (${why}), skipped: ${names.join(', ')}. They can be used when it is back.`,
    );
  }
  return { entries: [...found], unavailableServers: [...skipped.keys()], warnings };
}

/**
 * Earlier versions named servers without a namespace by their place in the file. Such a name is not taken for another
 * server: the person who saved it decides.
 */
function placeHint(namespacedName: string, entries: readonly Entry[]): string {
  const tool = /^server-\d{1,4}\.(.+)$/.exec(namespacedName)?.[1];
  if (tool === undefined) return '';
  const now = entries.filter((entry) => entry.item.name === tool && /^server-[0-9a-f]{8}$/.test(entry.sourceKey));
  const names = now.length === 0 ? '' : ` Use ${quotedList(now.map(canonicalName))} if that is meant.`;
  return ` It names a server by its place in the file, which earlier versions did.${names}`;
}
