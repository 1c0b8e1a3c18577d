/**
 * A version of a tool file, with the text of every file of the folder that it needs. If a later version of the file
 * cannot be loaded, the worker loads this one again.
 */
export interface FileVersion {
  /** Changes with the contents. */
  readonly hash: string;
  /** Contents by path: of modules that were built, or of source files. */
  readonly files: ReadonlyMap<string, string | Buffer>;
}

/** By the name of the tool file. */
export type FileVersions = ReadonlyMap<string, FileVersion>;
