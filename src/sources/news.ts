/** What a server says unasked, and whom it concerns. */

import type { ClientChannel } from '../protocol/contract.ts';
import { decodeString } from '../protocol/json.ts';
import type { Message } from '../protocol/message.ts';
import { changedKinds, type Relisting } from './relisting.ts';
import type { Source, SourceContext } from './source.ts';

/** Progress that no request waits for may be that of a task. */
const OF_TASKS: ReadonlySet<string> = new Set(['notifications/tasks/status', 'notifications/progress']);

export function passNews(message: Message, source: Source, context: SourceContext, relisting: Relisting): void {
  if (OF_TASKS.has(message.method)) context.taskChanged(source, message);
  else if (!passUpdate(message, source, context, null)) changedKinds(message.method).forEach(relisting.schedule);
}

/** Takes the news that a resource has changed, for everybody or for one client alone; false for any other. */
export function passUpdate(
  message: Message,
  source: Source,
  context: SourceContext,
  client: ClientChannel | null,
): boolean {
  const { method, bytes, uriStart, uriEnd } = message;
  if (method !== 'notifications/resources/updated') return false;
  if (uriStart >= 0 && bytes[uriStart] === 0x22) context.updated(source, decodeString(bytes, uriStart, uriEnd), client);
  return true;
}
