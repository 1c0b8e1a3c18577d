/**
 * URIs under a namespace that are legal URLs. The exposed URI `git_file:///a` is none, because a scheme has no `_`, and
 * some clients refuse a whole list for one such URI. They get `git+file:///a`. A namespace and a URI can be read back
 * from it, so every caller may use either form.
 */
import { percentDecoded } from '../base/text.ts';
import type { Catalog } from './catalog.ts';
import type { Entry } from './entry.ts';

/** How a namespace is put in front of a URI: `join` as in other names, `scheme` so that the result is a legal URL. */
export type UriStyle = 'join' | 'scheme';

/** What a URI of the style `scheme` says. */
export interface SchemeUri {
  readonly namespace: string;
  /** The server's own URI as it is written in the URI; the expansion of a template is written like this. */
  readonly written: string;
  /** The same without escapes: the URI of a resource is written with them if it is no legal URL. */
  readonly uri: string;
}

/** A scheme begins with a letter, so this cannot be the beginning of one. */
const ESCAPED = '-:';
const LEGAL_SCHEME = /^[a-z][a-z0-9+.-]*:/;

/** The beginning of every URI of that namespace. */
export function schemePrefix(namespace: string): string {
  return `${toScheme(namespace)}+`;
}

/** A template is written as it is: clients parse only what they make from it. */
export function schemeTemplate(namespace: string, template: string): string {
  return `${schemePrefix(namespace)}${LEGAL_SCHEME.test(template) ? '' : ESCAPED}${template}`;
}

/** Clients that parse the URI get the same text again, so they read the resource by the URI that was listed. */
export function schemeUri(namespace: string, uri: string): string {
  const plain = `${schemePrefix(namespace)}${uri}`;
  return LEGAL_SCHEME.test(uri) && isSame(plain) ? plain : escapedUri(namespace, uri);
}

function escapedUri(namespace: string, uri: string): string {
  // What begins with a slash is a path, and parsers shorten paths such as "/a/../b".
  const written = encodeURI(uri.replace(/\p{Surrogate}/gu, '\ufffd')).replace(/^\//, '%2F');
  return `${schemePrefix(namespace)}${ESCAPED}${written}`;
}

function isSame(url: string): boolean {
  return URL.canParse(url) && new URL(url).href === url;
}

/** Null if the URI is not of this style. */
export function readSchemeUri(uri: string): SchemeUri | null {
  const [, scheme, rest] = /^([a-z][a-z0-9.-]*)\+(.+)$/s.exec(uri) ?? [];
  const namespace = scheme === undefined ? null : fromScheme(scheme);
  if (namespace === null || rest === undefined) return null;
  if (!rest.startsWith(ESCAPED)) return { namespace, written: rest, uri: rest };
  const written = rest.slice(ESCAPED.length);
  return { namespace, written, uri: decode(written) };
}

function decode(text: string): string {
  return percentDecoded(text) ?? text;
}

/**
 * The namespace in the letters that a scheme may have. It has no capitals because parsers make them small. It begins
 * with a letter; a namespace that begins with `x` gets another one, so that `1a` and `x1a` differ.
 */
function toScheme(namespace: string): string {
  const text = namespace.replace(/[^a-z0-9-]/gu, (char) => {
    if (char === '_') return '..';
    if (char === '.') return '.-';
    return /[A-Z]/.test(char) ? `.${char.toLowerCase()}` : `.${char.codePointAt(0)}.`;
  });
  return /^[a-wyz]/.test(text) ? text : `x${text}`;
}

function fromScheme(scheme: string): string | null {
  const namespace = scheme.replace(/^x/, '').replace(/\.(\.|-|[a-z]|\d{1,7}\.)/g, (_, escaped: string) => {
    if (escaped === '.') return '_';
    if (escaped === '-') return '.';
    const code = Number.parseInt(escaped, 10);
    if (Number.isNaN(code)) return escaped.toUpperCase();
    return code > 0x10ffff ? '' : String.fromCodePoint(code);
  });
  return namespace !== '' && toScheme(namespace) === scheme ? namespace : null;
}

/** A catalog, and how its URIs are listed. */
interface UriLister {
  readonly catalog: Catalog;
  readonly uriStyle: UriStyle;
}

/** The URI under which an entry is listed; null if other items have all the names that it could have. */
export function listedUri({ catalog, uriStyle }: UriLister, name: string, entry: Entry): string | null {
  const { kind, namespace, item } = entry;
  // Without a prefix, names are the server's own.
  if (uriStyle === 'join' || name === item.name || (kind !== 'resource' && kind !== 'template')) return name;
  const wanted =
    kind === 'template'
      ? [schemeTemplate(namespace, item.name)]
      : [schemeUri(namespace, item.name), escapedUri(namespace, item.name)];
  return wanted.find((one) => !catalog.claims[kind].has(one)) ?? null;
}
