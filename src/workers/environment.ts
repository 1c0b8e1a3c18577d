/** What the workers of a namespace run in: made once for what it was made from, and never changed. */

export interface Environment {
  /** Changes with everything that the environment was made from. */
  readonly key: string;
  /** How a worker is started in it, without the arguments that every worker takes. */
  readonly command: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** Folders and files that a worker in it has to read, for isolation. */
  readonly reads: readonly string[];
}

export interface EnvironmentRequest {
  readonly namespace: string;
  readonly folder: string;
  readonly dataDir: string;
  /** What is being done, for people: "installing 3 packages". */
  progress(message: string): void;
  readonly signal: AbortSignal | null;
}

/** Why an environment cannot be made: what to do about it, and the end of the log. */
export class EnvironmentError extends Error {
  override readonly name = 'EnvironmentError';
  readonly log: string;

  constructor(message: string, log = '', options?: ErrorOptions) {
    super(message, options);
    this.log = log;
  }
}

/** What is told of a folder when something had to be installed for it, and is. */
export const DEPENDENCIES_READY = 'what it depends on is there';
