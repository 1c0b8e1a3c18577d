/** Runs a call to one of Toolgate's own tools and applies its change to the caller's selection. */
import { findThrough } from '../access/find.ts';
import type { Selection } from '../access/selection.ts';
import { type Toolset, withinCatalog } from '../access/toolset.ts';
import type { View } from '../access/view.ts';
import { GatewayError, toGatewayError } from '../base/errors.ts';
import { isObject, toObject } from '../base/objects.ts';
import type { Call } from '../calls/call.ts';
import type { Caller } from '../calls/caller.ts';
import { toBytes } from '../protocol/json.ts';
import { parseParams } from '../protocol/message.ts';
import { ACTIVATE } from './activate.ts';
import { type ApprovalToolContext, runApprovalTool } from './approval-tools.ts';
import type { ControlContext, ControlOutcome, ProgramControl, ServerState } from './control.ts';
import type { Controls } from './controls.ts';
import type { DefaultSelection } from './default-selection.ts';
import { equipArguments } from './equip-tools.ts';
import type { SearchLearning } from './learning.ts';
import { readOwnResource } from './own-resources.ts';
import { withAdvice } from './through-advice.ts';
import { ENABLE } from './toolset-tools.ts';

/** The tools that say which tools they have switched on. */
const SWITCHING: ReadonlySet<string> = new Set([ACTIVATE, 'equip-toolset', ENABLE]);

export interface ControlCallsOptions {
  /** The current controls; a new configuration replaces them. */
  controls(): Controls;
  readonly defaults: DefaultSelection;
  /** The embedding program's controls; null for none. */
  readonly program: ProgramControl | null;
  /** Used by the tools that ask a person. */
  readonly approving: ApprovalToolContext;
  /** What the search learns from use. */
  readonly learning: SearchLearning;
  /** The servers that the caller may know about. */
  servers(caller: Caller): readonly ServerState[];
  /** Resolves when these servers have been tried, and after a few seconds at most. */
  started(keys: readonly string[]): Promise<void>;
}

export interface ControlCalls {
  run(call: Call): void;
}

export function createControlCalls(options: ControlCallsOptions): ControlCalls {
  const { controls, defaults, program, approving, learning, servers, started } = options;
  const runInOrder = createControlQueue();

  function contextOf(caller: Caller): ControlContext {
    const view = caller.view();
    const { catalog, permission } = view;
    const isFixed = caller.scope.toolset !== null;
    return {
      catalog,
      // Read when it is needed: a new configuration or an edited toolset may come while the tool runs.
      get selection() {
        return caller.chosen;
      },
      servers: servers(caller),
      toolsetLibrary: defaults.libraryOf(caller.agent, permission === null ? null : catalog),
      show: <T extends Toolset>(toolset: T) => (permission === null ? toolset : withinCatalog(toolset, catalog)),
      find: (name) => findThrough(view, name, isFixed),
      search: () => learning.search(caller, catalog),
      searched: (searches) => learning.searched(caller, searches),
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

  /** What the operator has to do something about. The model is told the same. */
  function report(error: GatewayError): void {
    const { events } = approving;
    if (error.code === 'storage_failed') events.emit('note', { source: 'toolgate', message: error.message });
    else if (error.code === 'internal') events.emit('failure', { where: 'tools/call', error: error.cause ?? error });
  }

  /** Resolves to null, or to the reason why the choice could not be saved for the next start. Null: nothing to save. */
  function choose(caller: Caller, selection: Selection): Promise<string | null> | null {
    let saving = caller.isShared ? defaults.choose(selection, caller.agent) : null;
    if (!caller.isShared && selection.key !== caller.chosen.key) {
      const before = caller.chosen.toolset?.name ?? null;
      const name = selection.toolset?.name ?? null;
      caller.choose(selection);
      caller.refit();
      if (name !== before && caller.knownAs !== null) saving = defaults.rememberClient(caller.knownAs, name);
      else if (name !== before && caller.isWindow) saving = defaults.rememberWindow(name, caller.agent);
    }
    // Even if the selection is the same, its toolset may have been edited.
    caller.look();
    const { sharing } = caller;
    // The next request may go to another replica.
    return sharing === null ? saving : sharing.then(() => saving);
  }

  /**
   * Answers a call that may have switched tools. The answer should not arrive before what it announces, nor before the
   * choice is saved: the next start may follow immediately. Clients may list while it is being saved.
   */
  function answer(
    call: Call,
    result: Buffer,
    before: View,
    hasChanged: boolean,
    saving: Promise<string | null> | null,
  ): void {
    const { by: caller, entry, message } = call;
    const send = (adapt: (result: Buffer) => Buffer) => {
      if (saving === null) call.result(adapt(result), 'legacy');
      else void saving.then((failure) => call.result(adapt(withWarning(result, failure)), 'legacy'));
    };
    if (!hasChanged && !SWITCHING.has(entry.name)) {
      send((plain) => plain);
      return;
    }
    const client = caller.clientOf(message);
    const proceed = (hasListed: boolean) =>
      send((plain) => (hasListed ? plain : withAdvice(plain, client, before, caller.view())));
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
      if (message.argumentsEnd - message.argumentsStart > MOST_ARGUMENTS) {
        const text = `The arguments of "${entry.name}" may have at most ${MOST_ARGUMENTS} bytes.`;
        call.fail(new GatewayError('too_large', text));
        return;
      }
      if (runApprovalTool(approving, caller, call)) return;
      const { name, arguments: given } = parseParams(message);
      const args = equipArguments(name, given);
      const work = () =>
        program?.entries.includes(entry)
          ? runProgramControl(program, caller, entry.name, args)
          : runWhenStarted(() => controls().run(entry.name, contextOf(caller), args));
      runInOrder(caller.isShared ? defaults : caller, entry.name, work, {
        done({ selection, result }) {
          const before = caller.view();
          const { changes } = caller;
          const saving = choose(caller, selection);
          answer(call, result, before, caller.changes > changes, saving);
        },
        failed(error) {
          report(error);
          call.fail(error);
        },
      });
    },
  };
}

/** Bytes. Other callers wait while arguments of ours are read. */
const MOST_ARGUMENTS = 512 * 1_024;

/** The result of a toolset tool with one more of its `warnings`. */
function withWarning(result: Buffer, warning: string | null): Buffer {
  if (warning === null) return result;
  const { structuredContent } = toObject(JSON.parse(result.toString()));
  // Other controls do not decide what the next start equips.
  if (!isObject(structuredContent)) return result;
  const { warnings } = structuredContent;
  const value = { ...structuredContent, warnings: [...(Array.isArray(warnings) ? warnings : []), warning] };
  return toBytes({ content: [{ type: 'text', text: JSON.stringify(value) }], structuredContent: value });
}

type ControlWork = () => ControlOutcome | Promise<ControlOutcome>;

interface ControlAnswer {
  done(outcome: ControlOutcome): void;
  failed(error: GatewayError): void;
}

/** The last control tool of an owner that is running or waiting. */
interface Turn {
  over: Promise<void>;
}

/**
 * Runs the control tools of one owner one after another, and immediately if none is running. `equip-toolset` is
 * refused instead of queued, because it would replace what the running tool is still setting up.
 */
function createControlQueue() {
  const last = new WeakMap<object, Turn>();

  /** Returns a promise if the work does. `end` is called before the answer, because the next call may follow at once. */
  function attempt(work: ControlWork, { done, failed }: ControlAnswer, end: () => void): Promise<void> | null {
    const fail = (error: unknown) => {
      end();
      failed(toGatewayError(error));
    };
    const succeed = (outcome: ControlOutcome) => {
      end();
      done(outcome);
    };
    try {
      const result = work();
      if (result instanceof Promise) return result.then(succeed).catch(fail);
      succeed(result);
    } catch (error) {
      fail(error);
    }
    return null;
  }

  return (owner: object, name: string, work: ControlWork, answer: ControlAnswer): void => {
    const before = last.get(owner);
    if (before !== undefined && name === 'equip-toolset') {
      answer.failed(
        new GatewayError('source_busy', 'Another toolset operation is in progress. Wait for it and try again.'),
      );
      return;
    }
    const turn: Turn = { over: Promise.resolve() };
    const end = () => {
      if (last.get(owner) === turn) last.delete(owner);
    };
    if (before !== undefined) {
      turn.over = before.over.then(() => attempt(work, answer, end) ?? undefined);
      last.set(owner, turn);
      return;
    }
    const running = attempt(work, answer, end);
    if (running === null) return;
    turn.over = running;
    last.set(owner, turn);
  };
}
