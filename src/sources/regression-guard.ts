/** A new worker of a folder must not do worse than the one that serves it now; otherwise that one stays. */

/** A file that a worker could not load, in the worker's words. */
export interface FailedFile {
  readonly file?: unknown;
  readonly line?: unknown;
  readonly message?: unknown;
}

export function failureText({ file, line, message }: FailedFile): string {
  return `${String(file)}${typeof line === 'number' ? `:${line}` : ''}: ${String(message)}`;
}

/** One for each gateway: another gateway on the same folder compares with its own workers. */
export class RegressionGuard {
  /** The files that the current workers could not load, by what they serve. */
  readonly #accepted = new Map<string, readonly string[]>();

  /** The files that fail now and did not fail in the current worker. Empty if there is none: any worker is better. */
  regressions(served: string, failed: readonly FailedFile[]): string[] {
    const before = this.#accepted.get(served);
    return before === undefined ? [] : failed.filter(({ file }) => !before.includes(String(file))).map(failureText);
  }

  /** The next worker is compared with this one, for as long as it runs. */
  accept(served: string, failed: readonly FailedFile[], ended: Promise<void>): void {
    const files = failed.map(({ file }) => String(file));
    this.#accepted.set(served, files);
    void ended.then(() => {
      if (this.#accepted.get(served) === files) this.#accepted.delete(served);
    });
  }
}
