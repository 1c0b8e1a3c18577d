/** Which names in a folder of tools mean what. The hosts of both languages go by the same rules. */

export type Language = 'python' | 'typescript';

export const LANGUAGES: readonly Language[] = ['python', 'typescript'];

const TOOLS: Readonly<Record<Language, RegExp>> = {
  python: /\.py$/,
  typescript: /(?<!\.d)\.(ts|mts)$|\.(js|mjs)$/,
};

/** What tool files can import from beside them, and what their dependencies are made from. */
const SOURCES: Readonly<Record<Language, RegExp>> = {
  python: /\.py$|^[^/]+\.txt$|^pyproject\.toml$/,
  typescript: /\.([cm]?[jt]sx?|json)$/,
};

export const METADATA_FILE = 'tooldock.yaml';

/** Names of namespaces: what is safe in a path, in a header and in the name of a tool. */
const NAME = /^[a-z0-9]([a-z0-9-]{0,62}[a-z0-9])?$/;

/** Why there can be no namespace of that name; null where there can. */
export function nameProblem(name: string): string | null {
  if (name === '_system') return 'the name is reserved';
  if (NAME.test(name)) return null;
  return 'the name of a namespace has lowercase letters, digits and hyphens, begins and ends with a letter or digit, and has 64 of them at most';
}

/** What no tool is in, neither file nor folder. */
export function isSkipped(name: string): boolean {
  return name.startsWith('.') || name === 'node_modules' || name === '__pycache__' || name.endsWith('~');
}

/** The language of a tool file that stands directly in its folder; null for anything else. */
export function toolLanguage(name: string): Language | null {
  if (name.startsWith('_') || isSkipped(name) || /\.test\.[^.]+$/.test(name)) return null;
  return LANGUAGES.find((language) => TOOLS[language].test(name)) ?? null;
}

/** Whether a change of the file, by its path below the folder, is a change of the tools of that language. */
export function matters(path: string, language: Language): boolean {
  return path === METADATA_FILE || SOURCES[language].test(path);
}
