/** The last step of a call before its server: who counts it, how long it may take, and whether it may become a task. */

import { GatewayError } from '../base/errors.ts';
import type { ConfirmRule } from '../config/security.ts';
import type { ServerConfig } from '../config/servers.ts';
import { type MetricsRegistry, OK } from '../observe/metrics.ts';
import type { ClientChannel, Ticket } from '../protocol/contract.ts';
import { toBytes } from '../protocol/json.ts';
import type { Approvals } from './approvals/approvals.ts';
import type { Call, Callee, Recorder } from './call.ts';
import type { Limiters } from './limits/limiters.ts';
import type { McpTasks } from './tasks/tasks.ts';

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
  client: ClientChannel,
  tasks: McpTasks,
  metrics: MetricsRegistry,
  recorder: Recorder | null,
  limiters: Limiters,
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
  const limiter = limiters.of(isOperator ? null : agent, entry, place.config);
  call.timeout = limiter.timeout;
  call.totalTimeout = limiter.totalTimeout;
  // It is the one that was let through, and is asked for this.
  found.totalTimeout = limiter.totalTimeout;
  call.client = client;
  call.recorder = recorder;
  call.source = source;
  call.row = metrics.of(entry, message.method);
  const rule = approve === null || message.method !== 'tools/call' ? null : approve.ruleFor(call);
  return rule === null ? limiter.enter(call) : approve!.hold(call, rule, () => limiter.enter(call));
}
