/**
 * What a caller has switched on. Kept as the patterns it started from plus the names switched on and off since, so that a
 * server that goes away and comes back finds its items as they were.
 */

import { matchesPattern } from '../base/pattern.ts';
import { isOfCategory } from '../catalog/category.ts';
import type { Entry } from '../catalog/entry.ts';
import type { Config } from '../config/config.ts';
import { includesTool, type Toolset } from './toolset.ts';

/** Prompts are always active; templates are switched together with resources. */
export type Switchable = 'tools' | 'resources';

export interface Switches {
  readonly on: ReadonlySet<string>;
  readonly off: ReadonlySet<string>;
}

/** Patterns over exposed names, or categories of tools; null means everything. */
export type Patterns = readonly string[] | null;

/** What is active before anybody switches anything. */
export interface Base {
  readonly tools: Patterns;
  readonly resources: Patterns;
}

export interface Selection {
  readonly base: Base;
  readonly tools: Switches;
  readonly resources: Switches;
  /** The toolset that is equipped: its tools are active too. */
  readonly toolset: Toolset | null;
  /** Equal for equal selections. */
  readonly key: string;
}

const NONE: Switches = { on: new Set(), off: new Set() };

/** The same patterns for everything, or for each kind its own. */
export function startSelection(base: Patterns | Base): Selection {
  const isOne = base === null || Array.isArray(base);
  return toSelection(isOne ? { tools: base, resources: base } : (base as Base), NONE, NONE, null);
}

/** The same switches and toolset over other patterns, after the configuration changed. */
export function rebase({ tools, resources, toolset }: Selection, base: Base): Selection {
  return toSelection(base, tools, resources, toolset);
}

/** Another toolset, or none. */
export function equip({ base, tools, resources }: Selection, toolset: Toolset | null): Selection {
  return toSelection(base, tools, resources, toolset === null ? null : plain(toolset));
}

/** This toolset and no other tools. */
export function fixedSelection(base: Base, toolset: Toolset): Selection {
  return toSelection({ ...base, tools: [] }, NONE, NONE, plain(toolset));
}

/** Without what says where it is saved: a selection is the same wherever its toolset came from. */
function plain({ name, description, tools, toolNotes }: Toolset): Toolset {
  return { name, description, tools, toolNotes };
}

export interface SelectionChange {
  readonly tools: Switches;
  readonly resources: Switches;
}

export function changeSelection(selection: Selection, change: SelectionChange): Selection {
  const { base, tools, resources, toolset } = selection;
  return toSelection(base, flip(tools, change.tools), flip(resources, change.resources), toolset);
}

function flip(before: Switches, change: Switches): Switches {
  return {
    on: new Set([...before.on, ...change.on].filter((name) => !change.off.has(name))),
    off: new Set([...before.off, ...change.off].filter((name) => !change.on.has(name))),
  };
}

function toSelection(base: Base, tools: Switches, resources: Switches, toolset: Toolset | null): Selection {
  const key = JSON.stringify([
    base.tools,
    base.resources,
    ...[tools.on, tools.off, resources.on, resources.off].map((set) => [...set].sort()),
    toolset,
  ]);
  return Object.freeze({ base, tools, resources, toolset, key });
}

export function isActive({ base, tools, resources, toolset }: Selection, entry: Entry): boolean {
  const { kind, name } = entry;
  if (kind === 'prompt') return true;
  const switches = kind === 'tool' ? tools : resources;
  if (switches.on.has(name)) return true;
  if (switches.off.has(name)) return false;
  const patterns = kind === 'tool' ? base.tools : base.resources;
  if (patterns === null || patterns.some((one) => matchesPattern(one, name) || isOfCategory(one, entry))) return true;
  return kind === 'tool' && toolset !== null && includesTool(toolset, entry);
}

export function activeEntries(selection: Selection, entries: Iterable<Entry>): Entry[] {
  return [...entries].filter((entry) => isActive(selection, entry));
}

/** Without patterns nothing is active that a control can switch on, and everything else is. Toolsets are about tools only. */
export function basePatterns({ activeToolsets, controls }: Config): Base {
  if (activeToolsets !== null) return { tools: activeToolsets, resources: activeToolsets };
  const resources = controls.includes('activate') ? [] : null;
  return { tools: controls.includes('equip') ? [] : resources, resources };
}
