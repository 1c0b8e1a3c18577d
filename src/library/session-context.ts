/** What a client says of itself in its address, put into the context that loaders are told. */
import { createHash } from 'node:crypto';
import { GatewayError } from '../base/errors.ts';
import type { EventSink } from '../base/events.ts';
import { isObject } from '../base/objects.ts';
import { wrongOptions } from './errors.ts';
import type { LoaderContext } from './toolsets.ts';
import type { SessionContextConfig, SessionRequestContext } from './types.ts';

type ContextValues = Record<string, unknown>;

export function checkSessionContext({ queryParam, merge, contextResolver }: SessionContextConfig): void {
  const { name, encoding, allowedKeys } = queryParam ?? {};
  if (name !== undefined && (typeof name !== 'string' || name === ''))
    throw wrongOptions('sessionContext.queryParam.name must be a text.');
  if (encoding !== undefined && encoding !== 'base64' && encoding !== 'json')
    throw wrongOptions('sessionContext.queryParam.encoding must be "base64" or "json".');
  if (allowedKeys !== undefined && (!Array.isArray(allowedKeys) || allowedKeys.some((key) => typeof key !== 'string')))
    throw wrongOptions('sessionContext.queryParam.allowedKeys must be a list of keys.');
  if (merge !== undefined && merge !== 'shallow' && merge !== 'deep')
    throw wrongOptions('sessionContext.merge must be "shallow" or "deep".');
  if (contextResolver !== undefined && typeof contextResolver !== 'function')
    throw wrongOptions('sessionContext.contextResolver must be a function.');
}

/** What of it is in the query; null where there is nothing, or it is not looked at. Throws where it makes no sense. */
export function readSessionContext(config: SessionContextConfig | null, query: URLSearchParams): ContextValues | null {
  if (config === null || config.enabled === false) return null;
  const { name = 'config', encoding = 'base64', allowedKeys } = config.queryParam ?? {};
  const given = query.getAll(name);
  if (given.length === 0 || given[0] === '') return null;
  const wrong = (why: string) => new GatewayError('request_invalid', `The parameter "${name}" of the address ${why}.`);
  if (given.length > 1) throw wrong('is there more than once');
  const text = encoding === 'json' ? given[0]! : decode(given[0]!);
  if (text === null) throw wrong('is not base64');
  let said: unknown;
  try {
    // It would be taken for what it is not where objects are merged.
    said = JSON.parse(text, (key, value: unknown) => (key === '__proto__' ? undefined : value));
  } catch {
    throw wrong(encoding === 'json' ? 'is not JSON' : 'is not JSON in base64');
  }
  if (!isObject(said)) throw wrong('is no JSON object');
  const kept = Object.entries(said).filter(([key]) => allowedKeys?.includes(key) !== false);
  return kept.length === 0 ? null : Object.fromEntries(kept.sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** In either alphabet. In an address a plus may have become a space. */
function decode(text: string): string | null {
  const plain = text.replaceAll(' ', '+').replaceAll('-', '+').replaceAll('_', '/').replace(/=+$/, '');
  if (!/^[A-Za-z0-9+/]+$/.test(plain) || plain.length % 4 === 1) return null;
  return Buffer.from(plain, 'base64').toString();
}

/** The context for one client. Equal ones have equal keys, and what is loaded for one is there for the other. */
export async function sessionContext(
  config: SessionContextConfig | null,
  base: LoaderContext,
  request: SessionRequestContext,
  said: ContextValues | null,
  events: EventSink,
): Promise<LoaderContext> {
  if (config === null || config.enabled === false) return base;
  if (config.contextResolver !== undefined) {
    try {
      const value = await config.contextResolver(request, base.value, said ?? {});
      // It may look at anything, so nobody else has the same.
      return { key: contextKey([request.clientId, said]), value };
    } catch (error) {
      events.emit('failure', { where: 'sessionContext.contextResolver', error });
      throw new GatewayError('request_invalid', 'The context of this session was refused. Check its address.');
    }
  }
  if (said === null) return base;
  return { key: contextKey(said), value: merge(base.value, said, config.merge === 'deep') };
}

/** Says which, without saying what: it may be secret. */
export function contextKey(said: unknown): string {
  return createHash('sha256').update(JSON.stringify(said)).digest('base64url');
}

function merge(base: unknown, said: ContextValues, isDeep: boolean): unknown {
  if (!isObject(base)) return said;
  const merged: ContextValues = { ...base };
  for (const [key, value] of Object.entries(said)) {
    const before = merged[key];
    merged[key] = isDeep && isObject(value) && isPlain(before) ? merge(before, value, true) : value;
  }
  return merged;
}

/** Not a connection, nor anything else with a life of its own. */
function isPlain(value: unknown): value is ContextValues {
  if (!isObject(value)) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}
