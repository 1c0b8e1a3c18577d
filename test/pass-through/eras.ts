/** What the eras ask of answers: how an upstream says them, and what a client of the same or the other era hears. */
import type { Era } from './clients.ts';
import { membersOf } from './members.ts';
import type { Method, Path } from './paths.ts';

export const ERA_FIELDS: readonly string[] = ['resultType', 'ttlMs', 'cacheScope'];

/** `"result":{…}` or `"error":{…}` in two: the key with its colon, and the object. */
export function splitOutcome(outcome: string): [string, string] {
  const at = outcome.indexOf(':') + 1;
  return [outcome.slice(0, at), outcome.slice(at)];
}

/** The outcome with what an upstream of that era adds to its results. */
export function spoken(outcome: string, era: Era, method: Method): string {
  const kept = method === 'resources/read' ? ',"ttlMs":1000,"cacheScope":"public"' : '';
  return era === 'legacy' ? outcome : withFields(outcome, `"resultType":"complete"${kept}`);
}

/** What the client gets when the upstream has said this, byte for byte. */
export function heard(said: string, { client, upstream }: Path, method: Method): string {
  const [key, object] = splitOutcome(said);
  if (client === upstream) return said;
  if (key.includes('error')) return client === 'modern' ? key + modernCodes(object) : said;
  if (client === 'legacy') return key + withoutFields(object);
  const kept = method === 'resources/read' ? ',"ttlMs":0,"cacheScope":"private"' : '';
  const fields = `"resultType":"complete"${kept}`;
  return isLong(object) ? `${key}${object.slice(0, -1)},${fields}}` : withFields(said, fields);
}

/** Long results are not looked into: what is added to them comes last, where it counts whatever stands before it. */
export function isLong(object: string): boolean {
  return Buffer.byteLength(object) > 16_384;
}

function withFields(outcome: string, fields: string): string {
  const [key, object] = splitOutcome(outcome);
  if (key.includes('error')) return outcome;
  const rest = object.slice(1).trimStart();
  return `${key}{${fields}${rest === '}' ? '' : ','}${rest}`;
}

/** Without what earlier revisions do not know; they also know no structured content that is not an object. */
function withoutFields(object: string): string {
  const members = membersOf(object)
    .filter(({ key }) => !ERA_FIELDS.includes(key))
    .map(({ key, text, value }) =>
      key === 'structuredContent' && !value.startsWith('{') ? `"structuredContent":{"result":${value}}` : text,
    );
  return `{${members.join(',')}}`;
}

/** Codes that are the modern revision's own, or were given up by it, are replaced. */
function modernCodes(error: string): string {
  const code = membersOf(error).find(({ key }) => key === 'code')!;
  const modern = modernCode(Number(code.value));
  return modern === Number(code.value) ? error : error.replace(code.text, `"code":${modern}`);
}

export function modernCode(code: number): number {
  if (code === -32002) return -32602;
  return code <= -32000 && code >= -32099 ? -32603 : code;
}
