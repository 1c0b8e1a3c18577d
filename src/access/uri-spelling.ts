/**
 * Different spellings of one URI. A server may take `notes://%73ecret`, `notes://secret?` and `file:///a/./b` for
 * `notes://secret` and `file:///a/b`, so rules about URIs look at all that a spelling could mean.
 */
import { percentDecoded } from '../base/text.ts';

/** Scheme, authority, path, query, fragment. */
const PARTS = /^(?:([a-z][a-z0-9+.-]*):)?(?:\/\/([^/\\?#]*))?([^?#]*)(\?[^#]*)?(#.*)?$/is;
/** The schemes whose authority every parser of URLs writes in small letters. */
const HOSTED = new Set(['http', 'https', 'ws', 'wss', 'ftp', 'file']);
const UNRESERVED = /%(2[de]|3[0-9]|4[1-9a-f]|5[0-9af]|6[1-9a-f]|7[0-9ae])/gi;
/** Some servers decode twice. */
const MOST_DECODINGS = 3;
const MOST_STEPS = 8;

/** The usual spelling: no dot segments, double slashes, empty query or fragment, and no needless escapes. */
export function normalUri(uri: string): string {
  let text = uri;
  // What one step leaves may be for another: `%%373` becomes `%73`.
  for (let i = 0; i < MOST_STEPS; i++) {
    const next = plainUri(text);
    if (next === text) break;
    text = next;
  }
  return text;
}

function plainUri(uri: string): string {
  // Parsers of URLs drop these.
  const text = trimmed(uri.replace(/[\t\n\r]/g, '')).replace(UNRESERVED, (escaped) => decodeURIComponent(escaped));
  const [, scheme, authority, path = '', query = '', fragment = ''] = PARTS.exec(text) ?? [];
  const start = scheme === undefined ? '' : `${scheme.toLowerCase()}:`;
  const rest = `${query === '?' ? '' : query}${fragment === '#' ? '' : fragment}`;
  if (authority === undefined) return `${start}${plainPath(path)}${rest}`;
  if (isHosted(scheme)) return `${start}//${authority.toLowerCase()}${plainPath(path)}${rest}`;
  // To a server with a scheme of its own, what follows the slashes may be one path.
  return `${start}//${plainPath(`${authority}${path}`)}${rest}`;
}

/** Whether the URI is in its usual spelling. */
export function isNormalUri(uri: string): boolean {
  return normalUri(uri) === uri;
}

/** The URI in its usual spelling, and decoded as often as a server might do. */
export function readingsOf(uri: string): readonly string[] {
  const readings = [normalUri(uri)];
  for (let i = 0; i < MOST_DECODINGS; i++) {
    const last = readings[i]!;
    const decoded = normalUri(decode(last));
    if (decoded === last) break;
    readings.push(decoded);
  }
  return readings;
}

/** All ways to write the URI that matter to rules. */
export function spellingsOf(uri: string): ReadonlySet<string> {
  return new Set([uri, ...readingsOf(uri).flatMap((one) => [one, bare(one, true)])]);
}

/**
 * What a server may take the URI for: one of its spellings, or that without its query. If one of them is a spelling of
 * another URI, they may be the same resource.
 */
export function meaningsOf(uri: string): ReadonlySet<string> {
  // The URL class knows default ports and the names of hosts in other scripts.
  const parsed = URL.canParse(uri) ? [new URL(uri).href] : [];
  return new Set([uri, ...[...readingsOf(uri), ...parsed].flatMap((one) => [one, bare(one, true), bare(one, false)])]);
}

/** Without fragment and without slashes at the end. */
function bare(uri: string, hasQuery: boolean): string {
  const [, scheme, authority, path = '', query = ''] = PARTS.exec(uri) ?? [];
  const start = scheme === undefined ? '' : `${scheme.toLowerCase()}:`;
  const host = authority === undefined ? '' : `//${authority.toLowerCase()}`;
  return `${start}${host}${path.replace(/\/+$/, '')}${hasQuery ? query : ''}`.normalize('NFC');
}

function isHosted(scheme: string | undefined): boolean {
  return scheme !== undefined && HOSTED.has(scheme.toLowerCase());
}

/** Without control characters and spaces at both ends. */
function trimmed(text: string): string {
  let start = 0;
  let end = text.length;
  while (start < end && text.charCodeAt(start) <= 0x20) start++;
  while (end > start && text.charCodeAt(end - 1) <= 0x20) end--;
  return text.slice(start, end);
}

function plainPath(path: string): string {
  if (!/[/\\]/.test(path)) return path;
  const kept: string[] = [];
  const segments = path.replaceAll('\\', '/').split('/');
  for (const [i, segment] of segments.entries()) {
    const isLast = i === segments.length - 1;
    if (segment === '..') kept.pop();
    if (segment === '.' || segment === '..') {
      // What ends with a dot segment is a folder.
      if (isLast) kept.push('');
    } else if (segment !== '' || i === 0 || isLast) kept.push(segment);
  }
  const plain = kept.join('/');
  return path[0] === '/' || path[0] === '\\' ? `/${plain.replace(/^\/+/, '')}` : plain;
}

function decode(text: string): string {
  return text.replace(/(?:%[0-9a-f]{2})+/gi, (escapes) => percentDecoded(escapes) ?? escapes);
}
