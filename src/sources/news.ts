/** What a server says unasked, and whom it concerns. */
import { decodeString } from '../protocol/json.ts';
import type { Message } from '../protocol/message.ts';
import { changedKinds, type Relisting } from './relisting.ts';
import type { Source, SourceContext } from './source.ts';

/** Progress that no request waits for may be that of a task. */
const OF_TASKS: ReadonlySet<string> = new Set(['notifications/tasks/status', 'notifications/progress']);

export function passNews(message: Message, source: Source, context: SourceContext, relisting: Relisting): void {
  const { method, bytes, uriStart, uriEnd } = message;
  if (OF_TASKS.has(method)) context.taskChanged(source, message);
  else if (method !== 'notifications/resources/updated') changedKinds(method).forEach(relisting.schedule);
  else if (uriStart >= 0 && bytes[uriStart] === 0x22) context.updated(source, decodeString(bytes, uriStart, uriEnd));
}
