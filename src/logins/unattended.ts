/** The ways to a token without a person: for Toolgate itself, for its workload, for an organisation, or in exchange for another token. */
import { randomUUID } from 'node:crypto';
import * as oauth from 'oauth4webapi';
import type { LoginChallenge } from './challenge.ts';
import { clientAuth, httpOptions, textOrFile } from './client.ts';
import { broken, type Discovered, describeIssuer, describeResource, discover } from './discovery.ts';
import { createGuard, type FetchGuard } from './guarded-fetch.ts';
import type { Login, RegisteredClient } from './record.ts';
import { again, createBinding, type GrantContext, resourceOf, scopesFor, toLogin } from './token.ts';

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
  return atProvider(idp.issuer, async (server, own) => {
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
  });
}

/** The operator has named the provider, so it may be in the operator's network. What it names may be, too, but not for a server. */
async function atProvider<T>(
  issuer: string,
  work: (server: oauth.AuthorizationServer, own: FetchGuard) => Promise<T>,
): Promise<T> {
  const own = await createGuard(issuer);
  try {
    const server = await describeIssuer(issuer, own);
    if (server === null) throw broken(`needs the identity provider ${issuer}, which does not describe itself`);
    return await work(server, own);
  } finally {
    void own.close();
  }
}

/** Asks the identity provider of the organisation for a grant at the server's authorization server. */
async function exchangeIdToken(
  audience: string,
  resource: string,
  scope: string | undefined,
  { settings }: GrantContext,
): Promise<string> {
  const { idp } = settings;
  if (idp === undefined) throw broken('needs oauth.idp');
  return atProvider(idp.issuer, async (server, own) => {
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
      httpOptions(own),
    );
    const answer = await oauth.processGenericTokenEndpointResponse(server, client, response, {
      // The result is no token for a server, so it has no such type.
      recognizedTokenTypes: { n_a: () => {} },
    });
    return answer.access_token;
  });
}
