/** The manifest of a build of tool files. The gateway writes it; the worker's host reads it. */

export const MANIFEST = 'manifest.json';

export interface BuildManifest {
  readonly files: readonly BuiltFile[];
  readonly failed: readonly BuildFailure[];
}

export interface BuiltFile {
  /** The name of the tool file in its folder. */
  readonly file: string;
  /** The module that was built from it, as a path below the build's folder; null if it could not be built. */
  readonly module: string | null;
  /** The module of its last good version; null if there is none, or if it is the same. */
  readonly lastGood: string | null;
}

/** Why a tool file, or one of its tools, is missing. */
export interface BuildFailure {
  readonly file: string;
  readonly line: number | null;
  readonly column?: number;
  readonly message: string;
  /** Whether the last good version of the file is served in its place. */
  readonly isKept?: boolean;
}
