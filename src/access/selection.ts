/**
 * What a caller has switched on. Kept as the patterns it started from plus the names switched on and off since, so that a
 * server that goes away and comes back finds its items as they were.
 */

import type { Entry } from '../catalog/entry.ts';
import type { Kind } from '../catalog/item.ts';
import { matchesPattern } from '../catalog/pattern.ts';
import type { Config } from '../config/config.ts';

/** Prompts are always active; templates are switched together with resources. */
export type Switchable = 'tools' | 'resources';

export interface Switches {
  readonly on: ReadonlySet<string>;
  readonly off: ReadonlySet<string>;
}

export interface Selection {
  /** Patterns over exposed names; null means everything. */
  readonly base: readonly string[] | null;
  readonly tools: Switches;
  readonly resources: Switches;
  /** Equal for equal selections. */
  readonly key: string;
}

const NONE: Switches = { on: new Set(), off: new Set() };

export function startSelection(base: readonly string[] | null): Selection {
  return toSelection(base, NONE, NONE);
}

/** The same switches over other patterns, after the configuration changed. */
export function rebase(selection: Selection, base: readonly string[] | null): Selection {
  return toSelection(base, selection.tools, selection.resources);
}

export interface SelectionChange {
  readonly tools: Switches;
  readonly resources: Switches;
}

export function changeSelection(selection: Selection, change: SelectionChange): Selection {
  return toSelection(selection.base, flip(selection.tools, change.tools), flip(selection.resources, change.resources));
}

function flip(before: Switches, change: Switches): Switches {
  return {
    on: new Set([...before.on, ...change.on].filter((name) => !change.off.has(name))),
    off: new Set([...before.off, ...change.off].filter((name) => !change.on.has(name))),
  };
}

function toSelection(base: readonly string[] | null, tools: Switches, resources: Switches): Selection {
  const key = JSON.stringify([
    base,
    ...[tools.on, tools.off, resources.on, resources.off].map((set) => [...set].sort()),
  ]);
  return Object.freeze({ base, tools, resources, key });
}

export function isActive(selection: Selection, kind: Kind, name: string): boolean {
  if (kind === 'prompt') return true;
  const switches = kind === 'tool' ? selection.tools : selection.resources;
  if (switches.on.has(name)) return true;
  if (switches.off.has(name)) return false;
  return selection.base === null || selection.base.some((pattern) => matchesPattern(pattern, name));
}

export function activeEntries(selection: Selection, entries: Iterable<Entry>): Entry[] {
  return [...entries].filter((entry) => isActive(selection, entry.kind, entry.name));
}

/** Without patterns nothing is active where a control can switch things on, and everything otherwise. */
export function basePatterns(config: Config): readonly string[] | null {
  return config.activeToolsets ?? (config.controls.length > 0 ? [] : null);
}
