/** Runs a call to one of Toolgate's own tools and applies its change to the caller's selection. */
import { findThrough } from '../access/find.ts';
import type { Selection } from '../access/selection.ts';
import { type Toolset, withinCatalog } from '../access/toolset.ts';
import type { View } from '../access/view.ts';
import { GatewayError, toGatewayError } from '../base/errors.ts';
import type { Call } from '../calls/call.ts';
import type { Caller } from '../calls/caller.ts';
import { parseParams } from '../protocol/message.ts';
import { ACTIVATE } from './activate.ts';
import { type ApprovalToolContext, runApprovalTool } from './approval-tools.ts';
import type { ControlContext, ControlOutcome, ProgramControl, ServerState } from './control.ts';
import type { Controls } from './controls.ts';
import type { DefaultSelection } from './default-selection.ts';
import { readOwnResource } from './own-resources.ts';
import { withAdvice } from './through-advice.ts';

/** The tools that say which tools they have switched on. */
const SWITCHING: ReadonlySet<string> = new Set([ACTIVATE, 'equip-toolset']);

export interface ControlCallsOptions {
  /** The current controls; a new configuration replaces them. */
  controls(): Controls;
  readonly defaults: DefaultSelection;
  /** The embedding program's controls; null for none. */
  readonly program: ProgramControl | null;
  /** Used by the tools that ask a person. */
  readonly approving: ApprovalToolContext;
  /** The servers that the caller may know about. */
  servers(caller: Caller): readonly ServerState[];
  /** Resolves when these servers have been tried, and after a few seconds at most. */
  started(keys: readonly string[]): Promise<void>;
}

export interface ControlCalls {
  run(call: Call): void;
}

export function createControlCalls(options: ControlCallsOptions): ControlCalls {
  const { controls, defaults, program, approving, servers, started } = options;
  const runInOrder = createControlQueue();

  function contextOf(caller: Caller): ControlContext {
    const view = caller.view();
    const { catalog, permission } = view;
    const isFixed = caller.scope.toolset !== null;
    return {
      catalog,
      selection: caller.chosen,
      servers: servers(caller),
      toolsetLibrary: defaults.libraryOf(caller.agent, permission === null ? null : catalog),
      show: <T extends Toolset>(toolset: T) => (permission === null ? toolset : withinCatalog(toolset, catalog)),
      find: (name) => findThrough(view, name, isFixed),
      isFixed,
    };
  }

  async function runProgramControl(control: ProgramControl, caller: Caller, name: string, args: unknown) {
    const result = await control.run(caller, name, args);
    // Read after the run, so that a change of the selection during the run is kept.
    return { selection: caller.chosen, result };
  }

  /** Runs a control again, once, when the servers that it names and that are still starting have been tried. */
  function runWhenStarted(work: ControlWork): ControlOutcome | Promise<ControlOutcome> {
    const again = (error: unknown) => {
      const keys = error instanceof GatewayError ? error.details.starting : undefined;
      if (!Array.isArray(keys)) throw error;
      return started(keys).then(work);
    };
    try {
      const outcome = work();
      return outcome instanceof Promise ? outcome.catch(again) : outcome;
    } catch (error) {
      return again(error);
    }
  }

  function choose(caller: Caller, selection: Selection): void {
    if (selection.key === caller.chosen.key) return;
    if (caller.isShared) {
      defaults.choose(selection, caller.agent);
      return;
    }
    caller.selection = selection;
    caller.look();
  }

  /** Answers a call that may have switched tools. The answer should not arrive before what it announces. */
  function answer(call: Call, result: Buffer, before: View, hasChanged: boolean): void {
    const { by: caller, entry, message } = call;
    if (!hasChanged && !SWITCHING.has(entry.name)) {
      call.result(result, 'legacy');
      return;
    }
    const client = caller.clientOf(message);
    const proceed = (hasListed: boolean) =>
      call.result(hasListed ? result : withAdvice(result, client, before, caller.view()), 'legacy');
    if (hasChanged) client.whenListed(call, caller.hears(client), proceed);
    else proceed(false);
  }

  return {
    run(call) {
      const { by: caller, entry, message } = call;
      if (entry.kind === 'resource') {
        call.result(readOwnResource(caller.view(), entry), 'legacy');
        return;
      }
      if (runApprovalTool(approving, caller, call)) return;
      const args = parseParams(message).arguments;
      const work = () =>
        program?.entries.includes(entry)
          ? runProgramControl(program, caller, entry.name, args)
          : runWhenStarted(() => controls().run(entry.name, contextOf(caller), args));
      runInOrder(caller.isShared ? defaults : caller, entry.name, work, {
        done({ selection, result }) {
          const before = caller.view();
          const { changes } = caller;
          choose(caller, selection);
          answer(call, result, before, caller.changes > changes);
        },
        failed: (error) => call.fail(error),
      });
    },
  };
}

type ControlWork = () => ControlOutcome | Promise<ControlOutcome>;

interface ControlAnswer {
  done(outcome: ControlOutcome): void;
  failed(error: GatewayError): void;
}

/**
 * Runs the control tools of one owner one after another, and immediately if none is running. `equip-toolset` is
 * refused instead of queued, because it would replace what the running tool is still setting up.
 */
function createControlQueue() {
  const running = new WeakMap<object, Promise<void>>();

  function start(owner: object, work: ControlWork, { done, failed }: ControlAnswer): void {
    let result: ControlOutcome | Promise<ControlOutcome>;
    try {
      result = work();
    } catch (error) {
      failed(toGatewayError(error));
      return;
    }
    if (!(result instanceof Promise)) {
      done(result);
      return;
    }
    // Cleared before the answer is sent, because the next call may follow immediately.
    const over = () => {
      if (running.get(owner) === finished) running.delete(owner);
    };
    const finished: Promise<void> = result
      .finally(over)
      .then(done)
      .catch((error: unknown) => failed(toGatewayError(error)));
    running.set(owner, finished);
  }

  return (owner: object, name: string, work: ControlWork, answer: ControlAnswer): void => {
    const before = running.get(owner);
    if (before === undefined) start(owner, work, answer);
    else if (name === 'equip-toolset')
      answer.failed(
        new GatewayError('source_busy', 'Another toolset operation is in progress. Wait for it and try again.'),
      );
    else {
      running.set(
        owner,
        before.then(() => start(owner, work, answer)),
      );
    }
  };
}
