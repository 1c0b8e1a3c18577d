/**
 * The path of a call. Its name is looked up in the caller's view. Then it goes through these steps, each of which may
 * answer it, refuse it or keep it for a while: the request has to fit the definition, the audit has to be writable,
 * middleware runs, a person approves, limits are checked, the audit gets a line if it wants one now, and the source gets
 * the call. Control tools run right after middleware.
 */
import { confirmationFor } from '../access/confirm.ts';
import { triedDenial, triesRules } from '../access/dry-run.ts';
import { type Permission, permits, requireArguments } from '../access/permission.ts';
import { type ErrorCode, GatewayError, toGatewayError } from '../base/errors.ts';
import type { EventSink } from '../base/events.ts';
import { BUILT_IN, type Entry } from '../catalog/entry.ts';
import type { ConfirmRule } from '../config/security.ts';
import type { ServerConfig } from '../config/servers.ts';
import type { Sink } from '../protocol/contract.ts';
import { toBytes } from '../protocol/json.ts';
import type { Message } from '../protocol/message.ts';
import { checkParamHeaders, type Headers } from '../protocol/param-headers.ts';
import { readMessage } from '../protocol/read.ts';
import type { Approvals } from './approvals/approvals.ts';
import {
  Call,
  type CallContext,
  type Callee,
  type CallTracer,
  type CallWatcher,
  type Step,
  waitingFor,
} from './call.ts';
import type { Caller } from './caller.ts';
import { type Limiters, removed } from './limits/limiters.ts';
import { type Middleware, type MiddlewareStack, runMiddleware } from './middleware.ts';
import type { CallAudit, CallCounters } from './observers.ts';
import { findTarget } from './target.ts';
import type { McpTasks } from './tasks/tasks.ts';
import { requireFit } from './through.ts';

export interface PipelineOptions {
  readonly events: EventSink;
  readonly counters: CallCounters;
  readonly audit: CallAudit;
  readonly middleware: MiddlewareStack;
  readonly approvals: Approvals;
  readonly limiters: Limiters;
  readonly tasks: McpTasks;
  /** Rules for calls that a person has to approve. */
  confirmations(): readonly ConfirmRule[];
  /** What answers the calls of a source; undefined if the source was removed. */
  find(sourceId: number): { readonly source: Callee; readonly config: ServerConfig } | undefined;
  runControl(call: Call): void;
  /** Whether an item may be used a second time if nobody knows what the first time did. */
  isRepeatable(entry: Entry): boolean;
  /** Whether servers are still starting. */
  isStarting(): boolean;
  /** Whether a server that is still starting, and is listed before the owner of this entry, could claim its name. */
  mayBeClaimed(entry: Entry): boolean;
  /** Why the definition of this entry has to be approved first, by what its server offers now; null if it need not. */
  heldReason(entry: Entry): string | null;
  /** Resolves when these servers have been tried, and after a few seconds at most. */
  started(keys: readonly string[]): Promise<void>;
}

export interface Pipeline {
  /** `httpHeaders` have to repeat what the message says; null if there are none to check. */
  create(by: Caller, message: Message, sink: Sink, httpHeaders?: Headers | null): Call;
  /** Calls a tool whose entry is already known, for a step of a macro. The call is started at once. */
  callTool(by: Caller, entry: Entry, args: object, id: string, sink: Sink): Call;
  /** The catalog has changed, or all servers have started: calls that waited for that are looked up again. */
  retry(): void;
  /** Whether a call may be made a second time if its outcome is unknown, because the operator says so. */
  isRepeatable(by: Caller, message: Message): boolean;
  /** Traces every call from now on; null to stop. */
  trace(tracer: CallTracer | null): void;
  /** Lets somebody look on from now on; null to stop. */
  watch(watcher: CallWatcher | null): void;
}

/** Errors that may go away once all servers have started, or once an earlier call has been carried out. */
const MAY_CHANGE: ReadonlySet<ErrorCode> = new Set([
  'item_unknown',
  'resource_unknown',
  'item_inactive',
  'source_unavailable',
  'dependency_error',
]);

const UNRECORDED =
  'Calls are refused because the audit cannot be written: the configuration says audit.on_failure = "stop". Free some disk space, or make its folder writable.';

/** For a call that is only looked up. */
const NOBODY = {} as Sink;

/** The answer for an item whose server does not support completion. */
const NO_COMPLETION = toBytes({ completion: { values: [] } });

export function createPipeline(options: PipelineOptions): Pipeline {
  const { events, counters, audit, middleware, approvals, limiters, tasks } = options;
  const { confirmations, find, runControl, isStarting, mayBeClaimed, heldReason, started } = options;
  /** Calls that arrived while servers were starting, in order. */
  const early = new Set<Call>();
  /** Calls that have waited for servers that may have what they name. A call does that once. */
  const waited = new WeakSet<Call>();
  let tracer: CallTracer | null = null;
  let watcher: CallWatcher | null = null;
  waitingFor.set(requireApproval, 'approval');
  waitingFor.set(passLimits, 'limits');
  waitingFor.set(recordBefore, 'audit');
  let compiled = compile(middleware.all, confirmations(), audit.before);

  const context: CallContext = {
    events,
    counters,
    audit,
    start(call) {
      if (watcher !== null) call.watched = watcher.begin(call);
      tracer?.begin(call);
      resolve(call);
    },
    recheck,
  };

  function compile(all: readonly Middleware[], rules: readonly ConfirmRule[], before: boolean) {
    const first: readonly Step[] = [checkRequest, requireAudit, ...(all.length > 0 ? [passMiddleware] : [])];
    const approval: readonly Step[] = rules.length > 0 ? [requireApproval] : [];
    return {
      all,
      rules,
      before,
      control: [...first, control],
      server: [...first, findSource, attendTask, ...approval, passLimits, ...(before ? [recordBefore] : []), send],
    };
  }

  /** The steps of a call, compiled again after middleware or the configuration changed. */
  function stepsOf({ sourceId }: Entry): readonly Step[] {
    const rules = confirmations();
    const { before } = audit;
    if (compiled.all !== middleware.all || compiled.rules !== rules || compiled.before !== before)
      compiled = compile(middleware.all, rules, before);
    return sourceId === BUILT_IN ? compiled.control : compiled.server;
  }

  function resolve(call: Call): void {
    try {
      if (answerSpilled(call)) return;
      findTarget(call);
      checkPermission(call);
    } catch (error) {
      const { code, details } = toGatewayError(error);
      if (isStarting() && MAY_CHANGE.has(code)) waitForServers(call);
      else if (Array.isArray(details.starting) && !waited.has(call)) waitForOwner(call, details.starting);
      else call.refuse(error);
      return;
    }
    if (isStarting() && isEarly(call)) waitForServers(call);
    else enter(call);
  }

  function enter(call: Call): void {
    if (call.watched !== null) call.watched.found();
    call.tracing?.found(call.entry);
    call.steps = stepsOf(call.entry);
    call.advance();
  }

  /**
   * Whether a server that is still starting could change what is called. Then the call waits, so that the result does
   * not depend on which server starts first.
   */
  function isEarly(call: Call): boolean {
    return call.entry.sourceId === BUILT_IN || !call.isExact || mayBeClaimed(call.entry);
  }

  function waitForServers(call: Call): void {
    early.add(call);
    call.waiting = {
      quit() {
        early.delete(call);
        call.waiting = null;
      },
    };
  }

  /** These servers are still starting, and one of them may have what the call names. It is looked up again when they are up. */
  function waitForOwner(call: Call, keys: readonly string[]): void {
    waited.add(call);
    const waiting = {
      quit() {
        call.waiting = null;
      },
    };
    call.waiting = waiting;
    void started(keys).then(() => {
      if (call.waiting !== waiting) return;
      call.waiting = null;
      resolve(call);
    });
  }

  function retry(): void {
    const calls = [...early];
    early.clear();
    for (const call of calls) {
      call.waiting = null;
      resolve(call);
    }
  }

  /** Answers a read of a text that was cut off a result. Such texts are the gateway's own resources. */
  function answerSpilled(call: Call): boolean {
    const { message, by } = call;
    const text = message.method === 'resources/read' ? limiters.spilled.read(by, message) : null;
    if (text === null) return false;
    requireAudit();
    call.result(text, 'legacy');
    return true;
  }

  function checkPermission(call: Call): void {
    const permission = permissionOf(call.by);
    call.permission = permission;
    if (permission === null) return;
    if (permission.onArguments.length > 0) requireArguments(permission, call.entry, call.message);
    if (triesRules(permission)) {
      const { by, entry, message } = call;
      call.tried = triedDenial(permission, by.view().catalog, entry, filledUri(call), message);
    }
  }

  /** The URI that a template was filled to, as the server knows it; null for other items, and for the template itself. */
  function filledUri({ entry, name }: Call): string | null {
    if (entry.kind !== 'template' || name === entry.upstreamName) return null;
    return JSON.parse(Buffer.from(name, 'latin1').toString()) as string;
  }

  /** What the caller may use now. Its view is made current first. */
  function permissionOf(by: Caller): Permission | null {
    by.view();
    return by.permission;
  }

  /** A URI of a template may be denied by its own name. */
  function mayStill(call: Call, permission: Permission | null): boolean {
    const { by, entry } = call;
    const { catalog } = by.view();
    const uri = filledUri(call);
    if (uri === null) return permits(permission, entry);
    const isThere = catalog.unlisted.has(entry) || [...catalog.entries.template.values()].includes(entry);
    return isThere && catalog.isClosed?.(entry, uri) !== true;
  }

  /** Checks a call that has waited: its permission, and the source that answers it, may have changed meanwhile. */
  function recheck(call: Call): void {
    const { by, entry } = call;
    const target = find(entry.sourceId);
    if (target === undefined) throw removed(entry);
    call.source = target.source;
    // While it waited its server may have started, with other definitions than those that were known.
    const held = heldReason(entry);
    if (held !== null) throw new GatewayError('item_held', held);
    const permission = permissionOf(by);
    if (permission === call.permission) return;
    if (!mayStill(call, permission))
      throw new GatewayError(
        'item_unknown',
        `The policy no longer allows "${entry.name}": it changed while the call waited.`,
      );
    checkPermission(call);
  }

  // The steps

  function requireAudit(): boolean {
    if (audit.stops) throw new GatewayError('audit_unavailable', UNRECORDED);
    return true;
  }

  function passMiddleware(call: Call): boolean {
    runMiddleware(middleware.all, call);
    return false;
  }

  function control(call: Call): boolean {
    call.counter = counters.of(call.entry, call.method);
    call.begin();
    runControl(call);
    return false;
  }

  function findSource(call: Call): boolean {
    const target = find(call.entry.sourceId);
    if (target === undefined) throw removed(call.entry);
    call.source = target.source;
    if (call.method !== 'completion/complete' || target.source.completes) return true;
    call.result(NO_COMPLETION, 'legacy');
    return false;
  }

  function attendTask(call: Call): boolean {
    if (call.message.taskStart >= 0 || call.tasks || call.source!.tasks?.starts) tasks.attend(call);
    return true;
  }

  function requireApproval(call: Call): boolean {
    const { by, entry, message } = call;
    if (message.method !== 'tools/call' || by.isOperator) return true;
    const { rule, tried } = confirmationFor(confirmations(), by.subject, entry, message);
    if (tried !== null) call.tried ??= { decision: 'confirm', rule: tried.place, why: '' };
    return rule === null || approvals.hold(call, rule);
  }

  function passLimits(call: Call): boolean {
    const { by, entry } = call;
    call.counter = counters.of(entry, call.method);
    return limiters.of(by.isOperator ? null : by.agent, entry).enter(call);
  }

  /** The call waits until its line is on the disk. It keeps its places meanwhile, so that none of them is given twice. */
  function recordBefore(call: Call): boolean {
    const { recorder } = audit;
    if (recorder === null) return true;
    const { id, isWritten } = recorder.begun(call);
    call.begun = id;
    const waiting = {
      quit() {
        call.waiting = null;
      },
    };
    call.waiting = waiting;
    void isWritten.then((wasWritten) => {
      if (call.waiting !== waiting) return;
      if (wasWritten || !audit.stops) {
        call.resume();
        return;
      }
      call.waiting = null;
      call.refuse(new GatewayError('audit_unavailable', UNRECORDED));
    });
    return false;
  }

  return {
    create: (by, message, sink, httpHeaders = null) => new Call(context, by, message, sink, httpHeaders),
    callTool(by, entry, args, id, sink) {
      const params = { name: entry.name, arguments: args };
      const message = readMessage(toBytes({ jsonrpc: '2.0', id, method: 'tools/call', params }));
      const call = new Call(context, by, message, sink, null);
      if (watcher !== null) call.watched = watcher.begin(call);
      call.found(entry, entry.upstreamName, message.nameStart, message.nameEnd);
      try {
        checkPermission(call);
        enter(call);
      } catch (error) {
        call.refuse(error);
      }
      return call;
    },
    retry,
    isRepeatable(by, message) {
      if (message.method === 'tasks/result') return true;
      const call = new Call(context, by, message, NOBODY, null);
      try {
        findTarget(call);
      } catch {
        return false;
      }
      return call.entry.sourceId !== BUILT_IN && options.isRepeatable(call.entry);
    },
    trace(next) {
      tracer = next;
    },
    watch(next) {
      watcher = next;
    },
  };
}

/** The request must not contradict the definition of the item it calls. */
function checkRequest(call: Call): boolean {
  const { message, entry, httpHeaders } = call;
  const { name, mirrored, traits } = entry.item;
  if (message.taskStart >= 0 && message.method === 'tools/call' && !traits.runsAsTask)
    throw new GatewayError(
      'method_unknown',
      `The tool "${name}" cannot be run as a task: its server does not support that, or not in this revision of the protocol. Call it without "task".`,
    );
  if (httpHeaders !== null && mirrored !== null && typeof mirrored !== 'string')
    checkParamHeaders(httpHeaders, message, mirrored);
  if (call.through !== null) requireFit(call);
  return true;
}

function send(call: Call): boolean {
  call.send();
  return false;
}
