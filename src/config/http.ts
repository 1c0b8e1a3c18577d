/** The section `http`: where the gateway listens, and which tokens of an identity provider it accepts. */
import { isIP } from 'node:net';
import * as z from 'zod';
import { isLoopback } from '../base/loopback.ts';
import { AGENT_NAME, WRONG_NAME } from './agents.ts';
import { type ResolveContext, splitList } from './context.ts';
import { choice, count, duration, flag, type Section, section, text, textList, textMap } from './fields.ts';
import type { Path } from './issues.ts';

export interface HttpConfig {
  readonly host: string;
  readonly port: number;
  /** Values of `Origin` that are accepted in addition to the gateway's own. */
  readonly allowedOrigins: readonly string[];
  /** Host names in `Host` that are accepted in addition to the gateway's own. */
  readonly allowedHosts: readonly string[];
  /** Milliseconds that running calls have to finish when the gateway stops. */
  readonly drain: number;
  /** Milliseconds after which an unused session is forgotten. */
  readonly sessionTtl: number;
  readonly maxSessions: number;
  /** Connections in all, and from one address; null for the defaults. */
  readonly maxConnections: number | null;
  readonly maxConnectionsPerAddress: number | null;
  /** Whether HTTP+SSE of the first revision is offered too. */
  readonly sse: boolean;
  /** Whether clients have to name the namespace that they want to see. */
  readonly requireNamespace: boolean;
  readonly requireClientId: boolean;
  /** Whether calls are accepted at the addresses that mcpo uses. */
  readonly mcpo: boolean;
  /** Whether `toolgate serve` has its dashboard. */
  readonly dashboard: boolean;
  /** The address of `/mcp` as clients know it; null if it is that of `host` and `port`. */
  readonly publicUrl: string | null;
  /** Agents that may see what concerns the whole gateway. */
  readonly admins: readonly string[];
  /** Whether the header `X-Agent-Id` names the agent. */
  readonly trustAgentHeader: boolean;
  /** Who may use `/reload`: holders of the token, from these networks. A null token turns it off for everyone. */
  readonly manager: { readonly token: () => string | null; readonly networks: readonly string[] };
  /** The issuers whose JWTs are accepted, each under a name of its own. */
  readonly jwt: readonly JwtConfig[];
  /** Null: plain HTTP. */
  readonly tls: TlsConfig | null;
}

/** TLS of the gateway's own. Its files are read when it starts, and again when they change. */
export interface TlsConfig {
  /** The certificate with its chain, and its key: PEM files. */
  readonly cert: string;
  readonly key: string;
  /** Which client certificates are accepted; null for none. */
  readonly clients: ClientCertificates | null;
}

export interface ClientCertificates {
  /** The certificates of the authorities: a PEM file. */
  readonly ca: string;
  /** Whether a connection without an accepted certificate is refused. */
  readonly isRequired: boolean;
  /** Patterns over names such as `CN:laptop` or `URI:spiffe://…`, and their agents; null if the common name is the agent. */
  readonly agents: readonly { readonly name: string; readonly agent: string }[] | null;
}

/** Which tokens of an identity provider are accepted. */
export interface JwtConfig {
  readonly issuer: string;
  /** Null: the public address. */
  readonly audience: readonly string[] | null;
  /** Null: what the issuer's metadata says. */
  readonly jwksUri: string | null;
  readonly algorithms: readonly string[];
  readonly agentClaim: string;
  /** Patterns over the claim, and the agents they stand for; null if the claim is the agent's name. */
  readonly agents: readonly { readonly claim: string; readonly agent: string }[] | null;
  /** The claim with the tasks that a token may be used for; null if tokens are not bound to tasks. */
  readonly taskClaim: string | null;
  readonly requiredScopes: readonly string[];
  /** Milliseconds. */
  readonly clockSkew: number;
}

/** Asymmetric signatures: they need a private key, which only the issuer has. */
const ALGORITHMS = [
  'RS256',
  'RS384',
  'RS512',
  'PS256',
  'PS384',
  'PS512',
  'ES256',
  'ES384',
  'ES512',
  'EdDSA',
  'Ed25519',
] as const;
const MAX_SKEW = 60_000;
const MAX_PORT = 65_535;
const HOUR = 3_600_000;
/** This machine, and the fixed address of the manager in its container network. */
const MANAGER_NETWORKS = ['172.30.0.10/32', '127.0.0.1/32'];

const jwtShape = {
  issuer: text().describe('Who signs the tokens: the exact value of their claim `iss`, a URL.'),
  audience: z
    .union([text(), textList()], { error: 'expected a string or a list of strings' })
    .optional()
    .describe('Whom tokens must be issued for: one of these in their claim `aud`. Default: `public_url`.'),
  jwks_uri: text().optional().describe("Where the issuer's keys are. Default: what its metadata says."),
  algorithms: z
    .array(z.enum(ALGORITHMS, { error: `expected one of ${ALGORITHMS.join(', ')}` }), {
      error: 'expected a list such as ["RS256"]',
    })
    .min(1, { error: 'needs at least one algorithm' })
    .prefault(['RS256', 'PS256', 'ES256', 'ES384', 'EdDSA', 'Ed25519'])
    .describe('Signatures that are accepted.'),
  agent_claim: text().prefault('sub').describe('The claim that names the agent.'),
  agents: textMap(/^[^\0]+$/, 'expected the value of a claim, or a pattern')
    .optional()
    .describe(
      'Values of that claim, or patterns over them, and the agent that each stands for; the first match counts, and other values are refused. Default: the value is the name of the agent.',
    ),
  task_claim: text()
    .optional()
    .describe(
      'The claim with the task that a token may be used for, or a list of tasks. A token without it is refused. Default: tokens are good for any task.',
    ),
  required_scopes: z
    .array(
      text().regex(/^[\x21\x23-\x5b\x5d-\x7e]+$/, { error: 'is not a scope: it must not contain spaces or quotes' }),
      {
        error: 'expected a list of strings',
      },
    )
    .prefault([])
    .describe('Scopes that a token must have, all of them.'),
  clock_skew: duration(0)
    .refine((value) => value <= MAX_SKEW, { error: 'must be at most "60s"' })
    .prefault('30s')
    .describe('How far the clocks of the issuer and of this machine may differ; at most 60 s.'),
};

const jwtSection = section(jwtShape, { id: 'JwtIssuer', description: 'Tokens of an identity provider.' });

const tlsShape = {
  cert: text().describe(
    'The certificate of the gateway with its chain: a PEM file, relative to the folder of this file. It is read again when it changes.',
  ),
  key: text().describe('The private key of the certificate: a PEM file without a passphrase.'),
  client_ca: text()
    .optional()
    .describe('Lets clients in with certificates of these authorities: a PEM file. It is read again when it changes.'),
  client_auth: choice(['required', 'optional'])
    .optional()
    .describe(
      '`required`: connections without such a certificate are refused. `optional`: clients may also use a token. Default: `required`.',
    ),
  agents: textMap(/^(?:CN|DNS|URI|EMAIL):./, 'expected a name that begins with "CN:", "DNS:", "URI:" or "EMAIL:"')
    .optional()
    .describe(
      'Names in client certificates, or patterns over them, and the agent that each stands for: `"URI:spiffe://example.org/ci/*" = "ci"`. ' +
        'The first match counts, and other certificates are refused. Default: the common name is the name of the agent.',
    ),
};

const httpShape = {
  host: text().prefault('127.0.0.1').describe('Address to listen on.'),
  port: count(0, MAX_PORT)
    .optional()
    .describe(
      'Port to listen on; 0 takes any free one. The environment variable CORE_PORT overrides this. Default: the ' +
        'environment variable PORT if it is a port, else 8808.',
    ),
  allowed_origins: textList()
    .prefault([])
    .describe("Values of the header `Origin` that are accepted in addition to the gateway's own."),
  allowed_hosts: textList()
    .prefault([])
    .describe("Host names in the header `Host` that are accepted in addition to the gateway's own."),
  drain: duration(0)
    .prefault('20s')
    .describe('How long `toolgate serve` waits for running calls when it is told to stop.'),
  session_ttl: duration(1).prefault('24h').describe('An unused session is forgotten after this long.'),
  max_sessions: count(1, 10_000_000)
    .prefault(100_000)
    .describe('How many sessions are kept; beyond that the least recently used one is forgotten.'),
  max_connections: count(1, 1_000_000)
    .optional()
    .describe('How many connections may be open. Default: half of the files that may be open, at most 10,000.'),
  max_connections_per_address: count(1, 1_000_000)
    .optional()
    .describe('How many of them may come from one address. Default: half. Behind a proxy all have one address.'),
  sse: flag()
    .prefault(true)
    .describe(
      'Also offers HTTP+SSE of the first revision, at `/sse` and `/messages`. The environment variable ENABLE_LEGACY_MCP overrides this.',
    ),
  require_namespace: flag()
    .prefault(false)
    .describe(
      'Every client has to name the namespace that it wants to see, in the header `X-Namespace` or in the URL.',
    ),
  require_client_id: flag()
    .prefault(false)
    .describe('Every client of `/mcp` and `/sse` has to send a stable id of its own, in the header `mcp-client-id`.'),
  mcpo: flag()
    .prefault(false)
    .describe(
      'Also accepts calls at `/NAMESPACE/TOOL`, as mcpo does, with `/NAMESPACE/openapi.json` and `/NAMESPACE/docs`.',
    ),
  dashboard: flag()
    .prefault(true)
    .describe('Whether `toolgate serve` has its dashboard at `/`, for those who open it with `toolgate dashboard`.'),
  public_url: text()
    .optional()
    .describe(
      'The URL of `/mcp` as clients know it, such as "https://tools.example.com/mcp"; tokens are issued for it. Default: that of `host` and `port`, on loopback.',
    ),
  admins: textList()
    .prefault(['default'])
    .describe('Agents that may read `/metrics` and everything else that concerns the whole gateway.'),
  trust_agent_header: flag()
    .prefault(false)
    .describe(
      'Lets the header `X-Agent-Id` name the agent. Only for networks where every client may act as any agent.',
    ),
  jwt: z
    .union([jwtSection, z.array(jwtSection)], { error: 'expected a map, or a list of maps' })
    .optional()
    .describe('Lets clients in with tokens of an identity provider, or of several: `[[http.jwt]]`.'),
  tls: section(tlsShape, { description: 'TLS of the gateway itself.' })
    .optional()
    .describe('Serves HTTPS with this certificate, instead of plain HTTP.'),
};

export const httpSchema = section(httpShape);

export function resolveHttp(http: Section<typeof httpShape>, context: ResolveContext): HttpConfig {
  const { text, texts, variable, flagVariable, numberVariable } = context;
  const managerToken = context.env.MANAGER_INTERNAL_TOKEN || null;
  return {
    ...http,
    publicUrl: http.publicUrl === null ? null : resolvePublicUrl(http.publicUrl, context),
    admins: texts(['http', 'admins'], http.admins),
    jwt: resolveIssuers(http.jwt, context),
    tls: http.tls === null ? null : resolveTls(http.tls, context),
    host: text(['http', 'host'], http.host),
    port: variable('CORE_PORT', `a port from 0 to ${MAX_PORT}`, readPort) ?? http.port ?? hostingPort(context),
    allowedOrigins:
      variable('CORS_ORIGINS', 'a list of origins', splitList) ??
      texts(['http', 'allowed_origins'], http.allowedOrigins),
    allowedHosts: texts(['http', 'allowed_hosts'], http.allowedHosts),
    sessionTtl: numberVariable('MCP_SESSION_TTL_HOURS', 0.0001, 590, HOUR) ?? http.sessionTtl,
    sse: flagVariable('ENABLE_LEGACY_MCP') ?? http.sse,
    manager: {
      token: () => managerToken,
      networks:
        variable('INTERNAL_ALLOWED_CIDRS', 'a list of networks such as 10.0.0.0/8', readNetworks) ?? MANAGER_NETWORKS,
    },
  };
}

const DEFAULT_PORT = 8808;

/** Many places that run programs set PORT. It may be meant for another program, so nothing is refused because of it. */
function hostingPort({ env }: ResolveContext): number {
  return readPort(env.PORT ?? '') ?? DEFAULT_PORT;
}

function readPort(text: string): number | null {
  return /^\d{1,5}$/.test(text) && Number(text) <= MAX_PORT ? Number(text) : null;
}

function readNetworks(text: string): string[] | null {
  const networks = splitList(text);
  return networks.every(isNetwork) ? networks : null;
}

function isNetwork(text: string): boolean {
  const [base = '', bits, ...more] = text.split('/');
  const maxBits = isIP(base) === 6 ? 128 : 32;
  return (
    isIP(base) !== 0 && more.length === 0 && (bits === undefined || (/^\d+$/.test(bits) && Number(bits) <= maxBits))
  );
}

/** Without a fragment and without a slash at its end, as the specification of OAuth resources requires. */
function resolvePublicUrl(written: string, { text, add }: ResolveContext): string {
  const path = ['http', 'public_url'];
  const expanded = text(path, written);
  const url = httpUrl(expanded);
  if (url === null || url.search !== '' || url.hash !== '' || url.username !== '') {
    add(path, 'is not an address such as "https://tools.example.com/mcp", without "?" and "#"');
    return expanded;
  }
  return url.origin + url.pathname.replace(/\/+$/, '');
}

type JwtSection = Section<typeof jwtShape>;

/** A token's `iss` names its issuer, so an issuer is listed once. */
function resolveIssuers(jwt: JwtSection | readonly JwtSection[] | null, context: ResolveContext): JwtConfig[] {
  if (jwt === null) return [];
  const isList = Array.isArray(jwt);
  const all: readonly JwtSection[] = isList ? jwt : [jwt];
  const place = (i: number): Path => (isList ? ['http', 'jwt', i] : ['http', 'jwt']);
  const issuers = all.map((one, i) => resolveJwt(one, place(i), context));
  for (const [i, { issuer }] of issuers.entries())
    if (issuers.findIndex((one) => one.issuer === issuer) < i)
      context.add([...place(i), 'issuer'], 'is listed twice. Keep one entry for each issuer');
  return issuers;
}

function resolveTls(tls: Section<typeof tlsShape>, { path, add }: ResolveContext): TlsConfig {
  const at = (key: string): Path => ['http', 'tls', key];
  for (const [name, agent] of Object.entries(tls.agents ?? {}))
    if (!AGENT_NAME.test(agent)) add([...at('agents'), name], WRONG_NAME);
  if (tls.clientCa === null)
    for (const [key, value] of Object.entries({ client_auth: tls.clientAuth, agents: tls.agents }))
      if (value !== null) add(at(key), 'has no effect without "client_ca"');
  return {
    cert: path(at('cert'), tls.cert),
    key: path(at('key'), tls.key),
    clients:
      tls.clientCa === null
        ? null
        : {
            ca: path(at('client_ca'), tls.clientCa),
            isRequired: tls.clientAuth !== 'optional',
            agents: tls.agents && Object.entries(tls.agents).map(([name, agent]) => ({ name, agent })),
          },
  };
}

function resolveJwt(jwt: JwtSection, place: Path, { text, add }: ResolveContext): JwtConfig {
  const at = (key: string): Path => [...place, key];
  const address = (key: string, written: string): string => {
    const expanded = text(at(key), written);
    const url = httpUrl(expanded);
    if (url === null) add(at(key), 'is not an address such as "https://login.example.com"');
    else if (url.protocol !== 'https:' && !isLoopback(url.hostname))
      add(at(key), 'must begin with https, because the server there decides who gets in; http is for loopback only');
    return expanded;
  };
  const audience = typeof jwt.audience === 'string' ? [jwt.audience] : jwt.audience;
  if (audience?.length === 0) add(at('audience'), 'is empty. Name an audience, or leave it out');
  for (const [claim, agent] of Object.entries(jwt.agents ?? {}))
    if (!AGENT_NAME.test(agent)) add([...at('agents'), claim], WRONG_NAME);
  return {
    ...jwt,
    issuer: address('issuer', jwt.issuer),
    audience: audience?.map((one) => text(at('audience'), one)) ?? null,
    jwksUri: jwt.jwksUri === null ? null : address('jwks_uri', jwt.jwksUri),
    agents: jwt.agents && Object.entries(jwt.agents).map(([claim, agent]) => ({ claim, agent })),
  };
}

function httpUrl(text: string): URL | null {
  return URL.canParse(text) && /^https?:\/\//i.test(text) ? new URL(text) : null;
}
