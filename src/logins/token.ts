/** What all ways to a token have in common: what is asked for, the key that a token is bound to, and what is kept of the answer. */
import { decodeJwt, exportJWK, importJWK, type JWK } from 'jose';
import * as oauth from 'oauth4webapi';
import type { OAuthSettings } from '../config/oauth.ts';
import { type LoginChallenge, splitScopes } from './challenge.ts';
import type { Discovered } from './discovery.ts';
import type { FetchGuard } from './guarded-fetch.ts';
import type { Login } from './record.ts';

export interface GrantContext {
  /** The address of the MCP server. */
  readonly url: string;
  readonly settings: OAuthSettings;
  readonly guard: FetchGuard;
}

/** The configured scopes, or else those of the challenge, or else all that the server names; and what calls needed. */
export function scopesFor(
  { scopes, server }: Discovered,
  challenge: LoginChallenge | null,
  known: Login | null,
  settings: OAuthSettings,
): string[] {
  const asked = challenge === null || challenge.scopes.length === 0 ? (scopes ?? []) : challenge.scopes;
  const isUp = known?.wanted !== undefined;
  const all = [...new Set([...(isUp ? known.scopes : []), ...(settings.scopes ?? asked), ...(known?.wanted ?? [])])];
  const mayStay = all.length > 0 && server.scopes_supported?.includes('offline_access') === true;
  return mayStay ? [...new Set([...all, 'offline_access'])] : all;
}

/** What the token is for: the server as it calls itself, or else its address. */
export function resourceOf({ resource }: Discovered, url: string): string {
  if (resource !== null) return resource;
  const { origin, pathname, search } = new URL(url);
  return `${origin}${pathname === '/' ? '' : pathname.replace(/\/$/, '')}${search}`;
}

/** The key that tokens are bound to (DPoP). */
interface Binding {
  readonly options: { readonly DPoP: oauth.DPoPHandle };
  readonly key: Readonly<Record<string, unknown>>;
}

/** Null if tokens are not bound. */
export async function createBinding(
  found: Discovered | null,
  client: oauth.Client,
  known: Login | null,
): Promise<Binding | null> {
  const isWanted =
    found === null
      ? known?.key !== undefined
      : found.takesDpop && found.server.dpop_signing_alg_values_supported?.includes('ES256') === true;
  if (!isWanted) return null;
  const pair = await keyPair(known?.key as JWK | undefined);
  return { options: { DPoP: oauth.DPoP(client, pair) }, key: { ...(await exportJWK(pair.privateKey)) } };
}

async function keyPair(key: JWK | undefined): Promise<oauth.CryptoKeyPair> {
  if (key === undefined) return oauth.generateKeyPair('ES256', { extractable: true });
  const { d: _, ...open } = key;
  const options = { extractable: true };
  const [privateKey, publicKey] = await Promise.all([
    importJWK(key, 'ES256', options),
    importJWK(open, 'ES256', options),
  ]);
  return { privateKey, publicKey } as oauth.CryptoKeyPair;
}

/** The first request tells us the number that proofs have to repeat. */
export async function again<T>(binding: Binding | null, request: () => Promise<T>): Promise<T> {
  try {
    return await request();
  } catch (error) {
    if (binding === null || !oauth.isDPoPNonceError(error)) throw error;
    return request();
  }
}

type LoginBase = Omit<Login, 'token' | 'at' | 'scopes'>;

export function toLogin(
  { wanted: _, ...base }: LoginBase & { readonly wanted?: unknown },
  answer: oauth.TokenEndpointResponse,
  asked: readonly string[],
  binding: Binding | null,
): Login {
  const { access_token: token, refresh_token: refreshToken, expires_in: seconds, scope } = answer;
  const claims = oauth.getValidatedIdTokenClaims(answer) ?? claimsOf(token);
  const who = [claims.email, claims.preferred_username, claims.name, claims.sub].find((one) => typeof one === 'string');
  const kept = refreshToken ?? base.refreshToken;
  const now = Date.now();
  const { expires: _expires, isDpop: _isDpop, key: _key, refreshToken: _old, ...rest } = base;
  return {
    ...rest,
    token,
    at: now,
    scopes: [...new Set([...asked, ...splitScopes(scope ?? '')])],
    ...(kept !== undefined && { refreshToken: kept }),
    ...(seconds !== undefined && { expires: now + seconds * 1000 }),
    ...(answer.token_type === 'dpop' && { isDpop: true as const }),
    ...(binding !== null && { key: binding.key }),
    ...(who !== undefined ? { who: who.slice(0, 200) } : {}),
  };
}

/** For display only: nothing is decided by what a token says to us. */
function claimsOf(token: string): Readonly<Record<string, unknown>> {
  try {
    return decodeJwt(token);
  } catch {
    return {};
  }
}
