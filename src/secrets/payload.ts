/** The secrets of all namespaces and of each one: as immutable values, and as the JSON that is encrypted. */
import { canonicalJson } from '../base/hash.ts';
import { isObject } from '../base/objects.ts';
import { isNamespace, nameProblem } from './secret-names.ts';

/** From name to value. */
type NamedSecrets = ReadonlyMap<string, string>;

/** A namespace; null for all of them. */
export type SecretScope = string | null;

export interface Secrets {
  readonly global: NamedSecrets;
  readonly namespaces: ReadonlyMap<string, NamedSecrets>;
  /**
   * What was obtained by logging in to servers, as JSON. No folder and no program is given these.
   * @internal
   */
  readonly logins: NamedSecrets;
}

export const NO_SECRETS: Secrets = { global: new Map(), namespaces: new Map(), logins: new Map() };

/** A secret without its value. */
export interface SecretStatus {
  readonly name: string;
  readonly scope: SecretScope;
  /** `placeholder`: it is needed, and has no value yet. */
  readonly status: 'set' | 'placeholder';
  /** When it was set or requested, as ISO 8601; null if unknown. */
  readonly updated: string | null;
}

/** A private key of many lines has a few thousand characters. */
export const LONGEST_VALUE = 65_536;

export function secretsOf({ global, namespaces }: Secrets, scope: SecretScope): NamedSecrets {
  return scope === null ? global : (namespaces.get(scope) ?? new Map());
}

/** What one namespace gets: its own secrets, and those for all namespaces. Its own take precedence. */
export function secretsFor(secrets: Secrets, namespace: string): NamedSecrets {
  return new Map([...secrets.global, ...secretsOf(secrets, namespace)]);
}

export function valuesOf({ global, namespaces, logins }: Secrets): string[] {
  const named = [global, ...namespaces.values()].flatMap((all) => [...all.values()]);
  return [...named, ...[...logins.values()].flatMap(loginValues)];
}

/** The members of a login that are secret, at any depth. */
const SECRET_MEMBERS = new Set(['token', 'refreshToken', 'client_secret', 'registration_access_token', 'd']);

/** The secret values in a login. */
export function loginValues(login: string): string[] {
  const found: string[] = [];
  JSON.parse(login, (member: string, value: unknown) => {
    if (typeof value === 'string' && SECRET_MEMBERS.has(member)) found.push(value);
    return value;
  });
  return found;
}

/** With this login under this name; null removes it. */
export function withLogin(secrets: Secrets, name: string, login: string | null): Secrets {
  const logins = new Map(secrets.logins);
  if (login === null) logins.delete(name);
  else logins.set(name, login);
  return { ...secrets, logins };
}

/** With this value under this name; null removes it. */
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

/** Why this cannot be a value; null if it can. */
export function valueProblem(value: string): string | null {
  if (value === '') return 'is empty';
  if (value.includes('\0')) return 'contains a NUL character, which an environment variable cannot hold';
  if (value.length > LONGEST_VALUE) return `has more than ${LONGEST_VALUE} characters`;
  return null;
}

export function printSecrets({ global, namespaces, logins }: Secrets): string {
  return canonicalJson({
    global: Object.fromEntries(global),
    namespaces: Object.fromEntries([...namespaces].map(([name, named]) => [name, Object.fromEntries(named)])),
    ...(logins.size > 0 && { logins: Object.fromEntries(logins) }),
  });
}

/** Throws if the text is not valid. The message may show names, but never a value. */
export function readSecrets(text: string): Secrets {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new Error('its content is not JSON');
  }
  const { global = {}, namespaces = {}, logins = {} } = toMap(value, 'its content');
  return {
    logins: readLogins(logins),
    global: readNamed(global, '"global"'),
    namespaces: new Map(
      Object.entries(toMap(namespaces, '"namespaces"')).map(([name, named]) => {
        if (!isNamespace(name)) throw new Error(`${JSON.stringify(name)} is not a valid namespace`);
        return [name, readNamed(named, `"namespaces.${name}"`)];
      }),
    ),
  };
}

function readNamed(value: unknown, where: string): NamedSecrets {
  return new Map(
    Object.entries(toMap(value, where)).map(([name, secret]) => {
      const problem = nameProblem(name);
      if (problem !== null) throw new Error(`${where} has an invalid name. ${problem}`);
      if (typeof secret !== 'string') throw new Error(`${where}: the value of ${name} is not a string`);
      const fault = valueProblem(secret);
      if (fault !== null) throw new Error(`${where}: the value of ${name} ${fault}`);
      return [name, secret];
    }),
  );
}

function readLogins(value: unknown): NamedSecrets {
  return new Map(
    Object.entries(toMap(value, '"logins"')).map(([name, login]) => {
      try {
        if (typeof login === 'string' && isObject(JSON.parse(login))) return [name, login];
      } catch {
        // The parser's message would show parts of the text.
      }
      throw new Error('"logins" has an entry that is not a login');
    }),
  );
}

function toMap(value: unknown, where: string): Record<string, unknown> {
  if (isObject(value)) return value;
  throw new Error(`${where} is not a map`);
}
