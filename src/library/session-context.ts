/**
 * Reads the context that a client sends in the query of its URL, and merges it into the context that loaders receive.
 */
import { GatewayError } from '../base/errors.ts';
import type { EventSink } from '../base/events.ts';
import { sha256 } from '../base/hash.ts';
import { isObject, isPlain } from '../base/objects.ts';
import { wrongOptions } from './errors.ts';
import type { LoaderContext } from './toolsets.ts';
import type { SessionContextConfig, SessionRequestContext } from './types.ts';

type ContextValues = Record<string, unknown>;

export function checkSessionContext({ queryParam, merge, contextResolver }: SessionContextConfig): void {
  const { name, encoding, allowedKeys } = queryParam ?? {};
  if (name !== undefined && (typeof name !== 'string' || name === ''))
    throw wrongOptions('sessionContext.queryParam.name must be a string.');
  if (encoding !== undefined && encoding !== 'base64' && encoding !== 'json')
    throw wrongOptions('sessionContext.queryParam.encoding must be "base64" or "json".');
  if (allowedKeys !== undefined && (!Array.isArray(allowedKeys) || allowedKeys.some((key) => typeof key !== 'string')))
    throw wrongOptions('sessionContext.queryParam.allowedKeys must be a list of keys.');
  if (merge !== undefined && merge !== 'shallow' && merge !== 'deep')
    throw wrongOptions('sessionContext.merge must be "shallow" or "deep".');
  if (contextResolver !== undefined && typeof contextResolver !== 'function')
    throw wrongOptions('sessionContext.contextResolver must be a function.');
}

/** Null if the query has no context, or contexts are disabled. Throws if the context is not valid. */
export function readSessionContext(config: SessionContextConfig | null, query: URLSearchParams): ContextValues | null {
  if (config === null || config.enabled === false) return null;
  const { name = 'config', encoding = 'base64', allowedKeys } = config.queryParam ?? {};
  const given = query.getAll(name);
  if (given.length === 0 || given[0] === '') return null;
  const wrong = (why: string) => new GatewayError('request_invalid', `The query parameter "${name}" ${why}.`);
  if (given.length > 1) throw wrong('occurs more than once');
  const text = encoding === 'json' ? given[0]! : decode(given[0]!);
  if (text === null) throw wrong('is not base64');
  let parsed: unknown;
  try {
    // Merging objects must not change their prototype.
    parsed = JSON.parse(text, (key, value: unknown) => (key === '__proto__' ? undefined : value));
  } catch {
    throw wrong(encoding === 'json' ? 'is not JSON' : 'is not JSON in base64');
  }
  if (!isObject(parsed)) throw wrong('is not a JSON object');
  const kept = Object.entries(parsed).filter(([key]) => allowedKeys?.includes(key) !== false);
  return kept.length === 0 ? null : Object.fromEntries(kept.sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** Accepts both alphabets of base64. In a query, a plus may have been decoded as a space. */
function decode(text: string): string | null {
  const plain = text.replaceAll(' ', '+').replaceAll('-', '+').replaceAll('_', '/').replace(/=+$/, '');
  if (!/^[A-Za-z0-9+/]+$/.test(plain) || plain.length % 4 === 1) return null;
  return Buffer.from(plain, 'base64').toString();
}

/** The context of one client. Clients with equal keys share what is loaded. */
export async function sessionContext(
  config: SessionContextConfig | null,
  base: LoaderContext,
  request: SessionRequestContext,
  values: ContextValues | null,
  events: EventSink,
): Promise<LoaderContext> {
  if (config === null || config.enabled === false) return base;
  if (config.contextResolver !== undefined) {
    try {
      const value = await config.contextResolver(request, base.value, values ?? {});
      // The resolver may use anything about the client, so its context is not shared.
      return { key: contextKey([request.clientId, values]), value };
    } catch (error) {
      events.emit('failure', { where: 'sessionContext.contextResolver', error });
      throw new GatewayError('request_invalid', 'The context of this session was refused. Check the query of the URL.');
    }
  }
  if (values === null) return base;
  return { key: contextKey(values), value: merge(base.value, values, config.merge === 'deep') };
}

/** A hash, because the context may contain secrets. */
export function contextKey(context: unknown): string {
  return sha256(JSON.stringify(context), 'base64url');
}

function merge(base: unknown, values: ContextValues, isDeep: boolean): unknown {
  if (!isObject(base)) return values;
  const merged: ContextValues = { ...base };
  for (const [key, value] of Object.entries(values)) {
    const before = merged[key];
    merged[key] = isDeep && isObject(value) && isPlain(before) ? merge(before, value, true) : value;
  }
  return merged;
}
