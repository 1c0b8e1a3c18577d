/** What `toolgate lock` shows and approves in a gateway: what servers offer now, compared with what a person approved. */
import { GatewayError } from '../../base/errors.ts';
import { canonicalJson, sha256 } from '../../base/hash.ts';
import { isObject, type JsonObject } from '../../base/objects.ts';
import { KINDS, type Kind } from '../../catalog/item.ts';
import { type Deviation, deviationsOf, NO_PIN, type PinnedServer, type Pins } from '../../catalog/pins.ts';
import { readLock, writeLock } from '../../config/pins.ts';
import type { Gateway, ServerOffer } from '../../gateway/gateway.ts';

export interface LockRequest {
  /** Servers, or single items as `server.name`. None: everything. */
  readonly names: readonly string[];
}

export interface LockReport {
  /** The path of `tools.lock`. */
  readonly file: string;
  /** Whether there is one yet. */
  readonly exists: boolean;
  /** How many servers were compared. */
  readonly compared: number;
  /** The servers that are not up. */
  readonly away: readonly string[];
  readonly differences: readonly Deviation[];
  /** Stands for these differences in an approval. */
  readonly hash: string;
}

export interface LockApproval extends LockRequest {
  /** That of the differences that the person has seen. */
  readonly hash: string;
}

interface LockState {
  readonly file: string;
  /** Null if there is no lock yet. */
  readonly pins: Pins | null;
  /** What the servers that are up offer. */
  readonly offers: readonly ServerOffer[];
  readonly away: readonly string[];
}

export async function compareLock(gateway: Gateway, { names }: LockRequest): Promise<LockReport> {
  const state = await stateOf(gateway);
  requireKnown(names, state);
  const found = differences(state, names);
  const { file, pins, offers, away } = state;
  return {
    file,
    exists: pins !== null,
    compared: offers.length,
    away,
    differences: found,
    hash: hashOf(found),
  };
}

/** How many servers the lock has now. Nothing is approved that nobody has seen. */
export async function approveLock(gateway: Gateway, { names, hash }: LockApproval): Promise<{ servers: number }> {
  const state = await stateOf(gateway);
  requireKnown(names, state);
  const found = differences(state, names);
  if (hashOf(found) !== hash)
    throw new GatewayError(
      'usage',
      'Nothing was approved: what the servers offer has changed meanwhile. Look again: toolgate lock diff',
    );
  const pins = approved(state, found, names);
  await writeLock(state.file, pins);
  return { servers: Object.keys(pins).length };
}

async function stateOf(gateway: Gateway): Promise<LockState> {
  const { file } = gateway.config.pins;
  if (file === null) throw new GatewayError('usage', 'toolgate lock needs a configuration file.');
  await gateway.tried();
  // Folders of tools are the user's own code.
  const own = new Set(gateway.statuses().flatMap(({ key, kind }) => (kind === 'folder' ? key : [])));
  const servers = gateway.offers().filter(({ key }) => !own.has(key));
  return {
    file,
    pins: await readLock(file),
    offers: servers.filter(({ isCurrent }) => isCurrent),
    away: servers.flatMap(({ key, isCurrent }) => (isCurrent ? [] : key)),
  };
}

function hashOf(found: readonly Deviation[]): string {
  return sha256(canonicalJson(found));
}

function requireKnown(names: readonly string[], { offers, pins, away }: LockState): void {
  const servers = [...offers.map(({ key }) => key), ...away, ...Object.keys(pins ?? {})];
  for (const name of names)
    if (!servers.some((key) => name === key || name.startsWith(`${key}.`)))
      throw new GatewayError(
        'usage',
        `There is no server for "${name}". Servers: ${[...new Set(servers)].join(', ')}.`,
      );
}

/** Whether the names mean this item. No names mean everything. */
function isMeant(names: readonly string[], { server, name }: Pick<Deviation, 'server' | 'name'>): boolean {
  return names.length === 0 || names.includes(server) || names.includes(`${server}.${name}`);
}

/** What differs: also whole servers that only one side has. */
function differences({ pins, offers, away }: LockState, names: readonly string[]): Deviation[] {
  const known = pins ?? {};
  const changed = offers.flatMap(({ key, offer }) =>
    deviationsOf(key, offer, Object.hasOwn(known, key) ? known[key] : NO_PIN),
  );
  const present = new Set([...offers.map(({ key }) => key), ...away]);
  const gone = Object.entries(known).flatMap(([server, pinned]) =>
    present.has(server) ? [] : itemsOf(pinned).map(([kind, name, before]) => goneItem(server, kind, name, before)),
  );
  return [...changed, ...gone].filter((one) => isMeant(names, one));
}

function itemsOf({ items }: PinnedServer): (readonly [Kind, string, JsonObject])[] {
  return (Object.keys(items) as Kind[]).flatMap((kind) =>
    Object.entries(items[kind]).map(([name, definition]) => [kind, name, definition] as const),
  );
}

function goneItem(server: string, kind: Kind, name: string, before: JsonObject): Deviation {
  const reasons = ['the configuration no longer has its server'];
  return { server, kind, name, verdict: 'gone', reasons, before, after: null };
}

/** The pins with what was approved. Servers that are not up keep theirs. */
function approved({ pins, offers }: LockState, found: readonly Deviation[], names: readonly string[]): Pins {
  const known = new Map(Object.entries(pins ?? {}));
  // A server that offers nothing has a pin, too: what it offers later is new.
  const meant = offers.flatMap(({ key }) => (names.length === 0 || names.includes(key) ? key : []));
  const keys = new Set([...known.keys(), ...found.map(({ server }) => server), ...meant]);
  const servers = [...keys].map((key) => {
    const changes = found.filter(({ server }) => server === key);
    return [
      key,
      changes.length === 0 ? (known.get(key) ?? NO_PIN) : changed(known.get(key) ?? NO_PIN, changes),
    ] as const;
  });
  const isOffered = (server: string) => offers.some(({ key }) => key === server);
  const isOver = (server: string, pinned: PinnedServer) =>
    !isOffered(server) && itemsOf(pinned).length === 0 && found.some((one) => one.server === server);
  return Object.fromEntries(servers.filter(([key, pinned]) => !isOver(key, pinned)));
}

function changed(pinned: PinnedServer, changes: readonly Deviation[]): PinnedServer {
  const instructions = changes.find(({ kind }) => kind === 'instructions')?.after ?? pinned.instructions;
  const items = Object.fromEntries(
    KINDS.map((kind) => {
      const list = new Map(Object.entries(pinned.items[kind]));
      for (const { name, after } of changes.filter((one) => one.kind === kind))
        if (isObject(after)) list.set(name, after);
        else list.delete(name);
      return [kind, Object.fromEntries(list)];
    }),
  );
  return { instructions: String(instructions), items: items as PinnedServer['items'] };
}
