/**
 * The one way in which a gateway changes. Every writer asks for a change: an edited file, a signal, `POST /reload`, folders of
 * tools, secrets, agents' tokens, the library. Changes run one at a time and in order, so the last edit wins. Each one reads
 * what it is about, stops if nothing differs from what is in force, and otherwise applies everything in one go: nothing waits
 * in between, so no call and no list ever sees half of a change.
 */
import { GatewayError, messageOf } from '../base/errors.ts';
import { isSameValue } from '../base/same-value.ts';
import type { Problem } from '../catalog/catalog.ts';
import type { Config } from '../config/config.ts';
import type { ServerConfig } from '../config/servers.ts';
import { type FleetChange, type FleetReport, reportText } from '../sources/fleet.ts';
import type { Root } from './root.ts';

/** What a change is about. Parts that are left out stay as they are. */
export interface ChangeRequest {
  /** A new configuration, or `file`: read the configuration file again. */
  readonly config?: Config | 'file';
  /** Scan the folders of tools again. Reading the configuration file does that too: both may have been edited. */
  readonly folders?: boolean;
  /** Read the store of secrets again. */
  readonly secrets?: boolean;
  /** Read the tokens of agents again. */
  readonly tokens?: boolean;
}

/** Something outside of the gateway that changes have to reach: the credentials of a door, the watcher of a file. */
export interface Applier {
  /** Names it in problems and failures. */
  readonly name: string;
  /** Reads the configuration file. */
  load?(): Promise<Config>;
  /** Reads what it needs besides the configuration. Resolves to whether that differs from what it had. */
  read?(request: ChangeRequest): Promise<boolean>;
  /** Takes up the configuration in force and what was read. */
  apply?(config: Config): void;
}

/** A part that could not take up a change. All others did. */
export interface ApplierFailure {
  readonly name: string;
  readonly error: unknown;
}

/** What a change did. */
export interface ChangeReport extends FleetReport {
  /** False if everything that was read is in force already: then nothing was touched. */
  readonly isChanged: boolean;
  /** Why a new configuration was refused; null if it was not. */
  readonly refused: string | null;
  /** What is wrong with folders of tools, secrets and tokens. What was in force before stays. */
  readonly problems: readonly Problem[];
  readonly failures: readonly ApplierFailure[];
  /** Resolves when every server has been tried once and its items are in the catalog. */
  readonly settled: Promise<SettledServers>;
}

/** What became of the servers of a change, by their keys. */
export interface SettledServers {
  /** Those that run in another process than before the change. */
  readonly restarted: readonly string[];
  /** Folders of tools for which dependencies were installed. */
  readonly synced: readonly string[];
}

/** What was read for a change. */
interface Readings {
  /** Null: the one in force stays. */
  readonly config: Config | null;
  /** Whether that is a file that somebody edited, and wants to hear about. */
  readonly isFile: boolean;
  readonly refused: string | null;
  readonly hasSecrets: boolean;
  /** The appliers that have read something new. */
  readonly news: ReadonlySet<Applier>;
  readonly failures: readonly ApplierFailure[];
}

const NO_READINGS: Readings = {
  config: null,
  isFile: false,
  refused: null,
  hasSecrets: false,
  news: new Set(),
  failures: [],
};

type ChangeStep = readonly [name: string, take: (root: Root) => void];

/** What takes up a new configuration before servers do. What is secret has to be known before a server can say it. */
const BEFORE_SERVERS: readonly ChangeStep[] = [
  ['redactor', ({ redactor, config }) => redactor.learn(config.secrets())],
  ['audit', ({ audit, config }) => audit.apply(config.audit)],
  ['controls', (root) => root.renewControls()],
  ['default selection', ({ defaults }) => defaults.rebase()],
  ['selections of callers', ({ callers }) => callers.rebase()],
  ['clock', (root) => root.watchClock()],
];

/** And what does after the new catalog is in force. */
const AFTER_CATALOG: readonly ChangeStep[] = [
  ['views', ({ views }) => views.forget()],
  ['source sets', ({ sets }) => sets?.renew()],
];

export class ChangeQueue {
  readonly #root: Root;
  readonly #appliers = new Set<Applier>();
  /** What is wrong with what appliers read last. */
  readonly #unreadable = new Map<Applier, Problem>();
  #knownProblems = new Set<string>();
  /** Whether something failed the last time: then the same configuration is another try. */
  #hasFailed = false;
  #last: Promise<unknown>;
  /** Requests are numbered, so that an older one does not replace the configuration of a newer one. */
  #serial = 0;
  #configSerial = 0;

  /** The first change is what the store of secrets has: servers that need some wait for it. */
  constructor(root: Root) {
    this.#root = root;
    this.#last = root.vault.opened.then(() => this.#commit({ ...NO_READINGS, hasSecrets: true }));
  }

  /** Queues a change. Never rejects: what goes wrong is in the report. An empty request takes up what a watcher has read. */
  change(request: ChangeRequest): Promise<ChangeReport> {
    const serial = ++this.#serial;
    const report = this.#last.then(async () => {
      const readings = await this.#read(request);
      if (readings.config !== null && serial < this.#configSerial) {
        // A newer one was applied while this one was being read.
        await this.#root.folders?.scan(this.#root.config);
        return this.#commit({ ...readings, config: null });
      }
      if (readings.config !== null) this.#configSerial = serial;
      return this.#commit(readings);
    });
    this.#last = report;
    return report;
  }

  /** Applies a configuration at once. What of it has to be read follows in the queue. */
  apply(config: Config): ChangeReport {
    const { folders, config: before } = this.#root;
    this.#configSerial = ++this.#serial;
    const report = this.#commit({ ...NO_READINGS, config });
    const secrets = !isSameValue(config.vault, before.vault);
    if (secrets || folders?.isScanned(config) === false) void this.change({ folders: true, secrets });
    return report;
  }

  /** From here on changes reach this one too; returns the function that ends that. */
  add(applier: Applier): () => void {
    this.#appliers.add(applier);
    return () => {
      this.#appliers.delete(applier);
      this.#unreadable.delete(applier);
    };
  }

  async #read(request: ChangeRequest): Promise<Readings> {
    const root = this.#root;
    if (root.isClosed) return NO_READINGS;
    const isFile = request.config === 'file';
    const { config, refused } = await this.#readConfig(request);
    const next = config ?? root.config;
    if (isFile || request.folders === true) await root.folders?.scan(next);
    const news = new Set<Applier>();
    const failures: ApplierFailure[] = [];
    for (const applier of this.#appliers) {
      try {
        if ((await applier.read?.(request)) === true) news.add(applier);
        this.#unreadable.delete(applier);
      } catch (error) {
        if (error instanceof GatewayError)
          this.#unreadable.set(applier, { source: applier.name, message: `${error.message} What is in force stays.` });
        else failures.push({ name: applier.name, error });
      }
    }
    const hasSecrets = request.secrets === true || !isSameValue(next.vault, root.config.vault);
    if (hasSecrets) await root.vault.reload(next.vault);
    return { config, isFile, refused, hasSecrets, news, failures };
  }

  async #readConfig({ config }: ChangeRequest): Promise<Pick<Readings, 'config' | 'refused'>> {
    if (config !== 'file') return { config: config ?? null, refused: null };
    const follower = [...this.#appliers].findLast(({ load }) => load !== undefined);
    if (follower === undefined) return { config: null, refused: null };
    try {
      const loaded = await follower.load!();
      // The file may have been left alone meanwhile.
      return { config: this.#appliers.has(follower) ? loaded : null, refused: null };
    } catch (error) {
      if (!(error instanceof GatewayError)) this.#root.events.emit('failure', { where: 'configuration', error });
      return { config: null, refused: messageOf(error) };
    }
  }

  /** Applies what was read. A part that fails is reported and does not stop the others. */
  #commit(readings: Readings): ChangeReport {
    const root = this.#root;
    const { hasSecrets, news, refused } = readings;
    const isNewConfig =
      readings.config !== null && (this.#hasFailed || !isSameValue(readings.config, root.config)) && !root.isClosed;
    const config = isNewConfig ? readings.config! : root.config;
    const servers = root.serversOf(config);
    const isNewServers = !isSameValue(servers, root.servers);
    const pids = this.#pids();
    const failures = [...readings.failures];
    let fleet = unchanged(servers);
    const attempt = (name: string, take: () => void) => {
      try {
        if (!root.isClosed) take();
      } catch (error) {
        failures.push({ name, error });
      }
    };
    const attemptAll = (steps: readonly ChangeStep[]) => {
      for (const [name, take] of steps) attempt(name, () => take(root));
    };

    if (isNewConfig) {
      root.config = config;
      attemptAll(BEFORE_SERVERS);
    }
    if (isNewConfig || isNewServers)
      attempt('servers', () => {
        fleet = root.fleet.apply(servers);
        root.servers = servers;
      });
    else if (hasSecrets)
      attempt('secrets', () => {
        fleet = withRefilled(fleet, root.fleet.refill());
      });
    // Somebody edited the configuration: that is a reason to try again.
    if (readings.config !== null) attempt('servers', () => root.fleet.revive());
    if (isNewConfig || isNewServers) {
      attempt('limits', () => root.limiters.apply(config));
      attempt('catalog', () => root.rebuildCatalog());
    }
    if (isNewConfig) attemptAll(AFTER_CATALOG);
    for (const applier of this.#appliers)
      if (isNewConfig || news.has(applier)) attempt(applier.name, () => applier.apply?.(config));
    if (isNewConfig || isNewServers) attempt('callers', () => root.callers.look());
    if (isNewConfig || isNewServers) attempt('early calls', () => root.pipeline.retry());
    if (isNewConfig || failures.length > 0) this.#hasFailed = failures.length > 0;

    const problems = this.#problems();
    const isChanged = isNewConfig || isNewServers || news.size > 0 || fleet.refilled.length > 0;
    const report = { ...fleet, isChanged, refused, problems, failures, settled: this.#settle(pids) };
    this.#announce(readings, report, fleet);
    return report;
  }

  /** Tells observers. A problem is told when it appears, not with every change after which it is still there. */
  #announce({ isFile, config }: Readings, report: ChangeReport, { refilled }: FleetChange): void {
    const { events } = this.#root;
    const { isChanged, refused, problems, failures } = report;
    this.#root.announceCatalog();
    for (const { name, error } of failures) events.emit('failure', { where: `change of ${name}`, error });
    for (const { source, message } of problems)
      if (!this.#knownProblems.has(`${source} ${message}`)) events.emit('note', { source, message });
    this.#knownProblems = new Set(problems.map(({ source, message }) => `${source} ${message}`));
    if (refilled.length > 0)
      events.emit('admin', { act: 'secrets_changed', agent: '', detail: `restarted ${refilled.join(', ')}` });
    if (refused !== null)
      events.emit('config', {
        ok: false,
        message: `kept the configuration in force, the new one is refused:\n${refused}`,
      });
    else if (config !== null && (isChanged || isFile))
      events.emit('config', { ok: true, message: isChanged ? reportText(report, config.notices) : 'nothing changed' });
  }

  #problems(): readonly Problem[] {
    const { folders, vault, config } = this.#root;
    return [
      ...(folders?.problemsOf(config) ?? []),
      ...(vault.problem === null ? [] : [{ source: 'secrets', message: `${vault.problem} What is in force stays.` }]),
      ...this.#unreadable.values(),
    ];
  }

  #pids(): ReadonlyMap<string, number | null> {
    return new Map(this.#root.fleet.statuses().map(({ key, pid }) => [key, pid]));
  }

  async #settle(before: ReadonlyMap<string, number | null>): Promise<SettledServers> {
    const root = this.#root;
    const synced = new Set<string>();
    const stop = root.whenInstalled((key) => synced.add(key));
    await root.tried();
    stop();
    const now = [...this.#pids()].filter(([key, pid]) => pid !== null && pid !== before.get(key));
    return { restarted: now.map(([key]) => key), synced: [...synced] };
  }
}

function unchanged(servers: readonly ServerConfig[]): FleetChange {
  const kept = servers.filter(({ enabled }) => enabled).map(({ key }) => key);
  return { started: [], replaced: [], stopped: [], kept, refilled: [] };
}

function withRefilled(fleet: FleetChange, refilled: readonly string[]): FleetChange {
  return { ...fleet, refilled, replaced: refilled, kept: fleet.kept.filter((key) => !refilled.includes(key)) };
}
