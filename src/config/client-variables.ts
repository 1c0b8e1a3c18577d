/** The variables that other clients know in their files, written as Toolgate writes them. */
import { basename, dirname } from 'node:path';

/** Folders in which clients keep their file: the project is the folder around them. */
const IN_PROJECT = new Set(['.vscode', '.cursor', '.idea', '.gemini', '.kiro', '.roo', '.windsurf']);

/** Only the client itself can fill these in. */
const UNKNOWABLE: Readonly<Record<string, string>> = {
  input: 'asks the user of that client for a value',
  command: 'is the result of a command of that client',
  config: 'is a setting of that client',
};

export type Translation = { readonly text: string } | { readonly problem: string };

/** `file` is the path of the configuration file. */
export function translateVariables(text: string, file: string): Translation {
  let problem: string | null = null;
  const translated = text.replace(/\$\{([A-Za-z]+)(?::([^}]*))?\}/g, (whole, name: string, rest?: string) => {
    if (rest !== undefined && Object.hasOwn(UNKNOWABLE, name)) {
      problem ??= `"\${${name}:…}" ${UNKNOWABLE[name]}, which Toolgate does not know. Write \${NAME} and set that variable, or \${secret:NAME}`;
      return whole;
    }
    if (name === 'env' && rest !== undefined) return `\${${rest}}`;
    if (rest !== undefined) return whole;
    if (name === 'userHome') return '${HOME}';
    const workspace = workspaceOf(file);
    if (name === 'workspaceFolder' || name === 'workspaceRoot') return workspace;
    return name === 'workspaceFolderBasename' ? basename(workspace) : whole;
  });
  return problem === null ? { text: translated } : { problem };
}

function workspaceOf(file: string): string {
  const folder = dirname(file);
  return IN_PROJECT.has(basename(folder)) ? dirname(folder) : folder;
}
