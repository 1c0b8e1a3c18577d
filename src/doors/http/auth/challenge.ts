/**
 * The answer to a client without a valid credential: a challenge (RFC 6750), and the metadata of the protected
 * resource (RFC 9728), which names the authorization server.
 */
import { type ErrorCode, GatewayError } from '../../../base/errors.ts';
import type { HttpConfig, JwtConfig } from '../../../config/http.ts';

export interface Challenge {
  /** Present only if the request had a token. */
  readonly error?: 'invalid_token' | 'insufficient_scope';
  readonly description?: string;
  readonly scopes?: readonly string[];
  /** The address of the metadata; null for none. */
  readonly metadata: string | null;
}

export class AccessRefused extends GatewayError {
  /** The value of `WWW-Authenticate`. */
  readonly challenge: string;
  /** For the log. It contains no part of the credential. */
  readonly reason: string;

  constructor(code: ErrorCode, message: string, reason: string, challenge: Challenge) {
    super(code, message);
    this.reason = reason;
    this.challenge = printChallenge(challenge);
  }
}

function printChallenge({ error, description, scopes = [], metadata }: Challenge): string {
  const parts: readonly (readonly [string, string | null | undefined])[] = [
    ['realm', 'toolgate'],
    ['error', error],
    ['error_description', description],
    ['scope', scopes.length > 0 ? scopes.join(' ') : null],
    ['resource_metadata', metadata],
  ];
  const given = parts.filter(([, value]) => value != null).map(([name, value]) => `${name}="${quotable(value!)}"`);
  return `Bearer ${given.join(', ')}`;
}

/** Replaces characters that are not allowed in a quoted header value. */
function quotable(text: string): string {
  return text.replace(/[^\x20\x21\x23-\x5b\x5d-\x7e]/g, '?');
}

export const METADATA_PATH = '/.well-known/oauth-protected-resource';

/** The URL of the metadata: the well-known part comes before the path of the resource. */
export function metadataUrl(resource: string): string {
  const { origin, pathname } = new URL(resource);
  return origin + METADATA_PATH + (pathname === '/' ? '' : pathname);
}

/** The scopes that any of the issuers has to grant. */
export function scopesOf(issuers: readonly Pick<JwtConfig, 'requiredScopes'>[]): readonly string[] {
  return [...new Set(issuers.flatMap(({ requiredScopes }) => requiredScopes))];
}

/** Null if no authorization server is configured. */
export function resourceMetadata(resource: string, { jwt }: HttpConfig): object | null {
  if (jwt.length === 0) return null;
  const scopes = scopesOf(jwt);
  return {
    resource,
    authorization_servers: jwt.map(({ issuer }) => issuer),
    bearer_methods_supported: ['header'],
    ...(scopes.length > 0 && { scopes_supported: scopes }),
    resource_name: 'Toolgate',
  };
}
