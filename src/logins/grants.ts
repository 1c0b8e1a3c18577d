/** The ways to a token with a person, in a browser or at another device; and how a login is renewed and ended. */
import { randomUUID } from 'node:crypto';
import { setTimeout } from 'node:timers/promises';
import * as oauth from 'oauth4webapi';
import type { OAuthSettings } from '../config/oauth.ts';
import type { LoginChallenge } from './challenge.ts';
import { chooseClient, clientAuth, httpOptions } from './client.ts';
import { broken, discover, requireWeb } from './discovery.ts';
import type { Login, RegisteredClient } from './record.ts';
import { again, createBinding, type GrantContext, resourceOf, scopesFor, toLogin } from './token.ts';

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

/** A login under way at another device, until `over`. */
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
  over: AbortSignal,
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
  const binding = await createBinding(found, client, null);
  const options = { ...httpOptions(guard), ...binding?.options, additionalParameters: { resource } };
  const started = await oauth.processDeviceAuthorizationResponse(
    server,
    client,
    await oauth.deviceAuthorizationRequest(server, client, auth, parameters, httpOptions(guard)),
  );
  const poll = async (): Promise<Login> => {
    const until = Date.now() + started.expires_in * 1000;
    for (let pause = started.interval ?? 5; ; ) {
      await setTimeout(pause * 1000, undefined, { signal: over });
      try {
        const answer = await again(binding, async () =>
          oauth.processDeviceCodeResponse(
            server,
            client,
            await oauth.deviceCodeGrantRequest(server, client, auth, started.device_code, options),
          ),
        );
        return toLogin({ ...base, id: randomUUID() }, answer, scopes, binding);
      } catch (error) {
        const code = error instanceof oauth.ResponseBodyError ? error.error : '';
        if (code === 'slow_down') pause += 5;
        else if (code !== 'authorization_pending') throw error;
        if (Date.now() > until) throw broken('was not confirmed in time. Log in again');
      }
    }
  };
  const complete = started.verification_uri_complete ?? null;
  for (const address of [started.verification_uri, complete])
    if (address !== null) requireWeb(address, 'verification_uri');
  const done = poll();
  // Nobody may wait for it any more.
  done.catch(() => {});
  return { address: started.verification_uri, code: started.user_code, complete, done };
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
