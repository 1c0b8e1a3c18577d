/**
 * Toolsets that nobody has to make: one for each server, by the server's name, and `all`. They are never saved. They
 * have what their servers offer at any time.
 */
import type { Toolset } from './toolset.ts';

/** The toolset of every tool, and its name if a toolset of the user is called `all`. */
const ALL = { name: 'all', otherwise: '*' };

/** The name of a server's toolset if the server's own name is taken. It is also what its tools are in a toolset. */
const patternOf = (key: string) => `${key}.*`;

/** `isTaken` says which names belong to toolsets of the user: those are never hidden. */
export function implicitToolsets(keys: readonly string[], isTaken: (name: string) => boolean): Toolset[] {
  if (keys.length === 0) return [];
  const all = allToolset(isTaken(ALL.name) ? ALL.otherwise : ALL.name);
  const ofServers = keys.map((key) => serverToolset(key, serverToolsetName(key, isTaken)));
  return [all, ...ofServers].filter(({ name }) => !isTaken(name));
}

export function serverToolsetName(key: string, isTaken: (name: string) => boolean): string {
  return key === ALL.name || isTaken(key) ? patternOf(key) : key;
}

function serverToolset(key: string, name: string): Toolset {
  return {
    name,
    description: `Every tool of the server "${key}"`,
    tools: [{ namespacedName: patternOf(key), server: key }],
    toolNotes: [],
    standing: 'implicit',
  };
}

function allToolset(name: string): Toolset {
  const description = 'Every tool of every server';
  return { name, description, tools: [{ namespacedName: '*' }], toolNotes: [], standing: 'implicit' };
}
