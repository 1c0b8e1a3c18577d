/** A call of one of Toolgate's own tools: what it gets to see, what becomes of the caller's choice, and who is told. */
import type { Selection } from '../access/selection.ts';
import { type Toolset, withinCatalog } from '../access/toolset.ts';
import type { EventSink } from '../base/events.ts';
import type { Call } from '../calls/call.ts';
import type { Caller } from '../calls/caller.ts';
import { parseParams } from '../protocol/message.ts';
import { type ApprovalToolContext, runApprovalTool } from './approval-tools.ts';
import type { Outcome as ControlOutcome, ServerState } from './control.ts';
import type { Controls } from './controls.ts';
import type { DefaultSelection } from './default-selection.ts';
import type { ProgramControl } from './program-control.ts';
import { createControlQueue } from './serialize.ts';
import { tellEquipped, withToolsetEvents } from './toolset-events.ts';

export interface ControlCallsOptions {
  readonly events: EventSink;
  /** Asked each time, because a configuration may be replaced. */
  controls(): Controls;
  readonly defaults: DefaultSelection;
  /** Those of the program around; null for none. */
  readonly program: ProgramControl | null;
  /** Where a person is asked. */
  readonly approving: ApprovalToolContext;
  /** The servers that the caller may know of. */
  servers(caller: Caller): readonly ServerState[];
}

export interface ControlCalls {
  run(call: Call): void;
}

export function createControlCalls({
  events,
  controls,
  defaults,
  program,
  approving,
  servers,
}: ControlCallsOptions): ControlCalls {
  const desk = createControlQueue();

  function contextOf(caller: Caller) {
    const { catalog, permission } = caller.view();
    return {
      catalog,
      selection: caller.chosen,
      servers: servers(caller),
      toolsetLibrary: withToolsetEvents(defaults.toolsetLibrary, events, caller.agent),
      show: <T extends Toolset>(toolset: T) => (permission === null ? toolset : withinCatalog(toolset, catalog)),
      isFixed: caller.scope.toolset !== null,
    };
  }

  async function runOwn(own: ProgramControl, caller: Caller, name: string, args: unknown): Promise<ControlOutcome> {
    const result = await own.run(caller, name, args);
    // What it has switched on meanwhile stays.
    return { selection: caller.chosen, result };
  }

  function choose(caller: Caller, selection: Selection): void {
    if (selection.key === caller.chosen.key) return;
    if (!caller.isShared) {
      caller.selection = selection;
      caller.look();
      return;
    }
    const { toolset } = caller.chosen;
    defaults.choose(selection);
    if (toolset !== selection.toolset) tellEquipped(events, caller.agent, selection.toolset?.name ?? null);
  }

  return {
    run(call) {
      const { by: caller, entry, message } = call;
      if (runApprovalTool(approving, caller, call)) return;
      const args = parseParams(message).arguments;
      const own = program?.entries.includes(entry) ? program : null;
      const work = () =>
        own === null ? controls().run(entry.name, contextOf(caller), args) : runOwn(own, caller, entry.name, args);
      desk.run(caller.isShared ? defaults : caller, entry.name, work, {
        outcome({ selection, result }) {
          choose(caller, selection);
          call.result(result, 'legacy');
        },
        failed: (error) => call.fail(error),
      });
    },
  };
}
