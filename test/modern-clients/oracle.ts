/**
 * What the specification of 2026-07-28 prescribes for a request, derived from its text and not from our code. If several
 * things are wrong, it does not say which one to report, so any of them is accepted.
 */
import { isDeepStrictEqual } from 'node:util';
import { type Draft, keyOf, type Member, membersOf, parse, type Value, valuesAt } from '../support/modern-draft.ts';
import { KEYS, LISTS, MARKED, MARKS, type Mark, namedBy, REVISION, resolve } from '../support/modern-offer.ts';

export type Outcome =
  /** Refused before any work is done, with one of the codes, unless the earlier revisions apply. */
  | { readonly kind: 'refused'; readonly codes: ReadonlySet<number>; readonly id: unknown }
  | { readonly kind: 'legacy' }
  | { readonly kind: 'noted' }
  /** Answered by the gateway itself: a list, or an in-band error that the item does not exist. */
  | { readonly kind: 'answered'; readonly id: unknown; readonly isError: boolean; readonly method: string }
  | { readonly kind: 'routed'; readonly id: unknown; readonly server: number; readonly request: Routed };

/** What the server must receive. */
export interface Routed {
  readonly method: string;
  readonly name: string;
  readonly args: unknown;
}

/** The reply has no id, because none could be read. */
export const NO_ID = Symbol('no id');
/** The same if the revision of the client is unknown too: in the earlier ones the id is then null. */
export const NO_ID_OR_NULL = Symbol('no id, or null');
const PARSE = -32700;
const INVALID_REQUEST = -32600;
const UNKNOWN_METHOD = -32601;
const INVALID_PARAMS = -32602;
const HEADER_MISMATCH = -32020;
const UNSUPPORTED = -32022;

export function predict(draft: Draft): Outcome {
  const { body, form } = draft;
  const refuse = (id: unknown, ...codes: number[]): Outcome => ({ kind: 'refused', codes: new Set(codes), id });
  const byHeader = isModern(headerOf(draft, 'mcp-protocol-version'));
  const unread = byHeader ? NO_ID : NO_ID_OR_NULL;
  if (form === 'cut') return refuse(unread, PARSE, ...(isMalformed(body) ? [INVALID_REQUEST] : []));
  if (form === 'batch') return byHeader ? refuse(NO_ID, INVALID_REQUEST) : { kind: 'legacy' };
  if (isMalformed(body)) return refuse(unread, INVALID_REQUEST);

  const [params] = valuesAt(body, 'params');
  const [meta] = valuesAt(params, '_meta');
  const claims = valuesAt(meta, KEYS.version);
  if (!byHeader && claims.length === 0) return { kind: 'legacy' };
  const [method] = valuesAt(body, 'method').map(parse) as (string | undefined)[];
  if (method === undefined) return refuse(NO_ID, INVALID_REQUEST);
  const [id] = valuesAt(body, 'id').map(parse);
  // The headers of a notification are not defined; only the revision that it claims can be wrong.
  if (id === undefined) {
    if (claims.length === 0 || parse(claims[0]) === REVISION) return { kind: 'noted' };
    return refuse(NO_ID, typeof parse(claims[0]) === 'string' ? UNSUPPORTED : INVALID_PARAMS);
  }

  const source = namedBy(method);
  const name = source === null ? undefined : parse(valuesAt(params, source)[0]);
  const args = valuesAt(params, 'arguments')[0];
  const codes = new Set([
    ...envelopeFaults(meta),
    ...revisionFaults(headerOf(draft, 'mcp-protocol-version'), parse(claims[0])),
    ...(headerOf(draft, 'mcp-method') === method ? [] : [HEADER_MISMATCH]),
    ...(source === null || (typeof name === 'string' && repeats(headerOf(draft, 'mcp-name'), name, 'string'))
      ? []
      : [HEADER_MISMATCH]),
    ...(source === null && !LISTS.includes(method) ? [UNKNOWN_METHOD] : []),
  ]);
  const owner = typeof name === 'string' ? resolve(method, name) : null;
  if (method === 'tools/call' && owner?.name === MARKED && MARKS.some((mark) => !isMirrored(draft, args, mark)))
    codes.add(HEADER_MISMATCH);
  if (codes.size > 0) return { kind: 'refused', codes, id };
  if (owner === null) return { kind: 'answered', id, isError: source !== null, method };
  return { kind: 'routed', id, server: owner.server, request: { method, name: owner.name, args: parse(args) } };
}

function isModern(revision: string | undefined): boolean {
  return revision !== undefined && /^\d{4}-\d\d-\d\d$/.test(revision) && revision >= REVISION;
}

/** Several lines with the same name form one list, regardless of the case of the name (RFC 9110). */
function headerOf({ lines }: Draft, name: string): string | undefined {
  const values = lines
    .filter((line) => line.name.toLowerCase() === name)
    .map(({ value }) => value.replace(/^[ \t]+|[ \t]+$/g, ''));
  return values.length === 0 ? undefined : values.join(', ');
}

const TOP = ['jsonrpc', 'id', 'method', 'params', 'result', 'error'];
const PARAMS = ['name', 'uri', 'arguments', '_meta'];
const META = ['progressToken', ...Object.values(KEYS)];

/** Not a JSON-RPC message, or one in which two parsers might read a significant key differently. */
function isMalformed(body: Member[]): boolean {
  const [params] = valuesAt(body, 'params');
  const [meta] = valuesAt(params, '_meta');
  if (isAmbiguous(body, TOP) || isAmbiguous(params, PARAMS) || isAmbiguous(meta, META)) return true;
  const isFree = ['tools/call', 'prompts/get'].includes(parse(valuesAt(body, 'method')[0]) as string);
  const members = membersOf(params);
  if (repeatsKey(members.filter((member) => !isFree || keyOf(member) !== 'arguments'))) return true;
  const [method] = valuesAt(body, 'method').map(parse);
  const [id] = valuesAt(body, 'id').map(parse);
  if (method === undefined) return valuesAt(body, 'result').length === 0;
  return typeof method !== 'string' || method === '' || !['undefined', 'string', 'number'].includes(typeof id);
}

function isAmbiguous(value: Value | undefined, known: readonly string[]): boolean {
  const keys = membersOf(value).map(keyOf);
  const folded = known.map(fold);
  const isRelevant = (key: string) => folded.includes(fold(key));
  return keys.some((key, index) => isRelevant(key) && (!known.includes(key) || keys.indexOf(key) !== index));
}

/** Whether an object has a key twice, at any depth. */
function repeatsKey(value: Value | undefined): boolean {
  const members = membersOf(value);
  return new Set(members.map(keyOf)).size < members.length || members.some((member) => repeatsKey(member.value));
}

function fold(text: string): string {
  return text.toUpperCase().toLowerCase();
}

const LEVELS = ['debug', 'info', 'notice', 'warning', 'error', 'critical', 'alert', 'emergency'];

function envelopeFaults(meta: Value | undefined): number[] {
  const read = (key: string) => parse(valuesAt(meta, key)[0]);
  const isRecord = (value: unknown): value is Record<string, unknown> =>
    typeof value === 'object' && value !== null && !Array.isArray(value);
  const client = read(KEYS.client);
  const capabilities = read(KEYS.capabilities);
  const level = read(KEYS.level);
  const isRight =
    typeof read(KEYS.version) === 'string' &&
    isRecord(capabilities) &&
    ['elicitation', 'sampling', 'roots'].every((key) => !(key in capabilities) || isRecord(capabilities[key])) &&
    (client === undefined ||
      (isRecord(client) && typeof client.name === 'string' && typeof client.version === 'string')) &&
    (level === undefined || LEVELS.includes(level as string));
  return isRight ? [] : [INVALID_PARAMS];
}

function revisionFaults(header: string | undefined, claimed: unknown): number[] {
  if (typeof claimed !== 'string') return [];
  return [...(header === claimed ? [] : [HEADER_MISMATCH]), ...(claimed === REVISION ? [] : [UNSUPPORTED])];
}

/** Whether a header matches the body. */
function repeats(header: string | undefined, value: unknown, type: Mark['type']): boolean {
  const decoded = header === undefined ? null : decode(header);
  if (decoded === null) return false;
  if (type === 'integer' && typeof value === 'number' && /^-?\d+(\.\d+)?$/.test(decoded))
    return Number(decoded) === value;
  return ['string', 'number', 'boolean'].includes(typeof value) && decoded === String(value);
}

/** Null for a value that is not allowed in such a header. */
function decode(header: string): string | null {
  if (!/^[\x20-\x7e\t]*$/.test(header)) return null;
  const [, encoded] = /^=\?base64\?(.*)\?=$/.exec(header) ?? [];
  if (encoded === undefined) return header;
  const bytes = Buffer.from(encoded, 'base64');
  if (bytes.toString('base64') !== encoded) return null;
  const text = bytes.toString();
  return isDeepStrictEqual(Buffer.from(text), bytes) ? text : null;
}

function isMirrored(draft: Draft, args: Value | undefined, mark: Mark): boolean {
  const header = headerOf(draft, mark.header.toLowerCase());
  let found: Value[] = args === undefined ? [] : [args];
  for (const key of mark.path) {
    found = found.flatMap((value) => valuesAt(value, key));
    // It is not known which of the two the server uses.
    if (found.length > 1) return false;
  }
  const value = parse(found[0]);
  if (value === undefined || value === null) return header === undefined;
  const fits =
    ['string', 'boolean'].includes(typeof value) ||
    (typeof value === 'number' && Math.abs(value) <= Number.MAX_SAFE_INTEGER);
  return header === undefined ? !fits : fits && repeats(header, value, mark.type);
}
