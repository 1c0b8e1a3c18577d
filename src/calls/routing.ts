/** The way of a call from its caller to whoever answers it; what is wrong with it ends it here, counted and written down. */
import { requireArguments } from '../access/permission.ts';
import { BUILT_IN } from '../catalog/entry.ts';
import { GatewayError, toGatewayError } from '../errors.ts';
import type { Events } from '../events.ts';
import type { Message } from '../protocol/message.ts';
import type { Sink, Ticket } from '../sources/connection.ts';
import type { Audit } from './audit.ts';
import { type Call, findCall } from './call.ts';
import { NO_TICKET } from './dispatch.ts';
import { createEarlyCalls, MAY_CHANGE } from './early.ts';
import type { FigureDesk } from './figures.ts';
import type { KeptResults } from './limits/kept.ts';
import type { Member } from './member.ts';
import { type MiddlewareStack, runThrough } from './middleware.ts';

export interface Stations {
  readonly events: Events;
  readonly figures: FigureDesk;
  readonly audit: Audit;
  /** What was cut off results. */
  readonly kept: KeptResults;
  readonly stack: Pick<MiddlewareStack, 'all'>;
  /** Whether servers are still being tried. */
  isOpening(): boolean;
  /** Whether one of those, listed before, could turn out to have the name. */
  mayClaim(call: Call): boolean;
  /** To the server, or to the tool of our own. */
  send(member: Member, call: Call): Ticket;
}

export interface Routing {
  call(member: Member, message: Message, sink: Sink): Ticket;
  /** What calls wait for that came too early may be there now. */
  retry(): void;
}

const UNRECORDED =
  'Calls are refused because the audit cannot be written: the configuration says audit.on_failure = "stop". Make room, or make its folder writable.';

export function createRouting(stations: Stations): Routing {
  const { events, figures, audit, kept, stack, isOpening, mayClaim, send } = stations;
  const early = createEarlyCalls();

  function call(member: Member, message: Message, sink: Sink): Ticket {
    try {
      return route(member, message, sink);
    } catch (error) {
      const known = toGatewayError(error);
      if (known.code === 'internal') events.emit('failure', { where: message.method, error });
      if (isOpening() && MAY_CHANGE.has(known.code)) return callWhenKnown(member, message, sink);
      figures.refuse(member.usage, known.code);
      audit.recorder?.refused(member, message, known);
      sink.fail(known);
      return NO_TICKET;
    }
  }

  /** What is meant may come with a server that is still starting. */
  function callWhenKnown(member: Member, message: Message, sink: Sink): Ticket {
    return early.add(() => call(member, message, sink));
  }

  function route(member: Member, message: Message, sink: Sink): Ticket {
    const rest = message.method === 'resources/read' ? kept.read(member.principal, message) : null;
    if (rest !== null) {
      if (audit.stops) throw new GatewayError('audit_unavailable', UNRECORDED);
      audit.recorder?.answered(member, message, rest);
      sink.result(rest, 'legacy');
      return NO_TICKET;
    }
    const found = findCall(member, message, sink);
    const { permission } = member.view();
    if (permission !== null && permission.onArguments.length > 0) requireArguments(permission, found.entry, message);
    if (isOpening() && isEarly(found)) return callWhenKnown(member, message, sink);
    sink.admit(found);
    if (audit.stops) throw new GatewayError('audit_unavailable', UNRECORDED);
    found.recorder = audit.recorder;
    if (stack.all.length === 0) return send(member, found);
    return runThrough(stack.all, found, member.agent, events, (seen) => send(member, seen));
  }

  /** Whether a server that is still starting could change what is meant: then the quickest server must not decide it. */
  function isEarly(found: Call): boolean {
    return found.entry.sourceId === BUILT_IN || !found.exact || mayClaim(found);
  }

  return { call, retry: early.retry };
}
