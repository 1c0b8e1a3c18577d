/**
 * All configured servers. A new configuration is compared with the running one: what did not change keeps running, a
 * changed server is started beside the old one and takes over when it has been tried, a removed one finishes its calls.
 */
import type { Contribution } from '../catalog/catalog.ts';
import { EMPTY_OFFER, type Kind } from '../catalog/item.ts';
import { mayBeNamed, type Naming } from '../catalog/names.ts';
import type { Config } from '../config/config.ts';
import type { Launch } from '../config/launch.ts';
import type { ServerConfig } from '../config/servers.ts';
import type { ClientChannel } from '../protocol/contract.ts';
import { isHeard, type LogLevel } from '../protocol/levels.ts';
import { type IsolationLevel, levelOf } from '../workers/isolation.ts';
import { RegressionGuard } from './regression-guard.ts';
import type { ServerContext, Source, SourceContext, SourceStatus } from './source.ts';
import { createSource } from './upstream.ts';

/** The place of one server in the configuration; its id stays the same while what runs in it is replaced. */
interface Slot {
  readonly id: number;
  config: ServerConfig;
  source: Source;
  /** The launch that `source` was started with. */
  launchHash: string;
  /** Which values of secrets it was given; null where those were not known yet. */
  stamp: string | null;
  /** Started for a changed configuration or other secrets, not yet in charge. */
  successor: Source | null;
  nextStamp: string | null;
}

/** What a new configuration did to the servers, by their keys. */
export interface FleetReport {
  readonly started: readonly string[];
  readonly replaced: readonly string[];
  readonly stopped: readonly string[];
  readonly kept: readonly string[];
}

/** The same, with those among the replaced ones that were given other secrets. */
export interface FleetChange extends FleetReport {
  readonly refilled: readonly string[];
}

export function reportText({ started, replaced, stopped }: FleetReport, notices: readonly string[]): string {
  const parts = Object.entries({ started, restarted: replaced, stopped })
    .filter(([, servers]) => servers.length > 0)
    .map(([verb, servers]) => `${verb} ${servers.join(', ')}`);
  return ['applied', ...parts, ...notices].join('; ');
}

/** How a server is. */
export interface ServerStatus extends SourceStatus {
  readonly key: string;
  readonly namespace: string;
  readonly kind: Launch['kind'];
  readonly description: string;
  readonly required: boolean;
  readonly present: boolean;
  /** What keeps the process of a folder apart. */
  readonly isolation?: IsolationLevel;
}

export function serverStatus(config: ServerConfig, source: Source): ServerStatus {
  return {
    key: config.key,
    namespace: config.namespace,
    kind: config.launch.kind,
    description: config.description,
    required: config.required,
    present: source.present,
    ...(config.launch.kind === 'folder' && { isolation: levelOf(config.launch.isolation) }),
    ...source.status(),
  };
}

/** Whether everything is there that the configuration requires, folders that have not come yet included. */
export function isComplete({ folders }: Config, statuses: readonly ServerStatus[]): boolean {
  const wanted = folders.named.filter(({ enabled, required }) => enabled && required).map(({ key }) => key);
  return (
    statuses.every(({ required, present }) => !required || present) &&
    wanted.every((key) => statuses.some((status) => status.key === key))
  );
}

export interface Fleet {
  apply(servers: readonly ServerConfig[]): FleetChange;
  /** Replaces the servers whose secrets have other values now; gives their keys. */
  refill(): readonly string[];
  /** Tries those at once that are in a crash loop. */
  revive(): void;
  contributions(): Contribution[];
  find(id: number): { readonly source: Source; readonly config: ServerConfig } | undefined;
  /** The id of the place that a source has; undefined for one that is not in charge. */
  idOf(source: Source): number | undefined;
  /** Whether something is known of every server: what it offers, or last offered. */
  readonly isKnown: boolean;
  /** Whether a server that is listed before `id`, and of which nothing is known yet, could turn out to have this name. */
  mayClaim(name: string, id: number, naming: Naming): boolean;
  setLogLevel(level: LogLevel): void;
  /** Somebody looks at the items of this kind. */
  freshen(kind: Kind): void;
  /** Passes on a notification of a client to the connections that it has to itself. */
  tell(client: ClientChannel, message: Buffer): void;
  /** The client is gone. */
  leave(client: ClientChannel): void;
  statuses(): ServerStatus[];
  /** Resolves when every server that is there now has been tried once. */
  tried(): Promise<void>;
  close(): Promise<void>;
}

export function createFleet(context: SourceContext): Fleet {
  const { vault } = context;
  const servers: ServerContext = { ...context, guard: new RegressionGuard() };
  let slots: Slot[] = [];
  let lastId = 0;
  let closed = false;
  const byId = new Map<number, Slot>();
  const leaving = new Set<Source>();

  /** The lowest level that anybody wanted. */
  let logLevel: LogLevel | null = null;

  const open = (config: ServerConfig) => {
    const source = createSource(config, servers);
    if (logLevel !== null) source.setLogLevel(logLevel);
    return source;
  };

  /** Also those that are about to come, or to go. */
  const running = () => [
    ...slots.flatMap(({ source, successor }) => (successor === null ? [source] : [source, successor])),
    ...leaving,
  ];

  function retire(source: Source): void {
    leaving.add(source);
    void source.drain().finally(() => leaving.delete(source));
  }

  function replace(slot: Slot, config: ServerConfig): void {
    slot.config = config;
    if (slot.successor !== null) void slot.successor.close();
    slot.successor = null;
    const stamp = vault.stampOf(config);
    // Changed back before the successor took over: the old one simply stays.
    if (slot.launchHash === config.launchHash && slot.stamp === stamp) {
      slot.source.update(config);
      return;
    }
    const successor = open(config);
    slot.successor = successor;
    slot.nextStamp = stamp;
    void successor.tried.then(() => {
      if (slot.successor !== successor || closed || !slots.includes(slot)) return;
      const old = slot.source;
      // A broken edit of a folder takes nothing away: the last version that was good stays.
      const isBroken = !successor.present && successor.status().state !== 'locked';
      if (config.launch.kind === 'folder' && isBroken && old.present) {
        slot.successor = null;
        void successor.close();
        return;
      }
      for (const [client, uris] of old.wanted)
        for (const uri of uris)
          void successor
            .subscriptions(client)
            .add(uri)
            .catch(() => {});
      slot.source = successor;
      slot.launchHash = config.launchHash;
      slot.stamp = slot.nextStamp;
      slot.successor = null;
      retire(old);
      context.changed();
    });
  }

  function refill(): string[] {
    const changed: string[] = [];
    for (const slot of slots) {
      const stamp = vault.stampOf(slot.config);
      // They have waited for these to be known.
      slot.stamp ??= stamp;
      slot.nextStamp ??= stamp;
      if ((slot.successor === null ? slot.stamp : slot.nextStamp) === stamp) continue;
      replace(slot, slot.config);
      changed.push(slot.config.key);
    }
    return changed;
  }

  return {
    refill,
    apply(wanted) {
      // What was still being looked at when all was closed starts nothing any more.
      if (closed) return { started: [], replaced: [], stopped: [], kept: [], refilled: [] };
      const report = {
        started: [] as string[],
        replaced: [] as string[],
        stopped: [] as string[],
        kept: [] as string[],
      };
      const free = new Set(slots);
      const take = (matches: (slot: Slot) => boolean) => {
        for (const slot of free) {
          if (!matches(slot)) continue;
          free.delete(slot);
          return slot;
        }
        return null;
      };
      const enabled = wanted.filter((server) => server.enabled);
      // The same process under the same name first, so that two equal commands keep their places; then renamed ones.
      const same = enabled.map((config) =>
        take((slot) => slot.config.launchHash === config.launchHash && slot.config.namespace === config.namespace),
      );
      const renamed = enabled.map(
        (config, i) => same[i] ?? take((slot) => slot.config.launchHash === config.launchHash),
      );
      slots = enabled.map((config, i) => {
        const kept = renamed[i];
        if (kept != null) {
          kept.config = config;
          (kept.successor ?? kept.source).update(config);
          report.kept.push(config.key);
          return kept;
        }
        const changed = take((slot) => slot.config.key === config.key);
        if (changed !== null) {
          replace(changed, config);
          report.replaced.push(config.key);
          return changed;
        }
        const slot: Slot = {
          id: ++lastId,
          config,
          source: open(config),
          launchHash: config.launchHash,
          stamp: vault.stampOf(config),
          successor: null,
          nextStamp: null,
        };
        byId.set(slot.id, slot);
        report.started.push(config.key);
        return slot;
      });
      for (const slot of free) {
        byId.delete(slot.id);
        report.stopped.push(slot.config.key);
        retire(slot.source);
        if (slot.successor !== null) void slot.successor.close();
      }
      // Under another name a server may be given other secrets.
      const refilled = refill();
      return {
        ...report,
        replaced: [...report.replaced, ...refilled],
        kept: report.kept.filter((key) => !refilled.includes(key)),
        refilled,
      };
    },
    revive() {
      for (const { source, successor } of slots) (successor ?? source).revive();
    },
    contributions: () =>
      slots.map(({ id, config, source }) => ({
        id,
        key: config.key,
        namespace: config.namespace,
        offer: source.offer,
        present: source.present,
      })),
    get isKnown() {
      return slots.every(({ source }) => source.offer !== EMPTY_OFFER);
    },
    find: (id) => byId.get(id),
    idOf: (source) => slots.find((slot) => slot.source === source)?.id,
    mayClaim(name, id, naming) {
      const at = slots.findIndex((slot) => slot.id === id);
      // What is none of them comes after all.
      const before = at < 0 ? slots : slots.slice(0, at);
      return before.some(
        ({ source, config }) =>
          source.offer === EMPTY_OFFER &&
          source.status().state === 'starting' &&
          mayBeNamed(name, config.namespace, naming),
      );
    },
    setLogLevel(level) {
      if (logLevel === level || (logLevel !== null && !isHeard(logLevel, level))) return;
      logLevel = level;
      for (const { source, successor } of slots) {
        source.setLogLevel(level);
        successor?.setLogLevel(level);
      }
    },
    freshen(kind) {
      for (const { source } of slots) source.freshen(kind);
    },
    tell(client, message) {
      for (const source of running()) source.tell(client, message);
    },
    leave(client) {
      for (const source of running()) source.leave(client);
    },
    statuses: () =>
      slots.map(({ config, source, successor }) => ({
        ...serverStatus(config, source),
        ...(successor ?? source).status(),
      })),
    async tried() {
      await Promise.all(slots.map((slot) => (slot.successor ?? slot.source).tried));
    },
    async close() {
      closed = true;
      const all = running();
      slots = [];
      await Promise.allSettled(all.map((source) => source.close()));
    },
  };
}
