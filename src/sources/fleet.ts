/**
 * All configured servers. A new configuration is compared with the running one. Unchanged servers keep running. A
 * changed server is started next to the old one and takes over after its first attempt to start. A removed one finishes
 * its calls.
 */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { toObject } from '../base/objects.ts';
import { counted } from '../base/text.ts';
import type { Contribution } from '../catalog/catalog.ts';
import { EMPTY_OFFER, type Item, type Kind, type Offer } from '../catalog/item.ts';
import { mayBeNamed, type Naming } from '../catalog/names.ts';
import type { BrokenEntry } from '../config/broken.ts';
import type { Config } from '../config/config.ts';
import type { Launch } from '../config/launch.ts';
import type { ServerConfig } from '../config/servers.ts';
import type { ClientChannel } from '../protocol/contract.ts';
import { isHeard, type LogLevel } from '../protocol/levels.ts';
import { type IsolationLevel, levelOf } from '../workers/isolation.ts';
import { type FileProblem, LastGoodFiles } from './last-good.ts';
import { createServerSource } from './server-source.ts';
import type { ServerContext, ServerSource, Source, SourceContext, SourceStatus } from './source.ts';

/** What a new configuration did to the servers, by their keys. */
export interface FleetReport {
  readonly started: readonly string[];
  readonly replaced: readonly string[];
  readonly stopped: readonly string[];
  readonly kept: readonly string[];
}

/** What a change did to the servers; `refilled` are those that were replaced because their secrets changed. */
export interface FleetChange extends FleetReport {
  readonly refilled: readonly string[];
}

export function reportText({ started, replaced, stopped }: FleetReport, notices: readonly string[]): string {
  const parts = Object.entries({ added: started, changed: replaced, removed: stopped })
    .filter(([, servers]) => servers.length > 0)
    .map(([verb, servers]) => `${counted(servers.length, 'server')} ${verb} (${servers.join(', ')})`);
  const done = parts.length === 0 ? 'applied' : `applied: ${parts.join(', ')}`;
  return [done, ...notices].join('; ');
}

/** The status of a server. */
export interface ServerStatus extends SourceStatus {
  readonly key: string;
  readonly namespace: string;
  /** `sse`: a server over HTTP that is configured, or was found, to use the older HTTP+SSE transport. */
  readonly kind: Launch['kind'] | 'sse';
  readonly description: string;
  /** Version and author of a folder of tools, as its `tooldock.yaml` says. */
  readonly version?: string;
  readonly author?: string;
  readonly required: boolean;
  readonly present: boolean;
  /** While the next version of a folder starts. The present one serves until then. */
  readonly updating?: true;
  /** How the process of a folder is isolated. */
  readonly isolation?: IsolationLevel;
}

export function serverStatus(config: ServerConfig, source: Source): ServerStatus {
  const { launch } = config;
  return {
    key: config.key,
    namespace: config.namespace,
    kind: source.isSse === true || (launch.kind === 'http' && launch.transport === 'sse') ? 'sse' : launch.kind,
    description: config.description,
    ...(config.version !== undefined && { version: config.version }),
    ...(config.author !== undefined && { author: config.author }),
    required: config.required,
    present: source.present,
    ...(launch.kind === 'folder' && { isolation: levelOf(launch.isolation) }),
    ...source.status(),
  };
}

/** A server that was left out. Nothing, if an earlier version of it runs. */
export function brokenStatus({ key, cause, problem, server, isKept }: BrokenEntry, since: string): ServerStatus[] {
  if (server === null || isKept) return [];
  const { namespace, kind, required } = server;
  return [
    {
      key,
      namespace,
      kind,
      required,
      description: '',
      present: false,
      state: STATE_OF[cause],
      detail: problem,
      since,
      history: [{ time: since, state: STATE_OF[cause], detail: problem }],
      revision: null,
      pid: null,
      restarts: 0,
      checks: { asked: 0, missed: 0 },
      stderr: '',
      problems: [],
    },
  ];
}

/** The same for the catalog: its names are not known, but it is. */
export function brokenContribution(
  { key, cause, problem, server, isKept }: BrokenEntry,
  since: number,
): Contribution[] {
  if (server === null || isKept) return [];
  const absence = { state: STATE_OF[cause], reason: problem, since };
  return [{ id: BROKEN_ID, key, namespace: server.namespace, offer: EMPTY_OFFER, present: false, absence }];
}

const STATE_OF = { mistake: 'broken', untrusted: 'untrusted' } as const;

/** No source has this id. */
const BROKEN_ID = Number.MIN_SAFE_INTEGER;

/** Whether all required servers are up. A required folder that does not exist yet counts as missing. */
export function isComplete({ folders, broken }: Config, statuses: readonly ServerStatus[]): boolean {
  const wanted = folders.named.filter(({ enabled, required }) => enabled && required).map(({ key }) => key);
  return (
    statuses.every(({ required, present, state }) => !required || (present && state !== 'starting')) &&
    wanted.every((key) => statuses.some((status) => status.key === key)) &&
    broken.every(({ server, isKept }) => isKept || server?.required !== true)
  );
}

/** One server of the configuration. Its id stays the same when its source is replaced. */
interface FleetMember {
  readonly id: number;
  config: ServerConfig;
  source: ServerSource;
  /** The launch that `source` was started with. */
  launchHash: string;
  /** Changes with the secrets that the source was given; null if they were not known yet. */
  stamp: string | null;
  /** Started because the configuration or the secrets changed. It has not taken over yet. */
  successor: ServerSource | null;
  nextStamp: string | null;
  /** Why a folder is not served as it is now, but as it was before; null if it is. */
  refused: FileProblem | null;
  /** Items of the source whose files were deleted. They are not offered, although the source still has them. */
  deleted: ReadonlySet<Item>;
}

export class Fleet {
  readonly #context: ServerContext;
  readonly #byId = new Map<number, FleetMember>();
  /** Sources that were replaced or removed and still finish their calls. */
  readonly #leaving = new Set<ServerSource>();
  #members: readonly FleetMember[] = [];
  #lastId = 0;
  #closed = false;
  /** The lowest log level that any caller asked for. */
  #logLevel: LogLevel | null = null;

  constructor(context: SourceContext) {
    this.#context = { ...context, lastGood: new LastGoodFiles() };
  }

  /** Starts, replaces and stops servers, so that exactly these run. */
  apply(servers: readonly ServerConfig[]): FleetChange {
    const report = { started: [] as string[], replaced: [] as string[], stopped: [] as string[], kept: [] as string[] };
    // A scan of folders may end after `close`, and must not start anything.
    if (this.#closed) return { ...report, refilled: [] };
    const enabled = servers.filter((server) => server.enabled);
    const unmatched = new Set(this.#members);
    const kept = takeKept(enabled, unmatched);
    this.#members = enabled.map((config, i) => {
      const member = kept[i];
      if (member != null) {
        member.config = config;
        (member.successor ?? member.source).update(config);
        report.kept.push(config.key);
        return member;
      }
      const changed = take(unmatched, (member) => member.config.key === config.key);
      if (changed === null) {
        report.started.push(config.key);
        return this.#add(config);
      }
      this.#replace(changed, config);
      report.replaced.push(config.key);
      return changed;
    });
    for (const member of unmatched) {
      this.#remove(member);
      report.stopped.push(member.config.key);
    }
    // A renamed server may get other secrets.
    const refilled = this.refill();
    return {
      ...report,
      replaced: [...report.replaced, ...refilled],
      kept: report.kept.filter((key) => !refilled.includes(key)),
      refilled,
    };
  }

  /** Replaces the servers whose secrets have other values now. Returns their keys. */
  refill(): readonly string[] {
    const changed: string[] = [];
    for (const member of this.#members) {
      const stamp = this.#context.vault.stampOf(member.config);
      // The server was started before the secrets were known, and has waited for them.
      member.stamp ??= stamp;
      member.nextStamp ??= stamp;
      if ((member.successor === null ? member.stamp : member.nextStamp) === stamp) continue;
      this.#replace(member, member.config);
      changed.push(member.config.key);
    }
    return changed;
  }

  #open(config: ServerConfig): ServerSource {
    const source = createServerSource(config, this.#context);
    if (this.#logLevel !== null) source.setLogLevel(this.#logLevel);
    return source;
  }

  #add(config: ServerConfig): FleetMember {
    const member: FleetMember = {
      id: ++this.#lastId,
      config,
      source: this.#open(config),
      launchHash: config.launchHash,
      stamp: this.#context.vault.stampOf(config),
      successor: null,
      nextStamp: null,
      refused: null,
      deleted: NONE_DELETED,
    };
    this.#byId.set(member.id, member);
    return member;
  }

  #remove(member: FleetMember): void {
    const { id, config, source, successor } = member;
    this.#byId.delete(id);
    // A folder that is created later under the same name is another one.
    if (config.launch.kind === 'folder') {
      this.#context.lastGood.forget(config.launch);
      this.#forgetOffer(member);
    }
    this.#retire(source);
    if (successor !== null) void successor.close();
  }

  /** Otherwise there would be one more offer on disk with every edit. */
  #forgetOffer({ id, launchHash }: FleetMember): void {
    const isUsed = [...this.#byId.values()].some((other) => other.id !== id && other.launchHash === launchHash);
    if (!isUsed) void this.#context.offers.forget(launchHash);
  }

  #retire(source: ServerSource): void {
    this.#leaving.add(source);
    void source.drain().finally(() => this.#leaving.delete(source));
  }

  #replace(member: FleetMember, config: ServerConfig): void {
    member.config = config;
    if (member.successor !== null) void member.successor.close();
    member.successor = null;
    member.refused = null;
    const stamp = this.#context.vault.stampOf(config);
    // It was changed back before the successor took over, so the old one stays.
    if (member.launchHash === config.launchHash && member.stamp === stamp) {
      member.source.update(config);
      return;
    }
    this.#succeed(member, config, stamp);
  }

  /** Starts another one in its place, which takes over when it is up. Resolves then; false if there is no such server. */
  async restart(key: string): Promise<boolean> {
    const member = this.#members.find(({ config }) => config.key === key);
    if (member === undefined) return false;
    if (member.successor === null) this.#succeed(member, member.config, this.#context.vault.stampOf(member.config));
    await member.successor?.tried;
    return true;
  }

  #succeed(member: FleetMember, config: ServerConfig, stamp: string | null): void {
    const successor = this.#open(config);
    member.successor = successor;
    member.nextStamp = stamp;
    void successor.tried.then(() => {
      if (member.successor === successor && !this.#closed && this.#members.includes(member))
        this.#promote(member, successor, config);
    });
  }

  #promote(member: FleetMember, successor: ServerSource, config: ServerConfig): void {
    const old = member.source;
    member.successor = null;
    // A broken edit of a folder does not remove its tools: the last good version stays.
    const isBroken = !successor.present && successor.status().state !== 'locked';
    member.refused = null;
    if (config.launch.kind === 'folder' && isBroken && old.present) {
      const message = successor.status().detail;
      member.refused = { file: 'the folder as it is now', line: null, message, isKept: true };
      member.deleted = deletedItems(old.offer, config.launch.folder);
      void successor.close();
      if (member.deleted.size > 0) this.#context.changed();
      return;
    }
    member.deleted = NONE_DELETED;
    for (const [client, uris] of old.subscribed) {
      const subscriptions = successor.subscriptions(client);
      for (const uri of uris) void subscriptions.add(uri).catch(() => {});
    }
    member.source = successor;
    if (member.launchHash !== config.launchHash) this.#forgetOffer(member);
    member.launchHash = config.launchHash;
    member.stamp = member.nextStamp;
    this.#retire(old);
    this.#context.changed();
  }

  /** Starts servers that are in a crash loop at once. */
  revive(): void {
    for (const { source, successor } of this.#members) (successor ?? source).revive();
  }

  contributions(): Contribution[] {
    return this.#members.map(({ id, config, source, deleted }) => ({
      id,
      key: config.key,
      namespace: config.namespace,
      description: config.description,
      offer: withoutItems(source.offer, deleted),
      present: source.present,
      absence: source.absence,
    }));
  }

  /** Whether the offer of every server is known, from the server or from the last run. */
  get isKnown(): boolean {
    return this.#members.every(({ source }) => source.offer !== EMPTY_OFFER);
  }

  find(id: number): { readonly source: ServerSource; readonly config: ServerConfig } | undefined {
    return this.#byId.get(id);
  }

  /** The id of the server that a source runs for; undefined for a source that was replaced or has not taken over. */
  idOf(source: Source): number | undefined {
    return this.#members.find((member) => member.source === source)?.id;
  }

  /** Whether a server before `id`, whose offer is not known yet, could turn out to offer this name. */
  mayClaim(name: string, id: number, naming: Naming): boolean {
    const at = this.#members.findIndex((member) => member.id === id);
    // An id that is not in the list comes after all of them.
    const before = at < 0 ? this.#members : this.#members.slice(0, at);
    return before.some(
      ({ source, config }) =>
        source.offer === EMPTY_OFFER &&
        source.status().state === 'starting' &&
        mayBeNamed(name, config.namespace, naming),
    );
  }

  setLogLevel(level: LogLevel): void {
    if (this.#logLevel === level || (this.#logLevel !== null && !isHeard(this.#logLevel, level))) return;
    this.#logLevel = level;
    for (const { source, successor } of this.#members) {
      source.setLogLevel(level);
      successor?.setLogLevel(level);
    }
  }

  /** A caller lists the items of this kind. */
  freshen(kind: Kind): void {
    for (const { source } of this.#members) source.freshen(kind);
  }

  /** Passes a notification of a client to the client's private connections. */
  tell(client: ClientChannel, message: Buffer): void {
    for (const source of this.#running()) source.tell(client, message);
  }

  /** The client is gone. */
  leave(client: ClientChannel): void {
    for (const source of this.#running()) source.leave(client);
  }

  statuses(): ServerStatus[] {
    return this.#members.map(({ config, source, successor, refused }) => {
      const status = serverStatus(config, source);
      const next = successor?.status();
      // While a new version of a folder is prepared, the current one serves it.
      if (config.launch.kind !== 'folder' || !source.present) return { ...status, ...next };
      return {
        ...status,
        // Such as how far the install of its packages is.
        ...(next && next.detail !== '' && { detail: next.detail }),
        ...(next && { updating: true as const }),
        problems: refused === null ? status.problems : [...status.problems, refused],
      };
    });
  }

  /** Starts these servers at once if they wait for their turn. Resolves when the first attempt of each is over. */
  async hurry(keys: readonly string[]): Promise<void> {
    const meant = this.#members.filter(({ config }) => keys.includes(config.key));
    for (const { source } of meant) source.hurry();
    await Promise.all(meant.map(({ source }) => source.tried));
  }

  /** Resolves when the first attempt to start is over for every server. */
  async tried(): Promise<void> {
    await Promise.all(this.#members.map(({ source, successor }) => (successor ?? source).tried));
  }

  async close(): Promise<void> {
    this.#closed = true;
    const all = this.#running();
    this.#members = [];
    await Promise.allSettled(all.map((source) => source.close()));
  }

  /** Includes sources that are about to take over or to end. */
  #running(): ServerSource[] {
    const current = this.#members.flatMap(({ source, successor }) =>
      successor === null ? source : [source, successor],
    );
    return [...current, ...this.#leaving];
  }
}

const NONE_DELETED: ReadonlySet<Item> = new Set();

/** The items of a folder whose files are no longer there. */
function deletedItems({ items }: Offer, folder: string): ReadonlySet<Item> {
  const fileOf = ({ bytes }: Item) => toObject(toObject(JSON.parse(bytes.toString()))._meta)['toolgate/file'];
  const isDeleted = (file: unknown) => typeof file === 'string' && !existsSync(join(folder, file));
  return new Set(items.filter((item) => isDeleted(fileOf(item))));
}

function withoutItems(offer: Offer, left: ReadonlySet<Item>): Offer {
  return left.size === 0 ? offer : { ...offer, items: offer.items.filter((item) => !left.has(item)) };
}

/** The running member for each server whose launch did not change. */
function takeKept(servers: readonly ServerConfig[], unmatched: Set<FleetMember>): (FleetMember | null)[] {
  // First the same launch under the same name, so that two equal commands are not swapped. Then renamed servers.
  const same = servers.map(({ launchHash, namespace }) =>
    take(unmatched, ({ config }) => config.launchHash === launchHash && config.namespace === namespace),
  );
  return servers.map(
    ({ launchHash }, i) => same[i] ?? take(unmatched, ({ config }) => config.launchHash === launchHash),
  );
}

function take(members: Set<FleetMember>, matches: (member: FleetMember) => boolean): FleetMember | null {
  for (const member of members) {
    if (!matches(member)) continue;
    members.delete(member);
    return member;
  }
  return null;
}
