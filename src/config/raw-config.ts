/** A configuration as it is written, with nothing expanded: plans build smaller configurations from parts of it. */
import { isObject, type JsonObject } from '../base/objects.ts';
import { headerSecrets, looksSecret, urlSecrets } from '../secrets/secret-values.ts';
import type { Path } from './issues.ts';

export interface RawServer {
  /** Whether its command without arguments is a shell line; else it is an executable. */
  readonly isShellLine: boolean;
  readonly entry: JsonObject;
}

export interface RawConfig {
  /** Everything but the servers. */
  readonly settings: JsonObject;
  /** By their keys. */
  readonly servers: ReadonlyMap<string, RawServer>;
}

/** One change of what is written. A comment is put above a new table of TOML. */
export type Edit =
  /** Gives a key a value. Maps around it are made if they are missing. */
  | { readonly kind: 'set'; readonly path: Path; readonly value: unknown; readonly comment?: string }
  /** Adds to the end of a list, which is made if it is missing. */
  | { readonly kind: 'append'; readonly path: Path; readonly value: unknown; readonly comment?: string }
  | { readonly kind: 'remove'; readonly path: Path };

export interface WithoutSecrets {
  readonly value: unknown;
  /** The variables that replace secrets. */
  readonly variables: readonly string[];
}

/** The same value, with variables instead of the secrets that are written out in it. */
export function withoutSecrets(written: unknown): WithoutSecrets {
  const variables = new Set<string>();
  const replaceSecrets = (text: string, path: Path): string => {
    let replaced = text;
    // The longest first, because one may be a part of another.
    for (const secret of secretsAt(path, text).sort((a, b) => b.length - a.length)) {
      if (secret === '' || !replaced.includes(secret)) continue;
      const name = variableFor(path);
      replaced = replaced.replaceAll(secret, `\${${name}}`);
      variables.add(name);
    }
    return replaced;
  };
  const walk = (value: unknown, path: Path): unknown => {
    // A text with variables already has its secrets elsewhere.
    if (typeof value === 'string') return value.includes('${') ? value : replaceSecrets(value, path);
    if (Array.isArray(value)) return value.map((one, i) => walk(one, [...path, i]));
    if (!isObject(value)) return value;
    return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, walk(one, [...path, key])]));
  };
  return { value: walk(written, []), variables: [...variables] };
}

function secretsAt(path: Path, text: string): string[] {
  const [last, map] = [path.at(-1), path.at(-2)];
  if (map === 'headers') {
    const [value = '', credential = value] = headerSecrets({ [String(last)]: text });
    return [credential];
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
