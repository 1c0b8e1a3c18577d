/** The shelf, with word of every change: who saved or deleted which toolset concerns all who use it. */
import type { Events } from '../events.ts';
import type { Shelf } from '../store/shelf.ts';

/** `agent` is whoever uses it; empty for the operator. */
export function tellingShelf(shelf: Shelf, events: Events, agent: string): Shelf {
  const tell = (act: string, detail: string) => events.emit('admin', { act, agent, detail });
  return {
    ...shelf,
    async create(toolset, place) {
      const created = await shelf.create(toolset, place);
      tell('toolset_saved', created.name);
      return created;
    },
    async change(name, change) {
      const changed = await shelf.change(name, change);
      tell('toolset_saved', name);
      return changed;
    },
    async remove(name) {
      await shelf.remove(name);
      tell('toolset_deleted', name);
    },
  };
}

/** What all without a choice of their own see is another toolset from here on; null for none. */
export function tellEquipped(events: Events, agent: string, name: string | null): void {
  events.emit('admin', { act: name === null ? 'toolset_unequipped' : 'toolset_equipped', agent, detail: name ?? '' });
}
