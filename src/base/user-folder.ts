import { homedir } from 'node:os';
import { join } from 'node:path';

/** The folder for what belongs to the user rather than to one project. */
export function userFolder(env: Readonly<Record<string, string | undefined>>): string {
  return join(env.XDG_CONFIG_HOME || join(env.HOME || homedir(), '.config'), 'toolgate');
}
