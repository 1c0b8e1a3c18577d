/** The last step of a call before its server: who counts it, how long it may take, and whether it may become a task. */
import type { ServerConfig } from '../config/config.ts';
import { GatewayError } from '../errors.ts';
import { toBytes } from '../protocol/json.ts';
import type { Ticket } from '../sources/connection.ts';
import type { Guest } from '../sources/guest.ts';
import type { Source } from '../sources/source.ts';
import type { Call } from './call.ts';
import type { FigureDesk } from './figures.ts';
import type { TaskDesk } from './tasks.ts';

interface Place {
  readonly source: Source;
  readonly config: ServerConfig;
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
): Ticket {
  const { message, entry, inner } = found;
  if (place === undefined)
    throw new GatewayError('source_unavailable', `Server "${entry.sourceKey}" has been removed.`);
  const { source, config } = place;
  if (message.method === 'completion/complete' && !source.completes) {
    inner.result(NO_COMPLETION, 'legacy');
    return NO_TICKET;
  }
  const mayBeTask = message.taskStart >= 0 || inner.tasks || source.tasks.starts;
  const call = mayBeTask ? tasks.attend(found) : found;
  call.timeout = config.timeout;
  call.totalTimeout = config.totalTimeout;
  // It is the one that was let through, and is asked for this.
  found.totalTimeout = config.totalTimeout;
  call.guest = guest;
  return call.send(source, figures.of(entry, message.method));
}
