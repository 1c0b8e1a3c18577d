/** The input and the outcome of a control tool. */
import type { Selection } from '../access/selection.ts';
import type { Toolset } from '../access/toolset.ts';
import type { Caller } from '../calls/caller.ts';
import type { Catalog } from '../catalog/catalog.ts';
import type { Entry } from '../catalog/entry.ts';
import type { ItemSearch } from '../catalog/search/search.ts';
import type { ToolsetLibrary } from '../store/toolset-library.ts';
import type { Searched } from './learning.ts';

export interface ServerState {
  readonly key: string;
  readonly present: boolean;
  readonly state: string;
  readonly detail: string;
}

export interface ControlContext {
  readonly catalog: Catalog;
  /** The caller's own selection, or the shared default. */
  readonly selection: Selection;
  /** Whether the URL of the connection fixes the toolset. */
  readonly isFixed: boolean;
  readonly servers: readonly ServerState[];
  readonly toolsetLibrary: ToolsetLibrary;
  /** The tool with this name that the caller may call through `toolman_call`. Throws if there is none. */
  find(name: string): Entry;
  /** The search over what the caller may see. Built when it is first used. */
  search(): Promise<ItemSearch>;
  /** These queries found these items. If one of them is called with success, its query may become an example for it. */
  searched(searches: readonly Searched[]): void;
  /** The part of a toolset that the caller may see. */
  show<T extends Toolset>(toolset: T): T;
}

export interface ControlOutcome {
  /** The caller's selection from now on. */
  readonly selection: Selection;
  /** The tool's result, as bytes. */
  readonly result: Buffer;
}

/** Control tools of the program that embeds the gateway. The program runs them itself. */
export interface ProgramControl {
  /** The entries come first in every list. */
  readonly entries: readonly Entry[];
  /** How to make an unlisted tool of this name available; empty if that is not possible. */
  hint?(name: string): string;
  /** Returns the result as bytes. If it throws or rejects, the error becomes the caller's answer. */
  run(caller: Caller, name: string, args: unknown): Buffer | Promise<Buffer>;
}
