/** All toolsets: those of the configuration, which can only be changed there, and those that were saved. */
import type { Toolset } from '../access/toolset.ts';
import { GatewayError } from '../base/errors.ts';
import type { EventSink } from '../base/events.ts';
import type { ToolsetPlace, ToolsetStore } from './toolsets.ts';

/** A toolset, and where it is kept. */
export interface LibraryToolset extends Toolset {
  readonly place: ToolsetPlace | 'configuration';
}

/** All toolsets: those of the configuration and those that were saved. */
export interface ToolsetLibrary {
  list(): Promise<{ readonly toolsets: readonly LibraryToolset[]; readonly problems: readonly string[] }>;
  find(name: string): Promise<LibraryToolset | null>;
  create(toolset: Toolset, place: ToolsetPlace): Promise<LibraryToolset>;
  /** Saves what `change` returns for a toolset. */
  change(name: string, change: (toolset: Toolset) => Toolset): Promise<LibraryToolset>;
  remove(name: string): Promise<void>;
}

/** `configured` is read each time, because the configuration may be replaced. */
export function openToolsetLibrary(configured: () => readonly Toolset[], store: ToolsetStore): ToolsetLibrary {
  const inConfiguration = (name: string) => configured().find((toolset) => toolset.name === name);

  function requireSaveable(name: string): void {
    if (inConfiguration(name) === undefined) return;
    const text = `The toolset "${name}" is part of the configuration. Change it there, or choose another name.`;
    throw new GatewayError('arguments_invalid', text);
  }

  function required<T>(name: string, found: T | null): T {
    if (found !== null) return found;
    throw new GatewayError('item_unknown', `There is no toolset "${name}". List the toolsets to see their names.`);
  }

  return {
    async list() {
      const { toolsets, problems } = await store.list();
      const written = configured().map((toolset) => ({ ...toolset, place: 'configuration' as const }));
      return {
        toolsets: [...written, ...toolsets.filter(({ name }) => inConfiguration(name) === undefined)],
        problems,
      };
    },
    async find(name) {
      const written = inConfiguration(name);
      return written === undefined ? store.read(name) : { ...written, place: 'configuration' };
    },
    async create(toolset, place) {
      requireSaveable(toolset.name);
      return store.create(toolset, place);
    },
    async change(name, change) {
      requireSaveable(name);
      return required(name, await store.change(name, change));
    },
    async remove(name) {
      requireSaveable(name);
      await store.remove(required(name, await store.read(name)));
    },
  };
}

/** The same library; each change is announced as one by this agent. An empty name stands for the operator. */
export function withAdminEvents(library: ToolsetLibrary, events: EventSink, agent: string): ToolsetLibrary {
  const announce = (act: string, detail: string) => events.emit('admin', { act, agent, detail });
  return {
    ...library,
    async create(toolset, place) {
      const created = await library.create(toolset, place);
      announce('toolset_saved', created.name);
      return created;
    },
    async change(name, change) {
      const changed = await library.change(name, change);
      announce('toolset_saved', name);
      return changed;
    },
    async remove(name) {
      await library.remove(name);
      announce('toolset_deleted', name);
    },
  };
}
