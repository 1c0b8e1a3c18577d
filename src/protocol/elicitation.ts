/** Questions that ask the user to open a URL. Legacy clients know each by an id; modern ones have no id. */
import { randomUUID } from 'node:crypto';
import { decodeString, findMember, readElements, readMembers, type Span, writeObject } from './json.ts';

/** The error of a server that cannot continue before the user has opened some URLs. */
export const URLS_REQUIRED = -32_042;

const ID = 'elicitationId';

/** Whether the user is asked to open a URL, not to fill in a form. */
export function isUrlMode(params: Buffer | null): boolean {
  const mode = params === null ? null : findMember(params, 'mode');
  return mode !== null && params!.toString('latin1', mode.start, mode.end) === '"url"';
}

export function elicitationId(params: Buffer | null): string | null {
  const id = params === null ? null : findMember(params, ID);
  return id === null || params![id.start] !== 0x22 ? null : decodeString(params!, id.start, id.end);
}

/** The parameters in the form of the legacy era. */
export function withElicitationId(params: Buffer): Buffer {
  if (!isUrlMode(params) || findMember(params, ID) !== null) return params;
  return Buffer.concat([Buffer.from(`{"${ID}":"${randomUUID()}",`), params.subarray(1)]);
}

/** The parameters in the form of the modern era. */
export function withoutElicitationId(params: Buffer): Buffer {
  if (!isUrlMode(params)) return params;
  const members = readMembers(params) ?? [];
  const kept = members.filter(({ key }) => key !== ID);
  if (kept.length === members.length) return params;
  return writeObject(kept.map(({ keyStart, end }) => [params.subarray(keyStart, end)]));
}

/** The parameters of each question in such an error; empty for another error. */
export function requiredUrls(error: Buffer): Buffer[] {
  return urlSpans(error).map(({ start, end }) => error.subarray(start, end));
}

/** Where they are in the error. */
export function urlSpans(error: Buffer): Span[] {
  const code = findMember(error, 'code');
  if (code === null || Number(error.toString('latin1', code.start, code.end)) !== URLS_REQUIRED) return [];
  const data = findMember(error, 'data');
  const list = data === null ? null : findMember(error, 'elicitations', data.start, data.end);
  const spans = list === null ? null : readElements(error, list.start, list.end);
  return (spans ?? []).filter(({ start, end }) => isUrlMode(error.subarray(start, end)));
}
