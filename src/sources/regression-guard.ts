/** A new worker for a folder must not do worse than the one that serves it: else that one stays. */

/** A file that cannot be used, as a worker tells of it. */
export interface FailedFile {
  readonly file?: unknown;
  readonly line?: unknown;
  readonly message?: unknown;
}

/** Files that cannot be used in the workers that serve now, by what those serve. */
const tolerated = new Map<string, readonly string[]>();

export function textOf({ file, line, message }: FailedFile): string {
  return `${String(file)}${typeof line === 'number' ? `:${line}` : ''}: ${String(message)}`;
}

/** What is wrong now, and was not in the worker that serves. */
export function worseThanBefore(served: string, failed: readonly FailedFile[]): string[] {
  const before = tolerated.get(served);
  return before === undefined ? [] : failed.filter(({ file }) => !before.includes(String(file))).map(textOf);
}

/** This is the one to compare the next with, for as long as it runs. */
export function setGood(served: string, failed: readonly FailedFile[], ended: Promise<void>): void {
  const files = failed.map(({ file }) => String(file));
  tolerated.set(served, files);
  void ended.then(() => {
    if (tolerated.get(served) === files) tolerated.delete(served);
  });
}
