/** All toolsets there are: those of the configuration, which nobody but its author changes, and those that were saved. */
import type { Toolset } from '../access/toolset.ts';
import { GatewayError } from '../base/errors.ts';
import type { Place, SavedToolset, ToolsetStore } from './toolsets.ts';

/** A toolset, and where it is kept. */
export interface LibraryToolset extends Toolset {
  readonly place: Place | 'configuration';
}

/** All toolsets that there are: those of the configuration and those that were saved. */
export interface ToolsetLibrary {
  list(): Promise<{ readonly toolsets: readonly LibraryToolset[]; readonly problems: readonly string[] }>;
  find(name: string): Promise<LibraryToolset | null>;
  create(toolset: Toolset, place: Place): Promise<LibraryToolset>;
  /** Saves what `change` makes of a toolset. */
  change(name: string, change: (toolset: Toolset) => Toolset): Promise<LibraryToolset>;
  remove(name: string): Promise<void>;
}

/** `configured` is asked each time, because the configuration may be replaced. */
export function openToolsetLibrary(configured: () => readonly Toolset[], store: ToolsetStore): ToolsetLibrary {
  const own = (name: string) => configured().find((toolset) => toolset.name === name);

  async function saved(name: string): Promise<SavedToolset> {
    if (own(name) !== undefined) throw new GatewayError('arguments_invalid', notOurs(name));
    const found = await store.read(name);
    if (found === null)
      throw new GatewayError('item_unknown', `There is no toolset "${name}". List them to see what there is.`);
    return found;
  }

  return {
    async list() {
      const { toolsets, problems } = await store.list();
      const written = configured().map((toolset) => ({ ...toolset, place: 'configuration' as const }));
      return { toolsets: [...written, ...toolsets.filter(({ name }) => own(name) === undefined)], problems };
    },
    async find(name) {
      const written = own(name);
      return written === undefined ? store.read(name) : { ...written, place: 'configuration' };
    },
    async create(toolset, place) {
      if (own(toolset.name) !== undefined) throw new GatewayError('arguments_invalid', notOurs(toolset.name));
      return store.create(toolset, place);
    },
    async change(name, change) {
      const before = await saved(name);
      return store.replace(before, change(before));
    },
    async remove(name) {
      await store.remove(await saved(name));
    },
  };
}

function notOurs(name: string): string {
  return `The toolset "${name}" stands in the configuration. Change it there, or choose another name.`;
}
