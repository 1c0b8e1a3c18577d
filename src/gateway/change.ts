/**
 * Every change to a gateway goes through this file: an edited file, a signal, `POST /reload`, tool folders, secrets,
 * saved toolsets, agents' tokens, the library. Changes run one at a time and in order, so the last edit wins. A change
 * reads its inputs, stops if nothing differs from what is in force, and otherwise applies everything synchronously. No
 * call and no list can therefore see half of a change.
 */
import { GatewayError, messageOf } from '../base/errors.ts';
import { isSameValue } from '../base/objects.ts';
import type { Problem } from '../catalog/catalog.ts';
import type { BrokenEntry } from '../config/broken.ts';
import type { Config } from '../config/config.ts';
import type { ServerConfig } from '../config/servers.ts';
import { type FleetChange, type FleetReport, reportText } from '../sources/fleet.ts';
import { keepBroken } from './keep-broken.ts';
import { openedBy } from './opened-by.ts';
import type { Root } from './root.ts';
import { pause } from './startup.ts';

/** What to change. Omitted parts stay as they are. */
export interface ChangeRequest {
  /**
   * A new configuration, or `file` to read the configuration file again. Either way the tool folders are scanned, and
   * the saved toolsets are read.
   */
  readonly config?: Config | 'file';
  /** Whether the file is read because it was edited, not because somebody asked for it. */
  readonly isEdit?: boolean;
  /** Scan the tool folders again. */
  readonly folders?: boolean;
  /** Read the secret store again. */
  readonly secrets?: boolean;
  /** Read the saved toolsets again. */
  readonly toolsets?: boolean;
  /** Read the agents' tokens again. */
  readonly tokens?: boolean;
}

/** A part outside of the gateway that changes must reach: a door's credentials, a file watcher. */
export interface Applier {
  /** Its name in problems and failures. */
  readonly name: string;
  /** Reads the configuration file. */
  load?(): Promise<Config>;
  /** Reads the agents' tokens. Resolves to true if they have changed. */
  readTokens?(): Promise<boolean>;
  /** The configuration in force, as it is with the credentials as they are now. */
  judge?(config: Config): Promise<Config>;
  /** Applies the configuration in force and what was read. */
  apply?(config: Config): void;
  /** Resolves when a change has been requested for every edit that is on the disk now. */
  settled?(): Promise<unknown>;
}

/** A part that failed to apply a change. All other parts did apply it. */
export interface ApplierFailure {
  readonly name: string;
  readonly error: unknown;
}

/** What a change did. */
export interface ChangeReport extends FleetReport {
  /** False if everything that was read is already in force: then nothing was touched. */
  readonly isChanged: boolean;
  /** Why the new configuration was refused; null if it was not. */
  readonly refused: string | null;
  /**
   * What is wrong with single entries of the configuration, tool folders, secrets and tokens. The previous state of those
   * stays in force.
   */
  readonly problems: readonly Problem[];
  readonly failures: readonly ApplierFailure[];
  /** Resolves when every server has been tried once and its items are in the catalog. */
  readonly settled: Promise<SettledServers>;
}

/** What happened to the servers of a change, by key. */
export interface SettledServers {
  /** Servers that run in a different process than before the change. */
  readonly restarted: readonly string[];
  /** Tool folders whose dependencies were installed. */
  readonly synced: readonly string[];
}

/** What was read for a change. */
interface Readings {
  /** Null: the configuration in force stays. */
  readonly config: Config | null;
  /**
   * Whether it comes from a file. Then an event reports the outcome, because the person who edited the file needs it.
   */
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

/** Milliseconds. A file that is saved in place may take two seconds to count as complete. */
const MOST_CATCHING_UP = 5_000;

type ChangeStep = readonly [name: string, take: (root: Root) => void];

/** The redactor learns secrets first: a server must not be able to print a secret that is not redacted yet. */
const BEFORE_SERVERS: readonly ChangeStep[] = [
  ['redactor', ({ redactor, config }) => redactor.learn(config.secrets())],
  ['audit', ({ audit, config }) => audit.apply(config.audit)],
  ['controls', (root) => root.renewControls()],
  ['default selection', ({ defaults }) => defaults.rebase()],
  ['selections of callers', ({ callers }) => callers.rebase()],
  ['clock', (root) => root.watchClock()],
];

const AFTER_SERVERS: readonly ChangeStep[] = [
  ['limits', ({ limiters, config }) => limiters.apply(config)],
  ['catalog', (root) => root.rebuildCatalog()],
];

const AFTER_CATALOG: readonly ChangeStep[] = [
  ['toolsets', (root) => root.refitToolsets()],
  ['views', ({ views }) => views.forget()],
];

/** Runs once everything else is in force: callers compare their lists and are notified of those that changed. */
const LAST: readonly ChangeStep[] = [
  ['callers', ({ callers }) => callers.look()],
  ['early calls', ({ pipeline }) => pipeline.retry()],
];

export class ChangeQueue {
  readonly #root: Root;
  readonly #appliers = new Set<Applier>();
  /** Problems with the tokens that each applier read last. */
  readonly #unreadable = new Map<Applier, Problem>();
  #knownProblems = new Set<string>();
  /** Whether a part failed in the last change. Then even an equal configuration is applied, as a retry. */
  #hasFailed = false;
  #last: Promise<unknown>;
  /** Requests are numbered, so that an older one cannot overwrite the configuration of a newer one. */
  #serial = 0;
  #configSerial = 0;

  /** The first change reads the secret store; servers that need secrets wait for it. */
  constructor(root: Root) {
    this.#root = root;
    this.#last = root.vault.opened.then(() => this.#commit({ ...NO_READINGS, hasSecrets: true }));
  }

  /** Queues a change. Never rejects: errors are in the report. An empty request applies what a watcher has read. */
  change(request: ChangeRequest): Promise<ChangeReport> {
    const serial = ++this.#serial;
    const report = this.#last.then(async () => this.#commit(await this.#read(request, serial)));
    this.#last = report;
    return report;
  }

  /** Applies a configuration immediately. Anything that has to be read for it follows in the queue. */
  apply(given: Config): ChangeReport {
    const { folders, config: before } = this.#root;
    const config = keepBroken(given, before);
    this.#configSerial = ++this.#serial;
    const report = this.#commit({ ...NO_READINGS, config });
    const secrets = !isSameValue(config.vault, before.vault);
    // A new control may name the saved toolsets.
    const toolsets = !isSameValue(config.controls, before.controls);
    if (secrets || toolsets || folders?.isScanned(config) === false)
      void this.change({ folders: true, secrets, toolsets });
    return report;
  }

  /** Resolves when the edits that are on the disk now are in force, except of a file that somebody goes on writing. */
  async caughtUp(): Promise<void> {
    const watchers = [...this.#appliers].map((applier) => applier.settled?.());
    await Promise.race([Promise.all([...watchers, this.#root.folders?.settled()]), pause(MOST_CATCHING_UP)]);
    await this.#last;
  }

  /** Registers an applier for future changes. Returns the function that removes it. */
  add(applier: Applier): () => void {
    this.#appliers.add(applier);
    return () => {
      this.#appliers.delete(applier);
      this.#unreadable.delete(applier);
    };
  }

  async #read(request: ChangeRequest, serial: number): Promise<Readings> {
    const root = this.#root;
    if (root.isClosed) return NO_READINGS;
    const failures: ApplierFailure[] = [];
    const isFile = request.config === 'file';
    const { config: read, refused } = await this.#readConfig(request);
    // A newer configuration may have been applied while this one was being read.
    const config = serial < this.#configSerial ? null : read;
    if (config !== null) this.#configSerial = serial;
    const { vault, folders, defaults } = root;
    const next = config ?? root.config;
    const isNew = request.config !== undefined;
    const attempt = async (name: string, read: () => Promise<void> | undefined) => {
      try {
        await read();
      } catch (error) {
        failures.push({ name, error });
      }
    };
    if (isNew || request.folders === true) await attempt('folders of tools', () => folders?.scan(next));
    if (isNew || request.toolsets === true) await attempt('saved toolsets', defaults.loadToolsets);
    const news = request.tokens === true ? await this.#readTokens(failures) : NO_READINGS.news;
    // After the tokens were read, so that none of them is newer than what is judged.
    const judged = request.tokens === true && config === null ? await this.#judge() : null;
    const hasSecrets = request.secrets === true || !isSameValue(next.vault, root.config.vault);
    if (hasSecrets) await vault.reload(next.vault);
    return { config: config ?? judged, isFile, refused, hasSecrets, news, failures };
  }

  /** Null if nothing differs, or nobody has to be asked. */
  async #judge(): Promise<Config | null> {
    const { config } = this.#root;
    const judge = [...this.#appliers].findLast((applier) => applier.judge !== undefined)?.judge;
    const judged = (await judge?.(config)) ?? config;
    return isSameValue(judged.held, config.held) || this.#root.config !== config ? null : judged;
  }

  async #readConfig({ config, isEdit = false }: ChangeRequest): Promise<Pick<Readings, 'config' | 'refused'>> {
    if (config !== 'file')
      return { config: config === undefined ? null : keepBroken(config, this.#root.config), refused: null };
    const follower = [...this.#appliers].findLast(({ load }) => load !== undefined);
    if (follower === undefined) return { config: null, refused: null };
    try {
      const loaded = await follower.load!();
      // The owner may have stopped following the file in the meantime.
      if (!this.#appliers.has(follower)) return { config: null, refused: null };
      const kept = keepBroken(loaded, this.#root.config);
      const opened = isEdit && this.#root.config.watch === 'confirm' ? openedBy(this.#root.config, kept) : [];
      return opened.length === 0 ? { config: kept, refused: null } : { config: null, refused: waitingText(opened) };
    } catch (error) {
      if (!(error instanceof GatewayError)) this.#root.events.emit('failure', { where: 'configuration', error });
      return { config: null, refused: messageOf(error) };
    }
  }

  async #readTokens(failures: ApplierFailure[]): Promise<Set<Applier>> {
    const news = new Set<Applier>();
    for (const applier of this.#appliers) {
      try {
        if ((await applier.readTokens?.()) === true) news.add(applier);
        this.#unreadable.delete(applier);
      } catch (error) {
        if (error instanceof GatewayError) this.#unreadable.set(applier, keptBefore(applier.name, error.message));
        else failures.push({ name: applier.name, error });
      }
    }
    return news;
  }

  /** Applies what was read. A part that fails is reported and does not stop the others. */
  #commit(readings: Readings): ChangeReport {
    const root = this.#root;
    const { config: read, hasSecrets, news, refused } = readings;
    if (root.isClosed) return closedReport(refused);
    const isNewConfig = read !== null && (this.#hasFailed || !isSameValue(read, root.config));
    if (isNewConfig) root.config = read;
    const servers = root.serversOf(root.config);
    const isNewServers = isNewConfig || !isSameValue(servers, root.servers);
    const isNewToolsets = root.defaults.adoptToolsets();
    const pids = this.#pids();
    let fleet = unchanged(servers);
    const failures = [...readings.failures];
    const attempt = (name: string, take: (root: Root) => void) => {
      try {
        take(root);
      } catch (error) {
        failures.push({ name, error });
      }
    };
    const attemptAll = (steps: readonly ChangeStep[]) => {
      for (const [name, take] of steps) attempt(name, take);
    };

    if (isNewConfig) attemptAll(BEFORE_SERVERS);
    attempt('servers', () => {
      if (isNewServers) fleet = root.applyServers(servers);
      else if (hasSecrets) fleet = withRefilled(fleet, root.fleet.refill());
      // Reading the configuration also counts as a request to retry failed servers, even if it has not changed.
      if (read !== null) root.fleet.revive();
    });
    if (isNewServers) attemptAll(AFTER_SERVERS);
    if (isNewServers || isNewToolsets) attemptAll(AFTER_CATALOG);
    if (isNewConfig) attempt('source sets', ({ sets }) => sets?.renew());
    for (const applier of this.#appliers)
      if (isNewConfig || news.has(applier)) attempt(applier.name, ({ config }) => applier.apply?.(config));
    if (isNewServers || isNewToolsets) attemptAll(LAST);

    if (isNewConfig || failures.length > 0) this.#hasFailed = failures.length > 0;
    const isChanged = isNewServers || isNewToolsets || news.size > 0 || fleet.refilled.length > 0;
    const report: ChangeReport = {
      ...fleet,
      isChanged,
      refused,
      problems: this.#problems(),
      failures,
      settled: this.#settle(pids),
    };
    this.#announce(readings, report, fleet.refilled);
    return report;
  }

  /** Emits the events. A problem is reported once, when it appears, and not again with every later change. */
  #announce(readings: Readings, report: ChangeReport, refilled: readonly string[]): void {
    const { config, isFile, hasSecrets } = readings;
    const { isChanged, refused, problems, failures } = report;
    const { events } = this.#root;
    this.#root.announceCatalog();
    for (const { name, error } of failures) events.emit('failure', { where: `change of ${name}`, error });
    const keyOf = ({ source, message }: Problem) => `${source} ${message}`;
    for (const problem of problems) if (!this.#knownProblems.has(keyOf(problem))) events.emit('note', problem);
    this.#knownProblems = new Set(problems.map(keyOf));
    if (hasSecrets && refilled.length > 0)
      events.emit('admin', { act: 'secrets_changed', agent: '', detail: `restarted ${refilled.join(', ')}` });
    if (refused !== null) {
      const message = `kept the configuration in force, the new one is refused:\n${refused}`;
      events.emit('config', { ok: false, message });
    } else if (config !== null && (isChanged || isFile))
      events.emit('config', { ok: true, message: isChanged ? reportText(report, config.notices) : 'nothing changed' });
  }

  #problems(): readonly Problem[] {
    const { folders, vault, config } = this.#root;
    return [
      ...config.broken.map(brokenProblem),
      ...(folders?.problemsOf(config) ?? []),
      ...(vault.problem === null ? [] : [keptBefore('secrets', vault.problem)]),
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

function waitingText(opened: readonly string[]): string {
  return `It waits for SIGHUP or POST /reload, because watch is "confirm" and it changes ${opened.join(', ')}.`;
}

function brokenProblem({ section, key, cause, problem, isKept }: BrokenEntry): Problem {
  const [kept, left] = DONE[cause];
  return { source: section === 'servers' ? key : `toolset ${key}`, message: `${isKept ? kept : left}: ${problem}` };
}

/** What happened to an entry of which an earlier version is in force, and to another one. */
const DONE = {
  mistake: ['its entry has a mistake, so it stays as it is', 'left out, because its entry has a mistake'],
  untrusted: [
    'what it runs has changed and is not trusted yet, so it stays as it is',
    'not started, because nobody has trusted it yet',
  ],
} as const satisfies Record<BrokenEntry['cause'], unknown>;

function keptBefore(source: string, problem: string): Problem {
  return { source, message: `${problem} What is in force stays.` };
}

function closedReport(refused: string | null): ChangeReport {
  const settled = Promise.resolve({ restarted: [], synced: [] });
  return { ...unchanged([]), isChanged: false, refused, problems: [], failures: [], settled };
}

function unchanged(servers: readonly ServerConfig[]): FleetChange {
  const kept = servers.filter(({ enabled }) => enabled).map(({ key }) => key);
  return { started: [], replaced: [], stopped: [], kept, refilled: [] };
}

function withRefilled(fleet: FleetChange, refilled: readonly string[]): FleetChange {
  return { ...fleet, refilled, replaced: refilled, kept: fleet.kept.filter((key) => !refilled.includes(key)) };
}
