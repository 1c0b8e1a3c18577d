/** A real authorization server on loopback (oidc-provider), and a simulated user who signs in and consents. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { exportJWK, generateKeyPair, importJWK, type JWK, jwtVerify } from 'jose';
import Provider, { errors, type TokenContext } from 'oidc-provider';
import { atEnd } from './cleanup.ts';

export interface AuthorizationServer {
  readonly issuer: string;
  /** A token for a program, issued for this resource. */
  tokenFor(client: string, resource: string, scope: string): Promise<string>;
  /** Replaces the keys. */
  rotate(): Promise<void>;
  /** Sets the lifetime of new tokens, in seconds. */
  lifetime: number;
  /** How often a token was renewed. */
  readonly renewals: number;
  /** How often a token was given in exchange for another (RFC 8693), which only the client `gateway` may ask for. */
  readonly exchanges: number;
  /** Keeps back the answers to requests for tokens from now on, as if they were lost. */
  losesAnswers: boolean;
}

export const SECRET = 'a-secret-between-two-programs';
export const REDIRECT = 'http://127.0.0.1:9/callback';

export interface ProviderOptions {
  /**
   * It registers no clients and reads their documents in place of that: where it finds the document of this address, which
   * tests cannot reach by its name.
   */
  readonly findDocument?: (address: string) => string;
}

export async function startProvider({ findDocument }: ProviderOptions = {}): Promise<AuthorizationServer> {
  const made = { lifetime: 300, renewals: 0, exchanges: 0, losesAnswers: false };
  const server = createServer((request, response) => {
    if (made.losesAnswers && request.url === '/token') response.end = () => response;
    handle(request, response);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  atEnd(() => {
    server.closeAllConnections();
    server.close();
  });
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;

  const open = async () => {
    const key = await makeKey();
    const provider = new Provider(issuer, configurationWith(key, made, findDocument));
    offerExchange(provider, key, () => made.lifetime);
    provider.on('grant.success', (context) => {
      if (context.oidc.params.grant_type === 'refresh_token') made.renewals++;
      if (context.oidc.params.grant_type === EXCHANGE) made.exchanges++;
    });
    return provider.callback();
  };
  let handle = await open();
  return Object.assign(made, {
    issuer,
    async tokenFor(client: string, resource: string, scope: string) {
      const response = await fetch(`${issuer}/token`, {
        method: 'POST',
        headers: { authorization: `Basic ${Buffer.from(`${client}:${SECRET}`).toString('base64')}` },
        body: new URLSearchParams({ grant_type: 'client_credentials', resource, scope }),
      });
      const { access_token: token } = (await response.json()) as { access_token?: string };
      if (token === undefined) throw new Error(`no token: ${response.status}`);
      return token;
    },
    async rotate() {
      handle = await open();
    },
  });
}

const EXCHANGE = 'urn:ietf:params:oauth:grant-type:token-exchange';

/** A token of this provider, for any resource, is exchanged for one of the same subject for another resource. */
function offerExchange(provider: Provider, key: JWK, lifetime: () => number): void {
  const refuse = (code: string, description: string): never => {
    throw Object.assign(new errors.OIDCProviderError(400, code), { error_description: description });
  };
  const exchange = async (context: TokenContext) => {
    const {
      subject_token: subject,
      subject_token_type: type,
      resource,
    } = context.oidc.params as Record<string, string>;
    if (type !== 'urn:ietf:params:oauth:token-type:access_token') refuse('invalid_request', 'wrong type');
    const { n, e, kty } = key;
    const checked = await jwtVerify(subject ?? '', await importJWK({ kty, n, e } as JWK, 'RS256'), {
      issuer: provider.issuer,
    }).catch(() => refuse('invalid_grant', 'the subject token is not ours'));
    const { sub = '' } = checked.payload;
    if (sub === 'stranger') refuse('invalid_target', 'stranger may not use this server');
    const token = new provider.AccessToken({
      accountId: sub,
      client: context.oidc.client,
      gty: 'token-exchange',
    });
    const info = { scope: 'tools:use tools:more', audience: resource, accessTokenFormat: 'jwt' as const };
    token.resourceServer = new provider.ResourceServer(resource ?? '', {
      ...info,
      accessTokenTTL: lifetime(),
      jwt: { sign: { alg: 'RS256' } },
    });
    token.scope = String(context.oidc.params.scope ?? 'tools:use');
    context.body = {
      access_token: await token.save(),
      issued_token_type: type,
      token_type: 'Bearer',
      expires_in: token.expiration,
    };
  };
  const parameters = ['subject_token', 'subject_token_type', 'requested_token_type', 'resource', 'audience', 'scope'];
  provider.registerGrantType(EXCHANGE, exchange, parameters);
}

async function makeKey(): Promise<JWK> {
  const { privateKey } = await generateKeyPair('RS256', { extractable: true });
  const kid = `key-${Math.random().toString(36).slice(2)}`;
  return { ...(await exportJWK(privateKey)), alg: 'RS256', use: 'sig', kid };
}

function configurationWith(
  key: JWK,
  made: { readonly lifetime: number },
  findDocument: ProviderOptions['findDocument'],
): object {
  const program = (client: string) => ({
    client_id: client,
    client_secret: SECRET,
    grant_types: ['client_credentials'],
    redirect_uris: [],
    response_types: [],
  });
  return {
    jwks: { keys: [key] },
    cookies: { keys: ['a-key-for-cookies'] },
    clients: [
      program('robot-7'),
      program('stranger'),
      { ...program('gateway'), grant_types: ['client_credentials', EXCHANGE] },
    ],
    scopes: ['openid', 'offline_access', 'tools:use', 'tools:more'],
    findAccount: (_: unknown, sub: string) => ({ accountId: sub, claims: () => ({ sub }) }),
    pkce: { required: () => true },
    ...(findDocument !== undefined && { fetch: (address: string) => fetch(findDocument(address)) }),
    features: {
      clientCredentials: { enabled: true },
      registration: { enabled: findDocument === undefined },
      // `ack` says that we know the version of the draft.
      clientIdMetadataDocument: { enabled: findDocument !== undefined, ack: 'draft-02' },
      devInteractions: { enabled: true },
      deviceFlow: { enabled: true },
      dPoP: { enabled: true, nonceSecret: Buffer.alloc(32, 'nonce'), requireNonce: () => true },
      resourceIndicators: {
        enabled: true,
        useGrantedResource: () => true,
        getResourceServerInfo: (_: unknown, resource: string) => ({
          scope: 'tools:use tools:more',
          audience: resource,
          accessTokenFormat: 'jwt',
          accessTokenTTL: made.lifetime,
          jwt: { sign: { alg: 'RS256' } },
        }),
      },
    },
  };
}

/** Follows the URL that a client sends its user to, signs in and consents. Returns the code for the client. */
export async function signIn(start: URL, login: string): Promise<URLSearchParams> {
  const cookies = new Map<string, string>();
  const visit = async (place: string, form?: Record<string, string>) => {
    const headers = { cookie: [...cookies].map(([name, value]) => `${name}=${value}`).join('; ') };
    const body = form && new URLSearchParams(form);
    const response = await fetch(place, {
      method: form ? 'POST' : 'GET',
      redirect: 'manual',
      headers,
      ...(body && { body }),
    });
    for (const cookie of response.headers.getSetCookie()) {
      const [, name, value] = /^([^=]+)=([^;]*)/.exec(cookie)!;
      cookies.set(name!, value!);
    }
    return response;
  };
  let place = start.href;
  const end = start.searchParams.get('redirect_uri') ?? REDIRECT;
  for (let step = 0; step < 12; step++) {
    if (place.startsWith(end)) return new URL(place).searchParams;
    let response = await visit(place);
    if (response.status === 200) {
      const page = await response.text();
      const prompt = page.includes('name="login"') ? 'login' : 'consent';
      response = await visit(place, { prompt, ...(prompt === 'login' && { login, password: 'any' }) });
    }
    const next = response.headers.get('location');
    if (next === null) throw new Error(`stuck at ${place}: ${response.status} ${await response.text()}`);
    place = new URL(next, place).href;
  }
  throw new Error(`too many steps, the last one to ${place}`);
}
