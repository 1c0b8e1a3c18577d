/**
 * What a client without a good credential is told: the challenge of its reply (RFC 6750), and the metadata of the protected
 * resource, which name the authorization server that gives out tokens (RFC 9728).
 */
import { type ErrorCode, GatewayError } from '../../../base/errors.ts';
import type { HttpConfig } from '../../../config/http.ts';

export interface Challenge {
  /** Only where a token was given: without one there is nothing wrong with it. */
  readonly error?: 'invalid_token' | 'insufficient_scope';
  readonly description?: string;
  readonly scopes?: readonly string[];
  /** Where the metadata of this resource is; null where there is none. */
  readonly metadata: string | null;
}

export class AccessRefused extends GatewayError {
  /** The value of `WWW-Authenticate`. */
  readonly challenge: string;
  /** For the log; it has nothing of the credential. */
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
  const said = parts.filter(([, value]) => value != null).map(([name, value]) => `${name}="${quotable(value!)}"`);
  return `Bearer ${said.join(', ')}`;
}

/** What may stand between quotes in a header. */
function quotable(text: string): string {
  return text.replace(/[^\x20\x21\x23-\x5b\x5d-\x7e]/g, '?');
}

export const METADATA_PATH = '/.well-known/oauth-protected-resource';

/** The metadata's address: the well-known part comes before the resource's own path. */
export function metadataUrl(resource: string): string {
  const { origin, pathname } = new URL(resource);
  return origin + METADATA_PATH + (pathname === '/' ? '' : pathname);
}

/** Null where no tokens of an authorization server are taken. */
export function resourceMetadata(resource: string, { jwt }: HttpConfig): object | null {
  if (jwt === null) return null;
  const { issuer, requiredScopes } = jwt;
  return {
    resource,
    authorization_servers: [issuer],
    bearer_methods_supported: ['header'],
    ...(requiredScopes.length > 0 && { scopes_supported: requiredScopes }),
    resource_name: 'Toolgate',
  };
}
