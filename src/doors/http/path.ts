/** Paths in addresses, and the base path that a door is mounted at. */
import { GatewayError } from '../../base/errors.ts';

/** The address without its query. */
export function pathOf(url: string): string {
  const query = url.indexOf('?');
  return query < 0 ? url : url.slice(0, query);
}

/** One part of a path, decoded. `what` says what it names. */
export function decodePart(text: string, what: string): string {
  if (!text.includes('%')) return text;
  try {
    return decodeURIComponent(text);
  } catch {
    throw new GatewayError('path_unknown', `The address names no ${what}: it cannot be read.`);
  }
}

/** A base path as addresses begin with it: with a slash before it and none behind it. */
export function readBasePath(given = ''): string {
  const base = given.replace(/\/+$/, '');
  if (base === '' || /^(\/[\w.~%!$&'()*+,;=:@-]+)+$/.test(base)) return base;
  throw new GatewayError('usage', `basePath is a path such as "/gateway", not ${JSON.stringify(given)}.`);
}

/** The address without the base path; null where it does not begin with it. */
export function belowBase(base: string, url: string): string | null {
  if (!url.startsWith(base)) return null;
  const rest = url.slice(base.length);
  if (rest.startsWith('/')) return rest;
  return rest === '' || rest.startsWith('?') ? `/${rest}` : null;
}
