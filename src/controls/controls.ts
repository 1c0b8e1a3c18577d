/** The control tools that a configuration asks for, as one set of words over the caller's selection. */
import type { Selection } from '../access/selection.ts';
import type { ViewControls } from '../access/view.ts';
import type { Catalog } from '../catalog/catalog.ts';
import type { Control } from '../config/config.ts';
import { ACTIVATE, activate, activateEntry, type Outcome } from './activate.ts';

export interface Controls extends ViewControls {
  /** Names that no server can have. */
  readonly names: readonly string[];
  /** Runs a control tool. Throws, changing nothing, when the arguments are wrong. */
  run(name: string, catalog: Catalog, selection: Selection, args: unknown): Outcome;
}

export function createControls(controls: readonly Control[]): Controls {
  if (!controls.includes('activate')) return NONE;
  return {
    names: [ACTIVATE],
    entries: (catalog, selection) => [activateEntry(catalog, selection)],
    advice: (kind, name) =>
      `Activate it first: call ${ACTIVATE} with "${name}" in ${kind === 'tool' ? 'tools_on' : 'resources_on'}.`,
    run: (_name, catalog, selection, args) => activate(catalog, selection, args),
  };
}

const NONE: Controls = {
  names: [],
  entries: () => [],
  advice: (_kind, name) => `Add "${name}" to active_toolsets in the configuration to use it.`,
  run: (_name, _catalog, selection) => ({ selection, text: '' }),
};
