/** A configuration as it is written, so that another can be made of parts of it: nothing is expanded in it. */

import { isObject } from '../base/objects.ts';
import { headerSecrets, looksSecret, urlSecrets } from '../secrets/secret-values.ts';
import type { Path } from './issues.ts';

type Written = Readonly<Record<string, unknown>>;

export interface RawServer {
  /** Whether its command without arguments is a shell line; else it is an executable. */
  readonly isShellLine: boolean;
  readonly entry: Written;
}

export interface RawConfig {
  /** Everything but the servers. */
  readonly settings: Written;
  /** By their keys. */
  readonly servers: ReadonlyMap<string, RawServer>;
}

export interface Veiled {
  readonly value: unknown;
  /** The variables that stand for what was written out. */
  readonly variables: readonly string[];
}

/** The same with variables in the place of secrets that somebody has written out. */
export function withoutSecrets(written: unknown): Veiled {
  const variables = new Set<string>();
  const veil = (path: Path, secrets: readonly string[], text: string): string => {
    let name = '';
    let left = text;
    // The longest first: one may be a part of another.
    for (const secret of [...secrets].sort((a, b) => b.length - a.length)) {
      if (secret === '' || !left.includes(secret)) continue;
      name = variableFor(path);
      left = left.replaceAll(secret, `\${${name}}`);
      variables.add(name);
    }
    return left;
  };
  const walk = (value: unknown, path: Path): unknown => {
    if (typeof value === 'string') return value.includes('${') ? value : veil(path, secretsIn(value, path), value);
    if (Array.isArray(value)) return value.map((one, i) => walk(one, [...path, i]));
    if (!isObject(value)) return value;
    return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, walk(one, [...path, key])]));
  };
  return { value: walk(written, []), variables: [...variables] };
}

function secretsIn(text: string, path: Path): string[] {
  const [last, map] = [path.at(-1), path.at(-2)];
  if (map === 'headers') {
    const [whole = '', rest = whole] = headerSecrets({ [String(last)]: text });
    return [rest];
  }
  const isToken = path[0] === 'agents' && path[2] === 'token';
  if (isToken || (map === 'env' && looksSecret(String(last)))) return [text];
  return text.split(/[\s'"]+/).flatMap(urlSecrets);
}

/** `servers.github.env.TOKEN` is TOKEN, `servers.api.headers.Authorization` is API_AUTHORIZATION. */
function variableFor(path: Path): string {
  const parts = path.at(-2) === 'env' ? path.slice(-1) : [path[1], path.findLast((part) => typeof part === 'string')];
  const name = parts
    .join('_')
    .replace(/[^A-Za-z0-9]+/g, '_')
    .toUpperCase();
  return /^[A-Z_]/.test(name) ? name : `_${name}`;
}
