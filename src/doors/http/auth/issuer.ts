/**
 * The signing keys of an identity provider. They are fetched on first use, when they are old, and when a token names an
 * unknown key. Fetches are rate-limited, because anyone can make up tokens. While the provider is unreachable, the last
 * keys stay valid for a day.
 */
import type { JWK } from 'jose';
import { GatewayError, messageOf } from '../../../base/errors.ts';
import { isLoopback } from '../../../base/loopback.ts';
import type { JwtConfig } from '../../../config/http.ts';

export interface IssuerKeys {
  /** The keys. They are fetched first if none are known, or if they are old. */
  keys(): Promise<readonly JWK[]>;
  /** Fetches the keys again. False if that failed, or if the rate limit was reached. */
  renew(): Promise<boolean>;
}

const FRESH_FOR = 10 * 60_000;
const VALID_FOR = 24 * 3_600_000;
const TIMEOUT = 5_000;
const MOST_BYTES = 512 * 1024;
const MOST_KEYS = 100;
/** At most this many fetches per window. */
const FETCHES = 3;
const WINDOW = 60_000;

export function createIssuerKeys({ issuer, jwksUri }: JwtConfig, note: (message: string) => void): IssuerKeys {
  let known: readonly JWK[] | null = null;
  let fetchedAt = 0;
  let tries: number[] = [];
  let fetching: Promise<boolean> | null = null;
  let address = jwksUri;

  async function load(): Promise<boolean> {
    try {
      address ??= await discover(issuer);
      const { keys } = (await fetchJson(address)) as { keys?: unknown };
      if (!Array.isArray(keys) || keys.length > MOST_KEYS) throw new Error(`${address} has no list "keys"`);
      known = keys.filter((key) => typeof key === 'object' && key !== null) as JWK[];
      fetchedAt = Date.now();
      return true;
    } catch (error) {
      note(`the keys of ${issuer} could not be fetched: ${messageOf(error)}`);
      // The URL of the keys may have changed.
      address = jwksUri;
      return false;
    }
  }

  function renew(): Promise<boolean> {
    if (fetching !== null) return fetching;
    const now = Date.now();
    tries = tries.filter((at) => now - at < WINDOW);
    if (tries.length >= FETCHES) return Promise.resolve(false);
    tries.push(now);
    fetching = load().finally(() => {
      fetching = null;
    });
    return fetching;
  }

  return {
    renew,
    async keys() {
      if (known === null || Date.now() - fetchedAt > FRESH_FOR) await renew();
      if (known === null || Date.now() - fetchedAt > VALID_FOR)
        throw new GatewayError(
          'source_unavailable',
          'The token cannot be checked, because the keys of its issuer cannot be fetched. Try again later.',
        );
      return known;
    },
  };
}

/** Why the keys of an issuer cannot be fetched; null if they can. */
export async function issuerTrouble(config: JwtConfig): Promise<string | null> {
  let trouble: string | null = null;
  const keys = createIssuerKeys(config, (message) => {
    trouble = message;
  });
  await keys.renew();
  return trouble;
}

/** Finds the URL of the keys in the metadata of RFC 8414 or OpenID Connect. The metadata must name this issuer. */
async function discover(issuer: string): Promise<string> {
  const { origin, pathname } = new URL(issuer);
  const path = pathname.replace(/\/+$/, '');
  const addresses = new Set([
    `${origin}/.well-known/oauth-authorization-server${path}`,
    `${origin}/.well-known/openid-configuration${path}`,
    `${origin}${path}/.well-known/openid-configuration`,
  ]);
  const problems: string[] = [];
  for (const address of addresses) {
    try {
      const { issuer: named, jwks_uri: uri } = (await fetchJson(address)) as Record<string, unknown>;
      if (named !== issuer) throw new Error(`${address} is the metadata of another issuer`);
      if (typeof uri !== 'string' || !isTrusted(uri)) throw new Error(`${address} has no usable "jwks_uri"`);
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

/** Fetches a JSON object of limited size. Redirects are refused. */
async function fetchJson(address: string): Promise<object> {
  const signal = AbortSignal.timeout(TIMEOUT);
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
  if (typeof value !== 'object' || value === null) throw new Error(`${address} is not a JSON object`);
  return value;
}
