/**
 * What the sections of a configuration share while they are resolved: where paths start, the environment, and the list
 * of what is wrong.
 */
import { resolve } from 'node:path';
import { referTo } from '../secrets/reference.ts';
import { type EnvVars, expand } from './expand.ts';
import type { Issue, Path } from './issues.ts';

export interface ResolveContext {
  readonly env: EnvVars;
  readonly cwd: string;
  /** The folder of the file: relative paths in it start here. */
  readonly folder: string;
  readonly issues: Issue[];
  add(path: Path, message: string): void;
  /** Expands variables. A text that cannot be expanded becomes an issue and stays as written. */
  text(path: Path, written: string): string;
  texts(path: Path, written: readonly string[]): string[];
  /**
   * The same for texts in which `${secret:NAME}` is allowed: it becomes a reference, which is filled in when the server
   * starts.
   */
  textWithSecrets(path: Path, written: string): string;
  /** An absolute path. */
  path(path: Path, written: string): string;
  /** The value of an environment variable; null if it is not set. A value that `read` refuses becomes an issue. */
  variable<Value>(name: string, expected: string, read: (text: string) => Value | null): Value | null;
  flagVariable(name: string): boolean | null;
  /** A number within these bounds, multiplied by `factor` and rounded. */
  numberVariable(name: string, min: number, max: number, factor?: number): number | null;
}

/** With `at`, the paths of issues start there. */
export function createContext(
  surroundings: Pick<ResolveContext, 'env' | 'cwd' | 'folder'>,
  at: Path = [],
): ResolveContext {
  const { env, cwd, folder } = surroundings;
  const issues: Issue[] = [];
  const add = (path: Path, message: string) => void issues.push({ path: [...at, ...path], message });
  const expanded = (path: Path, written: string, secret: typeof referTo | null): string => {
    const expansion = expand(written, env, secret);
    if ('text' in expansion) return expansion.text;
    add(path, expansion.problem);
    return written;
  };
  const text = (path: Path, written: string) => expanded(path, written, null);
  const variable: ResolveContext['variable'] = (name, expected, read) => {
    const given = env[name];
    if (!given) return null;
    const value = read(given);
    if (value === null)
      issues.push({ path: [], message: `the environment variable ${name} is not ${expected}. Correct it` });
    return value;
  };
  return {
    env,
    cwd,
    folder,
    issues,
    add,
    text,
    texts: (path, written) => written.map((one, i) => text([...path, i], one)),
    textWithSecrets: (path, written) => expanded(path, written, referTo),
    path: (path, written) => resolve(folder, text(path, written)),
    variable,
    flagVariable: (name) =>
      variable(name, 'true or false', (given) => (given === 'true' ? true : given === 'false' ? false : null)),
    numberVariable: (name, min, max, factor = 1) =>
      variable(name, `a number from ${min} to ${max}`, (given) => {
        const value = /^\d+(\.\d+)?$/.test(given) ? Number(given) : Number.NaN;
        return value >= min && value <= max ? Math.round(value * factor) : null;
      }),
  };
}

/** The parts of a variable that holds a list. */
export function splitList(text: string): string[] {
  return text
    .split(',')
    .map((one) => one.trim())
    .filter((one) => one !== '');
}
