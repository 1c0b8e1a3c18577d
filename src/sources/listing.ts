/** What a server offers, page by page. */
import { type Item, type Kind, kindWords, type Listing, type Offer, readItems } from '../catalog/item.ts';
import { decodeString, findMember } from '../protocol/json.ts';
import { ask, UpstreamError } from './ask.ts';
import type { Connection } from './connection.ts';
import type { Handshake } from './handshake.ts';

const MAX_PAGES = 1000;

/** What was listed, and for how many milliseconds each kind holds where the server says so. */
export interface Listed {
  readonly offer: Listing;
  readonly holds: Readonly<Partial<Record<Kind, number>>>;
  /** The kinds of which the server did not give the whole list. */
  readonly failed: readonly Kind[];
}

/** Everything of the given kinds. `deadline` is for all pages together. */
export async function listOffer(
  connection: Connection,
  handshake: Handshake,
  deadline: number,
  kinds: readonly Kind[] = handshake.kinds,
): Promise<Listed> {
  const { runs } = handshake.tasks;
  const lists = await Promise.all(kinds.map((kind) => listKind(connection, kind, deadline, runs)));
  return {
    offer: { items: lists.flatMap(({ items }) => items), problems: lists.flatMap(({ problems }) => problems) },
    holds: Object.fromEntries(lists.map(({ ttl }, index) => [kinds[index], ttl])),
    failed: kinds.filter((_, index) => lists[index]!.failed),
  };
}

/** The offer with one kind listed anew. What the server does not list for once is not gone. */
export function relisted(offer: Offer, kind: Kind, { offer: listed, failed }: Listed): Offer {
  const others = offer.items.filter((item) => item.kind !== kind);
  const { method } = kindWords[kind];
  const problems = offer.problems.filter((problem) => !problem.startsWith(method)).concat(listed.problems);
  return { ...offer, items: failed.length > 0 ? offer.items : [...others, ...listed.items], problems };
}

/** All pages of one list; a server whose pages never end is cut off and reported. */
async function listKind(
  connection: Connection,
  kind: Kind,
  deadline: number,
  runsTasks: boolean,
): Promise<Listing & { readonly ttl: number | undefined; readonly failed: boolean }> {
  const { method } = kindWords[kind];
  const items: Item[] = [];
  const problems: string[] = [];
  const seen = new Set<string>();
  let cursor: string | null = null;
  let ttl: number | undefined;
  let failed = false;
  for (let page = 1; ; page++) {
    let result: Buffer;
    try {
      const left = Math.max(1, deadline - Date.now());
      result = await ask(connection, method, cursor === null ? {} : { cursor }, left);
    } catch (error) {
      if (!(error instanceof UpstreamError)) throw error;
      // Many servers with resources have no templates and do not know the method.
      failed = !(kind === 'template' && error.code === -32601);
      if (failed) problems.push(`${method} failed: ${error.message}`);
      break;
    }
    const offer = readItems(kind, result, runsTasks);
    for (const item of offer.items) {
      const { name, mirrored } = item;
      if (connection.mirrors && typeof mirrored === 'string')
        problems.push(`${method}: ${JSON.stringify(name)} was left out: ${mirrored}`);
      else items.push(item);
    }
    problems.push(...offer.problems);
    ttl = readTtl(result) ?? ttl;
    cursor = nextCursor(result);
    if (cursor === null) break;
    if (seen.has(cursor)) {
      problems.push(`${method} gave the cursor ${JSON.stringify(cursor)} twice; the list may be incomplete`);
      break;
    }
    if (page === MAX_PAGES) {
      problems.push(`${method} has more than ${MAX_PAGES} pages; the rest was left out`);
      break;
    }
    seen.add(cursor);
  }
  return { items, problems, ttl, failed };
}

export function nextCursor(result: Buffer): string | null {
  const cursor = findMember(result, 'nextCursor');
  return cursor === null || result[cursor.start] !== 0x22 ? null : decodeString(result, cursor.start, cursor.end);
}

function readTtl(result: Buffer): number | undefined {
  const ttl = findMember(result, 'ttlMs');
  const value = ttl === null ? Number.NaN : Number(result.toString('latin1', ttl.start, ttl.end));
  return value >= 0 ? value : undefined;
}
