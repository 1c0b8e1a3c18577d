/**
 * The door for the program that embeds a gateway. The promised function takes a `Gateway`. The one in `calls/` takes
 * only the parts of it that it needs, because that room cannot import the gateway.
 */
import { findTool } from '../access/find.ts';
import { reportDenied } from '../calls/caller.ts';
import { type LocalDoor, openLocalDoor as openFor } from '../calls/local.ts';
import { BUILT_IN } from '../catalog/entry.ts';
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

/**
 * The door for a single call of the operator. Every tool can be called. Toolgate's own tools switch the default selection:
 * they would otherwise report success and change nothing.
 */
export function openCallDoor(gateway: Gateway, name: string, agent: string | null): LocalDoor {
  const door = openLocalDoor(gateway, 'all', agent);
  if (!isOwn(door, name)) return door;
  door.close();
  return openLocalDoor(gateway, 'default', agent);
}

/** The definition of a tool as its server sends it. Throws if the caller has no such tool. */
export function definitionFor({ events }: Gateway, { caller }: LocalDoor, name: string): Buffer {
  try {
    return findTool(caller.view(), name).item.bytes;
  } catch (error) {
    reportDenied(events, caller, 'tools/list', name, error, '');
    throw error;
  }
}

function isOwn({ caller }: LocalDoor, name: string): boolean {
  try {
    return findTool(caller.view(), name).sourceId === BUILT_IN;
  } catch {
    return false;
  }
}
