/** What a request says about what its client is to see, by its address or by headers: which toolset, which namespace. */
import type { IncomingMessage } from 'node:http';
import { GatewayError } from '../../errors.ts';

export interface Address {
  /** For clients that do not hear of changed lists; null where the address leaves that open. */
  readonly toolset: string | null;
  /** Null for all of them. */
  readonly namespace: string | null;
}

const TOOLSET = '/mcp/t/';
const NAMESPACE = /^\/ns\/([^/]*)\//;
const SHORT = /^\/([^/]*)\//;

/** `isShort` says that the namespace stands first in the path. */
export function readAddress({ url = '/', headers }: IncomingMessage, isShort = false): Address {
  const query = url.indexOf('?');
  // Nearly all of them.
  if (query < 0 && !isShort && headers['x-toolset'] === undefined && headers['x-namespace'] === undefined)
    if (!url.startsWith('/ns/') && !url.startsWith(TOOLSET)) return PLAIN;
  const path = pathOf(url);
  return {
    toolset: toolsetOf(path, query < 0 ? null : url.slice(query + 1), headers),
    namespace: namespaceOf(path, headers, isShort ? SHORT : NAMESPACE),
  };
}

const PLAIN: Address = { toolset: null, namespace: null };

function toolsetOf(path: string, query: string | null, headers: IncomingMessage['headers']): string | null {
  if (path.startsWith(TOOLSET)) return decode(path.slice(TOOLSET.length), 'toolset');
  const asked = query === null ? null : new URLSearchParams(query).get('toolset');
  return asked ?? said(headers['x-toolset']);
}

function namespaceOf(path: string, headers: IncomingMessage['headers'], place: RegExp): string | null {
  const named = said(headers['x-namespace']) || null;
  const below = place.exec(path)?.[1];
  if (below === undefined) return named;
  const namespace = decode(below, 'namespace');
  if (named !== null && named !== namespace)
    throw new GatewayError(
      'request_invalid',
      'The address names one namespace and the header X-Namespace another. Leave one of the two out.',
    );
  return namespace;
}

function said(header: string | string[] | undefined): string | null {
  return typeof header === 'string' ? header : null;
}

/** A part of a path. */
export function decode(text: string, what: string): string {
  if (!text.includes('%')) return text;
  try {
    return decodeURIComponent(text);
  } catch {
    throw new GatewayError('path_unknown', `The address names no ${what}: it cannot be read.`);
  }
}

export function pathOf(url: string): string {
  const query = url.indexOf('?');
  return query < 0 ? url : url.slice(0, query);
}
