/** The way of a call from its caller to whoever answers it; what is wrong with it ends it here, counted and written down. */

import { requireArguments } from '../access/permission.ts';
import { GatewayError, toGatewayError } from '../base/errors.ts';
import type { EventSink } from '../base/events.ts';
import { BUILT_IN, type Entry } from '../catalog/entry.ts';
import type { Audit } from '../observe/audit.ts';
import type { MetricsRegistry } from '../observe/metrics.ts';
import type { Sink, Ticket } from '../protocol/contract.ts';
import { toBytes } from '../protocol/json.ts';
import type { Message } from '../protocol/message.ts';
import { readMessage } from '../protocol/read.ts';
import { Call, findCall } from './call.ts';
import type { Caller } from './caller.ts';
import { NO_TICKET } from './dispatch.ts';
import { createEarlyCalls, MAY_CHANGE } from './early.ts';
import type { SpillStore } from './limits/spill-store.ts';
import { type MiddlewareStack, runThrough } from './middleware.ts';

export interface Stations {
  readonly events: EventSink;
  readonly metrics: MetricsRegistry;
  readonly audit: Audit;
  /** What was cut off results. */
  readonly kept: SpillStore;
  readonly stack: Pick<MiddlewareStack, 'all'>;
  /** Whether servers are still being tried. */
  isOpening(): boolean;
  /** Whether one of those, listed before, could turn out to have the name. */
  mayClaim(call: Call): boolean;
  /** To the server, or to the tool of our own. */
  send(caller: Caller, call: Call): Ticket;
}

export interface Routing {
  call(caller: Caller, message: Message, sink: Sink): Ticket;
  /** A call of one of the caller's tools that is known already; what is wrong with it is told to the sink. */
  step(caller: Caller, entry: Entry, args: object, id: string, sink: Sink): Ticket;
  /** What calls wait for that came too early may be there now. */
  retry(): void;
}

const UNRECORDED =
  'Calls are refused because the audit cannot be written: the configuration says audit.on_failure = "stop". Make room, or make its folder writable.';

export function createRouting(stations: Stations): Routing {
  const { events, metrics, audit, kept, stack, isOpening, mayClaim, send } = stations;
  const early = createEarlyCalls();

  function call(caller: Caller, message: Message, sink: Sink): Ticket {
    try {
      return route(caller, message, sink);
    } catch (error) {
      const known = toGatewayError(error);
      if (known.code === 'internal') events.emit('failure', { where: message.method, error });
      if (isOpening() && MAY_CHANGE.has(known.code)) return callWhenKnown(caller, message, sink);
      metrics.refuse(caller.usage, known.code);
      audit.recorder?.refused(caller, message, known);
      sink.fail(known);
      return NO_TICKET;
    }
  }

  /** What is meant may come with a server that is still starting. */
  function callWhenKnown(caller: Caller, message: Message, sink: Sink): Ticket {
    return early.add(() => call(caller, message, sink));
  }

  function route(caller: Caller, message: Message, sink: Sink): Ticket {
    const rest = message.method === 'resources/read' ? kept.read(caller.principal, message) : null;
    if (rest !== null) {
      if (audit.stops) throw new GatewayError('audit_unavailable', UNRECORDED);
      audit.recorder?.answered(caller, message, rest);
      sink.result(rest, 'legacy');
      return NO_TICKET;
    }
    const found = findCall(caller, message, sink);
    checkArguments(caller, found);
    if (isOpening() && isEarly(found)) return callWhenKnown(caller, message, sink);
    sink.admit(found);
    return pass(caller, found);
  }

  function checkArguments(caller: Caller, { entry, message }: Call): void {
    const { permission } = caller.view();
    if (permission !== null && permission.onArguments.length > 0) requireArguments(permission, entry, message);
  }

  function pass(caller: Caller, found: Call): Ticket {
    if (audit.stops) throw new GatewayError('audit_unavailable', UNRECORDED);
    found.recorder = audit.recorder;
    if (stack.all.length === 0) return send(caller, found);
    return runThrough(stack.all, found, caller.agent, events, (seen) => send(caller, seen));
  }

  /** Whether a server that is still starting could change what is meant: then the quickest server must not decide it. */
  function isEarly(found: Call): boolean {
    return found.entry.sourceId === BUILT_IN || !found.exact || mayClaim(found);
  }

  function step(caller: Caller, entry: Entry, args: object, id: string, sink: Sink): Ticket {
    const params = { name: entry.name, arguments: args };
    const message = readMessage(toBytes({ jsonrpc: '2.0', id, method: 'tools/call', params }));
    try {
      const { nameStart, nameEnd } = message;
      const found = new Call(message, entry, entry.upstreamName, nameStart, nameEnd, sink, caller);
      checkArguments(caller, found);
      return pass(caller, found);
    } catch (error) {
      const known = toGatewayError(error);
      if (known.code === 'internal') events.emit('failure', { where: 'macro', error });
      metrics.refuse(caller.usage, known.code);
      audit.recorder?.refused(caller, message, known);
      sink.fail(known);
      return NO_TICKET;
    }
  }

  return { call, step, retry: early.retry };
}
