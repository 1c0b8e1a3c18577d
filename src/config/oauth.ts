/** The key `oauth` of a server: how Toolgate gets a token for it. Most servers need none of this: they say it themselves. */
import * as z from 'zod';
import type { ResolveContext } from './context.ts';
import { choice, count, type Section, section, text, textList } from './fields.ts';

/** How a token for a server is obtained. Texts contain references to secrets, which are filled in when they are needed. */
export interface OAuthSettings {
  /** `login`: a person logs in. The others need no person. */
  readonly grant: 'login' | 'client_credentials' | 'jwt_bearer' | 'enterprise' | 'token_exchange';
  /** The id and secret that the authorization server has given to this Toolgate, if somebody registered it there. */
  readonly clientId?: string;
  readonly clientSecret?: string;
  /** The address of a document that describes this client, which is its id at servers that accept that. */
  readonly clientMetadata?: string;
  /** A private key in PEM form, which proves who the client is. */
  readonly privateKey?: string;
  readonly algorithm?: string;
  readonly scopes?: readonly string[];
  /** The only authorization server that is accepted. */
  readonly issuer?: string;
  /** The port of the address that the browser returns to. */
  readonly callbackPort?: number;
  /** For `jwt_bearer`: a JWT that says who this workload is, or the file that it is in. */
  readonly assertion?: string;
  readonly assertionFile?: string;
  /** For `enterprise` and `token_exchange`: the identity provider, and who we are there. */
  readonly idp?: IdentityProvider;
}

/** The provider of an organisation, which decides who may use which server. */
export interface IdentityProvider {
  readonly issuer: string;
  readonly clientId?: string;
  readonly clientSecret?: string;
  /** An ID token of the person, or the file that it is in. */
  readonly idToken?: string;
  readonly idTokenFile?: string;
}

const idpShape = {
  issuer: text().describe('The address of the identity provider.'),
  client_id: text().optional().describe('The id of this Toolgate at the provider.'),
  client_secret: text().optional().describe('The secret that goes with it, as `${secret:NAME}`.'),
  id_token: text().optional().describe('The ID token of the person, as `${secret:NAME}`.'),
  id_token_file: text().optional().describe('A file with the ID token, which is read again for every exchange.'),
};

const oauthShape = {
  grant: choice(['login', 'client_credentials', 'jwt_bearer', 'enterprise', 'token_exchange'])
    .prefault('login')
    .describe(
      '`login`: a person logs in, with `toolgate login`. `client_credentials`: Toolgate itself is the user. ' +
        '`jwt_bearer`: the platform that it runs on says who it is. `enterprise`: the identity provider of the organisation decides. ' +
        '`token_exchange`: the identity provider exchanges the JWT of each agent (RFC 8693), with `credentials = "agent"`.',
    ),
  client_id: text()
    .optional()
    .describe('The id of this Toolgate at the authorization server, if it is registered there.'),
  client_secret: text().optional().describe('The secret that goes with it, as `${secret:NAME}`.'),
  client_metadata: text()
    .optional()
    .describe(
      'The https address of a client id metadata document, for servers that accept one in place of a registration.',
    ),
  private_key: text()
    .optional()
    .describe('A private key (PKCS #8, PEM) in place of a client secret, as `${secret:NAME}`.'),
  algorithm: choice(['ES256', 'ES384', 'RS256', 'PS256', 'Ed25519'])
    .optional()
    .describe('What `private_key` signs with. Default: `ES256`.'),
  scopes: textList().optional().describe('The scopes to ask for. Default: those that the server names.'),
  issuer: text().optional().describe('The only authorization server that is accepted.'),
  callback_port: count(1, 65_535)
    .optional()
    .describe('The port on this machine that the browser returns to, if the registration names one. Default: any.'),
  assertion: text().optional().describe('For `jwt_bearer`: the JWT, as `${secret:NAME}`.'),
  assertion_file: text()
    .optional()
    .describe('For `jwt_bearer`: a file with the JWT, which is read again for every token.'),
  idp: section(idpShape)
    .optional()
    .describe('For `enterprise` and `token_exchange`: the identity provider of the organisation.'),
};

const oauthSection = section(oauthShape).superRefine((oauth, context) => {
  const add = (path: string, message: string) => context.addIssue({ code: 'custom', path: [path], message });
  if (oauth.grant === 'client_credentials') {
    if (oauth.clientId === null) add('client_id', 'is missing: "client_credentials" needs it');
    if (oauth.clientSecret === null && oauth.privateKey === null)
      add('client_secret', 'is missing: "client_credentials" needs it, or "private_key"');
  }
  if (oauth.grant === 'jwt_bearer' && (oauth.assertion === null) === (oauth.assertionFile === null))
    add('assertion', 'give either "assertion" or "assertion_file" for "jwt_bearer"');
  if (oauth.grant === 'enterprise') {
    if (oauth.clientId === null) add('client_id', 'is missing: "enterprise" needs it');
    if (oauth.idp === null) add('idp', 'is missing: "enterprise" needs the identity provider');
    else if ((oauth.idp.idToken === null) === (oauth.idp.idTokenFile === null))
      add('idp', 'give either "id_token" or "id_token_file"');
  }
  if (oauth.grant === 'token_exchange') {
    // Nobody else may decide where the JWT of an agent is sent.
    if (oauth.idp === null) add('idp', 'is missing: "token_exchange" needs the identity provider');
    else if ((oauth.idp.clientId ?? oauth.clientId) === null)
      add('client_id', 'is missing: "token_exchange" needs it, here or in "idp"');
    else if (oauth.idp.idToken !== null || oauth.idp.idTokenFile !== null)
      add('idp', '"id_token" and "id_token_file" are for "enterprise": here each agent brings its own token');
  }
  if (oauth.clientSecret !== null && oauth.clientId === null) add('client_secret', 'needs "client_id"');
  if (oauth.clientMetadata !== null && !oauth.clientMetadata.startsWith('https://'))
    add('client_metadata', 'is not an address that begins with https://');
  for (const [key, address] of [
    ['issuer', oauth.issuer],
    ['idp', oauth.idp?.issuer ?? null],
  ] as const)
    if (address !== null && !/^https?:\/\//.test(address)) add(key, 'is not an address that begins with https://');
});

export const oauthKey = z
  .union([z.literal(false), oauthSection], { error: 'expected false, or a map such as { client_id = "…" }' })
  .optional()
  .describe(
    'How Toolgate gets a token for `url`, if the server asks for one. Most servers need no entry: `toolgate login` finds out. ' +
      '`false`: it is never asked for.',
  );

/** False: no token is ever asked for. Undefined: only if the server asks. */
export type OAuthChoice = OAuthSettings | false | undefined;

export function resolveOAuth(
  written: Section<typeof oauthShape> | false | null,
  { textWithSecrets, path }: ResolveContext,
): OAuthChoice {
  if (written === null) return undefined;
  if (written === false) return false;
  const { idp } = written;
  const text = (key: string, value: string | null) =>
    value === null ? undefined : textWithSecrets(['oauth', key], value);
  const file = (key: string, value: string | null) => (value === null ? undefined : path(['oauth', key], value));
  return present({
    grant: written.grant,
    clientId: text('client_id', written.clientId),
    clientSecret: text('client_secret', written.clientSecret),
    clientMetadata: text('client_metadata', written.clientMetadata),
    privateKey: text('private_key', written.privateKey),
    algorithm: written.algorithm ?? undefined,
    scopes: written.scopes ?? undefined,
    issuer: text('issuer', written.issuer),
    callbackPort: written.callbackPort ?? undefined,
    assertion: text('assertion', written.assertion),
    assertionFile: file('assertion_file', written.assertionFile),
    idp:
      idp === null
        ? undefined
        : present({
            issuer: text('idp', idp.issuer) ?? '',
            clientId: text('idp', idp.clientId),
            clientSecret: text('idp', idp.clientSecret),
            idToken: text('idp', idp.idToken),
            idTokenFile: file('idp', idp.idTokenFile),
          }),
  });
}

/** Without members that are undefined, so that equal settings have equal hashes. */
function present<Value extends object>(value: { [Key in keyof Value]: Value[Key] | undefined }): Value {
  return Object.fromEntries(Object.entries(value).filter(([, one]) => one !== undefined)) as Value;
}

/** The texts that may refer to secrets. */
export function oauthTexts(oauth: OAuthChoice): string[] {
  if (!oauth) return [];
  const { idp, ...own } = oauth;
  return [...Object.values(own), ...Object.values(idp ?? {})].filter((value) => typeof value === 'string');
}

/** The settings with every text replaced. */
export function mapOAuth(oauth: OAuthSettings, fill: (text: string) => string): OAuthSettings {
  const filled = <Value extends object>(value: Value): Value =>
    Object.fromEntries(
      Object.entries(value).map(([key, one]) => [key, typeof one === 'string' ? fill(one) : one]),
    ) as Value;
  return { ...filled(oauth), ...(oauth.idp !== undefined && { idp: filled(oauth.idp) }) };
}

/** The texts that are secret themselves, if they are not written as references. */
export function oauthSecrets({ clientSecret, privateKey, assertion, idp }: Section<typeof oauthShape>): string[] {
  const all = [clientSecret, privateKey, assertion, idp?.clientSecret, idp?.idToken];
  return all.filter((one) => typeof one === 'string');
}
