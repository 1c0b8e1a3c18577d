/** What a control tool gets and gives. */
import type { Selection } from '../access/selection.ts';
import type { Toolset } from '../access/toolset.ts';
import type { Catalog } from '../catalog/catalog.ts';
import type { ToolsetLibrary } from '../store/toolset-library.ts';

export interface ServerState {
  readonly key: string;
  readonly present: boolean;
  readonly state: string;
  readonly detail: string;
}

export interface ControlContext {
  readonly catalog: Catalog;
  /** The caller's own, or the one it shares. */
  readonly selection: Selection;
  /** Whether the caller's address decides what is equipped. */
  readonly isFixed: boolean;
  readonly servers: readonly ServerState[];
  readonly toolsetLibrary: ToolsetLibrary;
  /** A toolset as the caller may see it. */
  show<T extends Toolset>(toolset: T): T;
}

export interface Outcome {
  readonly selection: Selection;
  /** The result of the tool, as bytes. */
  readonly result: Buffer;
}
