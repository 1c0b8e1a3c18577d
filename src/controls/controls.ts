/** The control tools that a configuration enables. */
import { serverToolsetName } from '../access/implicit-toolsets.ts';
import { startSelection } from '../access/selection.ts';
import { textRoom } from '../access/text-room.ts';
import { includesTool, type Toolset } from '../access/toolset.ts';
import type { ViewControls } from '../access/view.ts';
import { memo } from '../base/memo.ts';
import { quotedList } from '../base/text.ts';
import { CALL, CALL_ENTRY } from '../calls/through.ts';
import { type Catalog, EMPTY_CATALOG } from '../catalog/catalog.ts';
import type { Entry } from '../catalog/entry.ts';
import { isInstructionCut } from '../catalog/introduction.ts';
import type { Config } from '../config/config.ts';
import type { CallThrough, Control } from '../config/toolsets.ts';
import { missesNewTools } from '../protocol/known-clients.ts';
import { ACTIVATE, activate, activateEntry } from './activate.ts';
import { activateInstructions, isCatalogCut } from './activate-text.ts';
import { approvalEntries } from './approval-tools.ts';
import { requireChoice } from './arguments.ts';
import type { ControlContext, ControlOutcome, ProgramControl } from './control.ts';
import { describeTool } from './describe-tool.ts';
import { RUN_EQUIP_TOOL } from './equip.ts';
import {
  aliasedEquipTool,
  EQUIP_ALIASES,
  EQUIP_NAMES,
  type EquipTool,
  equipEntries,
  equipInstructions,
} from './equip-tools.ts';
import { CATALOG_RESOURCE } from './own-resources.ts';
import {
  SEARCH_NAMES,
  SEARCH_TOOLS,
  searchAdvice,
  searchEntries,
  searchInstructions,
  searchTool,
} from './search-tools.ts';
import { ENABLE, TOOLSET_ENTRIES, toolsetInstructions, toolsetTool } from './toolset-tools.ts';

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
  /** Which clients are offered `toolman_call`. */
  readonly callThrough: CallThrough;
  /** Whether clients get the whole catalog in a description; null if that depends on the client. */
  readonly catalog: Config['catalog'];
  /** Whether the description of `toolman_activate` marks what is active. */
  readonly markActive: boolean;
  /** The controls that this caller had before there were as many tools as now. */
  readonly former?: readonly Control[];
}

/** The most toolsets of users that advice names. */
const MOST_NAMED = 2;

const NO_TOOLSETS: readonly Toolset[] = [];
const NO_OPTIONS: ControlsOptions = {
  program: null,
  toolsets: () => NO_TOOLSETS,
  callThrough: 'auto',
  catalog: null,
  markActive: true,
};

/** What a client calls that still shows the catalog, because it has not listed again. */
const formerEntry = memo((catalog: Catalog) => activateEntry(catalog, null));

/** Nothing is marked as active. */
const UNMARKED = startSelection([]);

export function createControls(
  controls: readonly Control[],
  { program, toolsets, callThrough, catalog: form, markActive, former = [] }: ControlsOptions = NO_OPTIONS,
): Controls {
  const ofProgram = program?.entries ?? [];
  const activates = controls.includes('activate');
  const equips = controls.includes('equip');
  const enables = controls.includes('toolsets');
  const searches = controls.includes('search');
  const enabling = enables ? TOOLSET_ENTRIES : [];
  const approving = approvalEntries(controls);
  /** A few toolsets that have the tool: those that users made first, because they are smaller than a whole server. */
  const toolsetsOf = (entry: Entry) => {
    const made = toolsets();
    const own = made.filter((toolset) => includesTool(toolset, entry)).map(({ name }) => name);
    const server = serverToolsetName(entry.sourceKey, (name) => made.some((toolset) => toolset.name === name));
    return [...own.slice(0, MOST_NAMED), server];
  };
  // Where nothing can be switched, a client's first list has all that there is.
  const calls = callThrough === 'always' || (callThrough === 'auto' && (activates || equips || enables));
  const instructions = (catalog: Catalog) =>
    [
      activates ? activateInstructions(catalog) : '',
      equips ? equipInstructions(catalog, toolsets()) : '',
      enables ? toolsetInstructions(catalog, toolsets()) : '',
      searches ? searchInstructions(catalog) : '',
    ]
      .filter((text) => text !== '')
      .join('\n\n');
  return {
    names: [
      ...ofProgram.map(({ name }) => name),
      ...(activates ? [ACTIVATE] : []),
      ...(searches ? SEARCH_NAMES : []),
      ...(calls ? [CALL] : []),
      ...(equips ? [...EQUIP_NAMES, ...Object.keys(EQUIP_ALIASES)] : []),
      ...enabling.map(({ name }) => name),
      ...approving.map(({ name }) => name),
    ],
    entries: (catalog, selection, client) => [
      ...ofProgram,
      ...(activates
        ? [activateEntry(catalog, markActive ? selection : null, textRoom(client, form).description, toolsets())]
        : []),
      ...(searches ? searchEntries(catalog) : []),
      ...(calls && (callThrough === 'always' || missesNewTools(client)) ? [CALL_ENTRY] : []),
      ...(equips ? equipEntries(catalog)(toolsets()) : []),
      ...enabling,
      ...approving,
    ],
    resources(catalog, selection, client) {
      if (client.resources === false) return [];
      const room = textRoom(client, form);
      const isCut =
        (activates && isCatalogCut(catalog, markActive ? selection : UNMARKED, room.description)) ||
        isInstructionCut(catalog.introductions, instructions(catalog), room.instructions);
      return isCut ? [CATALOG_RESOURCE] : [];
    },
    instructions,
    alias(name) {
      // A client that does not list it may still be told to call it.
      if (calls && name === CALL) return CALL_ENTRY;
      if (!activates && former.includes('activate')) {
        if (name === ACTIVATE) return formerEntry(EMPTY_CATALOG);
        if (name === CALL && callThrough !== 'never') return CALL_ENTRY;
      }
      return equips ? aliasedEquipTool(name) : undefined;
    },
    advice(kind, name, entry) {
      if (activates)
        return `Activate it first: call ${ACTIVATE} with "${name}" in ${kind === 'tool' ? 'tools_on' : 'resources_on'}.`;
      if (searches) return searchAdvice(kind === 'tool', name);
      if (equips && kind === 'tool')
        return `Equip a toolset that has it first: call equip-toolset with the name ${quotedList(toolsetsOf(entry))}, or build-toolset.`;
      if (enables && kind === 'tool')
        return `Enable a toolset that has it first: call ${ENABLE} with the name ${quotedList(toolsetsOf(entry))}.`;
      return `Add "${name}" to active_toolsets in the configuration to use it.`;
    },
    switches: (tools) =>
      (activates && tools.has(ACTIVATE)) ||
      (searches && tools.has(SEARCH_TOOLS)) ||
      (equips && tools.has('equip-toolset')) ||
      (enables && tools.has(ENABLE)),
    hint: (kind, name) => (kind === 'tool' ? (program?.hint?.(name) ?? '') : ''),
    run(name, context, args) {
      if (name === CALL) return describeTool(context, args);
      const runSearchTool = searchTool(name);
      if (runSearchTool !== undefined) return runSearchTool(context, args);
      const runToolsetTool = enables ? toolsetTool(name) : undefined;
      if (runToolsetTool !== undefined) return runToolsetTool(context, args);
      if (name !== ACTIVATE) return RUN_EQUIP_TOOL[name as EquipTool](context, args);
      requireChoice(context);
      return activate(context.catalog, context.selection, args, toolsets());
    },
  };
}
