/** All secrets as a text to edit, and the changes that a person made to it. */
import { GatewayError, messageOf } from '../base/errors.ts';
import { isObject } from '../base/objects.ts';
import { parseConfig } from '../config/parse.ts';
import { type SecretScope, type SecretStatus, type Secrets, secretsOf } from '../secrets/payload.ts';
import type { SecretChange } from './secrets.ts';

const HEAD = `# Secrets of Toolgate. They are encrypted when you save and leave the editor; this file is removed.
# Put values in quotes. Leave one empty to set it later. Remove a line to remove the secret.
`;

export function secretsText(secrets: Secrets, statuses: readonly SecretStatus[]): string {
  const lines = (scope: SecretScope, indent: string) =>
    statuses
      .filter((one) => one.scope === scope)
      .map(({ name }) => {
        const value = secretsOf(secrets, scope).get(name);
        // Every JSON string is a YAML string.
        return `${indent}${JSON.stringify(name)}:${value === undefined ? '' : ` ${JSON.stringify(value)}`}\n`;
      })
      .join('');
  const scopes = [...new Set(statuses.map(({ scope }) => scope))].filter((scope) => scope !== null);
  const global = lines(null, '  ');
  const named = scopes.map((scope) => `  ${JSON.stringify(scope)}:\n${lines(scope, '    ')}`).join('');
  return `${HEAD}global:\n${global}namespaces:\n${named}`;
}

/** The message of an error may contain names and line numbers, but never a value. */
export async function changesIn(
  text: string,
  secrets: Secrets,
  statuses: readonly SecretStatus[],
): Promise<SecretChange[]> {
  const edited = await parse(text);
  const isSame = (a: { name: string; scope: SecretScope }, b: { name: string; scope: SecretScope }) =>
    a.name === b.name && a.scope === b.scope;
  const removed = statuses
    .filter((one) => !edited.some((other) => isSame(one, other)))
    .map(({ name, scope }) => ({ name, scope, value: undefined }));
  const changed = edited.filter((one) => {
    const before = statuses.find((other) => isSame(one, other));
    if (before === undefined) return true;
    return (secretsOf(secrets, one.scope).get(one.name) ?? null) !== one.value;
  });
  return [...changed, ...removed];
}

async function parse(text: string): Promise<{ name: string; scope: SecretScope; value: string | null }[]> {
  let value: unknown;
  try {
    ({ value } = await parseConfig(text, 'secrets.yaml'));
  } catch (error) {
    // The parser's message may quote the line.
    const line = /^secrets\.yaml:(\d+)/.exec(messageOf(error))?.[1];
    throw new GatewayError(
      'usage',
      `${line === undefined ? 'The text' : `Line ${line}`} is not valid YAML. Put values that have characters other than letters and digits in quotes.`,
    );
  }
  const { global, namespaces, ...others } = toMap(value, 'the file');
  const [unknown] = Object.keys(others);
  if (unknown !== undefined)
    throw new GatewayError(
      'usage',
      `There is a key other than "global" and "namespaces". Put secrets below one of these two.`,
    );
  return [
    ...readScope(null, global, 'global'),
    ...Object.entries(toMap(namespaces, 'namespaces')).flatMap(([scope, named]) => readScope(scope, named, scope)),
  ];
}

function readScope(scope: SecretScope, named: unknown, where: string) {
  return Object.entries(toMap(named, where)).map(([name, value]) => {
    if (value !== null && typeof value !== 'string')
      throw new GatewayError('usage', `The value of ${name} in ${where} is not a string. Put it in quotes.`);
    return { name, scope, value: value === '' ? null : value };
  });
}

function toMap(value: unknown, where: string): Record<string, unknown> {
  if (value === undefined || value === null) return {};
  if (isObject(value)) return value;
  throw new GatewayError('usage', `"${where}" needs lines such as NAME: "value" below it.`);
}
