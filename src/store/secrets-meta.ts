/**
 * `secrets.meta.yaml`: which secrets exist, for which namespace, and since when. It never contains a value. The
 * encrypted file decides which secrets are set, so only placeholders depend on this file.
 */
import { readFile } from 'node:fs/promises';
import { GatewayError, messageOf } from '../base/errors.ts';
import { replaceFile } from '../base/files.ts';
import { isObject } from '../base/objects.ts';
import { withoutStop } from '../base/text.ts';
import { parseConfig } from '../config/parse.ts';
import type { SecretScope, SecretStatus, Secrets } from '../secrets/payload.ts';
import { isNamespace, nameProblem } from '../secrets/secret-names.ts';

/** Empty if there is no file. Throws if it cannot be understood. */
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
        if (!isNamespace(namespace)) throw new Error(`${JSON.stringify(namespace)} is not a valid namespace`);
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
  if (!isObject(value)) throw new Error('it is not a map of names');
  return value;
}

function damaged(file: string, why: string): GatewayError {
  return new GatewayError(
    'config_invalid',
    `${file} cannot be understood (${withoutStop(why)}). Correct or remove it: the entries of secrets that are set will be written again from secrets.enc.`,
  );
}

/** The secrets that are set, with the times that are known, and the placeholders among `known`. */
export function statusesOf(
  secrets: Secrets,
  known: readonly SecretStatus[],
  isChanged: (scope: SecretScope, name: string) => boolean = () => false,
): SecretStatus[] {
  const now = new Date().toISOString();
  const scopes: (readonly [SecretScope, ReadonlyMap<string, string>])[] = [
    [null, secrets.global],
    ...secrets.namespaces,
  ];
  const set = scopes.flatMap(([scope, named]) =>
    [...named.keys()].map((name): SecretStatus => {
      const before = known.find((one) => one.name === name && one.scope === scope && one.status === 'set');
      return { name, scope, status: 'set', updated: isChanged(scope, name) ? now : (before?.updated ?? now) };
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
    `# The names of all secrets. Values are in secrets.enc; change them with toolgate secrets.\n${stringify(value)}`,
  );
}
