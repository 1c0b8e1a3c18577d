/** The control tools that a configuration asks for, as one set of words over the caller's selection. */
import type { ViewControls } from '../access/view.ts';
import type { Control } from '../config/toolsets.ts';
import { ACTIVATE, activate, activateEntry } from './activate.ts';
import { approvalEntries } from './approval-tools.ts';
import { requireChoice } from './arguments.ts';
import type { ControlContext, Outcome } from './control.ts';
import { EQUIP_RUNS } from './equip.ts';
import { EQUIP_ALIASES, EQUIP_ENTRIES, EQUIP_NAMES, type EquipTool } from './equip-tools.ts';
import type { ProgramControl } from './program-control.ts';

export interface Controls extends ViewControls {
  /** Names that no server can have. */
  readonly names: readonly string[];
  /** Runs a control tool. Throws, changing nothing, when the arguments are wrong. */
  run(name: string, context: ControlContext, args: unknown): Outcome | Promise<Outcome>;
}

/** `program` are those of the program around, which runs them itself. */
export function createControls(controls: readonly Control[], program: ProgramControl | null = null): Controls {
  const own = program?.entries ?? [];
  const activates = controls.includes('activate');
  const equips = controls.includes('equip');
  const approving = approvalEntries(controls);
  return {
    names: [
      ...own.map(({ name }) => name),
      ...(activates ? [ACTIVATE] : []),
      ...(equips ? [...EQUIP_NAMES, ...Object.keys(EQUIP_ALIASES)] : []),
      ...approving.map(({ name }) => name),
    ],
    entries: (catalog, selection) => [
      ...own,
      ...(activates ? [activateEntry(catalog, selection)] : []),
      ...(equips ? EQUIP_ENTRIES : []),
      ...approving,
    ],
    alias(name) {
      const meant = equips ? EQUIP_ALIASES[name] : undefined;
      return EQUIP_ENTRIES.find((entry) => entry.name === meant);
    },
    advice(kind, name) {
      if (activates)
        return `Activate it first: call ${ACTIVATE} with "${name}" in ${kind === 'tool' ? 'tools_on' : 'resources_on'}.`;
      if (equips && kind === 'tool') return 'Equip a toolset that has it first: call equip-toolset, or build-toolset.';
      return `Add "${name}" to active_toolsets in the configuration to use it.`;
    },
    hint: (kind, name) => (kind === 'tool' ? (program?.hint?.(name) ?? '') : ''),
    run(name, context, args) {
      if (name !== ACTIVATE) return EQUIP_RUNS[name as EquipTool](context, args);
      requireChoice(context);
      return activate(context.catalog, context.selection, args);
    },
  };
}
