/**
 * Persona packages of another program: a folder with `persona.yaml`, which has toolsets, and `mcp.json`, which has the
 * servers they are made of.
 */
import { basename } from 'node:path';
import { isMap } from './fields.ts';

export interface Persona {
  /** As a configuration has them. */
  readonly toolsets: Record<string, { description: string; tools: string[] }>;
  /** The toolset to begin with. */
  readonly equipped: string | null;
  readonly problems: readonly string[];
}

export function isPersona(file: string): boolean {
  return /^persona\.ya?ml$/.test(basename(file));
}

export function readPersona(root: Record<string, unknown>): Persona {
  const problems: string[] = [];
  const toolsets: Record<string, { description: string; tools: string[] }> = {};
  const listed = Array.isArray(root.toolsets) ? root.toolsets : [];
  if (listed.length === 0) problems.push('has no "toolsets"');
  for (const [index, one] of listed.entries()) {
    const { name, description, toolIds } = (isMap(one) ? one : {}) as Record<string, unknown>;
    const isWhole = typeof name === 'string' && Array.isArray(toolIds) && toolIds.every((id) => typeof id === 'string');
    if (isWhole) toolsets[name] = { description: typeof description === 'string' ? description : '', tools: toolIds };
    else problems.push(`toolsets[${index}]: left out: it needs a "name" and a list "toolIds"`);
  }
  const wanted = root.defaultToolset;
  const equipped = typeof wanted === 'string' && Object.hasOwn(toolsets, wanted) ? wanted : null;
  if (wanted !== undefined && equipped === null) problems.push(`"defaultToolset" names none of its toolsets`);
  return { toolsets, equipped, problems };
}
