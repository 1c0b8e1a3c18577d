/** A call of one of Toolgate's own tools: what it gets to see, what becomes of the caller's choice, and who is told. */
import type { Selection } from '../access/selection.ts';
import { type Toolset, withinCatalog } from '../access/toolset.ts';
import type { EventSink } from '../base/events.ts';
import type { Call, Recorder } from '../calls/call.ts';
import type { Member } from '../calls/member.ts';
import type { MetricsRegistry } from '../observe/metrics.ts';
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
  recorder(): Recorder | null;
  readonly metrics: MetricsRegistry;
  readonly defaults: DefaultSelection;
  /** Those of the program around; null for none. */
  readonly program: ProgramControl | null;
  /** Where a person is asked. */
  readonly approving: ApprovalToolContext;
  /** The servers that the caller may know of. */
  servers(member: Member): readonly ServerState[];
}

export interface ControlCalls {
  run(member: Member, call: Call): void;
}

export function createControlCalls({
  events,
  controls,
  recorder,
  metrics,
  defaults,
  program,
  approving,
  servers,
}: ControlCallsOptions): ControlCalls {
  const desk = createControlQueue();

  function contextOf(member: Member) {
    const { catalog, permission } = member.view();
    return {
      catalog,
      selection: member.chosen,
      servers: servers(member),
      toolsetLibrary: withToolsetEvents(defaults.toolsetLibrary, events, member.agent),
      show: <T extends Toolset>(toolset: T) => (permission === null ? toolset : withinCatalog(toolset, catalog)),
      isFixed: member.options.toolset !== undefined,
    };
  }

  async function runOwn(own: ProgramControl, member: Member, name: string, args: unknown): Promise<ControlOutcome> {
    const result = await own.run(member, name, args);
    // What it has switched on meanwhile stays.
    return { selection: member.chosen, result };
  }

  function choose(member: Member, selection: Selection): void {
    if (selection.key === member.chosen.key) return;
    if (!member.shares) {
      member.selection = selection;
      member.look();
      return;
    }
    const { toolset } = member.chosen;
    defaults.choose(selection);
    if (toolset !== selection.toolset) tellEquipped(events, member.agent, selection.toolset?.name ?? null);
  }

  return {
    run(member, call) {
      const { entry, message } = call;
      call.recorder = recorder();
      call.row = metrics.of(entry, message.method);
      call.begin();
      if (runApprovalTool(approving, member, call)) return;
      const args = parseParams(message).arguments;
      const own = program?.entries.includes(entry) ? program : null;
      const work = () =>
        own === null ? controls().run(entry.name, contextOf(member), args) : runOwn(own, member, entry.name, args);
      desk.run(member.shares ? defaults : member, entry.name, work, {
        outcome({ selection, result }) {
          choose(member, selection);
          call.result(result, 'legacy');
        },
        failed: (error) => call.fail(error),
      });
    },
  };
}
