/** Control tools that the program around the gateway brings with it: what they do is between it and the caller. */
import type { Caller } from '../calls/caller.ts';
import type { Entry } from '../catalog/entry.ts';

export interface ProgramControl {
  /** They come first in every list. */
  readonly entries: readonly Entry[];
  /** What to do to have a tool of this name, which is not there; empty for nothing. */
  hint?(name: string): string;
  /** The result as bytes. What it throws, or rejects with, is the caller's answer. */
  run(caller: Caller, name: string, args: unknown): Buffer | Promise<Buffer>;
}
