/** Names that are not known yet because their server is still starting. */
import { isPattern } from '../base/pattern.ts';
import type { Catalog, StartingSource } from './catalog.ts';
import { schemePrefix } from './uris.ts';

/**
 * The sources that are still starting and may turn out to have this name, or names that match this pattern. Sources
 * without a prefix may have any name, so they are named only if no other one fits.
 */
export function startingWith({ starting }: Pick<Catalog, 'starting'>, name: string): readonly StartingSource[] {
  if (starting.length === 0) return starting;
  const start = isPattern(name) ? name.split(/[*?]/, 1)[0]! : null;
  const fits = (prefix: string) => name.startsWith(prefix) || (start !== null && prefix.startsWith(start));
  const prefixed = starting.filter(({ prefixes, key, namespace }) =>
    [...prefixes, ...aliasPrefixes(key), ...aliasPrefixes(namespace)].some((one) => one !== '' && fits(one)),
  );
  return prefixed.length > 0 ? prefixed : starting.filter(({ prefixes }) => prefixes.includes(''));
}

/** `server:name` and `server.name` are other names of an item, and `server+uri` of a resource. */
function aliasPrefixes(server: string): string[] {
  return server === '' ? [] : [`${server}:`, `${server}.`, schemePrefix(server)];
}

/** `slow is still starting (12 s); try again in a moment`, with those whose packages are being installed. */
export function startingText(sources: readonly StartingSource[], now: number = Date.now()): string {
  const verb = sources.length === 1 ? 'is' : 'are';
  const longest = Math.max(0, ...sources.map(({ since }) => Math.round((now - since) / 1000)));
  const installing = sources.filter(({ isInstalling }) => isInstalling).map(({ key }) => key);
  const why = installing.length === 0 ? '' : `; being installed: ${installing.join(', ')}`;
  return `${sources.map(({ key }) => key).join(', ')} ${verb} still starting (${longest} s${why}); try again in a moment`;
}
