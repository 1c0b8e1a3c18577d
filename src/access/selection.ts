/**
 * A caller's selection: the patterns it started from, and the names switched on and off since. Because names are
 * stored, the items of a server that disconnects and returns keep their state.
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

/** What is active before anything is switched. */
export interface Base {
  readonly tools: Patterns;
  readonly resources: Patterns;
}

export interface Selection {
  readonly base: Base;
  readonly tools: Switches;
  readonly resources: Switches;
  /** The equipped toolset, whose tools are active too. */
  readonly toolset: Toolset | null;
  /** The toolsets that the control `toolsets` has switched on. Their tools are active too. */
  readonly enabled: readonly Toolset[];
  /** Equal for equal selections. */
  readonly key: string;
}

const NONE: Switches = { on: new Set(), off: new Set() };

/** The same patterns for tools and resources, or different ones. */
export function startSelection(base: Patterns | Base): Selection {
  const isOne = base === null || Array.isArray(base);
  return toSelection(isOne ? { tools: base, resources: base } : (base as Base), NONE, NONE, null, []);
}

/** The same switches and toolset on other patterns, after the configuration changed. */
export function rebase({ tools, resources, toolset, enabled }: Selection, base: Base): Selection {
  return toSelection(base, tools, resources, toolset, enabled);
}

/** The selection with another toolset equipped, or none. */
export function equip({ base, tools, resources, enabled }: Selection, toolset: Toolset | null): Selection {
  return toSelection(base, tools, resources, toolset === null ? null : withoutPlace(toolset), enabled);
}

/** The selection with exactly these toolsets enabled. */
export function withEnabled({ base, tools, resources, toolset }: Selection, enabled: readonly Toolset[]): Selection {
  return toSelection(base, tools, resources, toolset, enabled.map(withoutPlace));
}

/** A selection of this toolset and no other tools. */
export function fixedSelection(base: Base, toolset: Toolset): Selection {
  return toSelection({ ...base, tools: [] }, NONE, NONE, withoutPlace(toolset), []);
}

/** Drops the storage location, so that equal toolsets make equal selections. */
function withoutPlace({ name, description, tools, toolNotes, standing }: Toolset): Toolset {
  return { name, description, tools, toolNotes, ...(standing !== undefined && { standing }) };
}

/** The selection with its toolsets as they are now. Those that are gone are no longer enabled. */
export function refitted(selection: Selection, now: (toolset: Toolset, isNamed: boolean) => Toolset): Selection {
  const { toolset, enabled } = selection;
  const equipped = toolset === null ? selection : equip(selection, now(toolset, false));
  if (enabled.length === 0) return equipped;
  const still = enabled.map((one) => now(one, false)).filter(({ standing }) => standing !== 'gone');
  return withEnabled(equipped, still);
}

/** A selection as it is kept elsewhere: what was switched, and the names of toolsets. */
export interface KeptSelection {
  readonly tools: KeptSwitches;
  readonly resources: KeptSwitches;
  readonly toolset: string | null;
  readonly enabled: readonly string[];
}

interface KeptSwitches {
  readonly on: readonly string[];
  readonly off: readonly string[];
}

export function toKept({ tools, resources, toolset, enabled }: Selection): KeptSelection {
  const names = ({ on, off }: Switches) => ({ on: [...on], off: [...off] });
  return {
    tools: names(tools),
    resources: names(resources),
    toolset: toolset?.name ?? null,
    enabled: enabled.map(({ name }) => name),
  };
}

/** The same selection on these patterns, with its toolsets as they are now. */
export function keptSelection(base: Base, kept: KeptSelection, find: (name: string) => Toolset): Selection {
  const switches = ({ on, off }: KeptSwitches) => ({ on: new Set(on), off: new Set(off) });
  const toolset = kept.toolset === null ? null : withoutPlace(find(kept.toolset));
  const enabled = kept.enabled.map((name) => withoutPlace(find(name)));
  return toSelection(base, switches(kept.tools), switches(kept.resources), toolset, enabled);
}

export interface SelectionChange {
  readonly tools: Switches;
  readonly resources: Switches;
}

export function changeSelection(selection: Selection, change: SelectionChange): Selection {
  const { base, tools, resources, toolset, enabled } = selection;
  return toSelection(base, flip(tools, change.tools), flip(resources, change.resources), toolset, enabled);
}

function flip(before: Switches, change: Switches): Switches {
  return {
    on: new Set([...before.on, ...change.on].filter((name) => !change.off.has(name))),
    off: new Set([...before.off, ...change.off].filter((name) => !change.on.has(name))),
  };
}

function toSelection(
  base: Base,
  tools: Switches,
  resources: Switches,
  toolset: Toolset | null,
  enabled: readonly Toolset[],
): Selection {
  const key = JSON.stringify([
    base.tools,
    base.resources,
    ...[tools.on, tools.off, resources.on, resources.off].map((set) => [...set].sort()),
    toolset,
    enabled,
  ]);
  return Object.freeze({ base, tools, resources, toolset, enabled, key });
}

export function isActive({ base, tools, resources, toolset, enabled }: Selection, entry: Entry): boolean {
  const { kind, name } = entry;
  if (kind === 'prompt') return true;
  const switches = kind === 'tool' ? tools : resources;
  if (switches.on.has(name)) return true;
  if (switches.off.has(name)) return false;
  const patterns = kind === 'tool' ? base.tools : base.resources;
  if (patterns === null || patterns.some((one) => matchesPattern(one, name) || isOfCategory(one, entry))) return true;
  if (kind !== 'tool') return false;
  return (toolset !== null && includesTool(toolset, entry)) || enabled.some((one) => includesTool(one, entry));
}

export function activeEntries(selection: Selection, entries: Iterable<Entry>): Entry[] {
  return [...entries].filter((entry) => isActive(selection, entry));
}

/**
 * Without configured patterns, what a control can switch on is off, and everything else is on. Toolsets switch tools
 * only.
 */
export function basePatterns({ activeToolsets, controls }: Config): Base {
  if (activeToolsets !== null) return { tools: activeToolsets, resources: activeToolsets };
  const resources = controls.includes('activate') || controls.includes('auto') ? [] : null;
  const isOff = controls.some((one) => one === 'equip' || one === 'toolsets' || one === 'search');
  return { tools: isOff ? [] : resources, resources };
}
