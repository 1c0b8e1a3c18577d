/** What all callers without a choice of their own have switched on. Which toolset that is outlives the gateway. */
import { basePatterns, equip, rebase, type Selection, startSelection } from '../access/selection.ts';
import { GatewayError } from '../base/errors.ts';
import type { Config } from '../config/config.ts';
import { openToolsetLibrary, type ToolsetLibrary } from '../store/toolset-library.ts';
import { openToolsetStore, userFolder } from '../store/toolsets.ts';

export interface DefaultSelection {
  readonly selection: Selection;
  readonly toolsetLibrary: ToolsetLibrary;
  choose(selection: Selection): void;
  /** Rejects where there is no toolset of that name; null is for none. */
  equip(name: string | null): Promise<void>;
  /** Equips what was equipped when the last gateway here ended. */
  restore(): Promise<void>;
  /** The configuration was replaced. */
  rebase(): void;
}

/** `config` is asked each time, because it may be replaced. */
export function createDefaultSelection(config: () => Config, changed: () => void): DefaultSelection {
  const store = openToolsetStore(config().dataDir, userFolder(process.env));
  const toolsetLibrary = openToolsetLibrary(() => config().toolsets, store);
  let selection = startSelection(basePatterns(config()));

  function choose(next: Selection): void {
    const equipped = next.toolset?.name ?? null;
    // A folder that cannot be written costs the memory, not the toolset.
    if (equipped !== (selection.toolset?.name ?? null)) store.setLastEquipped(equipped).catch(() => {});
    selection = next;
    changed();
  }

  return {
    get selection() {
      return selection;
    },
    toolsetLibrary,
    choose,
    async equip(name) {
      const toolset = name === null ? null : await toolsetLibrary.find(name);
      if (name !== null && toolset === null)
        throw new GatewayError('item_unknown', `There is no toolset "${name}". See toolgate toolsets list.`);
      choose(equip(selection, toolset));
    },
    async restore() {
      const { controls, equipped } = config();
      const name = controls.includes('equip') ? ((await store.lastEquipped()) ?? equipped) : null;
      const toolset = name === null ? null : await toolsetLibrary.find(name).catch(() => null);
      if (toolset !== null && selection.toolset === null) choose(equip(selection, toolset));
    },
    rebase() {
      selection = rebase(selection, basePatterns(config()));
    },
  };
}
