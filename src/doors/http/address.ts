/** What the address of a request says beside where it goes: which toolset its client is to see. */
import type { IncomingMessage } from 'node:http';
import { GatewayError } from '../../errors.ts';

export interface Address {
  readonly path: string;
  /** For clients that do not hear of changed lists; null where the address leaves that open. */
  readonly toolset: string | null;
}

const BELOW = '/mcp/t/';

export function readAddress({ url = '/', headers }: IncomingMessage): Address {
  // Nearly all of them.
  if (url === '/mcp' && headers['x-toolset'] === undefined) return PLAIN;
  const query = url.indexOf('?');
  const path = query < 0 ? url : url.slice(0, query);
  if (path.startsWith(BELOW)) return { path: '/mcp', toolset: decode(path.slice(BELOW.length)) };
  const asked = query < 0 ? null : new URLSearchParams(url.slice(query + 1)).get('toolset');
  const named = headers['x-toolset'];
  return { path, toolset: asked ?? (typeof named === 'string' ? named : null) };
}

const PLAIN: Address = { path: '/mcp', toolset: null };

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw new GatewayError('path_unknown', 'The address names no toolset: it cannot be read.');
  }
}
