/**
 * Sources that are not there now: starting, down, waiting for a secret. Their names are known from before, or not yet
 * known at all. Nobody is told that such a name does not exist.
 */
import { type ErrorCode, GatewayError } from '../base/errors.ts';
import { fitLines } from '../base/fit.ts';
import { memo } from '../base/memo.ts';
import { isPattern, matchesPattern } from '../base/pattern.ts';
import { withoutStop } from '../base/text.ts';
import type { Absence, AwaySource, Catalog } from './catalog.ts';
import type { Entry } from './entry.ts';
import type { Kind } from './item.ts';
import { oneLine } from './overview.ts';
import { schemePrefix } from './uris.ts';

/**
 * The away sources that have an item of this name or items that match this pattern, or whose items are not known yet and
 * may turn out to have it.
 */
export function awayWith(catalog: Catalog, kinds: readonly Kind[], name: string): readonly AwaySource[] {
  const { away, claims, entries } = catalog;
  if (away.length === 0) return away;
  const owning = kinds.flatMap((kind) =>
    isPattern(name)
      ? [...claims[kind]]
          .filter(([one]) => !entries[kind].has(one) && matchesPattern(name, one))
          .map(([, entry]) => entry)
      : entries[kind].has(name)
        ? []
        : [claims[kind].get(name)],
  );
  const known = awayOwners(catalog, owning);
  return known.length > 0 ? known : unknownWith(catalog, name);
}

/** The away sources of these entries, or of the tools that a macro among them calls. */
export function awayOwners({ away }: Catalog, entries: readonly (Entry | null | undefined)[]): readonly AwaySource[] {
  if (away.length === 0) return away;
  return away.filter(({ key }) =>
    entries.some((entry) => entry?.sourceKey === key || entry?.item.uses?.some((one) => one.startsWith(`${key}.`))),
  );
}

/** Whether its items may turn out to be others than those that are known. */
function isOpen({ isKnown, state }: AwaySource): boolean {
  return !isKnown || state === 'starting' || state === 'installing';
}

/** Sources without a prefix may have any name, so they are named only if no other one fits. */
function unknownWith({ away }: Catalog, name: string): readonly AwaySource[] {
  const open = away.filter(isOpen);
  const start = isPattern(name) ? name.split(/[*?]/, 1)[0]! : null;
  const fits = (prefix: string) => name.startsWith(prefix) || (start !== null && prefix.startsWith(start));
  const prefixed = open.filter(({ prefixes, key, namespace }) =>
    [...prefixes, ...aliasPrefixes(key), ...aliasPrefixes(namespace)].some((one) => one !== '' && fits(one)),
  );
  return prefixed.length > 0 ? prefixed : open.filter(({ prefixes }) => prefixes.includes(''));
}

/** `server:name` and `server.name` are other names of an item, and `server+uri` of a resource. */
function aliasPrefixes(server: string): string[] {
  return server === '' ? [] : [`${server}:`, `${server}.`, schemePrefix(server)];
}

/**
 * `slow is still starting (12 s); try again in a moment`, and for others their state, the reason and what to do. Without
 * a full stop at the end.
 */
export function awayText(sources: readonly AwaySource[], now: number = Date.now()): string {
  const starting = sources.filter(isStarting);
  const others = sources.filter((source) => !isStarting(source));
  return [...(starting.length === 0 ? [] : [startingText(starting, now)]), ...others.map(stateText)].join('; ');
}

function isStarting({ state }: Absence): boolean {
  return state === 'starting' || state === 'installing';
}

function startingText(sources: readonly AwaySource[], now: number): string {
  const verb = sources.length === 1 ? 'is' : 'are';
  const longest = Math.max(0, ...sources.map(({ since }) => Math.round((now - since) / 1000)));
  const installing = sources.filter(({ state }) => state === 'installing').map(({ key }) => key);
  const why = installing.length === 0 ? '' : `; being installed: ${installing.join(', ')}`;
  return `${sources.map(({ key }) => key).join(', ')} ${verb} still starting (${longest} s${why}); try again in a moment`;
}

function stateText({ key, state, reason }: AwaySource): string {
  const server = `server "${key}"`;
  const why = withoutStop(oneLine(reason));
  switch (state) {
    case 'down':
      return `${server} is down (${why}); it is started again by itself, try again in a moment`;
    case 'crash_loop':
      return `${server} is in a crash loop (${why})`;
    case 'locked':
      return `${server} is locked: it ${why}`;
    case 'broken':
      return `${server} is left out, because its entry in the configuration has a mistake (${why}); correct it`;
    case 'untrusted':
      return `${server} is not started, because nobody has trusted it yet (${why})`;
    case 'starting':
    case 'installing':
      return `${server} is still starting; try again in a moment`;
    default:
      return state satisfies never;
  }
}

/** Seconds after which another attempt makes sense. */
const RETRY_AFTER = {
  starting: 2,
  installing: 10,
  down: 5,
  crash_loop: 30,
  locked: 60,
  broken: 60,
  untrusted: 60,
} as const;

export function retryAfterOf(state: Absence['state']): number {
  return RETRY_AFTER[state];
}

/** The error about something of these sources. `text` is the whole message. A null `code` stands for what they lack. */
export function awayError(
  sources: readonly AwaySource[],
  text: string,
  code: ErrorCode | null = null,
  more: Readonly<Record<string, unknown>> = {},
): GatewayError {
  const starting = sources.filter(isStarting).map(({ key }) => key);
  const details = {
    servers: sources.map(({ key, state, reason }) => ({ server: key, state, reason })),
    retryAfter: Math.min(...sources.map(({ state }) => RETRY_AFTER[state])),
    ...(starting.length > 0 && { starting }),
    ...more,
  };
  const lacks = sources.every(({ lacksDependencies }) => lacksDependencies === true);
  return new GatewayError(code ?? (lacks ? 'dependency_error' : 'source_unavailable'), text, { details });
}

/**
 * What a model should tell the user about servers that nobody has trusted yet: without them there may be no tool that
 * would say so. Empty if there are none.
 */
export const untrustedLine = memo((catalog: Catalog): string => {
  const held = catalog.away.filter(({ state }) => state === 'untrusted');
  if (held.length === 0) return '';
  const keys = held.map(({ key }) => key).join(', ');
  return `Toolgate does not start ${keys}, because nobody has trusted them yet. Tell the user: ${oneLine(held[0]!.reason)}. Their tools appear after that.`;
});

/** The most characters that a catalog says about missing sources. */
const MOST = 400;

/**
 * The sources whose items are missing in a catalog, in one line with the reasons: `git_* (down: exited with code 3)`.
 * Empty if there are none.
 */
export const missingLine = memo((catalog: Catalog): string => {
  const missing = catalog.away.filter(({ isListed }) => !isListed);
  if (missing.length === 0) return '';
  const lines = missing.map(({ key, prefixes: [prefix = ''], state, reason }) => {
    const why = isStarting({ state, reason, since: 0 }) ? '' : oneLine(reason);
    const words = state.replace('_', ' ');
    return {
      head: `${prefix === '' ? key : `${prefix}*`} (${why === '' ? words : `${words}: ${short(why)}`})`,
      text: '',
    };
  });
  const more = (left: number) => `and ${left} more`;
  return `Missing for now, because the server is not up: ${fitLines(lines, { room: MOST, separator: ', ', more })}.`;
});

function short(text: string): string {
  return text.length <= 120 ? text : `${text.slice(0, 119)}…`;
}
