/**
 * Finds out from a server who gives tokens for it: its own description (RFC 9728), then the one of its authorization
 * server (RFC 8414 or OpenID Connect), in the order that the protocol demands.
 */
import type { AuthorizationServer } from 'oauth4webapi';
import { GatewayError } from '../base/errors.ts';
import { isObject } from '../base/objects.ts';
import type { LoginChallenge } from './challenge.ts';
import type { FetchGuard } from './guarded-fetch.ts';

/** Who gives tokens for a server, and what to ask for. */
export interface Discovered {
  /** The authorization server. */
  readonly server: AuthorizationServer;
  /** What the server calls itself, exactly as it says; null if it does not describe itself. */
  readonly resource: string | null;
  /** The scopes that it names; null if it names none. */
  readonly scopes: readonly string[] | null;
  /** Whether tokens may have to be bound to a key. */
  readonly takesDpop: boolean;
}

export async function discover(
  url: string,
  challenge: LoginChallenge | null,
  issuer: string | undefined,
  guard: FetchGuard,
): Promise<Discovered> {
  const described = await describeResource(url, challenge, guard);
  const named = described?.issuers ?? [];
  if (issuer !== undefined && described !== null && !named.includes(issuer))
    throw broken(`names ${named.join(', ')} as its authorization server, and oauth.issuer allows only ${issuer}`);
  // Servers of the first revision with authorization are their own authorization server.
  const chosen = issuer ?? named[0] ?? new URL(url).origin;
  const server = await describeIssuer(chosen, guard);
  if (server === null && described === null && challenge === null)
    throw broken('does not say who gives tokens for it. If it needs a key, set it in its headers');
  if (server === null && described !== null)
    throw broken(`names ${chosen} as its authorization server, which does not describe itself`);
  return {
    server: server ?? fallbackServer(chosen),
    resource: described?.resource ?? null,
    scopes: described?.scopes ?? null,
    takesDpop: challenge?.scheme === 'dpop' || described?.takesDpop === true,
  };
}

interface DescribedResource {
  readonly resource: string;
  readonly issuers: readonly string[];
  readonly scopes: readonly string[] | null;
  readonly takesDpop: boolean;
}

/** The address in the challenge counts alone. Without one, the path of the server is tried before the root. */
export async function describeResource(
  url: string,
  challenge: LoginChallenge | null,
  guard: FetchGuard,
): Promise<DescribedResource | null> {
  const { origin, pathname, search } = new URL(url);
  const wellKnown = `${origin}/.well-known/oauth-protected-resource`;
  const named = challenge?.resourceMetadata ?? null;
  const addresses =
    named !== null ? [named] : [...(pathname === '/' ? [] : [`${wellKnown}${pathname}${search}`]), wellKnown];
  for (const address of addresses) {
    const found = await fetchJson(address, guard);
    if (found === null) continue;
    const { resource, authorization_servers: issuers, scopes_supported: scopes } = found;
    if (typeof resource !== 'string' || !isSelf(resource, url))
      throw broken(
        `says that it is ${JSON.stringify(resource)}, which is another server. Its description at ${address} is refused`,
      );
    return {
      resource,
      issuers: texts(issuers),
      scopes: scopes === undefined ? null : texts(scopes),
      takesDpop:
        found.dpop_bound_access_tokens_required === true || texts(found.dpop_signing_alg_values_supported).length > 0,
    };
  }
  if (named !== null) throw broken(`names ${named} as its description, and there is none`);
  return null;
}

/** Whether a server at this address may call itself so: the same origin, and its path or one above it. */
function isSelf(resource: string, url: string): boolean {
  if (!URL.canParse(resource)) return false;
  const own = new URL(url);
  const named = new URL(resource);
  const folder = named.pathname.endsWith('/') ? named.pathname : `${named.pathname}/`;
  return named.origin === own.origin && named.hash === '' && `${own.pathname}/`.startsWith(folder);
}

export async function describeIssuer(issuer: string, guard: FetchGuard): Promise<AuthorizationServer | null> {
  if (!URL.canParse(issuer))
    throw broken(`names ${JSON.stringify(issuer)} as its authorization server, which is no address`);
  const { origin, pathname } = new URL(issuer);
  const path = pathname === '/' ? '' : pathname.replace(/\/$/, '');
  const addresses =
    path === ''
      ? [`${origin}/.well-known/oauth-authorization-server`, `${origin}/.well-known/openid-configuration`]
      : [
          `${origin}/.well-known/oauth-authorization-server${path}`,
          `${origin}/.well-known/openid-configuration${path}`,
          `${origin}${path}/.well-known/openid-configuration`,
        ];
  for (const address of addresses) {
    const found = await fetchJson(address, guard);
    if (found === null) continue;
    if (typeof found.issuer !== 'string' || withoutSlash(found.issuer) !== withoutSlash(issuer))
      throw broken(
        `has the authorization server ${issuer}, whose description says that it is ${JSON.stringify(found.issuer)}. It is refused`,
      );
    return checkEndpoints(found as unknown as AuthorizationServer);
  }
  return null;
}

/** The root of a host may be written with and without a slash. Anything else has to be the same. */
function withoutSlash(issuer: string): string {
  return URL.canParse(issuer) && new URL(issuer).pathname === '/' ? issuer.replace(/\/$/, '') : issuer;
}

const ENDPOINTS = [
  'authorization_endpoint',
  'token_endpoint',
  'registration_endpoint',
  'device_authorization_endpoint',
  'revocation_endpoint',
] as const;

/** No other kind of address is ever opened in a browser or fetched. */
function checkEndpoints(server: AuthorizationServer): AuthorizationServer {
  for (const name of ENDPOINTS) {
    const address = server[name];
    if (address === undefined) continue;
    requireWeb(address, name);
  }
  return server;
}

/** Throws unless a person may be sent to this address. `name`: what the authorization server calls it. */
export function requireWeb(address: unknown, name: string): void {
  if (typeof address !== 'string' || !URL.canParse(address) || !/^https?:$/.test(new URL(address).protocol))
    throw broken(`has an authorization server whose ${name} is not an address on the web. It is refused`);
}

/** The endpoints of the first revision, for servers that describe nothing. */
function fallbackServer(issuer: string): AuthorizationServer {
  const { origin } = new URL(issuer);
  return {
    issuer: origin,
    authorization_endpoint: `${origin}/authorize`,
    token_endpoint: `${origin}/token`,
    registration_endpoint: `${origin}/register`,
    code_challenge_methods_supported: ['S256'],
  };
}

/** Null if there is nothing at the address. */
async function fetchJson(address: string, guard: FetchGuard): Promise<Record<string, unknown> | null> {
  const response = await guard.fetch(address, { headers: { accept: 'application/json' } });
  if (response.status >= 500)
    throw broken(`has a description at ${address} that fails with HTTP status ${response.status}`);
  if (response.status !== 200) return null;
  try {
    const value: unknown = JSON.parse(await response.text());
    if (isObject(value)) return value;
  } catch {
    // Many servers answer every path with a page.
  }
  return null;
}

function texts(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((one) => typeof one === 'string') : [];
}

/** The text completes a sentence that begins with the name of the server. */
export function broken(text: string): GatewayError {
  return new GatewayError('source_broken', text);
}
