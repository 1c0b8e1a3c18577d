/** What a build says of itself, to the host that loads it. */

export const MANIFEST = 'manifest.json';

export interface BuiltFile {
  /** As it is called in the folder. */
  readonly file: string;
  /** What was made of it, below the folder of the build. */
  readonly module: string;
}

export interface BuildFailure {
  readonly file: string;
  readonly line: number | null;
  readonly column?: number;
  readonly message: string;
}

export interface BuildManifest {
  readonly files: readonly BuiltFile[];
  readonly failed: readonly BuildFailure[];
}
