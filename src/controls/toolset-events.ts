/** The shelf, with word of every change: who saved or deleted which toolset concerns all who use it. */
import type { EventSink } from '../base/events.ts';
import type { ToolsetLibrary } from '../store/toolset-library.ts';

/** `agent` is whoever uses it; empty for the operator. */
export function withToolsetEvents(toolsetLibrary: ToolsetLibrary, events: EventSink, agent: string): ToolsetLibrary {
  const tell = (act: string, detail: string) => events.emit('admin', { act, agent, detail });
  return {
    ...toolsetLibrary,
    async create(toolset, place) {
      const created = await toolsetLibrary.create(toolset, place);
      tell('toolset_saved', created.name);
      return created;
    },
    async change(name, change) {
      const changed = await toolsetLibrary.change(name, change);
      tell('toolset_saved', name);
      return changed;
    },
    async remove(name) {
      await toolsetLibrary.remove(name);
      tell('toolset_deleted', name);
    },
  };
}

/** What all without a choice of their own see is another toolset from here on; null for none. */
export function tellEquipped(events: EventSink, agent: string, name: string | null): void {
  events.emit('admin', { act: name === null ? 'toolset_unequipped' : 'toolset_equipped', agent, detail: name ?? '' });
}
