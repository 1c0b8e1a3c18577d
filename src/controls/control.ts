/** What a control tool gets and returns. */
import type { Selection } from '../access/selection.ts';
import type { Toolset } from '../access/toolset.ts';
import type { Caller } from '../calls/caller.ts';
import type { Catalog } from '../catalog/catalog.ts';
import type { Entry } from '../catalog/entry.ts';
import type { ToolsetLibrary } from '../store/toolset-library.ts';

export interface ServerState {
  readonly key: string;
  readonly present: boolean;
  readonly state: string;
  readonly detail: string;
}

export interface ControlContext {
  readonly catalog: Catalog;
  /** The caller's own, or the one that it shares. */
  readonly selection: Selection;
  /** Whether the address of the connection decides the toolset. */
  readonly isFixed: boolean;
  readonly servers: readonly ServerState[];
  readonly toolsetLibrary: ToolsetLibrary;
  /** The part of a toolset that the caller may see. */
  show<T extends Toolset>(toolset: T): T;
}

export interface ControlOutcome {
  /** What the caller has switched on from now on. */
  readonly selection: Selection;
  /** The result of the tool, as bytes. */
  readonly result: Buffer;
}

/** Control tools of the program around the gateway. Only the program knows what they do. */
export interface ProgramControl {
  /** They come first in every list. */
  readonly entries: readonly Entry[];
  /** How to get a tool of this name, which is not listed; empty if there is no way. */
  hint?(name: string): string;
  /** The result as bytes. An error that it throws, or rejects with, is the caller's answer. */
  run(caller: Caller, name: string, args: unknown): Buffer | Promise<Buffer>;
}
