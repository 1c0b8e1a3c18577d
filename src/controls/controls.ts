/** The control tools that a configuration enables. */
import { serverToolsetName } from '../access/implicit-toolsets.ts';
import type { Toolset } from '../access/toolset.ts';
import type { ViewControls } from '../access/view.ts';
import type { Entry } from '../catalog/entry.ts';
import type { Control } from '../config/toolsets.ts';
import { ACTIVATE, activate, activateEntry } from './activate.ts';
import { approvalEntries } from './approval-tools.ts';
import { requireChoice } from './arguments.ts';
import type { ControlContext, ControlOutcome, ProgramControl } from './control.ts';
import { RUN_EQUIP_TOOL } from './equip.ts';
import {
  aliasedEquipTool,
  EQUIP_ALIASES,
  EQUIP_NAMES,
  type EquipTool,
  equipEntries,
  equipInstructions,
} from './equip-tools.ts';

export interface Controls extends ViewControls {
  /** Reserved names, which no server's tool can have. */
  readonly names: readonly string[];
  /** Runs a control tool. Throws if the arguments are invalid; then nothing changes. */
  run(name: string, context: ControlContext, args: unknown): ControlOutcome | Promise<ControlOutcome>;
}

export interface ControlsOptions {
  /** The control tools of the embedding program, which runs them itself; null for none. */
  readonly program: ProgramControl | null;
  /** The toolsets that users made. The same array while nothing changed. */
  toolsets(): readonly Toolset[];
}

const NO_TOOLSETS: readonly Toolset[] = [];

export function createControls(
  controls: readonly Control[],
  { program, toolsets }: ControlsOptions = { program: null, toolsets: () => NO_TOOLSETS },
): Controls {
  const ofProgram = program?.entries ?? [];
  const activates = controls.includes('activate');
  const equips = controls.includes('equip');
  const approving = approvalEntries(controls);
  const toolsetOf = ({ sourceKey }: Entry) =>
    serverToolsetName(sourceKey, (name) => toolsets().some((toolset) => toolset.name === name));
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
      ...(equips ? equipEntries(catalog)(toolsets()) : []),
      ...approving,
    ],
    instructions: (catalog) => (equips ? equipInstructions(catalog, toolsets()) : ''),
    alias: (name) => (equips ? aliasedEquipTool(name) : undefined),
    advice(kind, name, entry) {
      if (activates)
        return `Activate it first: call ${ACTIVATE} with "${name}" in ${kind === 'tool' ? 'tools_on' : 'resources_on'}.`;
      if (equips && kind === 'tool')
        return `Equip a toolset that has it first: call equip-toolset with the name "${toolsetOf(entry)}", or build-toolset.`;
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
