/**
 * The keys of an identity provider. They are fetched when first wanted, again when they are old, and when a token names one
 * that is not among them: but not more often than now and then, because anybody can make up tokens. While the provider
 * cannot be reached the last ones stay good for a day.
 */
import type { JWK } from 'jose';
import { GatewayError, messageOf } from '../../../base/errors.ts';
import { isLoopback } from '../../../base/loopback.ts';
import type { JwtConfig } from '../../../config/http.ts';

export interface IssuerKeys {
  /** The keys that are known; fetched where there are none, or where they are old. */
  keys(): Promise<readonly JWK[]>;
  /** The keys once more from the issuer. False where that has to wait, or brought nothing. */
  renew(): Promise<boolean>;
}

const FRESH = 10 * 60_000;
const KEPT = 24 * 3_600_000;
const PATIENCE = 5_000;
const MOST_BYTES = 512 * 1024;
const MOST_KEYS = 100;
/** So many fetches in so much time. */
const FETCHES = 3;
const WINDOW = 60_000;

export function createIssuerKeys({ issuer, jwksUri }: JwtConfig, note: (message: string) => void): IssuerKeys {
  let known: readonly JWK[] | null = null;
  let fetchedAt = 0;
  let tries: number[] = [];
  let underWay: Promise<boolean> | null = null;
  let place = jwksUri;

  async function load(): Promise<boolean> {
    try {
      place ??= await discover(issuer);
      const { keys } = (await fetchJson(place)) as { keys?: unknown };
      if (!Array.isArray(keys) || keys.length > MOST_KEYS) throw new Error(`${place} has no list "keys"`);
      known = keys.filter((key) => typeof key === 'object' && key !== null) as JWK[];
      fetchedAt = Date.now();
      return true;
    } catch (error) {
      note(`the keys of ${issuer} could not be had: ${messageOf(error)}`);
      // They may have moved.
      place = jwksUri;
      return false;
    }
  }

  function renew(): Promise<boolean> {
    if (underWay !== null) return underWay;
    const now = Date.now();
    tries = tries.filter((at) => now - at < WINDOW);
    if (tries.length >= FETCHES) return Promise.resolve(false);
    tries.push(now);
    underWay = load().finally(() => {
      underWay = null;
    });
    return underWay;
  }

  return {
    renew,
    async keys() {
      if (known === null || Date.now() - fetchedAt > FRESH) await renew();
      if (known === null || Date.now() - fetchedAt > KEPT)
        throw new GatewayError(
          'source_unavailable',
          'The token cannot be checked, because the keys of its issuer cannot be had. Try again later.',
        );
      return known;
    },
  };
}

/** Why the keys of an issuer cannot be had; null where they can. */
export async function issuerTrouble(config: JwtConfig): Promise<string | null> {
  let trouble: string | null = null;
  const keys = createIssuerKeys(config, (message) => {
    trouble = message;
  });
  await keys.renew();
  return trouble;
}

/** Where the keys are, from the metadata of RFC 8414 or of OpenID Connect, which has to be the issuer's own. */
async function discover(issuer: string): Promise<string> {
  const { origin, pathname } = new URL(issuer);
  const path = pathname.replace(/\/+$/, '');
  const places = new Set([
    `${origin}/.well-known/oauth-authorization-server${path}`,
    `${origin}/.well-known/openid-configuration${path}`,
    `${origin}${path}/.well-known/openid-configuration`,
  ]);
  const problems: string[] = [];
  for (const address of places) {
    try {
      const { issuer: named, jwks_uri: uri } = (await fetchJson(address)) as Record<string, unknown>;
      if (named !== issuer) throw new Error(`${address} is the metadata of another issuer`);
      if (typeof uri !== 'string' || !isTrusted(uri))
        throw new Error(`${address} has no "jwks_uri" that could be used`);
      return uri;
    } catch (error) {
      problems.push(messageOf(error));
    }
  }
  throw new Error(problems.join('; '));
}

function isTrusted(uri: string): boolean {
  if (!URL.canParse(uri)) return false;
  const { protocol, hostname } = new URL(uri);
  return protocol === 'https:' || (protocol === 'http:' && isLoopback(hostname));
}

/** An object, of no more than so many bytes, without being sent elsewhere. */
async function fetchJson(address: string): Promise<object> {
  const signal = AbortSignal.timeout(PATIENCE);
  const headers = { accept: 'application/json, application/jwk-set+json', 'accept-encoding': 'identity' };
  const response = await fetch(address, { headers, signal, redirect: 'error' }).catch((error: Error) => {
    throw new Error(`${address}: ${error.cause instanceof Error ? messageOf(error.cause) : error.message}`);
  });
  if (response.status !== 200) {
    await response.body?.cancel();
    throw new Error(`${address} answered with status ${response.status}`);
  }
  const parts: Uint8Array[] = [];
  let size = 0;
  for await (const part of response.body ?? []) {
    size += part.length;
    if (size > MOST_BYTES) throw new Error(`${address} has more than ${MOST_BYTES} bytes`);
    parts.push(part);
  }
  const value: unknown = JSON.parse(Buffer.concat(parts).toString());
  if (typeof value !== 'object' || value === null) throw new Error(`${address} is no object`);
  return value;
}
