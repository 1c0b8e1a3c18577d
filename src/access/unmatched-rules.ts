/** Finds policy rules that match nothing. Nearly always a name is misspelled, and too much is denied or allowed. */
import { matchesPattern } from '../base/pattern.ts';
import { didYouMean } from '../base/text.ts';
import type { Catalog } from '../catalog/catalog.ts';
import { isCategory } from '../catalog/category.ts';
import { type Entry, matchesServer } from '../catalog/entry.ts';
import { MACROS } from '../config/macros.ts';
import type { ByKind, PolicyConfig, ServerLists } from '../config/policy.ts';

interface KnownServer {
  readonly key: string;
  readonly namespace: string;
  /** Whether its offer is known. */
  readonly present: boolean;
}

/** Returns one sentence for each. */
export function unmatchedRules(policy: PolicyConfig, catalog: Catalog, servers: readonly KnownServer[]): string[] {
  const found: string[] = [];
  const isMacros = (pattern: string) => pattern === MACROS && macros.length > 0;
  const macros = [...catalog.claims.tool.values()].filter((entry) => entry?.item.uses !== undefined);
  const names = servers.map(({ key }) => key);

  function checkServers(key: string, patterns: readonly string[]): void {
    for (const pattern of patterns) {
      if (
        pattern === 'toolgate' ||
        isMacros(pattern) ||
        servers.some((server) => matchesServer(pattern, server.key, server.namespace))
      )
        continue;
      found.push(`${key} names the server "${pattern}", which does not exist.${didYouMean(pattern, names)}`);
    }
  }

  function checkLists(key: string, lists: ServerLists, kinds: readonly (keyof Catalog['entries'])[]): void {
    checkServers(key, Object.keys(lists));
    for (const [server, patterns] of Object.entries(lists)) {
      const meant = servers.filter((one) => matchesServer(server, one.key, one.namespace));
      if (meant.length === 0 || meant.some(({ present }) => !present)) continue;
      const own = kinds
        .flatMap((kind) => [...catalog.entries[kind].values()])
        .filter((entry: Entry) => matchesServer(server, entry.sourceKey, entry.namespace))
        .map(({ item }) => item.name);
      for (const pattern of patterns) {
        // A category may match tools that do not exist yet.
        if (isCategory(pattern) || own.some((name) => matchesPattern(pattern, name))) continue;
        found.push(`${key}.${server} lists "${pattern}", which the server does not offer.${didYouMean(pattern, own)}`);
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
