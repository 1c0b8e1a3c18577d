/** The secrets themselves: by name, for all or for one namespace. Values, never changed in place. */
import { isNamespace, nameProblem } from './names.ts';

type Named = ReadonlyMap<string, string>;

/** Null: for all namespaces. */
export type SecretScope = string | null;

export interface Secrets {
  readonly global: Named;
  readonly namespaces: ReadonlyMap<string, Named>;
}

export const NO_SECRETS: Secrets = { global: new Map(), namespaces: new Map() };

/** A key in several lines has some thousand characters. */
export const LONGEST_VALUE = 65_536;

export function secretsOf({ global, namespaces }: Secrets, scope: SecretScope): Named {
  return scope === null ? global : (namespaces.get(scope) ?? new Map());
}

/** What one namespace is given: its own go before those of all. */
export function secretsFor(secrets: Secrets, namespace: string): Named {
  return new Map([...secrets.global, ...secretsOf(secrets, namespace)]);
}

export function valuesOf({ global, namespaces }: Secrets): string[] {
  return [global, ...namespaces.values()].flatMap((named) => [...named.values()]);
}

/** With this value under this name; null takes it away. */
export function withSecret(secrets: Secrets, scope: SecretScope, name: string, value: string | null): Secrets {
  const named = new Map(secretsOf(secrets, scope));
  if (value === null) named.delete(name);
  else named.set(name, value);
  if (scope === null) return { ...secrets, global: named };
  const namespaces = new Map(secrets.namespaces);
  if (named.size === 0) namespaces.delete(scope);
  else namespaces.set(scope, named);
  return { ...secrets, namespaces };
}

/** Why this cannot be a value; null where it can. */
export function valueProblem(value: string): string | null {
  if (value === '') return 'is empty';
  if (value.includes('\0')) return 'has a NUL in it, which no environment variable can carry';
  if (value.length > LONGEST_VALUE) return `has more than ${LONGEST_VALUE} characters`;
  return null;
}

export function printSecrets({ global, namespaces }: Secrets): string {
  const named = (map: Named) => Object.fromEntries([...map].sort(byName));
  return JSON.stringify({
    global: named(global),
    namespaces: Object.fromEntries([...namespaces].sort(byName).map(([name, map]) => [name, named(map)])),
  });
}

/** Throws where it makes no sense. What is thrown shows names and never a value. */
export function readSecrets(text: string): Secrets {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new Error('what is in it is no JSON');
  }
  const { global = {}, namespaces = {} } = toMap(value, 'what is in it');
  return {
    global: readNamed(global, '"global"'),
    namespaces: new Map(
      Object.entries(toMap(namespaces, '"namespaces"')).map(([name, named]) => {
        if (!isNamespace(name)) throw new Error(`${JSON.stringify(name)} is no name for a namespace`);
        return [name, readNamed(named, `"namespaces.${name}"`)];
      }),
    ),
  };
}

function readNamed(value: unknown, where: string): Named {
  return new Map(
    Object.entries(toMap(value, where)).map(([name, secret]) => {
      const problem = nameProblem(name);
      if (problem !== null) throw new Error(`${where} has a name that cannot be. ${problem}`);
      if (typeof secret !== 'string') throw new Error(`${where} has no text under ${name}`);
      const wrong = valueProblem(secret);
      if (wrong !== null) throw new Error(`${where}: the value of ${name} ${wrong}`);
      return [name, secret];
    }),
  );
}

function toMap(value: unknown, where: string): Record<string, unknown> {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Record<string, unknown>;
  throw new Error(`${where} is no map`);
}

function byName([a]: readonly [string, unknown], [b]: readonly [string, unknown]): number {
  return a < b ? -1 : 1;
}
