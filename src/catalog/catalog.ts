/** The catalog: a frozen snapshot of everything every source offers, under exposed names. */
import type { Entry, Owner } from './entry.ts';
import { toEntry } from './entry.ts';
import { KINDS, type Kind, type Offer } from './item.ts';

export interface Problem {
  readonly source: string;
  readonly message: string;
}

export interface Catalog {
  readonly version: number;
  /** In the order of the configuration, then in the order of the server. */
  readonly entries: Readonly<Record<Kind, ReadonlyMap<string, Entry>>>;
  readonly problems: readonly Problem[];
}

export interface Contribution extends Owner {
  /** What the source offers, or last offered. */
  readonly offer: Offer;
  /** False while the source is away: its names stay taken, but nothing is listed under them. */
  readonly present: boolean;
}

/**
 * Puts the offers together in the order of the configuration. The first to claim a name keeps it, even while it is away:
 * otherwise another server's tool would step into a name that a caller already trusts.
 */
export function buildCatalog(
  version: number,
  contributions: readonly Contribution[],
  builtIn: readonly string[],
): Catalog {
  const problems: Problem[] = [];
  const entries = {} as Record<Kind, Map<string, Entry>>;
  const owners = {} as Record<Kind, Map<string, string>>;
  for (const kind of KINDS) {
    entries[kind] = new Map();
    owners[kind] = new Map();
  }
  for (const name of builtIn) owners.tool.set(name, TOOLGATE);
  for (const contribution of contributions) {
    const { key, offer, present } = contribution;
    if (present) for (const message of offer.problems) problems.push({ source: key, message });
    for (const item of offer.items) {
      const entry = toEntry(contribution, item);
      const owner = owners[item.kind].get(entry.name);
      if (owner !== undefined) {
        if (present) problems.push({ source: key, message: collision(entry, owner) });
        continue;
      }
      owners[item.kind].set(entry.name, key);
      if (present) entries[item.kind].set(entry.name, entry);
    }
  }
  return Object.freeze({ version, entries: Object.freeze(entries), problems: Object.freeze(problems) });
}

/** No server's key is empty. */
const TOOLGATE = '';

function collision(entry: Entry, owner: string): string {
  const what = `${entry.kind} "${entry.name}" is dropped: `;
  if (owner === TOOLGATE) return `${what}the name belongs to Toolgate itself; give the server another namespace`;
  if (owner === entry.sourceKey) return `${what}the server lists that name twice`;
  return `${what}server "${owner}", which is listed first, has that name; give one of them another namespace`;
}

export const EMPTY_CATALOG: Catalog = buildCatalog(0, [], []);
