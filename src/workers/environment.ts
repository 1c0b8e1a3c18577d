/** What the workers of a namespace run in. It is built once for its inputs and never changed. */
import type { Isolation, Packages } from '../config/folders.ts';
import type { FileVersions } from './file-version.ts';

export interface WorkerEnvironment {
  /** Changes with everything that the environment was built from. */
  readonly key: string;
  /** How a worker is started, without the arguments that all workers get. */
  readonly command: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** The folders and files that a worker must be able to read, for isolation. */
  readonly reads: readonly string[];
  /** The versions of the tool files that a worker loads. A file that has changed since is left out. */
  versions(): Promise<FileVersions>;
}

export interface EnvironmentRequest {
  readonly namespace: string;
  readonly folder: string;
  readonly dataDir: string;
  /** That of the folder's workers. Installers run in the same sandbox. */
  readonly isolation: Isolation;
  readonly packages: Packages;
  /** The environment of the gateway, of which installers inherit some. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Reports what is being done: "installing 3 packages". */
  progress(message: string): void;
  readonly signal: AbortSignal | null;
  /** Versions of tool files that were loaded before. A worker falls back to them. */
  readonly lastGood?: FileVersions;
}

/** Why an environment cannot be built, and what to do about it. `log` is the end of the installer's output. */
export class EnvironmentError extends Error {
  override readonly name = 'EnvironmentError';
  readonly log: string;

  constructor(message: string, log = '', options?: ErrorOptions) {
    super(message, options);
    this.log = log;
  }
}
