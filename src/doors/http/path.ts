/** Paths of URLs, and the base path that a door is mounted at. */
import { GatewayError } from '../../base/errors.ts';
import { percentDecoded } from '../../base/text.ts';

/** The URL without its query string. */
export function pathOf(url: string): string {
  const query = url.indexOf('?');
  return query < 0 ? url : url.slice(0, query);
}

/** One decoded path segment. `what` describes it in errors. */
export function decodePart(text: string, what: string): string {
  if (!text.includes('%')) return text;
  const decoded = percentDecoded(text);
  if (decoded === null) throw new GatewayError('path_unknown', `The ${what} in the address is not encoded correctly.`);
  return decoded;
}

/** The base path in normal form: with a leading slash and without a trailing one. */
export function readBasePath(given = ''): string {
  const base = given.replace(/\/+$/, '');
  if (base === '' || /^(\/[\w.~%!$&'()*+,;=:@-]+)+$/.test(base)) return base;
  throw new GatewayError('usage', `basePath must be a path such as "/gateway", not ${JSON.stringify(given)}.`);
}

/** The URL without the base path; null if it does not start with it. */
export function belowBase(base: string, url: string): string | null {
  if (!url.startsWith(base)) return null;
  const rest = url.slice(base.length);
  if (rest.startsWith('/')) return rest;
  return rest === '' || rest.startsWith('?') ? `/${rest}` : null;
}
