/** Files of a folder that cannot be loaded, and the versions of tool files to fall back to. */
import type { FileVersion, FileVersions } from '../workers/file-version.ts';
import type { Language } from '../workers/tool-files.ts';

/** A file of a tool folder that cannot be used as it is now. Other files are not affected. */
export interface FileProblem {
  readonly file: string;
  readonly line: number | null;
  readonly message: string;
  /** Whether the last good version of the file is used in its place. */
  readonly isKept: boolean;
}

/** From what a worker reports. */
export function readProblem(given: unknown): FileProblem {
  const { file, line, message, isKept } = (given ?? {}) as Partial<Record<keyof FileProblem, unknown>>;
  return {
    file: String(file),
    line: typeof line === 'number' ? line : null,
    message: String(message),
    isKept: isKept === true,
  };
}

export function problemText({ file, line, message, isKept }: FileProblem): string {
  const end = isKept ? `${/[.!?]$/.test(message) ? '' : '.'} Its last good version stays in use.` : '';
  return `${file}${line === null ? '' : `:${line}`}: ${message}${end}`;
}

/** One for each gateway: another gateway on the same folder may have seen other versions. */
export class LastGoodFiles {
  /** By language and folder. */
  readonly #versions = new Map<string, FileVersions>();

  of(part: FolderPart): FileVersions {
    return this.#versions.get(keyOf(part)) ?? new Map();
  }

  /** A worker has loaded these versions, except for files that have a problem. */
  accept(part: FolderPart, loaded: FileVersions, problems: readonly FileProblem[]): void {
    // It is not known what was loaded, or nothing was.
    if (loaded.size === 0) return;
    const before = this.of(part);
    const broken = new Set(problems.map(({ file }) => file));
    const good = new Map<string, FileVersion>();
    for (const file of new Set([...loaded.keys(), ...broken])) {
      const version = broken.has(file) ? before.get(file) : loaded.get(file);
      if (version !== undefined) good.set(file, version);
    }
    this.#versions.set(keyOf(part), good);
  }

  forget(part: FolderPart): void {
    this.#versions.delete(keyOf(part));
  }
}

/** The files of one language in a folder. */
interface FolderPart {
  readonly language: Language;
  readonly folder: string;
}

function keyOf({ language, folder }: FolderPart): string {
  return `${language} ${folder}`;
}
