/** What the names in a folder of tools mean. The hosts of both languages follow the same rules. */

export type Language = 'python' | 'typescript';

export const LANGUAGES: readonly Language[] = ['python', 'typescript'];

const TOOLS: Readonly<Record<Language, RegExp>> = {
  python: /\.py$/,
  typescript: /(?<!\.d)\.(ts|mts)$|\.(js|mjs)$/,
};

/** Files that tool files can import, and files that list their dependencies. */
const SOURCES: Readonly<Record<Language, RegExp>> = {
  python: /\.py$|^[^/]+\.txt$|^pyproject\.toml$/,
  typescript: /\.([cm]?[jt]sx?|json)$/,
};

export const METADATA_FILE = 'tooldock.yaml';

/** Safe in a path, in a header and in the name of a tool. */
const NAME = /^[a-z0-9]([a-z0-9-]{0,62}[a-z0-9])?$/;

/** Why a namespace cannot have this name; null if it can. */
export function nameProblem(name: string): string | null {
  if (name === '_system') return 'the name is reserved';
  if (NAME.test(name)) return null;
  return 'the name of a namespace has at most 64 lowercase letters, digits and hyphens, and begins and ends with a letter or digit';
}

/** Files and folders that are ignored everywhere. */
export function isSkipped(name: string): boolean {
  return name.startsWith('.') || name === 'node_modules' || name === '__pycache__' || name.endsWith('~');
}

/** The language of a file directly in the folder that may define tools; null for other files. */
export function toolLanguage(name: string): Language | null {
  if (name.startsWith('_') || isSkipped(name) || /\.test\.[^.]+$/.test(name)) return null;
  return LANGUAGES.find((language) => TOOLS[language].test(name)) ?? null;
}

/** Whether a change of the file, given by its path below the folder, may change the tools of that language. */
export function matters(path: string, language: Language): boolean {
  return path === METADATA_FILE || SOURCES[language].test(path);
}
