/**
 * What the eras require of answers: what an upstream sends, and what a client of the same or the other era receives.
 */
import type { Era } from '../support/relay-clients.ts';
import { membersOf } from './members.ts';
import type { Method, Path } from './paths.ts';

export const ERA_FIELDS: readonly string[] = ['resultType', 'ttlMs', 'cacheScope'];

/** Splits `"result":{…}` or `"error":{…}` into the key with its colon and the object. */
export function splitOutcome(outcome: string): [string, string] {
  const at = outcome.indexOf(':') + 1;
  return [outcome.slice(0, at), outcome.slice(at)];
}

/** The outcome with the members that an upstream of that era adds to its results. */
export function spoken(outcome: string, era: Era, method: Method): string {
  const kept = method === 'resources/read' ? ',"ttlMs":1000,"cacheScope":"public"' : '';
  return era === 'legacy' ? outcome : withFields(outcome, `"resultType":"complete"${kept}`);
}

/** What the client receives for this answer of the upstream, byte for byte. */
export function heard(said: string, { client, upstream }: Path, method: Method): string {
  const [key, object] = splitOutcome(said);
  if (client === upstream) return said;
  if (key.includes('error')) return client === 'modern' ? key + modernCodes(object) : said;
  if (client === 'legacy') return key + withoutFields(object);
  const kept = method === 'resources/read' ? ',"ttlMs":0,"cacheScope":"private"' : '';
  const fields = `"resultType":"complete"${kept}`;
  return isLong(object) ? `${key}${object.slice(0, -1)},${fields}}` : withFields(said, fields);
}

/** Long results are not scanned. Members are appended at the end, where they override earlier duplicates. */
export function isLong(object: string): boolean {
  return Buffer.byteLength(object) > 16_384;
}

function withFields(outcome: string, fields: string): string {
  const [key, object] = splitOutcome(outcome);
  if (key.includes('error')) return outcome;
  const rest = object.slice(1).trimStart();
  return `${key}{${fields}${rest === '}' ? '' : ','}${rest}`;
}

/** Without members that earlier revisions do not know. Those also allow only objects as structured content. */
function withoutFields(object: string): string {
  const members = membersOf(object)
    .filter(({ key }) => !ERA_FIELDS.includes(key))
    .map(({ key, text, value }) =>
      key === 'structuredContent' && !value.startsWith('{') ? `"structuredContent":{"result":${value}}` : text,
    );
  return `{${members.join(',')}}`;
}

/** Codes that belong to the modern revision, or that it has retired, are replaced. */
function modernCodes(error: string): string {
  const code = membersOf(error).find(({ key }) => key === 'code')!;
  const modern = modernCode(Number(code.value));
  return modern === Number(code.value) ? error : error.replace(code.text, `"code":${modern}`);
}

export function modernCode(code: number): number {
  if (code === -32002) return -32602;
  return code <= -32000 && code >= -32099 ? -32603 : code;
}
