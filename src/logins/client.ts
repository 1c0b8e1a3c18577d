/** Who we are to an authorization server: registered by a person, described by a document, or registered now. */
import { readFile } from 'node:fs/promises';
import { importPKCS8 } from 'jose';
import * as oauth from 'oauth4webapi';
import { messageOf } from '../base/errors.ts';
import { isLoopback } from '../base/loopback.ts';
import type { OAuthSettings } from '../config/oauth.ts';
import { describes, documentFor } from './client-document.ts';
import { broken } from './discovery.ts';
import type { FetchGuard } from './guarded-fetch.ts';
import type { Login, RegisteredClient } from './record.ts';

/** What the library needs for every request. */
export function httpOptions({ fetch, mayBePlain }: FetchGuard) {
  return {
    [oauth.customFetch]: fetch as unknown as typeof globalThis.fetch,
    [oauth.allowInsecureRequests]: mayBePlain,
  } as const;
}

/**
 * In the order of the protocol: a registration that somebody made, a document, an earlier registration with the same
 * authorization server, a new one. The gateway's own document comes last, unless it is configured: an authorization
 * server may be unable to reach a gateway, and its answer to that is shown to the person only.
 */
export async function chooseClient(
  server: oauth.AuthorizationServer,
  redirect: string,
  known: Login | null,
  settings: OAuthSettings,
  guard: FetchGuard,
): Promise<RegisteredClient> {
  if (settings.clientId !== undefined)
    return {
      client_id: settings.clientId,
      ...(settings.clientSecret !== undefined && { client_secret: settings.clientSecret }),
    };
  const takesDocuments = server.client_id_metadata_document_supported === true;
  const { clientMetadata } = settings;
  if (clientMetadata !== undefined && takesDocuments && describes(clientMetadata, redirect))
    return { client_id: clientMetadata, token_endpoint_auth_method: 'none' };
  if (known !== null && known.issuer === server.issuer && known.redirect === redirect) return known.client;
  if (server.registration_endpoint === undefined) {
    const own = takesDocuments ? documentFor(redirect) : null;
    if (own !== null) return { client_id: own, token_endpoint_auth_method: 'none' };
    const other = takesDocuments
      ? '. Or log in on the page of a gateway whose http.public_url begins with https://: it describes itself'
      : '';
    throw broken(
      `has an authorization server (${server.issuer}) that registers no clients by itself. Register Toolgate there, with the redirect address ${redirect}, and set oauth.client_id and oauth.callback_port${other}`,
    );
  }
  return register(server, redirect, guard);
}

async function register(
  server: oauth.AuthorizationServer,
  redirect: string,
  guard: FetchGuard,
): Promise<RegisteredClient> {
  const methods = server.token_endpoint_auth_methods_supported ?? ['client_secret_basic'];
  const method = ['none', 'client_secret_basic', 'client_secret_post'].find((one) => methods.includes(one));
  const device = 'urn:ietf:params:oauth:grant-type:device_code';
  const metadata = {
    client_name: 'Toolgate',
    redirect_uris: [redirect],
    // Only addresses on this machine belong to a native client.
    application_type: isLoopback(new URL(redirect).hostname) ? 'native' : 'web',
    grant_types: [
      'authorization_code',
      'refresh_token',
      ...(server.grant_types_supported?.includes(device) === true ? [device] : []),
    ],
    response_types: ['code'],
    token_endpoint_auth_method: method ?? 'none',
  };
  const response = await oauth.dynamicClientRegistrationRequest(server, metadata, httpOptions(guard));
  const client = await oauth.processDynamicClientRegistrationResponse(await tolerant(response));
  const { client_id, client_secret, token_endpoint_auth_method } = client;
  return {
    client_id,
    ...(typeof client_secret === 'string' && { client_secret }),
    ...(typeof token_endpoint_auth_method === 'string' && { token_endpoint_auth_method }),
  };
}

/** Many servers answer with 200, or leave out when a secret expires. */
async function tolerant(response: Response): Promise<Response> {
  if (response.status !== 200 && response.status !== 201) return response;
  const body = (await response.json().catch(() => ({}))) as object;
  const headers = { 'content-type': 'application/json' };
  return new Response(JSON.stringify({ client_secret_expires_at: 0, ...body }), { status: 201, headers });
}

/** How the client proves who it is at the token endpoint. */
export async function clientAuth(
  server: oauth.AuthorizationServer,
  client: RegisteredClient,
  { privateKey, algorithm = 'ES256' }: OAuthSettings,
): Promise<oauth.ClientAuth> {
  if (privateKey !== undefined) {
    const key = await importPKCS8(privateKey, algorithm).catch((error: unknown) => {
      throw broken(`cannot be asked: oauth.private_key is not a PKCS #8 key for ${algorithm} (${messageOf(error)})`);
    });
    return oauth.PrivateKeyJwt(key);
  }
  const { client_secret: secret } = client;
  if (secret === undefined) return oauth.None();
  const methods = server.token_endpoint_auth_methods_supported ?? ['client_secret_basic'];
  const method =
    client.token_endpoint_auth_method ??
    ['client_secret_basic', 'client_secret_post', 'none'].find((one) => methods.includes(one));
  if (method === 'none') return oauth.None();
  return method === 'client_secret_post' ? oauth.ClientSecretPost(secret) : basic(client.client_id, secret);
}

/**
 * Like the library's, but letters that need no escape have none: many servers compare without decoding, and to those
 * that decode both are the same.
 */
function basic(id: string, secret: string): oauth.ClientAuth {
  const pair = [id, secret].map((part) => encodeURIComponent(part).replace(/%20/g, '+')).join(':');
  return (_server, _client, _body, headers) => {
    headers.set('authorization', `Basic ${Buffer.from(pair).toString('base64')}`);
  };
}

/** A text of the settings, or the content of the file that they name. */
export async function textOrFile(text: string | undefined, file: string | undefined): Promise<string> {
  if (text !== undefined) return text;
  return (
    await readFile(file ?? '', 'utf8').catch((error: NodeJS.ErrnoException) => {
      throw broken(`needs the file ${file}, which cannot be read (${error.code})`);
    })
  ).trim();
}
