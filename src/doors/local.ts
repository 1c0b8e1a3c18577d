/**
 * The door for the program that embeds a gateway. The promised function takes a `Gateway`. The one in `calls/` takes
 * only the parts of it that it needs, because that room cannot import the gateway.
 */
import { type LocalDoor, openLocalDoor as openFor } from '../calls/local.ts';
import type { Gateway } from '../gateway/gateway.ts';

/**
 * Uses a gateway in this process, as one caller with a selection: its own, the shared default, or everything. With an
 * agent's name, that agent's policy applies. Without one the caller is the operator, to whom no policy applies.
 *
 * @example
 * const door = openLocalDoor(gateway, 'all');
 * const result = await door.callTool('files_read_text_file', { path: 'todo.txt' });
 * console.log(JSON.parse(result.toString()).content);
 * door.close();
 */
export function openLocalDoor(
  gateway: Gateway,
  selection: 'own' | 'default' | 'all' = 'own',
  agent: string | null = null,
): LocalDoor {
  return openFor(gateway, selection, agent);
}
