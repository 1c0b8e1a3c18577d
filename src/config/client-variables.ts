/** The variables that other clients know in their files, written as Toolgate writes them. */
import { basename, dirname, sep } from 'node:path';

/** Folders in which clients keep their file: the project is the folder around them. */
const IN_PROJECT = new Set([
  ...['.vscode', '.cursor', '.idea', '.gemini', '.kiro', '.roo', '.windsurf', '.zed', '.codex', '.amazonq'],
]);

/** Only the client itself can fill these in. */
const UNKNOWABLE: Readonly<Record<string, string>> = {
  input: 'asks the user of that client for a value',
  command: 'is the result of a command of that client',
  config: 'is a setting of that client',
};

export type Translation = { readonly text: string } | { readonly problem: string };

/** `file` is the path of the configuration file, `workspace` the project, if it is known otherwise. */
export function translateVariables(written: string, file: string, workspace = workspaceOf(file)): Translation {
  let problem: string | null = null;
  let text = written;
  if (/^opencode\.jsonc?$/.test(basename(file)))
    text = text.replace(/\{(env|file):([^}]*)\}/g, (whole, kind: string, name: string) => {
      if (kind === 'env') return `\${${name}}`;
      problem ??=
        '"{file:…}" is the content of a file, which Toolgate does not read here. Write ${secret:NAME} instead';
      return whole;
    });
  // Gemini CLI expands these as a shell would.
  if (basename(dirname(file)) === '.gemini') text = text.replace(/\$([A-Za-z_]\w*)/g, '${$1}');
  const translated = text.replace(/\$\{([A-Za-z]+)(?::([^}]*))?\}/g, (whole, name: string, rest?: string) => {
    if (rest !== undefined && Object.hasOwn(UNKNOWABLE, name)) {
      problem ??= `"\${${name}:…}" ${UNKNOWABLE[name]}, which Toolgate does not know. Write \${NAME} and set that variable, or \${secret:NAME}`;
      return whole;
    }
    if (name === 'env' && rest !== undefined) return `\${${rest}}`;
    if (rest !== undefined && !name.startsWith('workspaceFolder')) return whole;
    if (name === 'pathSeparator') return sep;
    if (name === 'userHome') return '${HOME}';
    if (name === 'workspaceFolder' || name === 'workspaceRoot') return workspace;
    return name === 'workspaceFolderBasename' ? basename(workspace) : whole;
  });
  return problem === null ? { text: translated } : { problem };
}

function workspaceOf(file: string): string {
  const inner = dirname(file);
  // Kiro has its file one folder deeper.
  const folder = basename(inner) === 'settings' && IN_PROJECT.has(basename(dirname(inner))) ? dirname(inner) : inner;
  return IN_PROJECT.has(basename(folder)) ? dirname(folder) : folder;
}
