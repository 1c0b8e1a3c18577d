/** The default selection, which all callers without their own share. The equipped toolset is kept across restarts. */
import { implicitToolsets } from '../access/implicit-toolsets.ts';
import {
  basePatterns,
  equip,
  type KeptSelection,
  keptSelection,
  rebase,
  refitted,
  type Selection,
  startSelection,
  toKept,
} from '../access/selection.ts';
import { goneToolset, type Toolset, toolServers } from '../access/toolset.ts';
import { GatewayError, messageOf } from '../base/errors.ts';
import type { EventSink } from '../base/events.ts';
import { withoutStop } from '../base/text.ts';
import { userFolder } from '../base/user-folder.ts';
import type { Catalog } from '../catalog/catalog.ts';
import type { Config } from '../config/config.ts';
import type { EnvVars } from '../config/expand.ts';
import type { Renames } from '../store/renames.ts';
import type { Replica } from '../store/shared/replica.ts';
import {
  type LibraryToolset,
  openToolsetLibrary,
  openUserToolsets,
  type RenamedTool,
  type ToolsetLibrary,
  type ToolsetServers,
  withAdminEvents,
} from '../store/toolset-library.ts';
import { openToolsetStore } from '../store/toolsets.ts';

export interface DefaultSelection {
  readonly selection: Selection;
  /** The toolsets that users made, as they were last read. The same array while nothing changed. */
  readonly toolsets: readonly LibraryToolset[];
  /** The tools of saved toolsets that have another name now than in their file. */
  readonly renamed: readonly RenamedTool[];
  /**
   * All toolsets that an agent may know: `permitted` is the catalog that its policy leaves, or null if none limits it.
   * Changes through this library are reported in an event as made by this agent; an empty name stands for the operator.
   */
  libraryOf(agent: string, permitted: Catalog | null): ToolsetLibrary;
  /** A toolset as it is now. `isNamed` says that the URL or a header of a request names it. */
  toolsetNow(toolset: Toolset, isNamed: boolean): Toolset;
  /** The toolset that a client had equipped last; null if it had none, undefined if nothing is known of it. */
  lastOfClient(client: string): Toolset | null | undefined;
  /** Saves it for the next start. Resolves to null, or to the reason why it could not be saved. */
  rememberClient(client: string, name: string | null): Promise<string | null>;
  /** The toolset that a window equipped last in this gateway; null for none, undefined if no window has switched any. */
  lastOfWindows(): Toolset | null | undefined;
  /** A window has equipped this toolset, or none. Windows that open later, and the next start, begin with it. */
  rememberWindow(name: string | null, agent: string): Promise<string | null>;
  /** Equips a toolset for windows that open from now on. Rejects if no toolset has that name, or if it would have no effect. */
  equipForWindows(name: string): Promise<void>;
  /**
   * Replaces the selection. Emits an event if a different toolset is equipped as a result. Resolves when that is saved
   * for the next start: to null, or to the reason why it could not be saved. Null if there is nothing to save.
   */
  choose(selection: Selection, agent: string): Promise<string | null> | null;
  /** Equips a toolset; null equips none. Rejects if no toolset has that name, or if it would have no effect. */
  equip(name: string | null): Promise<void>;
  /** Equips the toolset that was equipped when the previous gateway in this data folder stopped. Never rejects. */
  restore(): Promise<void>;
  /** Adapts the selection to a new configuration. */
  rebase(): void;
  /** Takes the equipped toolset as it is now. */
  refit(): void;
  /** Reads the saved toolsets again. They count from `adoptToolsets` on, which returns whether any is different. */
  loadToolsets(): Promise<void>;
  adoptToolsets(): boolean;
  /** The folders of the saved toolsets. */
  readonly folders: readonly string[];
  /** Resolves when the equipped toolset is saved for the next start. */
  close(): Promise<void>;
}

export interface DefaultSelectionOptions {
  readonly events: EventSink;
  readonly env: EnvVars;
  readonly renames: Renames;
  /** The configuration in force. */
  config(): Config;
  catalog(): Catalog;
  /** The keys of all servers, including those that have not started yet. */
  servers(): readonly string[];
  /** The selection was replaced. */
  changed(): void;
  /** The toolsets that users made are others than before. */
  toolsetsChanged(): void;
  /** Null if there is no other replica. */
  readonly replica?: Replica | null;
}

export function createDefaultSelection(options: DefaultSelectionOptions): DefaultSelection {
  const { events, env, renames, config, catalog, servers, changed, toolsetsChanged, replica = null } = options;
  const store = openToolsetStore(config().dataDir, userFolder(env));
  const made = openUserToolsets({
    configured: () => config().toolsets,
    store,
    renames,
    changed() {
      refit();
      toolsetsChanged();
    },
    noticed: (message) => events.emit('note', { source: 'toolsets', message }),
  });
  const library = openToolsetLibrary(made, () => implicitServers(null));
  let selection = startSelection(basePatterns(config()));
  /** One after the other, so that the last one counts. */
  let saved: Promise<unknown> = Promise.resolve();
  /** What the next start equips; undefined if nothing was saved. */
  let remembered: string | null | undefined;
  /** Resolves when all replicas have the selection. */
  let sharing: Promise<void> | null = null;
  /** What windows begin with; undefined if that is the default selection. */
  let ofWindows: string | null | undefined;
  /** The same for clients that are known again, by what they are known as; null until it is read. */
  let clients: Readonly<Record<string, string | null>> | null = null;

  /** Whether models can choose among toolsets. */
  function offersToolsets(): boolean {
    const { controls } = config();
    return controls.includes('equip') || controls.includes('toolsets');
  }

  function implicitServers(permitted: Catalog | null): ToolsetServers | null {
    if (!offersToolsets()) return null;
    const offering = toolServers(permitted ?? catalog());
    return { offering, all: permitted === null ? [...new Set([...offering, ...servers()])] : offering };
  }

  function toolsetNow(toolset: Toolset, isNamed: boolean): Toolset {
    const name = isNamed ? toolset.name : made.nameNow(toolset.name);
    const found = made.known.find((one) => one.name === name);
    if (found !== undefined) return found;
    // An implicit toolset takes no place of a removed one that somebody chose for its few tools.
    if (!isNamed) return toolset.standing === 'implicit' ? toolset : goneToolset(toolset.name);
    const names = new Set(made.known.map((one) => one.name));
    const implicit = implicitToolsets(implicitServers(null)?.all ?? [], (one) => names.has(one));
    return implicit.find((one) => one.name === toolset.name) ?? goneToolset(toolset.name);
  }

  const shared = replica?.map('default selection', (_, kept) => {
    if (kept === null) return;
    const find = (name: string) => toolsetNow(goneToolset(name), true);
    adopt(keptSelection(basePatterns(config()), kept as KeptSelection, find));
  });

  function adopt(next: Selection): void {
    selection = next;
    ofWindows = undefined;
    refit();
    changed();
  }

  /** Other replicas take it over too. */
  function replace(next: Selection): void {
    adopt(next);
    sharing = shared?.set('default', toKept(selection)).catch(() => {}) ?? null;
  }

  /** Each once: a toolset is read again and again. */
  const told = new Set<string>();

  function tellRenamed(): void {
    for (const { toolset, place, from, to } of made.renamed) {
      if (told.has(`${toolset} ${from} ${to}`)) continue;
      told.add(`${toolset} ${from} ${to}`);
      const remedy = place === 'project' ? ' Write the new name with: toolgate doctor --fix' : '';
      const message = `the toolset "${toolset}" has "${from}", which is called "${to}" now.${remedy}`;
      events.emit('note', { source: 'toolsets', message });
    }
  }

  function refit(): void {
    tellRenamed();
    const before = selection.toolset?.name;
    selection = refitted(selection, toolsetNow);
    const now = selection.toolset?.name;
    if (now !== undefined && now !== before) void remember(now);
  }

  function remember(name: string | null): Promise<string | null> {
    return save(async () => {
      await store.setLastEquipped(name);
      remembered = name;
    });
  }

  function save(write: () => Promise<void>): Promise<string | null> {
    const written = saved.then(() =>
      write().then(
        () => null,
        (error: unknown) => {
          const why = withoutStop(messageOf(error));
          const message = `Which toolset is equipped could not be saved for the next start: ${why}.`;
          events.emit('note', { source: 'toolgate', message });
          return message;
        },
      ),
    );
    saved = written;
    return written;
  }

  function lastOfClient(client: string): Toolset | null | undefined {
    if (!config().controls.includes('equip')) return undefined;
    if (clients === null) {
      try {
        clients = store.lastOfClients();
      } catch (error) {
        clients = {};
        note(`what clients had equipped last is not known: ${messageOf(error)}`);
      }
    }
    const name = Object.hasOwn(clients, client) ? clients[client] : undefined;
    return name == null ? name : toolsetNow(goneToolset(name), true);
  }

  function rememberClient(client: string, name: string | null): Promise<string | null> {
    if (clients !== null) clients = { ...clients, [client]: name };
    return save(() => store.setLastOfClient(client, name));
  }

  function rememberWindow(name: string | null, agent: string): Promise<string | null> {
    ofWindows = name;
    announce(agent, name);
    return remember(name);
  }

  async function findToEquip(name: string): Promise<Toolset> {
    requireEquip(config());
    const toolset = await library.find(name);
    if (toolset !== null) return toolset;
    throw new GatewayError('item_unknown', `There is no toolset "${name}". See toolgate toolsets list.`);
  }

  function note(message: string): void {
    events.emit('note', { source: 'toolgate', message });
  }

  /** A toolset that cannot be found is equipped as one that is gone: the tools say so, and it may come back. */
  async function equipLast(): Promise<void> {
    await made.read();
    const { controls, equipped } = config();
    if (!controls.includes('equip')) return;
    remembered = await store.lastEquipped();
    const name = remembered === undefined ? equipped : remembered;
    if (name === null) return;
    const toolset = await library.find(name).catch((error: unknown) => {
      note(`the toolset "${name}", which was equipped last, is not equipped: ${messageOf(error)}`);
      return goneToolset(name);
    });
    if (toolset === null)
      note(`the toolset "${name}", which was equipped last, does not exist any more, so no toolset is equipped`);
    // What the replicas have now is newer than what one of them had when it stopped.
    await replica?.loaded();
    if (shared?.get('default') === undefined && selection.toolset === null)
      adopt(equip(selection, toolset ?? goneToolset(name)));
  }

  function announce(agent: string, name: string | null): void {
    events.emit('admin', { act: name === null ? 'toolset_unequipped' : 'toolset_equipped', agent, detail: name ?? '' });
  }

  return {
    get selection() {
      return selection;
    },
    get toolsets() {
      return made.known;
    },
    get renamed() {
      return made.renamed;
    },
    libraryOf(agent, permitted) {
      const own = permitted === null ? library : openToolsetLibrary(made, () => implicitServers(permitted));
      return withAdminEvents(own, events, agent);
    },
    choose(next, agent) {
      const before = selection.toolset?.name ?? null;
      const name = next.toolset?.name ?? null;
      if (next.key !== selection.key) replace(next);
      if (before !== name) announce(agent, name);
      const isSaved = remembered === undefined ? before === name : remembered === name;
      const saving = isSaved ? null : remember(name);
      const shares = sharing;
      return shares === null ? saving : shares.then(() => saving);
    },
    toolsetNow,
    lastOfClient,
    rememberClient,
    lastOfWindows: () => (ofWindows == null ? ofWindows : toolsetNow(goneToolset(ofWindows), true)),
    rememberWindow,
    async equipForWindows(name) {
      await findToEquip(name);
      const failure = await rememberWindow(name, '');
      if (failure !== null) throw new GatewayError('storage_failed', failure);
    },
    refit,
    folders: store.folders,
    loadToolsets: made.load,
    adoptToolsets: made.adopt,
    async equip(name) {
      const toolset = name === null ? null : await findToEquip(name);
      replace(equip(selection, toolset));
      announce('', name);
      const failure = await remember(name);
      if (failure !== null) throw new GatewayError('storage_failed', failure);
    },
    restore: () =>
      equipLast().catch((error: unknown) =>
        note(`the toolset that was equipped last could not be equipped again: ${messageOf(error)}`),
      ),
    rebase() {
      selection = rebase(selection, basePatterns(config()));
    },
    async close() {
      await saved;
    },
  };
}

/** Throws if an equipped toolset would not decide what clients see. */
export function requireEquip({ controls, file }: Pick<Config, 'controls' | 'file'>): void {
  if (controls.includes('equip')) return;
  throw new GatewayError(
    'usage',
    `A toolset cannot be equipped here: without the control "equip" it would not narrow what clients see. Set controls = ["equip"] in ${file ?? 'the configuration'}, or connect clients to /mcp/t/NAME.`,
  );
}
