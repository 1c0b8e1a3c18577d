/** The last step of a call before its server: who counts it, how long it may take, and whether it may become a task. */
import type { ServerConfig } from '../config/config.ts';
import type { ConfirmRule } from '../config/security.ts';
import { GatewayError } from '../errors.ts';
import { toBytes } from '../protocol/json.ts';
import type { Ticket } from '../sources/connection.ts';
import type { Guest } from '../sources/guest.ts';
import type { Approvals } from './approvals.ts';
import type { Call, Callee, Recorder } from './call.ts';
import { type FigureDesk, OK } from './figures.ts';
import type { Lanes } from './limits/lanes.ts';
import type { TaskDesk } from './tasks.ts';

interface Place {
  readonly source: Callee;
  readonly config: ServerConfig;
}

/** Who has calls approved by a person. */
export interface Approve extends Pick<Approvals, 'hold'> {
  /** The rule that wants it; null where none does. */
  ruleFor(call: Call): ConfirmRule | null;
}

export const NO_TICKET: Ticket = { cancel() {} };
/** The answer for an item of a server that does not complete. */
const NO_COMPLETION = toBytes({ completion: { values: [] } });

export function dispatch(
  found: Call,
  place: Place | undefined,
  guest: Guest,
  tasks: TaskDesk,
  figures: FigureDesk,
  recorder: Recorder | null,
  lanes: Lanes,
  approve: Approve | null,
): Ticket {
  const { message, entry, inner } = found;
  if (place === undefined)
    throw new GatewayError('source_unavailable', `Server "${entry.sourceKey}" has been removed.`);
  const { source } = place;
  if (message.method === 'completion/complete' && !source.completes) {
    recorder?.called(found, OK, 0, null, NO_COMPLETION);
    inner.result(NO_COMPLETION, 'legacy');
    return NO_TICKET;
  }
  const mayBeTask = message.taskStart >= 0 || inner.tasks || source.tasks.starts;
  const call = mayBeTask ? tasks.attend(found) : found;
  const { agent, isOperator } = found.by;
  const lane = lanes.of(isOperator ? null : agent, entry, place.config);
  call.timeout = lane.timeout;
  call.totalTimeout = lane.totalTimeout;
  // It is the one that was let through, and is asked for this.
  found.totalTimeout = lane.totalTimeout;
  call.guest = guest;
  call.recorder = recorder;
  call.source = source;
  call.row = figures.of(entry, message.method);
  const rule = approve === null || message.method !== 'tools/call' ? null : approve.ruleFor(call);
  return rule === null ? lane.enter(call) : approve!.hold(call, rule, () => lane.enter(call));
}
