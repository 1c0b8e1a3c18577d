/** Rules that are about nothing there is: nearly always a misspelt name, and one that closes or opens too much. */

import { matchesPattern } from '../base/pattern.ts';
import { didYouMean } from '../base/similar.ts';
import type { Catalog } from '../catalog/catalog.ts';
import { isCategory } from '../catalog/category.ts';
import { type Entry, matchesServer } from '../catalog/entry.ts';
import { MACROS } from '../config/macros.ts';
import type { ByKind, PolicyConfig, ServerLists } from '../config/policy.ts';

interface Server {
  readonly key: string;
  readonly namespace: string;
  /** Whether what it offers is known. */
  readonly present: boolean;
}

/** A sentence for each. */
export function idleRules(policy: PolicyConfig, catalog: Catalog, servers: readonly Server[]): string[] {
  const found: string[] = [];
  const isMacros = (pattern: string) => pattern === MACROS && macros.length > 0;
  const macros = [...catalog.claims.tool.values()].filter((entry) => entry?.item.uses !== undefined);
  const names = servers.map(({ key }) => key);

  function checkServers(place: string, patterns: readonly string[]): void {
    for (const pattern of patterns) {
      if (
        pattern === 'toolgate' ||
        isMacros(pattern) ||
        servers.some((server) => matchesServer(pattern, server.key, server.namespace))
      )
        continue;
      found.push(`${place} names "${pattern}", and there is no such server.${didYouMean(pattern, names)}`);
    }
  }

  function checkLists(place: string, lists: ServerLists, kinds: readonly (keyof Catalog['entries'])[]): void {
    checkServers(place, Object.keys(lists));
    for (const [server, patterns] of Object.entries(lists)) {
      const meant = servers.filter(({ key, namespace }) => matchesServer(server, key, namespace));
      if (meant.length === 0 || meant.some(({ present }) => !present)) continue;
      const own = kinds
        .flatMap((kind) => [...catalog.entries[kind].values()])
        .filter((entry: Entry) => matchesServer(server, entry.sourceKey, entry.namespace))
        .map(({ item }) => item.name);
      for (const pattern of patterns) {
        // A category holds for tools to come, too.
        if (isCategory(pattern) || own.some((name) => matchesPattern(pattern, name))) continue;
        found.push(
          `${place}.${server} lists "${pattern}", which the server does not offer.${didYouMean(pattern, own)}`,
        );
      }
    }
  }

  function checkAll(prefix: string, suffix: (kind: string) => string, lists: ByKind<ServerLists>): void {
    checkLists(prefix + suffix('tool'), lists.tool, ['tool']);
    checkLists(prefix + suffix('resource'), lists.resource, ['resource', 'template']);
    checkLists(prefix + suffix('prompt'), lists.prompt, ['prompt']);
  }

  checkAll('', (kind) => `exposed_${kind}s`, policy.exposed);
  checkAll('', (kind) => `denied_${kind}s`, policy.denied);
  for (const { name, allowedServers, deniedServers, overrides, denied } of policy.agents) {
    const prefix = `agent_policies.${name}.`;
    checkServers(`${prefix}allowed_servers`, allowedServers ?? []);
    checkServers(`${prefix}denied_servers`, deniedServers);
    checkAll(prefix, (kind) => `${kind}_overrides`, overrides);
    checkAll(prefix, (kind) => `denied_${kind}s`, denied);
  }
  return found;
}
