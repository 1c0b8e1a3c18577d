/** The ways to a token: with a person in a browser or at another device, or without one. */
import { randomUUID } from 'node:crypto';
import { decodeJwt, exportJWK, importJWK, type JWK } from 'jose';
import * as oauth from 'oauth4webapi';
import type { OAuthSettings } from '../config/oauth.ts';
import { type LoginChallenge, splitScopes } from './challenge.ts';
import { chooseClient, clientAuth, httpOptions, textOrFile } from './client.ts';
import { broken, type Discovered, describeIssuer, describeResource, discover } from './discovery.ts';
import { createGuard, type FetchGuard } from './guarded-fetch.ts';
import type { Login, RegisteredClient } from './record.ts';

export interface GrantContext {
  /** The address of the MCP server. */
  readonly url: string;
  readonly settings: OAuthSettings;
  readonly guard: FetchGuard;
}

/** A login under way in a browser. */
export interface StartedLogin {
  /** What the person opens. */
  readonly address: string;
  /** What the browser has to bring back. */
  readonly state: string;
  /** The browser came back with these parameters. */
  finish(parameters: URLSearchParams): Promise<Login>;
}

export async function startLogin(
  context: GrantContext,
  challenge: LoginChallenge | null,
  known: Login | null,
  redirect: string,
): Promise<StartedLogin> {
  const { settings, guard } = context;
  const { found, base, scopes } = await prepare(context, challenge, known, redirect, (server) => {
    if (server.authorization_endpoint === undefined)
      throw broken(`has an authorization server (${server.issuer}) without a page to log in`);
    if (server.code_challenge_methods_supported?.includes('S256') !== true)
      throw broken(
        `has an authorization server (${server.issuer}) that does not protect codes (PKCE with S256). It is refused`,
      );
  });
  const { server } = found;
  const { client, resource } = base;
  const verifier = oauth.generateRandomCodeVerifier();
  const state = oauth.generateRandomState();
  const address = new URL(server.authorization_endpoint!);
  const parameters: Record<string, string> = {
    response_type: 'code',
    client_id: client.client_id,
    redirect_uri: redirect,
    state,
    code_challenge: await oauth.calculatePKCECodeChallenge(verifier),
    code_challenge_method: 'S256',
    resource,
    ...(scopes.length > 0 && { scope: scopes.join(' ') }),
    // Providers of OpenID Connect give no refresh token without it.
    ...(scopes.includes('offline_access') && { prompt: 'consent' }),
  };
  for (const [name, value] of Object.entries(parameters)) address.searchParams.set(name, value);
  return {
    address: address.href,
    state,
    async finish(returned) {
      const checked = oauth.validateAuthResponse(server, client, returned, state);
      const binding = await createBinding(found, client, null);
      const auth = await clientAuth(server, client, settings);
      const options = { ...httpOptions(guard), ...binding?.options, additionalParameters: { resource } };
      const answer = await again(binding, async () =>
        oauth.processAuthorizationCodeResponse(
          server,
          client,
          await oauth.authorizationCodeGrantRequest(server, client, auth, checked, redirect, verifier, options),
        ),
      );
      return toLogin({ ...base, id: randomUUID() }, answer, scopes, binding);
    },
  };
}

/** What every login with a person begins with. `require` throws if the authorization server does not offer the way. */
async function prepare(
  { url, settings, guard }: GrantContext,
  challenge: LoginChallenge | null,
  known: Login | null,
  redirect: string,
  require: (server: oauth.AuthorizationServer) => void,
) {
  const found = await discover(url, challenge, settings.issuer, guard);
  const { server } = found;
  require(server);
  const client = await chooseClient(server, redirect, known, settings, guard);
  const resource = resourceOf(found, url);
  const base = { url, issuer: server.issuer, resource, server: { ...server }, client, redirect };
  return { found, base, scopes: scopesFor(found, challenge, known, settings) };
}

/** A login under way at another device. */
export interface StartedDeviceLogin {
  readonly address: string;
  readonly code: string;
  /** The address with the code in it; null if the server offers none. */
  readonly complete: string | null;
  /** Resolves when the person has confirmed. */
  readonly done: Promise<Login>;
}

export async function startDeviceLogin(
  context: GrantContext,
  challenge: LoginChallenge | null,
  known: Login | null,
  redirect: string,
): Promise<StartedDeviceLogin> {
  const { settings, guard } = context;
  const { found, base, scopes } = await prepare(context, challenge, known, redirect, (server) => {
    if (server.device_authorization_endpoint === undefined)
      throw broken(
        `has an authorization server (${server.issuer}) that offers no login at another device. Log in without --device`,
      );
  });
  const { server } = found;
  const { client, resource } = base;
  const auth = await clientAuth(server, client, settings);
  const parameters = { resource, ...(scopes.length > 0 && { scope: scopes.join(' ') }) };
  const options = { ...httpOptions(guard), additionalParameters: { resource } };
  const started = await oauth.processDeviceAuthorizationResponse(
    server,
    client,
    await oauth.deviceAuthorizationRequest(server, client, auth, parameters, httpOptions(guard)),
  );
  const poll = async (): Promise<Login> => {
    const until = Date.now() + started.expires_in * 1000;
    for (let pause = started.interval ?? 5; ; ) {
      await new Promise((resolve) => setTimeout(resolve, pause * 1000));
      try {
        const response = await oauth.deviceCodeGrantRequest(server, client, auth, started.device_code, options);
        const answer = await oauth.processDeviceCodeResponse(server, client, response);
        return toLogin({ ...base, id: randomUUID() }, answer, scopes, null);
      } catch (error) {
        const code = error instanceof oauth.ResponseBodyError ? error.error : '';
        if (code === 'slow_down') pause += 5;
        else if (code !== 'authorization_pending') throw error;
        if (Date.now() > until) throw broken('was not confirmed in time. Log in again');
      }
    }
  };
  return {
    address: started.verification_uri,
    code: started.user_code,
    complete: started.verification_uri_complete ?? null,
    done: poll(),
  };
}

/** A new token for an old login. */
export async function refresh(login: Login, { settings, guard }: Omit<GrantContext, 'url'>): Promise<Login> {
  const server = login.server as unknown as oauth.AuthorizationServer;
  const { client, resource } = login;
  const auth = await clientAuth(server, withSecret(client, settings), settings);
  const binding = await createBinding(null, client, login);
  const options = {
    ...httpOptions(guard),
    ...binding?.options,
    ...(resource !== null && { additionalParameters: { resource } }),
  };
  const answer = await again(binding, async () =>
    oauth.processRefreshTokenResponse(
      server,
      client,
      await oauth.refreshTokenGrantRequest(server, client, auth, login.refreshToken ?? '', options),
    ),
  );
  return toLogin(login, answer, login.scopes, binding);
}

/** The secret of a client that somebody registered is in the configuration, and may have changed there. */
function withSecret(client: RegisteredClient, { clientId, clientSecret }: OAuthSettings): RegisteredClient {
  return clientId === client.client_id && clientSecret !== undefined
    ? { ...client, client_secret: clientSecret }
    : client;
}

/**
 * A token that needs no person: for Toolgate itself, for its workload, or by decision of an organisation. `subject` is the
 * JWT of the caller, which is exchanged for one; null if Toolgate asks for itself.
 */
export async function obtain(
  context: GrantContext,
  challenge: LoginChallenge | null,
  known: Login | null,
  subject: string | null,
): Promise<Login> {
  const { url, settings, guard } = context;
  if (settings.grant === 'token_exchange') return exchange(context, challenge, known, subject);
  const found = await discover(url, challenge, settings.issuer, guard);
  const { server } = found;
  const client: RegisteredClient = {
    client_id: settings.clientId ?? '',
    ...(settings.clientSecret !== undefined && { client_secret: settings.clientSecret }),
  };
  const scopes = scopesFor(found, challenge, known, settings).filter((scope) => scope !== 'offline_access');
  const resource = resourceOf(found, url);
  const binding = await createBinding(found, client, known);
  const auth = await clientAuth(server, client, settings);
  const options = { ...httpOptions(guard), ...binding?.options };
  const common = { resource, ...(scopes.length > 0 && { scope: scopes.join(' ') }) };
  const answer = await again(binding, async () => {
    if (settings.grant === 'client_credentials') {
      const response = await oauth.clientCredentialsGrantRequest(server, client, auth, common, options);
      return oauth.processClientCredentialsResponse(server, client, response);
    }
    const assertion =
      settings.grant === 'enterprise'
        ? await exchangeIdToken(server.issuer, resource, common.scope, context)
        : await textOrFile(settings.assertion, settings.assertionFile);
    const grant = 'urn:ietf:params:oauth:grant-type:jwt-bearer';
    const parameters = { ...common, assertion };
    const response = await oauth.genericTokenEndpointRequest(server, client, auth, grant, parameters, options);
    return oauth.processGenericTokenEndpointResponse(server, client, response);
  });
  const base = {
    id: randomUUID(),
    url,
    issuer: server.issuer,
    resource,
    server: { ...server },
    client,
    redirect: null,
  };
  return toLogin(base, answer, scopes, binding);
}

const ACCESS_TOKEN = 'urn:ietf:params:oauth:token-type:access_token';

/** Exchanges the JWT of a caller at the identity provider for a token for the server (RFC 8693). */
async function exchange(
  { url, settings, guard }: GrantContext,
  challenge: LoginChallenge | null,
  known: Login | null,
  subject: string | null,
): Promise<Login> {
  const { idp } = settings;
  if (idp === undefined) throw broken('needs oauth.idp');
  const described = await describeResource(url, challenge, guard);
  // The operator has named it, so it may be in the operator's network. What it names may be, too, but not for a server.
  const own = await createGuard(idp.issuer);
  try {
    const server = await describeIssuer(idp.issuer, own);
    if (server === null) throw broken(`needs the identity provider ${idp.issuer}, which does not describe itself`);
    const found: Discovered = {
      server,
      resource: described?.resource ?? null,
      scopes: described?.scopes ?? null,
      takesDpop: challenge?.scheme === 'dpop' || described?.takesDpop === true,
    };
    const secret = idp.clientSecret ?? settings.clientSecret;
    const client: RegisteredClient = {
      client_id: idp.clientId ?? settings.clientId ?? '',
      ...(secret !== undefined && { client_secret: secret }),
    };
    const scopes = scopesFor(found, challenge, known, settings).filter((scope) => scope !== 'offline_access');
    const resource = resourceOf(found, url);
    const binding = await createBinding(found, client, known);
    const auth = await clientAuth(server, client, settings);
    const options = { ...httpOptions(own), ...binding?.options };
    const common = { resource, ...(scopes.length > 0 && { scope: scopes.join(' ') }) };
    const answer = await again(binding, async () => {
      if (subject === null) {
        const response = await oauth.clientCredentialsGrantRequest(server, client, auth, common, options);
        return oauth.processClientCredentialsResponse(server, client, response);
      }
      const parameters = {
        ...common,
        subject_token: subject,
        subject_token_type: ACCESS_TOKEN,
        requested_token_type: ACCESS_TOKEN,
      };
      const grant = 'urn:ietf:params:oauth:grant-type:token-exchange';
      const response = await oauth.genericTokenEndpointRequest(server, client, auth, grant, parameters, options);
      return oauth.processGenericTokenEndpointResponse(server, client, response);
    });
    const { issuer } = server;
    const base = { id: randomUUID(), url, issuer, resource, server: { ...server }, client, redirect: null };
    return toLogin(base, answer, scopes, binding);
  } finally {
    void own.close();
  }
}

/** Asks the identity provider of the organisation for a grant at the server's authorization server. */
async function exchangeIdToken(
  audience: string,
  resource: string,
  scope: string | undefined,
  { settings, guard }: GrantContext,
): Promise<string> {
  const { idp } = settings;
  if (idp === undefined) throw broken('needs oauth.idp');
  const server = await describeIssuer(idp.issuer, guard);
  if (server === null) throw broken(`needs the identity provider ${idp.issuer}, which does not describe itself`);
  const client: RegisteredClient = {
    client_id: idp.clientId ?? settings.clientId ?? '',
    ...(idp.clientSecret !== undefined && { client_secret: idp.clientSecret }),
  };
  const auth = await clientAuth(server, client, { grant: 'enterprise' });
  const response = await oauth.genericTokenEndpointRequest(
    server,
    client,
    auth,
    'urn:ietf:params:oauth:grant-type:token-exchange',
    {
      subject_token: await textOrFile(idp.idToken, idp.idTokenFile),
      subject_token_type: 'urn:ietf:params:oauth:token-type:id_token',
      requested_token_type: 'urn:ietf:params:oauth:token-type:id-jag',
      audience,
      resource,
      ...(scope !== undefined && { scope }),
    },
    httpOptions(guard),
  );
  const answer = await oauth.processGenericTokenEndpointResponse(server, client, response, {
    // The result is no token for a server, so it has no such type.
    recognizedTokenTypes: { n_a: () => {} },
  });
  return answer.access_token;
}

/** Ends a login at the authorization server, if that offers it. Failures do not matter. */
export async function revoke(login: Login, { settings, guard }: Omit<GrantContext, 'url'>): Promise<boolean> {
  const server = login.server as unknown as oauth.AuthorizationServer;
  const token = login.refreshToken ?? login.token;
  if (server.revocation_endpoint === undefined || token === undefined) return false;
  try {
    const auth = await clientAuth(server, withSecret(login.client, settings), settings);
    const response = await oauth.revocationRequest(server, login.client, auth, token, httpOptions(guard));
    await oauth.processRevocationResponse(response);
    return true;
  } catch {
    return false;
  }
}

/** The configured scopes, or else those of the challenge, or else all that the server names; and what calls needed. */
function scopesFor(
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
function resourceOf({ resource }: Discovered, url: string): string {
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
async function createBinding(
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
async function again<T>(binding: Binding | null, request: () => Promise<T>): Promise<T> {
  try {
    return await request();
  } catch (error) {
    if (binding === null || !oauth.isDPoPNonceError(error)) throw error;
    return request();
  }
}

type LoginBase = Omit<Login, 'token' | 'at' | 'scopes'>;

function toLogin(
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

/** What went wrong with a request to an authorization server, in a sentence about the server. */
export function grantProblem(error: unknown): string {
  if (error instanceof oauth.ResponseBodyError || error instanceof oauth.AuthorizationResponseError) {
    const { error: code, error_description: text } = error;
    return `was refused a token by its authorization server: ${code}${text ? ` (${text.slice(0, 300)})` : ''}`;
  }
  if (error instanceof oauth.OperationProcessingError || error instanceof oauth.UnsupportedOperationError)
    return `has an authorization server whose answer is refused: ${error.message}`;
  if (error instanceof oauth.WWWAuthenticateChallengeError)
    return 'has an authorization server that does not accept this client';
  return error instanceof Error
    ? error.cause instanceof Error
      ? `${error.message} (${error.cause.message})`
      : error.message
    : String(error);
}

/** Whether the authorization server said that a refresh token is no longer valid, so that trying again is pointless. */
export function isOver(error: unknown): boolean {
  return (
    error instanceof oauth.ResponseBodyError &&
    ['invalid_grant', 'invalid_client', 'unauthorized_client'].includes(error.error)
  );
}
