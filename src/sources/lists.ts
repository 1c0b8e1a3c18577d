/**
 * The offer of a server. It is listed page by page, and again when the server reports a change. If the server does not
 * report changes, it is listed again when a caller lists its items and the lists are no longer valid.
 */
import { messageOf } from '../base/errors.ts';
import {
  EMPTY_OFFER,
  type Item,
  KINDS,
  type Kind,
  kindWords,
  type Listing,
  type Offer,
  readItems,
  reuseItems,
} from '../catalog/item.ts';
import { readSkills } from '../catalog/skills.ts';
import type { ServerConfig } from '../config/servers.ts';
import { decodeString, findMember } from '../protocol/json.ts';
import { ask, UpstreamError } from './ask.ts';
import type { Connection } from './connection.ts';
import type { Handshake, LiveConnection } from './handshake.ts';

const MAX_PAGES = 1000;

/** Milliseconds that lists are valid, if the server says so. */
type Validity = Readonly<Partial<Record<Kind, number>>>;

/** What was listed. */
export interface Listed {
  readonly offer: Listing;
  readonly validity: Validity;
  /** The kinds whose list the server did not return completely. */
  readonly failed: readonly Kind[];
}

/** Lists everything of the given kinds. `deadline` is for all pages together. */
export async function listOffer(
  connection: Connection,
  handshake: Handshake,
  deadline: number,
  kinds: readonly Kind[],
): Promise<Listed> {
  const lists = await Promise.all(kinds.map((kind) => listKind(connection, kind, deadline, handshake)));
  return {
    offer: { items: lists.flatMap(({ items }) => items), problems: lists.flatMap(({ problems }) => problems) },
    validity: Object.fromEntries(lists.map(({ ttl }, index) => [kinds[index], ttl])),
    failed: kinds.filter((_, index) => lists[index]!.failed),
  };
}

interface ListedKind extends Listing {
  readonly ttl: number | undefined;
  readonly failed: boolean;
}

async function listKind(
  connection: Connection,
  kind: Kind,
  deadline: number,
  { tasks, skills }: Handshake,
): Promise<ListedKind> {
  const { method } = kindWords[kind];
  const own = await readPages(connection, method, (result) => readItems(kind, result, tasks.runs), deadline);
  if (kind !== 'template' || !skills) return own;
  const more = await readPages(connection, SKILLS_LIST, readSkills, deadline);
  // A gateway behind this one lists the templates of its skills too.
  const known = new Set(own.items.map(({ name }) => name));
  return {
    items: [...own.items, ...more.items.filter(({ name }) => !known.has(name))],
    problems: [...own.problems, ...more.problems],
    ttl: own.ttl === undefined || more.ttl === undefined ? (own.ttl ?? more.ttl) : Math.min(own.ttl, more.ttl),
    failed: own.failed || more.failed,
  };
}

const SKILLS_LIST = 'skills/list';

/** All pages of one list. A server whose pages never end is cut off and reported. */
async function readPages(
  connection: Connection,
  method: string,
  read: (result: Buffer) => Listing,
  deadline: number,
): Promise<ListedKind> {
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
      failed = !(method === kindWords.template.method && error.code === -32601);
      if (failed) problems.push(`${method} failed: ${error.message}`);
      break;
    }
    const offer = read(result);
    for (const item of offer.items) {
      const { name, mirrored } = item;
      if (connection.mirrors === true && typeof mirrored === 'string')
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

/** The kinds that a notification reports as changed. */
const CHANGED: ReadonlyMap<string, readonly Kind[]> = new Map([
  ['notifications/tools/list_changed', ['tool']],
  ['notifications/resources/list_changed', ['resource', 'template']],
  ['notifications/prompts/list_changed', ['prompt']],
]);

/** A burst of reports makes one listing. */
const COLLECT = 50;
/** Many servers declare a validity of 0. Even they are not listed more often than this. */
const SHORTEST_VALIDITY = 5_000;

export interface ListsOptions {
  /** The connection that lists; null while there is none. */
  live(): LiveConnection | null;
  /** Whether a connection is being opened and its first lists are still loading. */
  isOpening(): boolean;
  config(): ServerConfig;
  /** Saves the offer for the next start. */
  store(): void;
  /** The offer changed. */
  changed(): void;
  note(text: string): void;
}

export class Lists {
  offer: Offer = EMPTY_OFFER;
  readonly #options: ListsOptions;
  readonly #timers = new Map<Kind, NodeJS.Timeout>();
  readonly #running = new Set<Kind>();
  /** When the lists become invalid whose changes the server does not report. */
  readonly #validUntil = new Map<Kind, number>();

  constructor(options: ListsOptions) {
    this.#options = options;
  }

  /** A new connection has listed everything. */
  replace(listed: Listed, { silent, instructions, about }: Handshake): void {
    this.offer = reuseItems(this.offer, { ...listed.offer, instructions, about });
    this.#noteValidity(silent, listed.validity);
  }

  /** Lists the kinds again that a notification reports as changed. */
  hear(method: string): void {
    for (const kind of CHANGED.get(method) ?? []) this.#schedule(kind);
  }

  /** Changes may have gone unnoticed. */
  missed(): void {
    for (const kind of KINDS) this.#schedule(kind);
  }

  /** A caller lists the items of this kind. */
  freshen(kind: Kind): void {
    const until = this.#validUntil.get(kind);
    if (this.#options.live() === null || until === undefined || Date.now() < until) return;
    this.#validUntil.set(kind, Date.now() + SHORTEST_VALIDITY);
    this.#schedule(kind);
  }

  /** Cancels scheduled listings. */
  clear(): void {
    for (const timer of this.#timers.values()) clearTimeout(timer);
    this.#timers.clear();
  }

  #schedule(kind: Kind): void {
    if (!this.#timers.has(kind))
      this.#timers.set(
        kind,
        setTimeout(() => this.#look(kind), COLLECT),
      );
  }

  /** Listings of one kind run one after another. A reported change also waits for the first lists. */
  #look(kind: Kind): void {
    this.#timers.delete(kind);
    const isFirst = this.#options.live() === null && this.#options.isOpening();
    if (this.#running.has(kind) || isFirst) {
      this.#schedule(kind);
      return;
    }
    this.#running.add(kind);
    void this.refresh(kind).finally(() => this.#running.delete(kind));
  }

  /** Lists one kind again. Never rejects. */
  async refresh(kind: Kind): Promise<void> {
    const { live, config, note, changed } = this.#options;
    const current = live();
    if (current === null || !current.handshake.kinds.includes(kind)) return;
    const { connection, handshake } = current;
    try {
      const listed = await listOffer(connection, handshake, Date.now() + config().startTimeout, [kind]);
      if (live()?.connection !== connection) return;
      this.#noteValidity(handshake.silent, listed.validity);
      this.offer = reuseItems(this.offer, withKind(this.offer, kind, listed));
      this.#options.store();
      changed();
    } catch (error) {
      note(`listing again failed: ${messageOf(error)}`);
    }
  }

  /** `silent` are the kinds whose changes the server does not report. */
  #noteValidity(silent: readonly Kind[], validity: Validity): void {
    for (const [kind, ttl] of Object.entries(validity) as [Kind, number | undefined][]) {
      if (ttl !== undefined && silent.includes(kind))
        this.#validUntil.set(kind, Date.now() + Math.max(ttl, SHORTEST_VALIDITY));
      else this.#validUntil.delete(kind);
    }
  }
}

/** The offer with one kind replaced. If the server failed to list it, the items stay. */
function withKind(offer: Offer, kind: Kind, { offer: listed, failed }: Listed): Offer {
  const others = offer.items.filter((item) => item.kind !== kind);
  const methods = kind === 'template' ? [kindWords.template.method, SKILLS_LIST] : [kindWords[kind].method];
  const isOther = (problem: string) => !methods.some((method) => problem.startsWith(method));
  const problems = offer.problems.filter(isOther).concat(listed.problems);
  return { ...offer, items: failed.length > 0 ? offer.items : [...others, ...listed.items], problems };
}
