/** What the gateway is to an authorization server: a protected resource, with metadata that says who gives out its tokens (RFC 9728). */
import type { HttpConfig } from '../../../config/config.ts';

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
