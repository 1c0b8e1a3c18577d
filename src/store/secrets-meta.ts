/**
 * `secrets.meta.yaml`: which secrets there are, for whom, and since when; never a value. Which of them are set follows from
 * the encrypted file, so only those that wait for a value are known from here alone.
 */
import { readFile } from 'node:fs/promises';
import { GatewayError, messageOf } from '../base/errors.ts';
import { replaceFile } from '../base/files.ts';
import { isObject } from '../base/objects.ts';
import { parseConfig } from '../config/parse.ts';
import type { SecretScope, Secrets } from '../secrets/payload.ts';
import { isNamespace, nameProblem } from '../secrets/secret-names.ts';

/** A secret without its value. */
export interface SecretStatus {
  readonly name: string;
  readonly scope: SecretScope;
  /** `placeholder`: somebody wants it, and nobody has set it yet. */
  readonly status: 'set' | 'placeholder';
  /** When it was set or asked for, as ISO 8601; null where that is not known. */
  readonly updated: string | null;
}

/** None where there is no file. Throws where it makes no sense. */
export async function readMeta(file: string): Promise<SecretStatus[]> {
  const text = await readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return null;
    throw damaged(file, error.message);
  });
  if (text === null) return [];
  try {
    const { value } = await parseConfig(text, file);
    const { global, namespaces } = toMap(value);
    return [
      ...readScope(null, global),
      ...Object.entries(toMap(namespaces)).flatMap(([namespace, named]) => {
        if (!isNamespace(namespace)) throw new Error(`${JSON.stringify(namespace)} is no name for a namespace`);
        return readScope(namespace, named);
      }),
    ];
  } catch (error) {
    throw damaged(file, messageOf(error));
  }
}

function readScope(scope: SecretScope, named: unknown): SecretStatus[] {
  return Object.entries(toMap(named)).map(([name, value]) => {
    const problem = nameProblem(name);
    if (problem !== null) throw new Error(problem);
    const { status, updated_at: updated } = toMap(value);
    if (status !== 'set' && status !== 'placeholder') throw new Error(`${name} has no "status" of set or placeholder`);
    return { name, scope, status, updated: typeof updated === 'string' ? updated : null };
  });
}

function toMap(value: unknown): Record<string, unknown> {
  if (value === undefined || value === null) return {};
  if (!isObject(value)) throw new Error('it is no map of names');
  return value;
}

function damaged(file: string, why: string): GatewayError {
  return new GatewayError(
    'config_invalid',
    `${file} makes no sense (${why.replace(/\.$/, '')}). Correct or remove it: what is set is written again from secrets.enc.`,
  );
}

/** What is set, with the times that are known; then what waits. */
export function statusesOf(
  secrets: Secrets,
  known: readonly SecretStatus[],
  isNews: (scope: SecretScope, name: string) => boolean = () => false,
): SecretStatus[] {
  const now = new Date().toISOString();
  const scopes: (readonly [SecretScope, ReadonlyMap<string, string>])[] = [
    [null, secrets.global],
    ...secrets.namespaces,
  ];
  const set = scopes.flatMap(([scope, named]) =>
    [...named.keys()].map((name): SecretStatus => {
      const before = known.find((one) => one.name === name && one.scope === scope && one.status === 'set');
      return { name, scope, status: 'set', updated: isNews(scope, name) ? now : (before?.updated ?? now) };
    }),
  );
  const isSet = ({ name, scope }: SecretStatus) => set.some((one) => one.name === name && one.scope === scope);
  return inOrder([...set, ...known.filter((one) => one.status === 'placeholder' && !isSet(one))]);
}

export function inOrder(statuses: readonly SecretStatus[]): SecretStatus[] {
  const key = ({ scope, name }: SecretStatus) => `${scope ?? ''}\0${name}`;
  return [...statuses].sort((a, b) => (key(a) < key(b) ? -1 : 1));
}

export async function writeMeta(file: string, statuses: readonly SecretStatus[]): Promise<void> {
  const { stringify } = await import('yaml');
  const named = (scope: SecretScope) =>
    Object.fromEntries(
      statuses
        .filter((one) => one.scope === scope)
        .map(({ name, status, updated }) => [name, { status, ...(updated !== null && { updated_at: updated }) }]),
    );
  const scopes = [...new Set(statuses.map(({ scope }) => scope))].filter((scope) => scope !== null);
  const value = { global: named(null), namespaces: Object.fromEntries(scopes.map((scope) => [scope, named(scope)])) };
  await replaceFile(
    file,
    `# Which secrets there are. Values are in secrets.enc; change them with toolgate secrets.\n${stringify(value)}`,
  );
}
