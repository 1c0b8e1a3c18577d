/** The default selection, which all callers without their own share. The equipped toolset is kept across restarts. */
import { basePatterns, equip, rebase, type Selection, startSelection } from '../access/selection.ts';
import { toolServers } from '../access/toolset.ts';
import { GatewayError, messageOf } from '../base/errors.ts';
import type { EventSink } from '../base/events.ts';
import type { Catalog } from '../catalog/catalog.ts';
import type { Config } from '../config/config.ts';
import type { EnvVars } from '../config/expand.ts';
import {
  type LibraryToolset,
  openToolsetLibrary,
  openUserToolsets,
  type ToolsetLibrary,
  type ToolsetServers,
  withAdminEvents,
} from '../store/toolset-library.ts';
import { openToolsetStore } from '../store/toolsets.ts';
import { userFolder } from '../store/user-folder.ts';

export interface DefaultSelection {
  readonly selection: Selection;
  /** The toolsets that users made, as they were last read. The same array while nothing changed. */
  readonly toolsets: readonly LibraryToolset[];
  /**
   * All toolsets that an agent may know: `permitted` is the catalog that its policy leaves, or null if none limits it.
   * Changes through this library are reported in an event as made by this agent; an empty name stands for the operator.
   */
  libraryOf(agent: string, permitted: Catalog | null): ToolsetLibrary;
  /** Replaces the selection. Emits an event if a different toolset is equipped as a result. */
  choose(selection: Selection, agent: string): void;
  /** Equips a toolset; null equips none. Rejects if no toolset has that name. */
  equip(name: string | null): Promise<void>;
  /** Equips the toolset that was equipped when the previous gateway in this data folder stopped. Never rejects. */
  restore(): Promise<void>;
  /** Adapts the selection to a new configuration. */
  rebase(): void;
  /** Resolves when the equipped toolset is saved for the next start. */
  close(): Promise<void>;
}

export interface DefaultSelectionOptions {
  readonly events: EventSink;
  readonly env: EnvVars;
  /** The configuration in force. */
  config(): Config;
  catalog(): Catalog;
  /** The keys of all servers, including those that have not started yet. */
  servers(): readonly string[];
  /** The selection was replaced. */
  changed(): void;
  /** The toolsets that users made are others than before. */
  toolsetsChanged(): void;
}

export function createDefaultSelection(options: DefaultSelectionOptions): DefaultSelection {
  const { events, env, config, catalog, servers, changed, toolsetsChanged } = options;
  const store = openToolsetStore(config().dataDir, userFolder(env));
  const made = openUserToolsets(() => config().toolsets, store, toolsetsChanged);
  const library = openToolsetLibrary(made, () => implicitServers(null));
  let selection = startSelection(basePatterns(config()));
  /** One after the other, so that the last one counts. */
  let saved: Promise<void> = Promise.resolve();

  function implicitServers(permitted: Catalog | null): ToolsetServers | null {
    if (!config().controls.includes('equip')) return null;
    const offering = toolServers(permitted ?? catalog());
    return { offering, all: permitted === null ? [...new Set([...offering, ...servers()])] : offering };
  }

  function replace(next: Selection): void {
    const equipped = next.toolset?.name ?? null;
    if (equipped !== (selection.toolset?.name ?? null)) saved = saved.then(() => remember(equipped));
    selection = next;
    changed();
  }

  /** If saving fails, the toolset still stays equipped until the next start. */
  async function remember(name: string | null): Promise<void> {
    await store.setLastEquipped(name).catch(note('which toolset is equipped could not be saved for the next start'));
  }

  function note(what: string) {
    return (error: unknown) => events.emit('note', { source: 'toolgate', message: `${what}: ${messageOf(error)}` });
  }

  async function equipLast(): Promise<void> {
    const { controls, equipped } = config();
    if (!controls.includes('equip')) return;
    await made.read();
    const name = (await store.lastEquipped()) ?? equipped;
    const toolset = name === null ? null : await library.find(name);
    if (toolset !== null && selection.toolset === null) replace(equip(selection, toolset));
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
    libraryOf(agent, permitted) {
      const own = permitted === null ? library : openToolsetLibrary(made, () => implicitServers(permitted));
      return withAdminEvents(own, events, agent);
    },
    choose(next, agent) {
      const { toolset } = selection;
      replace(next);
      if (toolset !== next.toolset) announce(agent, next.toolset?.name ?? null);
    },
    async equip(name) {
      const toolset = name === null ? null : await library.find(name);
      if (name !== null && toolset === null)
        throw new GatewayError('item_unknown', `There is no toolset "${name}". See toolgate toolsets list.`);
      replace(equip(selection, toolset));
      announce('', name);
    },
    restore: () => equipLast().catch(note('the toolset that was equipped last could not be equipped again')),
    rebase() {
      selection = rebase(selection, basePatterns(config()));
      // `equip` may be on from now on, and its description names the saved toolsets.
      if (config().controls.includes('equip')) void made.read();
    },
    close: () => saved,
  };
}
