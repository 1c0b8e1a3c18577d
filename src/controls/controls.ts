/** The control tools that a configuration enables. */
import type { ViewControls } from '../access/view.ts';
import type { Control } from '../config/toolsets.ts';
import { ACTIVATE, activate, activateEntry } from './activate.ts';
import { approvalEntries } from './approval-tools.ts';
import { requireChoice } from './arguments.ts';
import type { ControlContext, ControlOutcome, ProgramControl } from './control.ts';
import { RUN_EQUIP_TOOL } from './equip.ts';
import { EQUIP_ALIASES, EQUIP_ENTRIES, EQUIP_NAMES, type EquipTool } from './equip-tools.ts';

export interface Controls extends ViewControls {
  /** Reserved names, which no server's tool can have. */
  readonly names: readonly string[];
  /** Runs a control tool. Throws if the arguments are invalid; then nothing changes. */
  run(name: string, context: ControlContext, args: unknown): ControlOutcome | Promise<ControlOutcome>;
}

/** `program` adds the control tools of the embedding program, which runs them itself. */
export function createControls(controls: readonly Control[], program: ProgramControl | null = null): Controls {
  const ofProgram = program?.entries ?? [];
  const activates = controls.includes('activate');
  const equips = controls.includes('equip');
  const approving = approvalEntries(controls);
  return {
    names: [
      ...ofProgram.map(({ name }) => name),
      ...(activates ? [ACTIVATE] : []),
      ...(equips ? [...EQUIP_NAMES, ...Object.keys(EQUIP_ALIASES)] : []),
      ...approving.map(({ name }) => name),
    ],
    entries: (catalog, selection) => [
      ...ofProgram,
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
      if (name !== ACTIVATE) return RUN_EQUIP_TOOL[name as EquipTool](context, args);
      requireChoice(context);
      return activate(context.catalog, context.selection, args);
    },
  };
}
