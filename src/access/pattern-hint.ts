/** What somebody meant by a name that nothing has. */
import { didYouMean, similarNames } from '../base/text.ts';
import type { Catalog } from '../catalog/catalog.ts';
import { overviewOf } from '../catalog/overview.ts';

/** How a server can be named. */
export interface ServerName {
  readonly key: string;
  readonly namespace: string;
}

/**
 * The pattern for all tools of a server, if the name is that of the server alone: `git_*` for `git`, and `git.*` where
 * tools are named so. Null if no server has the name.
 */
export function serverPattern(name: string, servers: readonly ServerName[], joint: '_' | '.'): string | null {
  const bare = withoutEnd(name);
  const meant = servers.find(({ key, namespace }) => [key, namespace].some((one) => one.toLowerCase() === bare));
  if (meant === undefined || bare === '') return null;
  return patternOf(meant, joint);
}

function patternOf({ key, namespace }: ServerName, joint: '_' | '.'): string {
  return joint === '.' || namespace === '' ? `${key}.*` : `${namespace}_*`;
}

/** The pattern for all items of a server of this catalog, if `name` is the name of that server alone; else null. */
export function patternOfServer(name: string, catalog: Catalog): string | null {
  const bare = withoutEnd(name);
  const meant = overviewOf(catalog).find(
    ({ key, pattern }) => pattern !== null && (key.toLowerCase() === bare || withoutEnd(pattern) === bare),
  );
  return meant?.pattern == null || meant.pattern === name ? null : meant.pattern;
}

/** `git` for `git`, `git_`, `git.` and `git_*`. */
function withoutEnd(name: string): string {
  return name.replace(/[_.:*?]+$/, '').toLowerCase();
}

/** ` Did you mean "git_*"?`, or an empty text. `names` are those that would have been right. */
export function patternHint(
  name: string,
  servers: readonly ServerName[],
  names: readonly string[],
  joint: '_' | '.' = '_',
): string {
  const pattern = serverPattern(name, servers, joint);
  if (pattern !== null && pattern !== name) return ` Did you mean "${pattern}"?`;
  const patterns = servers
    .filter(({ namespace }) => joint === '.' || namespace !== '')
    .map((one) => patternOf(one, joint));
  const isLikePattern = name.includes('*') && similarNames(name, patterns, 1).length > 0;
  return didYouMean(name, isLikePattern ? patterns : names);
}
